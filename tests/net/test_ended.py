"""Placeholders for the pump of a connection that has ended."""

from __future__ import annotations

from typing import Any

import attrs

from router.engine import events
from router.net.ended import GONE, Ending


@attrs.define
class LastPump:
    """Pump that notes the events of its connection."""

    connection: Any
    heard: list[object] = attrs.Factory(list)

    def event_received(self, event: object) -> None:
        self.heard.append(event)


@attrs.define
class Owned:
    """Connection, as far as it has an owner."""

    owner: object = None


def test_the_last_event_is_passed_on_and_then_nobody_is_left() -> None:
    connection = Owned()
    pump = LastPump(connection)
    connection.owner = ending = Ending(pump)
    ending.send()
    ending.read_again()
    ending.event_received("link detached")
    assert connection.owner is ending
    closed = events.ConnectionClosed(None, False)
    ending.event_received(closed)
    assert pump.heard == ["link detached", closed]
    assert connection.owner is GONE


def test_nothing_happens_any_more() -> None:
    GONE.send()
    GONE.read_again()
    GONE.event_received("late")
