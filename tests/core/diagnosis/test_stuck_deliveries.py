"""Periodic checks: stuck deliveries, settle rates and links without credit."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.performatives import Released, Source, Target
from router.core.diagnosis import stuck_deliveries
from router.core.diagnosis.stuck_deliveries import (
    ROUND_S,
    STEPS,
    STUCK_S,
    StuckDeliveries,
    is_blocked,
    settle_rate,
    without_credit_s,
)
from router.engine.link import Link

from support.in_memory import ReceivingLink, Router, SendingLink
from support.pairs import pair


def link_of(ours: SendingLink | ReceivingLink) -> Link:
    """Return the router's end of a client's link."""
    (session,) = ours.client.connection.local_sessions.values()
    (link,) = [each for each in session.local_links.values() if each.name == ours.name]
    assert isinstance(link, Link)
    return link


def watching(router: Router) -> StuckDeliveries:
    return StuckDeliveries(lambda: [client.connection for client in router.clients])


def stuck(*links: SendingLink | ReceivingLink) -> list[int]:
    return [link_of(each).stuck for each in links]


def test_a_delivery_is_stuck_once_for_each_of_its_links() -> None:
    router, sender, receiver = pair(10)
    for _ in range(3):
        sender.send(b"x")
    seen = watching(router)
    seen.tick(router.turn.now + STUCK_S)
    assert stuck(sender, receiver) == [0, 0]
    for at in (0.1, ROUND_S + 0.2, 2 * ROUND_S + 0.3):
        seen.tick(router.turn.now + STUCK_S + ROUND_S + at)
        assert stuck(sender, receiver) == [3, 3]


def test_links_are_not_kept_while_others_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_deliveries, "STEPS", 1)
    router = Router()
    client = router.client()
    links = [link_of(client.receiver(f"q{number}")) for number in range(5)]
    before = [sys.getrefcount(link) for link in links]
    seen = watching(router)
    for step in range(20):
        seen.tick(router.turn.now + step / 10)
        assert [sys.getrefcount(link) for link in links] == before
    assert all(link.samples is not None for link in links)
    # half of the next round
    for step in range(5):
        seen.tick(router.turn.now + ROUND_S + 2 + step / 10)
    client.lose()
    # the rest of the round passes over those that are gone
    for step in range(10):
        seen.tick(router.turn.now + ROUND_S + 3 + step / 10)


@pytest.mark.parametrize("how", ["settle", "release", "sender settles"])
def test_it_is_stuck_until_it_is_settled(how: str) -> None:
    router, sender, receiver = pair(10)
    first, _ = sender.send(b"x"), sender.send(b"y")
    watching(router).tick(router.turn.now + STUCK_S + 1)
    assert stuck(sender, receiver) == [2, 2]
    if how == "sender settles":
        sender.settle(first)
        assert stuck(sender, receiver) == [1, 1]
    else:
        receiver.settle(None if how == "settle" else Released())
        assert stuck(sender, receiver) == [0, 0]


def test_a_lost_receiver_s_deliveries_are_not_stuck_any_more() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"x")
    watching(router).tick(router.turn.now + STUCK_S + 1)
    link = link_of(receiver)
    receiver.client.lose()
    assert (stuck(sender), link.stuck) == ([0], 0)


def test_what_waits_is_stuck_at_its_sender() -> None:
    router, sender, receiver = pair(10, window=1)
    for _ in range(3):
        sender.send(b"x")
    watching(router).tick(router.turn.now + STUCK_S + 1)
    assert stuck(sender, receiver) == [3, 1]


def test_a_young_delivery_is_not_stuck_because_others_are() -> None:
    router, sender, receiver = pair(10)
    sender.send(b"old")
    router.wait(STUCK_S)
    sender.send(b"young")
    seen = watching(router)
    seen.tick(router.turn.now + 1)
    assert stuck(sender, receiver) == [1, 1]
    seen.tick(router.turn.now + STUCK_S + 1)
    assert stuck(sender, receiver) == [2, 2]


def test_one_that_has_left_the_ring_is_found() -> None:
    router, sender, receiver = pair(200)
    for _ in range(100):
        sender.send(b"x")
    ids = list(receiver.unsettled)
    receiver.client.dispose(ids[1:])
    (session,) = receiver.client.connection.local_sessions.values()
    assert session.outgoing.stragglers
    watching(router).tick(router.turn.now + STUCK_S + 1)
    assert stuck(sender, receiver) == [1, 1]


def test_many_are_gone_through_a_little_at_a_time() -> None:
    router, sender, receiver = pair(5000)
    count = 2 * STEPS + 500
    while receiver.credit and link_of(sender).deliveries < count:
        for _ in range(sender.credit):
            if link_of(sender).deliveries < count and sender.can_send():
                sender.send(b"x")
        sender.client.say(sender.client.flow(handle=sender.handle, echo=True))
        receiver.client.open_window()
    assert link_of(receiver).unsettled == count
    seen = watching(router)
    now = router.turn.now + STUCK_S + 1
    found = []
    while sum(stuck(sender, receiver)) < 2 * count:
        before = sum(stuck(sender, receiver))
        seen.tick(now)
        now += 0.25
        found.append(sum(stuck(sender, receiver)) - before)
    assert max(found) <= STEPS
    assert len(found) >= 2 * count // STEPS


def test_sessions_may_change_while_they_are_gone_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck_deliveries, "STEPS", 1)
    router, sender, receiver = pair(10)
    for _ in range(6):
        sender.send(b"x")
    seen = watching(router)
    now = router.turn.now + STUCK_S + 1
    for step in range(40):
        seen.tick(now)
        if step == 8:
            numbers = list(receiver.unsettled)[:4]
            for number in numbers:
                del receiver.unsettled[number]
            receiver.client.dispose(numbers)
        if step == 14:
            sender.client.lose()
    assert link_of(receiver).stuck == 2


def test_nobody_to_look_at() -> None:
    seen = StuckDeliveries(list)
    for now in (1.0, 2.0, 100.0):
        seen.tick(now)


def test_a_link_settles_so_many_a_second() -> None:
    router, sender, receiver = pair(100)
    seen = watching(router)
    now = router.turn.now
    assert settle_rate(link_of(sender), now) == 0
    seen.tick(now)
    for _ in range(20):
        sender.send(b"x")
    for _ in range(5):
        sender.send(b"x", settled=True)
    receiver.settle()
    assert settle_rate(link_of(sender), now) == 0
    assert settle_rate(link_of(sender), now + 5) == settle_rate(link_of(receiver), now + 5) == 5
    for at in (ROUND_S, 2 * ROUND_S):
        seen.tick(now + at + 0.01)
    assert settle_rate(link_of(sender), now + 2 * ROUND_S + 1) == 0


def test_what_is_given_back_is_no_rate() -> None:
    router, sender, receiver = pair(100)
    now = router.turn.now
    watching(router).tick(now)
    sender.send(b"x")
    receiver.settle(Released())
    assert settle_rate(link_of(sender), now + 0.1) == 0


def test_a_link_without_credit_is_blocked_after_a_while() -> None:
    router, sender, receiver = pair(0)
    links = [link_of(sender), link_of(receiver)]
    now = router.turn.now
    assert [without_credit_s(link, now + 3) for link in links] == [3, 3]
    assert not any(is_blocked(link, now + STUCK_S) for link in links)
    assert all(is_blocked(link, now + STUCK_S + 0.1) for link in links)
    receiver.grant(2)
    assert [without_credit_s(link, now + 100) for link in links] == [0, 0]


@pytest.mark.parametrize("how", ["used", "drained", "taken back", "given back"])
def test_credit_may_end_in_many_ways(how: str) -> None:
    router, sender, receiver = pair(1)
    router.turn.now += 7
    ended: Any = receiver
    if how == "used":
        sender.send(b"x")
        assert without_credit_s(link_of(sender), router.turn.now) == 0
    elif how == "drained":
        receiver.grant(1, drain=True)
    elif how == "taken back":
        receiver.grant(0)
    else:
        receiver.detach()
        sender.give_back()
        ended = sender
    assert link_of(ended).credit == 0
    then = router.turn.now
    assert without_credit_s(link_of(ended), then + 2) == 2
    if ended is receiver:
        receiver.grant(0)
        assert without_credit_s(link_of(ended), then + 3) == 3


def test_a_link_that_is_reattached_is_looked_at_anew() -> None:
    router = Router()
    lasting: dict[str, Any] = {"expiry_policy": TerminusExpiryPolicy.NEVER, "timeout": 60}
    source, target = Source(address="q", **lasting), Target(address="q", **lasting)
    taking = router.client(container="taking")
    giving = router.client(container="giving")
    receiver = taking.receiver("q", 5, name="r", source=source)
    sender = giving.sender("q", name="s", target=target)
    sender.send(b"x")
    seen = watching(router)
    seen.tick(router.turn.now + STUCK_S + 1)
    assert stuck(sender, receiver) == [1, 1]
    receiver.detach(closed=False)
    sender.detach(closed=False)
    receiver = taking.receiver("q", 5, name="r", source=source)
    sender = giving.sender("q", name="s", target=target)
    assert stuck(sender, receiver) == [0, 0]
    assert [link_of(each).unsettled for each in (sender, receiver)] == [1, 1]
    seen.tick(router.turn.now + STUCK_S + ROUND_S + 2)
    assert stuck(sender, receiver) == [1, 1]
    taking.dispose([0])
    assert stuck(sender, receiver) == [0, 0]
