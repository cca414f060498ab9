"""The demonstration of a network: it ends well, and shows what it says that it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMONSTRATION = Path(__file__).parents[2] / "deploy" / "demo" / "network.py"


@pytest.mark.timeout(300)
def test_messages_go_another_way_when_a_router_is_killed_and_come_back() -> None:
    ended = subprocess.run(
        [sys.executable, "-P", str(DEMONSTRATION), "--phase", "0.5"],
        env={**os.environ, "PYTHONPATH": str(DEMONSTRATION.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    ways = re.findall(r"way from berlin to madrid: (.*)", ended.stdout)
    through, past = "berlin, paris, madrid (cost 2)", "berlin, madrid (cost 5)"
    assert past in ways[ways.index(through) :]
    assert ways[-1] == through
    assert ended.stdout.endswith("every message has become what its sender was told\n")
    counts = re.search(r"the end\. orders: ([\d,]+) sent: ([\d,]+) accepted", ended.stdout)
    assert counts is not None
    assert int(counts[1].replace(",", "")) > 0
