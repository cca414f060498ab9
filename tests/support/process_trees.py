"""Processes and their descendants, to be killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path


def kill(pid: int) -> None:
    """End a process at once, if it is there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def children() -> dict[int, list[int]]:
    """Return the process ids of this machine by their parents."""
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(
                stat.read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1]
            )
        except (FileNotFoundError, ProcessLookupError):
            continue
        found.setdefault(parent, []).append(int(stat.parent.name))
    return found


def descendants(pid: int) -> list[int]:
    """Return a process's descendants, whatever their process groups."""
    by_parent = children()
    found = list(by_parent.get(pid, []))
    for each in found:
        found += by_parent.get(each, [])
    return found


def has_child(pid: int, among: Iterable[int]) -> bool:
    """Return whether one of these is a child of a process."""
    return not set(children().get(pid, [])).isdisjoint(among)


def command_of(pid: int) -> str:
    """Return a process's command line, empty if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
