"""Threads for long computations stand back behind the event loop."""

from __future__ import annotations

import os
import threading

import trio

from router.net.threads import LEAST_PRIORITY, NICENESS, stand_back


async def test_a_thread_has_less_priority_than_the_loop() -> None:
    def found() -> int:
        stand_back()
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert await trio.to_thread.run_sync(found) == min(own + NICENESS, LEAST_PRIORITY)
    assert os.getpriority(os.PRIO_PROCESS, os.getpid()) == own
