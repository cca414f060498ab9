"""Links that are attached in time, or not at all."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import trio

from router.client import LinkLost, Receiver, Sender

_Link = TypeVar("_Link", Sender, Receiver)


async def in_time(attaching: Awaitable[_Link], timeout_s: float) -> _Link:
    """Await an attach. Raises LinkLost where the peer refuses it, or does not answer."""
    with trio.move_on_after(timeout_s):
        return await attaching
    raise LinkLost("", f"the peer did not attach within {timeout_s:g} s")
