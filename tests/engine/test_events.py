"""Events are facts: they compare by what they say and cannot be changed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.performatives import Open
from router.engine import events
from router.engine.link import Link

NO_SESSION: Any = None


def test_events_are_frozen() -> None:
    kinds = [
        kind for kind in vars(events).values() if attrs.has(kind) and "engine" in kind.__module__
    ]
    assert len(kinds) >= 8
    event = events.ConnectionOpened(Open("c"))
    assert event == events.ConnectionOpened(Open("c"))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.remote_open = Open("d")  # type: ignore[misc]


def test_a_link_that_is_detached_is_not_lost() -> None:
    assert events.LinkDetached(Link(NO_SESSION, "l", 0), True, None).lost is False
