"""Memory use of processes."""

from __future__ import annotations

from pathlib import Path

MIB = 2**20


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    return _status(pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = [line for line in status.splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def most_resident_bytes(pid: int) -> int:
    """Return the peak resident memory of a process in bytes."""
    return _status(pid, "VmHWM")
