"""Small source trees, written to a temporary folder, for tests of what reads source trees."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

EXTENSION = EXTENSION_SUFFIXES[0]
"""What the file name of a compiled module ends with on this Python."""


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write each text to its path under `root`, dedented, and return `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return root
