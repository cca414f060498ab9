"""Of the changes of addresses only so many wait for a neighbour, and it misses nothing for long."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest

from router.control.network import peerings
from router.control.network.messages import Hello, MobileUpdate
from router.control.network.peerings import Peering
from router.control.network.protocol import Protocol
from router.core.routers.routing_state import Interest

from support.routing import Network

UPDATE = MobileUpdate("a", 1, 0, 1, 0, ("M0q",), b"\1")


def peering() -> Peering:
    nobody: Any = None
    return Peering(1, nobody, nobody, 0.0)


def test_so_many_changes_wait_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peerings, "MOST_UPDATES", 3)
    one = peering()
    assert [one.admit(UPDATE) for _ in range(5)] == [True, True, True, False, False]
    assert one.admit(Hello("a", 1, 1))
    assert (one.updates, one.left_out) == (3, 2)
    one.count_dequeued(UPDATE)
    one.count_dequeued(Hello("a", 1, 1))
    assert one.admit(UPDATE)
    assert not one.admit(UPDATE)


def test_what_was_left_out_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever changes a neighbour is not told of, it finds out, and so do those behind it."""
    network = Network(1)
    for name in "ABC":
        network.add(name)
    network.join("A", "B")
    network.join("B", "C")
    network.settle(3)
    take, left = Protocol.take, cycle([False, True, True, False, True, True, True])

    def is_update(change: Any) -> bool:
        return isinstance(getattr(change, "message", None), MobileUpdate)

    def lossy(protocol: Protocol, now: float) -> Any:
        changes = take(protocol, now)
        is_b = protocol.me == "B"
        return [each for each in changes if not (is_b and is_update(each) and next(left))]

    monkeypatch.setattr(Protocol, "take", lossy)
    for number in range(60):
        interest = Interest(1) if number % 3 else None
        network.routers["A"].want(f"M0{number % 7}", interest=interest)
        network.run(0.05)
    assert network.mistakes()
    monkeypatch.setattr(Protocol, "take", take)
    network.settle(10)
