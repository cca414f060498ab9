"""The credit of senders whose messages go to a fallback, and whom it is taken from."""

from __future__ import annotations

import pytest

from router.amqp.performatives import Source
from router.amqp.types import Symbol
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.rules import AddressRule
from router.core.deliveries import related_credit
from router.core.deliveries.related_credit import A_STEP, AT_ONCE

from support.in_memory import Router
from support.turns import most_in_a_turn
from support.waypoints import into, message, out_of, texts

RULE = AddressRule(True, "q", "balanced", fallback=True)


def test_credit_comes_from_the_fallback_while_nobody_else_receives() -> None:
    router = Router([RULE])
    sender = router.client().sender("q")
    assert sender.credit == 0
    rest = out_of(router.client(), "qd.fallback", credit=0)
    assert sender.credit == 0
    rest.grant(7)
    assert sender.credit == 7
    receiver = router.client().receiver("q")
    assert sender.credit == 7
    receiver.grant(20)
    assert sender.credit == 20
    receiver.detach()
    rest.detach()
    assert sender.drain


def test_several_senders_share_what_the_fallback_can_take() -> None:
    router = Router([RULE])
    senders = [router.client().sender("q") for _ in range(3)]
    out_of(router.client(), "qd.fallback", credit=9)
    assert [each.credit for each in senders] == [3, 3, 3]


def test_what_the_fallback_gives_on_is_not_for_it() -> None:
    router = Router([RULE])
    broker = router.client()
    out_of(broker, "qd.fallback")
    given_on = into(broker, "qd.fallback")
    sender = router.client().sender("q")
    assert given_on.credit == 0
    assert sender.credit == 10
    receiver = router.client().receiver("q", credit=4)
    assert given_on.credit > 0
    given_on.send(message("m"))
    assert texts(receiver) == ["m"]
    receiver.detach()
    assert given_on.drain
    given_on.give_back()
    assert given_on.credit == 0


def test_a_fallback_that_drains_gets_what_senders_have() -> None:
    router = Router([RULE])
    sender = router.client().sender("q")
    rest = out_of(router.client(), "qd.fallback", credit=0)
    rest.grant(5, drain=True)
    assert sender.credit > 0
    sender.send(message("m"))
    assert texts(rest) == ["m"]
    router.wait(1)
    assert rest.credit == 0


def test_a_fallback_that_drains_while_what_waits_is_too_large_for_it_is_answered() -> None:
    router = Router([RULE])
    wide = out_of(router.client(window=1), "qd.fallback", credit=100)
    sender = router.client().sender("q")
    sender.send(message("a"))
    sender.send(message("b" * 200))
    narrow = router.client()
    source = Source(address="q", capabilities=(Symbol("qd.fallback"),))
    link = narrow.receiver("q", source=source, max_message_size=100)
    link.grant(5, drain=True)
    router.wait(1)
    assert link.credit == 0
    wide.client.open_window()
    assert texts(wide) == ["a", "b" * 200]


def of_many_hops(count: int) -> Router:
    """Return a router with an exchange at `x` that is bound to `count` addresses."""
    router = Router()
    rules = [BindingRule(f"b{number}", "x", None, f"hop{number}") for number in range(count)]
    router.forwarder.exchanges.configure([ExchangeRule("x", "x")], rules)
    router.finish_turn()
    return router


def test_of_very_many_places_the_last_are_looked_at_in_later_turns() -> None:
    router = of_many_hops(2 * AT_ONCE)
    last = f"hop{2 * AT_ONCE - 1}"
    receivers = [router.client().receiver(name, credit=9) for name in ("hop0", last)]
    router.is_patient = True
    sender = router.client().sender("x")
    assert sender.credit == 0
    turns = 0
    while router.turn.deferred:
        assert sender.credit == 0
        router.go_on()
        turns += 1
    assert turns >= AT_ONCE // A_STEP
    assert sender.credit == 9
    sender.send(message("m", subject="s"))
    # the search for so many places goes on in later turns as well
    router.catch_up()
    assert [texts(each) for each in receivers] == [["m"], ["m"]]


def test_what_happens_while_very_many_places_are_looked_at_is_seen_after_that() -> None:
    router = of_many_hops(2 * AT_ONCE)
    receiver = router.client().receiver("hop0")
    router.is_patient = True
    sender = router.client().sender("x")
    router.go_on()
    # the first place has been looked at
    receiver.grant(4)
    assert router.turn.deferred
    assert sender.credit == 0
    router.catch_up()
    assert sender.credit == 4


def test_very_many_places_are_looked_at_once_at_a_time() -> None:
    router = of_many_hops(2 * AT_ONCE)
    receiver = router.client().receiver("hop0", credit=1)
    sender = router.client().sender("x")
    router.is_patient = True
    for credit in (5, 6, 7):
        receiver.grant(credit)
        assert len(router.turn.deferred.tasks) == 1
    router.catch_up()
    # it is not given more in small steps
    assert sender.credit >= 5


def test_a_sender_that_leaves_while_very_many_places_are_looked_at_is_given_nothing() -> None:
    router = of_many_hops(2 * AT_ONCE)
    router.client().receiver("hop0", credit=9)
    router.is_patient = True
    sender, other = router.client().sender("x"), router.client().sender("x")
    sender.detach()
    router.catch_up()
    assert (sender.credit, other.credit) == (0, 9)


def test_a_receiver_of_one_of_very_many_places_that_drains_waits_for_senders() -> None:
    router = of_many_hops(2 * AT_ONCE)
    sender = router.client().sender("x")
    receiver = router.client().receiver("hop0")
    receiver.grant(5, drain=True)
    assert receiver.drains_heard == 0
    assert sender.credit == 5
    sender.send(message("m", subject="s"))
    router.wait(0.3)
    router.wait(0.3)
    assert texts(receiver) == ["m"]
    assert receiver.drains_heard == 1


def test_very_many_receivers_are_served_over_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related_credit, "AT_ONCE", 64)
    router = Router([RULE])
    receiver = router.client(window=1).receiver("q", 300)
    rests = [out_of(router.client(), "qd.fallback", credit=1) for _ in range(200)]
    sender = router.client(link_capacity=300).sender("q")
    for number in range(250):
        sender.send(message(str(number)))

    def got() -> int:
        return sum(len(each.received) for each in rests)

    assert most_in_a_turn(router, got, receiver.detach) <= 64
    assert [len(each.received) for each in rests] == [1] * 200
    for each in rests:
        each.settle()
        each.grant(1)
    assert got() == 249
