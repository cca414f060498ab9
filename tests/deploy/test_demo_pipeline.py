"""The demonstration of the pipeline: from routers to a report of what was planted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.plugins import write_metadata

pytestmark = pytest.mark.spark_process

ROOT = Path(__file__).parents[2]
DEMONSTRATION = ROOT / "deploy" / "demo" / "pipeline.py"


@pytest.mark.timeout(600)
def test_the_faults_are_in_the_report(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    write_metadata(
        site, "plugins_of_the_tree", {"telemetry": "router_telemetry.exporter:Telemetry"}
    )
    plugins = [ROOT / "plugins" / name for name in ("router_telemetry", "router_spark")]
    path = os.pathsep.join(str(each) for each in (DEMONSTRATION.parent, site, *plugins))
    out = tmp_path / "out"
    ended = subprocess.run(
        [
            *(sys.executable, "-P", str(DEMONSTRATION), "--phase", "1"),
            *("--no-browser", "--out", str(out)),
        ],
        env={
            **os.environ,
            "PYTHONPATH": path,
            # each of its three jobs is too short for Java's second compiler
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=580,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    # every row that a router counted was written
    lost = re.findall(r"^(?:flows|deliveries|events) .* (\d+) +\d+$", ended.stdout, re.MULTILINE)
    assert len(lost) >= 9
    assert set(lost) == {"0"}
    assert re.search(r"^rejected +receiver +- +madrid ", ended.stdout, re.MULTILINE)
    report = (out / "report.html").read_text(encoding="utf-8")
    assert all(name in report for name in ("berlin", "paris", "madrid"))
