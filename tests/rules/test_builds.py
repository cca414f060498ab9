"""The suite refuses a build that it was not meant to test: stale, broken, or the other one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from router import build

from support import builds
from support.trees import EXTENSION, write_tree

TREE = {
    "router/__init__.py": "",
    "router/node.py": "",
    "router/core/forwarding/forward.py": "",
    "router/core/forwarding/forward.pxd": "",
    "router/core/addresses/table.py": "",
    "router/core/addresses/table.pxd": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write a source tree and return its package folder."""
    return write_tree(tmp_path / "tree", TREE) / "router"


def install(
    tree: Path, *, compiled: tuple[str, ...] = ("core/forwarding/forward", "core/addresses/table")
) -> Path:
    """Install the tree as the wheel does, with empty files for compiled modules."""
    installed = tree.parent.parent / "site-packages" / "router"
    shutil.copytree(tree, installed)
    for module in compiled:
        (installed / (module + EXTENSION)).touch()
    contents = {"sources": build.source_hashes(tree)}
    (installed / build.RECORD_NAME).write_text(json.dumps(contents), encoding="utf-8")
    return installed


def test_a_fresh_compiled_build_is_taken(tree: Path) -> None:
    assert builds.complaint(install(tree), tree, {builds.EXPECT: "compiled"}) == ""


def test_the_tree_itself_is_taken_as_the_interpreted_build(tree: Path) -> None:
    assert builds.complaint(tree, tree, {builds.EXPECT: "interpreted"}) == ""


@pytest.mark.parametrize(
    "edited", ["core/forwarding/forward.py", "core/forwarding/forward.pxd", "node.py"]
)
def test_an_edited_source_makes_the_build_stale(tree: Path, edited: str) -> None:
    installed = install(tree)
    (tree / edited).write_text("# edited since\n", encoding="utf-8")
    wrong = builds.complaint(installed, tree, {})
    assert "stale build" in wrong
    assert edited in wrong


def test_an_added_or_removed_source_makes_the_build_stale(tree: Path) -> None:
    installed = install(tree)
    (tree / "net.py").touch()
    (tree / "node.py").unlink()
    assert builds.differing_sources(installed, tree) == ["net.py", "node.py"]


def test_a_build_without_a_record_is_judged_by_the_sources_it_ships(tree: Path) -> None:
    installed = install(tree)
    (installed / build.RECORD_NAME).unlink()
    assert builds.complaint(installed, tree, {}) == ""
    (tree / "node.py").write_text("# edited since\n", encoding="utf-8")
    assert "stale build" in builds.complaint(installed, tree, {})


def test_the_other_build_is_refused(tree: Path) -> None:
    asked_for_compiled = builds.complaint(tree, tree, {builds.EXPECT: "compiled"})
    assert "asks for the compiled build" in asked_for_compiled
    asked_for_interpreted = builds.complaint(install(tree), tree, {builds.EXPECT: "interpreted"})
    assert "asks for the interpreted build" in asked_for_interpreted


def test_a_half_compiled_build_is_refused(tree: Path) -> None:
    installed = install(tree, compiled=("core/addresses/table",))
    assert "broken build" in builds.complaint(installed, tree, {})


def test_compiled_modules_in_the_source_tree_are_refused(tree: Path) -> None:
    for module in ("core/forwarding/forward", "core/addresses/table"):
        (tree / (module + EXTENSION)).touch()
    assert "shadow it" in builds.complaint(tree, tree, {})
