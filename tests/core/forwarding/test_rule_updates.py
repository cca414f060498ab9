"""Rules that change while addresses are in use: nothing is lost, nothing is doubled."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.performatives import Accepted, Released, Source
from router.amqp.types import Symbol
from router.core.addresses.rules import AddressRule
from router.core.forwarding.rule_updates import RuleUpdater
from router.core.model.address import BALANCED, CLOSEST, MULTICAST

from support.in_memory import ReceivingLink, Router, Sending, SendingLink
from support.pairs import pair, several


def set_rules(router: Router, *rules: tuple[Any, ...], default: str = "balanced") -> RuleUpdater:
    """Have a router take up rules, in a turn."""
    treating = RuleUpdater(router.forwarder)
    before = list(router.table.rules)
    treating.change_rules(before, [AddressRule(*rule) for rule in rules], default)
    router.finish_turn()
    return treating


def keep_waiting(sender: SendingLink, receiver: ReceivingLink) -> Sending:
    """Send what a receiver takes back its credit for."""
    receiver.grant(0)
    return sender.send(b"one")


def treatment(router: Router, name: str = "q") -> int:
    address = router.table.in_use(name)
    assert address is not None
    return int(address.treatment)


def test_closest_becomes_balanced_at_once_with_messages_waiting() -> None:
    router, sender, (taking,) = several("closest", [1])
    waiting = keep_waiting(sender, taking)
    assert set_rules(router).pending == {}
    assert treatment(router) == BALANCED
    taking.grant(5)
    taking.settle(Accepted())
    assert waiting.outcome == Accepted()


def test_the_priority_of_an_address_is_that_of_what_comes_from_then_on() -> None:
    router, sender, receiver = pair(100, window=1)
    sender.send(b"first")
    address = router.table.in_use("q")
    assert address is not None
    sender.send(b"before")
    set_rules(router, (True, "q", "balanced", True, None, 0, 0, False, None, 9))
    assert address.priority == 9
    sender.send(b"after")
    receiver.client.open_window(100)
    assert [each.payload for each in receiver.received] == [b"first", b"after", b"before"]
    set_rules(router)
    assert address.priority == -1


def test_what_is_sent_is_settled_as_it_was_sent() -> None:
    router, sender, (one, two) = several("multicast", [5, 5])
    sent = sender.send(b"one")
    assert set_rules(router, (True, "q", "closest")).pending == {}
    assert treatment(router) == CLOSEST
    one.settle(Accepted())
    assert not sent.is_over
    two.settle(Accepted())
    assert sent.outcome == Accepted()
    single = sender.send(b"two")
    assert sorted([len(one.unsettled), len(two.unsettled)]) == [0, 1]
    for each in (one, two):
        each.settle(Accepted())
    assert single.outcome == Accepted()


def test_a_message_that_is_half_sent_goes_on_to_those_it_was_begun_with() -> None:
    router, sender, (one, two) = several("multicast", [5, 5])
    sent = sender.send(b"one", more=True)
    set_rules(router, default="closest")
    assert treatment(router) == CLOSEST
    sender.go_on(b"two")
    for each in (one, two):
        assert each.take() == b"onetwo"
        each.settle(Accepted())
    assert sent.outcome == Accepted()


def test_it_becomes_multicast_as_soon_as_nothing_waits() -> None:
    router, sender, (one, two) = several("balanced", [1, 0])
    waiting = keep_waiting(sender, one)
    treating = set_rules(router, default="multicast")
    assert [each.name for each in treating.pending] == ["q"]
    assert treatment(router) == BALANCED
    one.grant(1)
    one.settle(Accepted())
    assert waiting.outcome == Accepted()
    treating.go_on()
    router.finish_turn()
    assert treating.pending == {}
    assert treatment(router) == MULTICAST
    one.grant(1)
    two.grant(1)
    copied = sender.send(b"two")
    assert (one.take(), one.take(), two.take()) == (b"one", b"two", b"two")
    one.settle(Accepted())
    two.settle(Accepted())
    assert copied.outcome == Accepted()


def test_copies_that_wait_keep_an_address_a_multicast() -> None:
    router, sender, (one, two) = several("multicast", [1, 1])
    sent = keep_waiting(sender, two)
    treating = set_rules(router, default="balanced")
    assert treatment(router) == MULTICAST
    one.settle(Accepted())
    treating.go_on()
    assert treatment(router) == MULTICAST
    two.grant(1)
    two.settle(Accepted())
    assert sent.outcome == Accepted()
    treating.go_on()
    assert treatment(router) == BALANCED


def test_what_has_become_unavailable_takes_no_more_links_and_keeps_those_it_has() -> None:
    router, sender, (taking,) = several("balanced", [5])
    anonymous = router.client().sender(None)
    set_rules(router, (False, "q", "unavailable"))
    assert treatment(router) == BALANCED
    assert router.client().receiver("q", 5).detached is not None
    sent = sender.send(b"one")
    taking.settle(Accepted())
    assert sent.outcome == Accepted()
    assert router.table.find("q") is None
    assert anonymous.attach is not None
    # available again
    set_rules(router)
    assert router.client().receiver("q", 5).detached is None


def test_an_unavailable_address_is_forgotten_with_its_last_link() -> None:
    router, sender, (taking,) = several("balanced", [5])
    set_rules(router, (False, "q", "unavailable"))
    for link in (sender, taking):
        link.client.close()
    assert router.table.in_use("q") is None
    set_rules(router)
    assert router.client().receiver("q", 5).detached is None


@pytest.mark.parametrize("redelivers", [True, False])
def test_whether_it_redelivers_changes_at_once(redelivers: bool) -> None:
    router, sender, (one, two) = several("closest", [1, 1])
    set_rules(router, (True, "q", "closest", not redelivers))
    set_rules(router, (True, "q", "closest", redelivers))
    sent = sender.send(b"one")
    giver = one if one.unsettled else two
    giver.settle(Released())
    assert (sent.outcome == Released()) != redelivers


def test_a_dynamic_node_is_treated_as_ever() -> None:
    router = Router()
    made = router.client().receiver(None, 5, source=Source(dynamic=True))
    assert made.attach is not None
    treating = set_rules(router, default="unavailable")
    assert treating.pending == {}
    (address,) = router.table.addresses()
    assert router.table.find(address.name) is address


def test_an_address_that_is_gone_is_waited_for_no_more() -> None:
    router, sender, (taking,) = several("balanced", [1])
    keep_waiting(sender, taking)
    treating = set_rules(router, default="multicast")
    assert len(treating.pending) == 1
    for link in (taking, sender):
        link.client.close()
    treating.go_on()
    assert treating.pending == {}


@pytest.mark.spec("3.5.2-3")
def test_who_was_granted_copies_takes_no_messages_away_when_there_are_none() -> None:
    router = Router(default="multicast")
    copies = Source("q", distribution_mode=Symbol("copy"))
    browser = router.client().receiver(None, 5, source=copies)
    others = [router.client().receiver("q", 5) for _ in range(2)]
    sender = router.client().sender("q")
    set_rules(router)
    assert browser.detached is not None
    assert browser.detached.error is not None
    assert browser.detached.error.condition == "amqp:not-implemented"
    sender.send(b"x")
    assert browser.received == []
    assert sum(len(each.received) for each in others) == 1


def test_who_asked_for_copies_that_are_ignored_stays() -> None:
    router = Router(default="multicast")
    router.forwarder.sources.configure(refuses_filters=False, refuses_durable=False)
    copies = Source("q", distribution_mode=Symbol("copy"))
    browser = router.client().receiver(None, 5, source=copies)
    set_rules(router)
    router.client().sender("q").send(b"x")
    assert browser.take() == b"x"
