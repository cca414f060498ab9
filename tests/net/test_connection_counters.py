"""They count connections that were open, and those that failed."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Error, Open
from router.amqp.types import Symbol
from router.engine import events
from router.net.connection_counters import ConnectionCounters

NO_SESSION: Any = None


def test_what_counts() -> None:
    counters = ConnectionCounters("amqp", "in", "normal")
    error = Error(condition=Symbol("amqp:connection:forced"))
    for event in (
        events.ConnectionOpened(Open(container_id="peer")),
        events.ConnectionClosed(None, True),
        events.ConnectionOpened(Open(container_id="peer")),
        events.ConnectionClosed(error, True),
        events.ConnectionClosed(error, False),
        events.SessionEnded(NO_SESSION, error),
    ):
        counters.count(event)
    assert (counters.opened, counters.failed) == (2, 2)


@pytest.mark.parametrize(
    ("direction", "by_peer", "failed"),
    # what a listener says is no failure, and what a connector hears is for the connector to judge
    [("in", False, 0), ("in", True, 1), ("out", True, 0), ("out", False, 1)],
)
def test_who_is_redirected_has_not_failed(direction: str, by_peer: bool, failed: int) -> None:
    counters = ConnectionCounters("amqp", direction, "normal")
    error = Error(condition=Symbol("amqp:connection:redirect"))
    counters.count(events.ConnectionClosed(error, by_peer))
    assert (counters.failed, counters.followed) == (failed, 0)
