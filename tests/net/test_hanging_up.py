"""A peer that closes its side while nothing is read from it."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from router.net import hanging_up
from router.net.hanging_up import is_hung_up, until_hung_up


@pytest.mark.parametrize("unread", [b"", b"more"])
async def test_the_end_is_noticed(unread: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hanging_up, "INTERVAL_S", 0.001)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(unread)
        assert not is_hung_up(ours)
        with trio.move_on_after(0.05) as waiting:
            await until_hung_up(ours)
        assert waiting.cancelled_caught
        theirs.close()
        with trio.fail_after(10):
            await until_hung_up(ours)
        assert is_hung_up(ours)
        # nothing was read
        assert ours.recv(10) == unread


async def test_our_own_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_hung_up, ours)
            await trio.testing.wait_all_tasks_blocked()
            trio.lowlevel.notify_closing(ours)
            ours.close()
    await until_hung_up(ours)
