"""Attach links within a time limit."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

import trio

from router.client import LinkLost, Receiver, Sender

_Link = TypeVar("_Link", Sender, Receiver)


async def in_time(attaching: Awaitable[_Link], timeout_s: float) -> _Link:
    """Await an attach for at most `timeout_s`.

    Raises LinkLost if the peer refuses the link or does not answer in time.
    """
    with trio.move_on_after(timeout_s):
        return await attaching
    raise LinkLost("", f"the peer did not attach within {timeout_s:g} s")
