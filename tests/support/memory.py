"""How much memory processes take."""

from __future__ import annotations

from pathlib import Path

MIB = 2**20


def resident_bytes(pid: int) -> int:
    """How much memory a process has now."""
    return _status(pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def most_resident_bytes(pid: int) -> int:
    """The most that it ever had."""
    return _status(pid, "VmHWM")
