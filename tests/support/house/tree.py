"""Layout of the source tree, as CONTRIBUTING shows it: each package with its first line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PAGE: Final = "CONTRIBUTING.md"
BEGIN: Final = "<!-- layout: begin (written by docs/generate.py, do not edit) -->"
END: Final = "<!-- layout: end -->"
WIDTH: Final = 28

TOPS: Final = ("router", "plugins")


def packages(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each package with the first line of its docstring, the nested ones behind their own."""
    for top in TOPS:
        for path in sorted((root / top).rglob("__init__.py")):
            if "build" not in path.relative_to(root).parts:
                docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
                first = (docstring or "").split("\n", 1)[0]
                yield path.parent.relative_to(root).as_posix(), first.removesuffix(".")


def format_layout(root: Path) -> str:
    """Return the layout as a Markdown code block between its marks."""
    lines = []
    for name, first in packages(root):
        folders = name.split("/")
        # plugins/x/x is on the level of router/x
        depth = len(folders) - 2 if folders[0] == "plugins" else len(folders) - 1
        lines.append(f"{'  ' * depth + folders[-1] + '/':{WIDTH}}{first}".rstrip())
    return "\n".join([BEGIN, "", "```", *lines, "```", "", END])


def format_page(root: Path) -> str:
    """Return the page with the current layout. Raises ValueError if it lacks the marks."""
    text = (root / PAGE).read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{PAGE} lacks {BEGIN} or {END}")
    return before + format_layout(root) + after
