"""Build the load generator with the C compiler at hand, and run it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent
DEADLINE_S = 120.0


class LoadError(Exception):
    """The load generator ended with an error: its exit code and its last words."""


def build(directory: Path) -> Path:
    """Compile the generator into `directory`; raises CalledProcessError or FileNotFoundError."""
    program = directory / "load"
    sources = sorted(str(path) for path in SOURCES.glob("*.c"))
    flags = ["-std=gnu11", "-O2", "-flto", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["gcc", *flags, "-o", str(program), *sources, "-lssl", "-lcrypto"], check=True)
    return program


def run(program: Path, arguments: list[str], deadline_s: float = DEADLINE_S) -> dict[str, Any]:
    """Run the generator once; returns its measurements. Raises LoadError."""
    finished = subprocess.run(
        [str(program), "--deadline", str(deadline_s), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=deadline_s + 30,
    )
    if finished.returncode != 0:
        raise LoadError(f"exit {finished.returncode}: {finished.stderr.strip()}")
    measured: dict[str, Any] = json.loads(finished.stdout)
    return measured
