"""The repository's texts name no one's workplace and no registry, and their links lead on."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.house import texts
from support.trees import write_tree

ROOT = Path(__file__).resolve().parents[2]

SLASH = "/"


def test_this_tree_names_no_workplace() -> None:
    assert texts.workplace_paths(ROOT) == []


def test_this_tree_names_no_registry() -> None:
    assert texts.registry_hosts(ROOT) == []


def test_links_of_this_tree_lead_somewhere() -> None:
    assert texts.dead_links(ROOT) == []


def test_the_lock_of_the_javascript_peers_names_no_download_address() -> None:
    lock = json.loads((ROOT / "tests/interop/package-lock.json").read_text(encoding="utf-8"))
    assert [name for name, entry in lock["packages"].items() if "resolved" in entry] == []


@pytest.mark.parametrize("place", ["work/main/router", "home/someone/trioute", "Users/someone"])
@pytest.mark.parametrize("around", ["{}", "see `{}`", 'path = "{}"', "# file://{}"])
def test_a_workplace_is_found(tmp_path: Path, place: str, around: str) -> None:
    tree = write_tree(tmp_path, {"docs/x.md": "one\n" + around.format(f"{SLASH}{place}/x") + "\n"})
    assert len(texts.workplace_paths(tree)) == 1


@pytest.mark.parametrize(
    "text", ["network/work/x", "a work/rest balance", "./work/x", "/workspace", "https://x/home/y"]
)
def test_other_paths_are_taken(tmp_path: Path, text: str) -> None:
    assert texts.workplace_paths(write_tree(tmp_path, {"docs/x.md": text})) == []


def test_a_registry_is_found(tmp_path: Path) -> None:
    lock = '{"resolved": "https://registry.' + 'npmjs.org/rhea"}\n'
    assert len(texts.registry_hosts(write_tree(tmp_path, {"package-lock.json": lock}))) == 1


def test_only_what_git_keeps_is_read(tmp_path: Path) -> None:
    path = f"{SLASH}work/x\n"
    tree = write_tree(
        tmp_path,
        {".gitignore": "ignored.md\n", "ignored.md": path, "new.md": path, "added.md": path},
    )
    for command in (["init", "-q"], ["add", "added.md"]):
        subprocess.run(["git", *command], cwd=tree, check=True)
    assert [line.split(":")[0] for line in texts.workplace_paths(tree)] == ["added.md", "new.md"]


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = """
        [gone](gone.md) and ![picture](pictures/gone.png), but [there](../README.md#top),
        [here](#top), [a page](https://example.org/x) and [root](/README.md).

        ```
        [not a link](in-code.md)
        ```
        """
    tree = write_tree(tmp_path, {"README.md": "", "docs/x.md": page})
    assert texts.dead_links(tree) == [
        "docs/x.md: there is no gone.md",
        "docs/x.md: there is no pictures/gone.png",
    ]
