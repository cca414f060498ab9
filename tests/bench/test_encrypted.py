"""The benchmark of TLS measures what it says, on few messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).with_name("encrypted.py")


def test_a_report_has_every_system_and_load(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- tls: begin (written by tests/bench, do not edit) -->\n<!-- tls: end -->\n",
        encoding="utf-8",
    )
    folder = Path(sys.executable).parent
    command = [sys.executable, "-P", str(BENCH), "--trioute", f"tried={folder}"]
    command += ["--repeats", "1", "--scale", "0.01", "--write-docs", str(page)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    text = page.read_text(encoding="utf-8")
    assert "|  | relay | relay, TLS | tried | tried, TLS |" in text
    rows = [line for line in text.splitlines() if line.startswith("| 100 B, credit 1000 |")]
    assert len(rows) == 2
    assert "-" not in [cell.strip() for cell in rows[0].split("|")]
    (shakes,) = [line for line in text.splitlines() if line.startswith("| a second |")]
    assert int(shakes.split("|")[2]) > 0
