"""Threads for long computations, which must not slow down the event loop."""

from __future__ import annotations

import os
import threading
from typing import Final

# Niceness of such a thread relative to the loop. If processors are short, each thread gets a tenth
# of the loop's time. With more, the loop would often wait for the end of the thread's time slice.
NICENESS: Final = 10
LEAST_PRIORITY: Final = 19


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stand_back() -> None:
    """Lower the priority of the calling thread below that of the event loop."""
    # on Linux, niceness is per thread
    nice = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(nice, LEAST_PRIORITY))
