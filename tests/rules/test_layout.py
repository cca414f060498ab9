"""Modules have tests and telling names, none is long, and .pxd marks the data plane."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.house import layout, tree as source_tree
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]

WITHOUT_TEST: frozenset[str] = frozenset()
"""Modules that have no mirrored test, by path; each needs a reason beside it."""

GENERATED: frozenset[str] = frozenset()
"""Modules that a program writes, by path: nobody reads them as prose."""


def test_every_module_of_this_tree_has_its_test() -> None:
    assert layout.unmirrored_modules(ROOT, WITHOUT_TEST) == []


def test_the_data_plane_of_this_tree_is_marked() -> None:
    assert layout.misplaced_declarations(ROOT) == []


def test_names_of_this_tree_say_what_is_inside() -> None:
    assert layout.empty_names(ROOT) == []


def test_modules_of_this_tree_are_short() -> None:
    assert layout.module_lengths(ROOT, GENERATED) == []


def test_the_layout_in_contributing_is_current() -> None:
    # To bring it up to date: make docs
    page = (ROOT / source_tree.PAGE).read_text(encoding="utf-8")
    assert page == source_tree.format_page(ROOT), "the layout is stale: make docs"


def test_each_package_is_shown_with_its_first_line(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path,
        {
            "router/__init__.py": '"""A router."""',
            "router/amqp/__init__.py": '"""Wire format.\n\nMore."""',
            "plugins/router_x/router_x/__init__.py": '"""X."""',
            "CONTRIBUTING.md": f"a\n{source_tree.BEGIN}\nold\n{source_tree.END}\nb\n",
        },
    )
    lines = source_tree.format_page(tree).splitlines()
    assert [line.split() for line in lines[4:7]] == [
        ["router/", "A", "router"],
        ["amqp/", "Wire", "format"],
        ["router_x/", "X"],
    ]
    assert (lines[0], lines[-1]) == ("a", "b")


def test_without_its_marks_the_page_is_refused(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"router/__init__.py": "", "CONTRIBUTING.md": "nothing"})
    with pytest.raises(ValueError, match="lacks"):
        source_tree.format_page(tree)


def test_a_module_without_its_test_is_found(tmp_path: Path) -> None:
    tree = write_tree(
        tmp_path,
        {
            "router/__init__.py": "",
            "router/__main__.py": "",
            "router/node.py": "",
            "router/amqp/decode.py": "",
            "router/amqp/encode.py": "",
            "router/amqp/_tables.py": "",
            "tests/test_node.py": "",
            "tests/amqp/test_decode.py": "",
            "tests/amqp/test_tables.py": "",
            "tests/test_encode.py": "",  # in the wrong folder
        },
    )
    assert layout.unmirrored_modules(tree) == [
        "router/amqp/encode.py: there is no tests/amqp/test_encode.py"
    ]
    assert layout.unmirrored_modules(tree, {"router/amqp/encode.py"}) == []


def test_an_exception_that_is_no_longer_needed_is_found(tmp_path: Path) -> None:
    tree = write_tree(tmp_path, {"router/node.py": "", "tests/test_node.py": ""})
    assert layout.unmirrored_modules(tree, {"router/node.py"}) == [
        "router/node.py: has its test; take it off the list of exceptions"
    ]


@pytest.mark.parametrize("room", ["amqp", "engine", "core"])
def test_a_pxd_beside_its_module_is_taken(tmp_path: Path, room: str) -> None:
    tree = write_tree(tmp_path, {f"router/{room}/x.py": "", f"router/{room}/x.pxd": ""})
    assert layout.misplaced_declarations(tree) == []


@pytest.mark.parametrize(
    "files",
    [
        {"router/amqp/x.pxd": ""},
        {"router/control/x.py": "", "router/control/x.pxd": ""},
        {"router/node.py": "", "router/node.pxd": ""},
        {"router/amqp/x.pyx": ""},
        {"router/amqp/x.c": ""},
    ],
)
def test_a_misplaced_declaration_is_found(tmp_path: Path, files: dict[str, str]) -> None:
    assert len(layout.misplaced_declarations(write_tree(tmp_path, files))) == 1


@pytest.mark.parametrize(
    "path",
    [
        "router/utils.py",
        "router/core/common.py",
        "router/net/_helpers.py",
        "router/control/manager.py",
        "router/base/x.py",
        "plugins/example/util.py",
    ],
)
def test_an_empty_name_is_found(tmp_path: Path, path: str) -> None:
    tree = write_tree(tmp_path, {path: "", "router/management/agent.py": "", "router/py.typed": ""})
    assert len(layout.empty_names(tree)) == 1


def test_a_long_module_is_found(tmp_path: Path) -> None:
    long = "x = 1\n" * (layout.LONGEST_LINES + 1)
    short = "x = 1\n" * layout.LONGEST_LINES
    tree = write_tree(
        tmp_path,
        {"router/long.py": long, "router/short.py": short}
        | {f"router/{name}.py": "" for name in "abc"},
    )
    assert layout.module_lengths(tree) == [
        "router/long.py: 451 lines, more than 450: move out what runs rarely"
    ]
    assert layout.module_lengths(tree, {"router/long.py"}) == []


def test_a_high_median_is_found(tmp_path: Path) -> None:
    lines = "x = 1\n" * layout.MEDIAN_LINES
    files = {"router/a.py": lines, "router/b.py": lines, "router/c.py": ""}
    # A nearly empty __init__.py in every folder must not hide it.
    files |= {f"router/{folder}/__init__.py": "" for folder in ("x", "y", "z")}
    assert layout.module_lengths(write_tree(tmp_path, files)) == [
        "router: the median module has 200 lines"
    ]
