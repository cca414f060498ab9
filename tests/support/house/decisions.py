"""Index of the decision pages: number, title, area and state."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

FOLDER: Final = "docs/decisions"
PAGE: Final = f"{FOLDER}/README.md"

INTRODUCTION: Final = """# Decisions

Each page says what was decided where a reader could have chosen differently, why, and what was
left aside. They are brought up to date in place; a page that no longer holds says so here.
"""


def titles(root: Path) -> dict[int, tuple[str, str]]:
    """Return the file name and title of each decision, by number. Raises ValueError."""
    found = {}
    for path in sorted((root / FOLDER).glob("[0-9]*.md")):
        first = path.read_text(encoding="utf-8").split("\n", 1)[0]
        match = re.fullmatch(r"# (\d+)[.:] (.+)", first)
        if match is None or int(match[1]) != int(path.name.split("-")[0]):
            raise ValueError(f"{path.name}: begins with {first!r}, not with its number and title")
        found[int(match[1])] = (path.name, match[2])
    return found


def format_index(root: Path) -> str:
    """Return the page with a table for each area. Raises ValueError if a page has no area."""
    areas = tomllib.loads((root / FOLDER / "areas.toml").read_text(encoding="utf-8"))
    superseded: dict[str, int] = areas.pop("superseded")
    pages = titles(root)
    listed = [number for numbers in areas.values() for number in numbers]
    if sorted(listed) != sorted(pages):
        wrong = sorted(set(listed) ^ set(pages)) or "a number is listed twice"
        raise ValueError(f"areas.toml and the pages differ: {wrong}")
    lines = [INTRODUCTION]
    for area, numbers in areas.items():
        lines += [f"## {area[0].upper()}{area[1:]}", "", "| | Decision | State |", "|---:|---|---|"]
        for number in numbers:
            name, title = pages[number]
            by = superseded.get(str(number))
            state = "in force" if by is None else f"superseded by {by}"
            lines.append(f"| {number} | [{title}]({name}) | {state} |")
        lines.append("")
    return "\n".join(lines)
