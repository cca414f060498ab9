"""The index of decisions has every page, with its title and area."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.house import decisions
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "docs/decisions/0001-a.md": "# 1. One\n",
    "docs/decisions/0002-b.md": "# 0002: Two\n",
}


def test_the_index_of_this_tree_is_current() -> None:
    # To bring it up to date: make docs
    page = (ROOT / decisions.PAGE).read_text(encoding="utf-8")
    assert page == decisions.format_index(ROOT), "the index is stale: make docs"


def test_pages_are_listed_by_area_with_their_state(tmp_path: Path) -> None:
    areas = '"area" = [2, 1]\n[superseded]\n1 = 2\n'
    tree = write_tree(tmp_path, PAGES | {"docs/decisions/areas.toml": areas})
    assert decisions.format_index(tree).splitlines()[-2:] == [
        "| 2 | [Two](0002-b.md) | in force |",
        "| 1 | [One](0001-a.md) | superseded by 2 |",
    ]


@pytest.mark.parametrize(
    ("areas", "wrong"),
    [
        ('"a" = [1]\n[superseded]\n', r"\[2\]"),
        ('"a" = [1, 2, 3]\n[superseded]\n', r"\[3\]"),
        ('"a" = [1, 2]\n"b" = [2]\n[superseded]\n', "twice"),
    ],
)
def test_a_page_without_an_area_is_found(tmp_path: Path, areas: str, wrong: str) -> None:
    tree = write_tree(tmp_path, PAGES | {"docs/decisions/areas.toml": areas})
    with pytest.raises(ValueError, match=wrong):
        decisions.format_index(tree)


def test_a_page_without_its_number_is_found(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"docs/decisions/0003-c.md": "# Three\n"})
    with pytest.raises(ValueError, match=r"0003-c\.md"):
        decisions.titles(tree)
