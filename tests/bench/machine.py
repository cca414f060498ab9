"""Facts about the machine and the tools, which a number means nothing without."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path


def _first_line(path: str, key: str) -> str:
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return "unknown"


def facts() -> dict[str, str]:
    """Names and versions; nothing that tells one machine of a kind from another."""
    compiler = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False)
    memory_kib = int(_first_line("/proc/meminfo", "MemTotal").split()[0])
    return {
        "processor": _first_line("/proc/cpuinfo", "model name"),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory_kib / 2**20:.0f} GiB",
        "kernel": platform.release().split("-")[0],
        "python": platform.python_version(),
        "trio": metadata.version("trio"),
        "compiler": compiler.stdout.splitlines()[0] if compiler.stdout else "none",
    }


def resident_bytes(pid: int) -> int:
    """VmRSS of a process."""
    return int(_first_line(f"/proc/{pid}/status", "VmRSS").split()[0]) * 1024


def cpu_s(pid: int) -> float:
    """Seconds that a process has run, with threads that have ended; in steps of a clock tick."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_ns(pid: int) -> int:
    """Nanoseconds that all threads of a process have run."""
    return sum(
        int((task / "schedstat").read_text(encoding="utf-8").split()[0])
        for task in Path(f"/proc/{pid}/task").iterdir()
    )
