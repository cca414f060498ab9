"""Durable messages that nobody would confirm are refused, where the configuration has it so."""

from __future__ import annotations

import pytest

from router.amqp.constants import SenderSettleMode
from router.amqp.message import Header
from router.amqp.performatives import Accepted, Released

from support.in_memory import ReceivingLink, Router
from support.pairs import rejected
from support.transcripts import OPAQUE
from support.waypoints import message

SETTLED = SenderSettleMode.SETTLED
DURABLE = Header(durable=True)
REFUSED = rejected("amqp:precondition-failed")


def refusing(default: str = "balanced") -> Router:
    """Return a router that refuses durable messages that nobody would confirm."""
    router = Router(default=default)
    router.forwarder.sources.rejects_unconfirmed = True
    return router


def taking(router: Router, credit: int = 10) -> ReceivingLink:
    """Attach a receiver that takes everything settled."""
    return router.client().receiver("q", credit, snd_settle_mode=SETTLED)


def durable(text: str = "x") -> bytes:
    return message(text, "q", header=DURABLE)


@pytest.mark.spec("3.2.1-3", "3.2.1-8")
@pytest.mark.parametrize("to", ["q", None])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("default", ["balanced", "closest", "multicast"])
def test_a_durable_message_that_nobody_would_confirm_is_rejected(
    default: str, waits: bool, to: str | None
) -> None:
    router = refusing(default)
    receiver = taking(router)
    sender = router.client().sender(to)
    if waits:
        receiver.grant(0)
    sent = [sender.send(durable()), sender.send(message("other", "q"))]
    receiver.grant(10)
    assert sent[0].outcome == REFUSED
    assert sent[1].outcome == Accepted()
    assert [each.payload for each in receiver.received] == [message("other", "q")]
    assert (router.table.total().rejected, router.table.total().accepted) == (1, 1)
    assert router.forwarder.backlog.held_bytes == 0


@pytest.mark.parametrize("settled", [True, False])
def test_they_are_taken_as_ever_where_nothing_is_said(settled: bool) -> None:
    router = Router()
    receiver = taking(router)
    sent = router.client().sender("q").send(durable(), settled=settled)
    assert receiver.take() == durable()
    assert sent.outcome == (None if settled else Accepted())


@pytest.mark.parametrize("header", [None, Header(durable=False), Header(priority=7)])
def test_what_is_not_durable_is_taken(header: Header | None) -> None:
    router = refusing()
    receiver = taking(router)
    octets = message("x", header=header)
    assert router.client().sender("q").send(octets).outcome == Accepted()
    assert receiver.take() == octets


def test_a_sender_that_has_settled_awaits_no_word() -> None:
    router = refusing()
    receiver = taking(router)
    router.client().sender("q").send(durable(), settled=True)
    assert receiver.take() == durable()


def test_nothing_is_read_of_another_format() -> None:
    router = refusing()
    receiver = taking(router)
    sender = router.client().sender("q")
    assert sender.send(durable(), message_format=OPAQUE).outcome == Accepted()
    assert receiver.take() == durable()


def test_who_confirms_gets_them() -> None:
    router = refusing()
    receiver = router.client().receiver("q", 10)
    sent = router.client().sender("q").send(durable())
    assert receiver.take() == durable()
    receiver.settle(Accepted())
    assert sent.outcome == Accepted()


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("is_first", [True, False])
def test_of_a_multicast_those_speak_who_confirm(is_first: bool, waits: bool) -> None:
    router = refusing("multicast")
    kinds = [SETTLED, SenderSettleMode.MIXED]
    receivers = {
        mode: router.client().receiver("q", 10, snd_settle_mode=mode)
        for mode in (kinds if is_first else reversed(kinds))
    }
    sender = router.client().sender("q")
    if waits:
        receivers[SETTLED].grant(0)
    sent = sender.send(durable())
    receivers[SETTLED].grant(10)
    assert receivers[SETTLED].received == []
    receivers[SenderSettleMode.MIXED].settle(Accepted())
    assert sent.outcome == Accepted()


def test_the_rest_of_a_large_one_is_ignored() -> None:
    router = refusing()
    receiver = taking(router)
    sender = router.client().sender("q")
    octets = durable("x" * 500)
    sent = sender.send(octets[:100], more=True)
    sender.go_on(octets[100:200], more=True)
    sender.go_on(octets[200:])
    assert sent.outcome == REFUSED
    assert sender.send(message("next")).outcome == Accepted()
    assert receiver.take() == message("next")


def test_what_is_given_back_goes_to_nobody_who_does_not_confirm() -> None:
    router = refusing()
    giver = router.client().receiver("q", 1)
    receiver = taking(router, 0)
    sender = router.client().sender("q")
    sent = sender.send(durable())
    assert giver.take() == durable()
    receiver.grant(10)
    giver.settle(Released())
    assert sent.outcome == Released()
    assert receiver.received == []


@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_what_a_lost_sender_has_left_is_not_thrown_away(default: str) -> None:
    router = refusing(default)
    receiver = taking(router)
    sender = router.client().sender("q")
    receiver.grant(0)
    sender.send(durable())
    sender.client.lose()
    receiver.grant(10)
    assert receiver.take() == durable()
