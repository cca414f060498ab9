"""Claims about failures and attacks are backed by tests.

Each row of the pages names tests, and these exist, as do those that any other page names.
"""

from __future__ import annotations

from pathlib import Path

from support.house import reliability
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]


def test_each_row_of_this_tree_s_page_is_shown() -> None:
    assert reliability.unshown(ROOT) == []


def test_the_tests_that_this_tree_s_pages_name_are_there() -> None:
    assert reliability.missing(ROOT) == []


def test_a_test_that_a_page_names_and_that_is_not_there_is_found(tmp_path: Path) -> None:
    page = "It is 2.2 (`tests/a/test_b.py::test_one`), or 3 (`tests/a/test_b.py::test_two`)."
    tree = write_tree(
        tmp_path,
        {"docs/reference/limits.md": page, "tests/a/test_b.py": "def test_one():\n    pass\n"},
    )
    assert reliability.missing(tree) == [
        "docs/reference/limits.md: there is no test_two in tests/a/test_b.py"
    ]


def test_rows_without_a_test_and_tests_that_are_not_there_are_found(tmp_path: Path) -> None:
    page = """
        | | what happens | shown by |
        |---|---|---|
        | senders | go on | `tests/a/test_b.py::test_one`, `tests/a/test_b.py::test_two` |
        | receivers | go on | |
        | lost | nothing | `tests/a/test_c.py::test_one` |
        | reported | twice | `tests/a/test_b.py::helper` |
        """
    tests = "async def test_one():\n    pass\n\ndef helper():\n    pass\n"
    pages = {"docs/reliability.md": page, "docs/attacks.md": "| a |\n|---|\n| no test |\n"}
    tree = write_tree(tmp_path, {**pages, "tests/a/test_b.py": tests})
    assert [offence.partition(": ")[2] for offence in reliability.unshown(tree)] == [
        "there is no test_two in tests/a/test_b.py",
        "names no test",
        "there is no test_one in tests/a/test_c.py",
        "there is no helper in tests/a/test_b.py",
        "names no test",
    ]
