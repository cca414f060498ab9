"""Random hostile peers, compared with what is charged to them: in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HOARD = Path(__file__).with_name("hoard.py")
# Enough for 5 MiB to be charged, which is more than the constant that is allowed.
STEPS = "1500"
PATIENCE_S = 300


def test_what_is_resident_stays_within_what_is_charged_and_is_given_back() -> None:
    done = subprocess.run(
        [sys.executable, "-P", str(HOARD), "--seed", "14", "--steps", STEPS],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{STEPS} steps" in done.stdout
    assert "charged at most" in done.stdout


def test_a_run_that_would_take_long_is_cut_short_when_its_time_is_over() -> None:
    done = subprocess.run(
        [sys.executable, "-P", str(HOARD), "--seed", "14", "--steps", "1000000", "--seconds", "1"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "charged at most" in done.stdout
