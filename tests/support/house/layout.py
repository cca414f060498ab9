"""Rules on files: their places, names and lengths."""

from __future__ import annotations

import statistics
from collections.abc import Collection
from pathlib import Path

from support.house.sources import line_count, python_files

DATA_PLANE = ("amqp", "engine", "core")

UNTESTED_NAMES = frozenset({"__init__.py", "__main__.py"})
"""Files that need no test of their own: they only gather or start what others do."""

EMPTY_NAMES = frozenset(
    {"base", "common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
)
"""Names that say nothing about what is inside."""

MEDIAN_LINES = 200
LONGEST_LINES = 450


def unmirrored_modules(root: Path, without_test: Collection[str] = ()) -> list[str]:
    """Return each module of the router without its test: `router/a/b.py` has `tests/a/test_b.py`.

    `without_test` names the exceptions, by path; one that has a test by now is an offence too.
    """
    offences = []
    for path in python_files(root, "router"):
        inside = path.relative_to(root / "router")
        test = Path("tests", inside.parent, f"test_{inside.stem.lstrip('_')}.py")
        name = path.relative_to(root).as_posix()
        exists = (root / test).is_file()
        if name in without_test:
            if exists:
                offences.append(f"{name}: has its test; take it off the list of exceptions")
        elif not exists and path.name not in UNTESTED_NAMES:
            offences.append(f"{name}: there is no {test.as_posix()}")
    return offences


def misplaced_declarations(root: Path) -> list[str]:
    """Return each `.pxd` without its `.py` or outside the data plane, and any other Cython or C."""
    offences = []
    for path in sorted((root / "router").rglob("*")):
        name = path.relative_to(root).as_posix()
        inside = path.relative_to(root / "router").parts
        if path.suffix == ".pxd":
            if not path.with_suffix(".py").is_file():
                offences.append(f"{name}: there is no {path.stem}.py beside it")
            if inside[0] not in DATA_PLANE:
                offences.append(f"{name}: only {', '.join(DATA_PLANE)} are data plane")
        elif path.suffix in {".pyx", ".pxi", ".c", ".h", ".cpp"}:
            offences.append(f"{name}: the only source is Python")
    return offences


def empty_names(root: Path) -> list[str]:
    """Return each module or folder of the router and its plugins whose name says nothing."""
    return [
        f"{path.relative_to(root).as_posix()}: say what is inside"
        for folder in ("router", "plugins")
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in {"", ".py"} and path.stem.strip("_").lower() in EMPTY_NAMES
    ]


def module_lengths(root: Path, generated: Collection[str] = ()) -> list[str]:
    """Return what is too long among the modules of the router: one of them, or the median.

    `generated` names, by path, files that nobody reads as prose. `__init__.py` files count for the
    limit but not for the median, which a handful of nearly empty ones would flatter.
    """
    offences = []
    lengths = []
    for path in python_files(root, "router", "plugins"):
        name = path.relative_to(root).as_posix()
        if name in generated:
            continue
        lines = line_count(path)
        if lines > LONGEST_LINES:
            offences.append(
                f"{name}: {lines} lines, more than {LONGEST_LINES}: move out what runs rarely"
            )
        if path.name != "__init__.py":
            lengths.append(lines)
    if lengths and statistics.median(lengths) >= MEDIAN_LINES:
        offences.append(f"router: the median module has {statistics.median(lengths):.0f} lines")
    return offences
