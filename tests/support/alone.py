"""Run one fuzzing target for itself, for as long as it is let.

    python tests/fuzz/frame_readers.py [libFuzzer's options, or files to run again]

Coverage guides the search where atheris is installed; elsewhere it is blind, and ends after a
minute. A finding is written into the working directory as a file.
"""

from __future__ import annotations

import importlib
import importlib.util
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

BLIND_S = 60.0
MAX_OCTETS = 4096

Target = Callable[[bytes], None]


def run(target: Target) -> None:
    """Search for octets that make `target` raise; does not return before it is stopped."""
    files = [Path(name) for name in sys.argv[1:] if Path(name).is_file()]
    for file in files:
        target(file.read_bytes())
    if files:
        return
    if importlib.util.find_spec("atheris") is None:
        _search(target)
    else:
        atheris = importlib.import_module("atheris")
        atheris.instrument_all()
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()


def _search(target: Target) -> None:
    chance = random.Random()
    end = time.monotonic() + BLIND_S
    while time.monotonic() < end:
        octets = chance.randbytes(chance.randrange(1, MAX_OCTETS))
        try:
            target(octets)
        except BaseException:
            Path("crash-blind").write_bytes(octets)
            raise
