"""The credit of senders whose messages go to a fallback, and whom it is taken from."""

from __future__ import annotations

from router.amqp.performatives import Source
from router.amqp.types import Symbol
from router.core.rules import AddressRule

from support.in_memory import Router
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
