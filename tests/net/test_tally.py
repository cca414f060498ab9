"""A tally counts connections that were open, and those that failed."""

from __future__ import annotations

from router.amqp.performatives import Error, Open
from router.amqp.types import Symbol
from router.engine import events
from router.net.tally import Tally


def test_what_counts() -> None:
    tally = Tally("amqp", "in", "normal")
    error = Error(condition=Symbol("amqp:connection:forced"))
    for event in (
        events.ConnectionOpened(Open(container_id="peer")),
        events.ConnectionClosed(None, True),
        events.ConnectionOpened(Open(container_id="peer")),
        events.ConnectionClosed(error, True),
        events.ConnectionClosed(error, False),
        events.SessionEnded(None, error),
    ):
        tally.count(event)
    assert (tally.opened, tally.failed) == (2, 2)
