"""Check the pages on failures and attacks: each of their rows names tests, and these tests exist.

Tests that any other page names must exist too.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Final

PAGES: Final = ("docs/reliability.md", "docs/attacks.md")

_TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_RULER = re.compile(r"\|[\s|:-]+\|")


def unshown(root: Path) -> list[str]:
    """Return each row of the pages' tables that names no test, or one that is not there."""
    return [offence for page in PAGES for offence in _unshown(root, page)]


def _unshown(root: Path, page: str) -> list[str]:
    offences = []
    lines = (root / page).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        is_head = number < len(lines) and _RULER.fullmatch(lines[number]) is not None
        if not line.startswith("|") or is_head or _RULER.fullmatch(line):
            continue
        tests = _TEST.findall(line)
        if not tests:
            offences.append(f"{page}:{number}: names no test")
        offences += [
            f"{page}:{number}: there is no {name} in {path}"
            for path, name in tests
            if name not in _tests_of(root / path)
        ]
    return offences


def missing(root: Path) -> list[str]:
    """Return each test that a page of the documentation names and that is not there."""
    offences = []
    for page in sorted((root / "docs").rglob("*.md")):
        named = _TEST.findall(page.read_text(encoding="utf-8"))
        offences += [
            f"{page.relative_to(root)}: there is no {name} in {path}"
            for path, name in named
            if name not in _tests_of(root / path)
        ]
    return offences


@cache
def _tests_of(path: Path) -> set[str]:
    """Return the names of the test functions of a file; none where there is no such file."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.name.startswith("test_")
    }
