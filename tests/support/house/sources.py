"""Find and parse the files that the rules apply to."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

SKIPPED = frozenset({"node_modules", "__pycache__", "build", "dist"})


def python_files(root: Path, *folders: str) -> Iterator[Path]:
    """Yield every `.py` below the named folders of the tree, sorted; a folder may be missing."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            inside = path.relative_to(root).parts[1:-1]
            if not any(part in SKIPPED or part.startswith(".") for part in inside):
                yield path


def parsed(root: Path, *folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield (path relative to the root, syntax tree) of every `.py` below the named folders."""
    for path in python_files(root, *folders):
        name = path.relative_to(root).as_posix()
        yield name, ast.parse(path.read_text(encoding="utf-8"), filename=name)


def dotted(name: str) -> str:
    """Return the module that a relative path holds: `router/amqp/x.py` is `router.amqp.x`."""
    parts = Path(name).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def line_count(path: Path) -> int:
    """Return the number of lines of a text file."""
    return len(path.read_text(encoding="utf-8").splitlines())


def text_files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (relative path, text) of each text file that git keeps, or would keep if it were added.

    Outside a git work tree, as in an unpacked source distribution, it is every file but caches'.
    """
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        names = sorted(name for name in listing.stdout.split("\0") if name)
    else:
        names = sorted(
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if not any(
                part in SKIPPED or part.startswith(".venv") for part in path.relative_to(root).parts
            )
        )
    for name in names:
        path = root / name
        if not path.is_file():
            continue
        try:
            yield name, path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
