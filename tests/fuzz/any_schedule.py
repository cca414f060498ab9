"""Octets as a schedule of several well-behaved peers of one router; see `support.schedules`."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.schedules import STEPS, play

MOST_STEPS = 300


def target(data: bytes) -> None:
    """Three octets a step: what happens, and to whom."""
    steps = [data[at : at + 3] for at in range(0, len(data) - 2, 3)][:MOST_STEPS]
    play([(STEPS[what % len(STEPS)], one, other % 41) for what, one, other in steps])


if __name__ == "__main__":
    from support.alone import run

    run(target)
