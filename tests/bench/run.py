"""Start the benchmark from anywhere: ``python tests/bench/run.py --help``."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    runpy.run_module("bench", run_name="__main__", alter_sys=True)
