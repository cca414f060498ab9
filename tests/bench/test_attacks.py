"""The benchmark of attacks measures what it says, on few messages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.attacks import KINDS

BENCH = Path(__file__).with_name("attacks.py")


def test_a_report_has_every_attack(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- attacks: begin (written by tests/bench, do not edit) -->\n<!-- attacks: end -->\n",
        encoding="utf-8",
    )
    folder = Path(sys.executable).parent
    command = [sys.executable, "-P", str(BENCH), "--trioute", f"tried={folder}"]
    command += ["--repeats", "1", "--messages", "300", "--busy", "--write-docs", str(page)]
    ended = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 0, ended.stderr
    text = page.read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| ")]
    measured = {cells[1].strip(): cells for cells in rows[2:]}
    assert set(measured) == {"none", *KINDS}
    for kind in KINDS:
        assert float(measured[kind][6]) > 0, kind
