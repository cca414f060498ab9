"""Threads for long computations, which must not slow down the event loop."""

from __future__ import annotations

import os
import threading
from typing import Final

# Niceness of such a thread relative to the loop. If processors are short, each thread gets a third
# of the loop's time.
NICENESS: Final = 5
LEAST_PRIORITY: Final = 19


def stand_back() -> None:
    """Lower the priority of the calling thread below that of the event loop."""
    # on Linux, niceness is per thread
    nice = os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(nice, LEAST_PRIORITY))
