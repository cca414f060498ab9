"""Outcomes, default outcomes and settle modes that are agreed with a receiver and then applied."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import (
    ReceiverSettleMode,
    SenderSettleMode,
    TerminusExpiryPolicy,
)
from router.amqp.performatives import (
    Accepted,
    Attach,
    Disposition,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    Source,
    Target,
)
from router.amqp.types import Described, Symbol
from router.core.deliveries.source_outcomes import agreed_terms, granted_outcomes

from support.in_memory import ReceivingLink, Router, SendingLink

STANDARD = (Accepted.NAME, Rejected.NAME, Released.NAME, Modified.NAME)
DEFAULTS = [
    Accepted(),
    Released(),
    Rejected(Error(Symbol("x:y"))),
    Modified(undeliverable_here=True),
]
FAILED = Modified(delivery_failed=True)


def agreed(default: str = "balanced", **source: Any) -> tuple[SendingLink, ReceivingLink]:
    """Attach a sender, and a receiver with such a source."""
    router = Router(default=default)
    receiver = router.client().receiver(None, 10, source=Source("q", **source))
    return router.client().sender("q"), receiver


def answer(link: SendingLink | ReceivingLink) -> Attach:
    assert link.attach is not None
    return link.attach


# What is answered.


@pytest.mark.spec("B2.3.11.3-1", "B2.3.11.3-3", "3.5.3-11")
@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        ((), STANDARD),
        ((Released.NAME, Accepted.NAME), (Accepted.NAME, Released.NAME)),
        ((Accepted.NAME, "x:mine:list"), (Accepted.NAME,)),
    ],
)
def test_the_answer_names_the_outcomes_that_there_are(
    asked: tuple[str, ...], granted: tuple[str, ...]
) -> None:
    _, receiver = agreed(outcomes=tuple(Symbol(name) for name in asked))
    source = answer(receiver).source
    assert source is not None
    assert source.outcomes == granted


@pytest.mark.spec("B2.3.11.3-2")
@pytest.mark.parametrize("names", [("x:mine:list",), ("x:mine:list", "amqp:received:list")])
def test_a_source_of_which_no_outcome_is_known_is_refused(names: tuple[str, ...]) -> None:
    _, receiver = agreed(outcomes=tuple(Symbol(name) for name in names))
    assert answer(receiver).source is None
    assert receiver.detached is not None
    error = receiver.detached.error
    assert error is not None
    assert error.condition == "amqp:not-implemented"
    assert error.description is not None
    assert error.description.startswith(f"unsupported source outcomes: {', '.join(names)}")


def test_usual_terms_are_none() -> None:
    assert agreed_terms(Source("q")) is None
    assert agreed_terms(Source("q", outcomes=tuple(Symbol(name) for name in STANDARD))) is None
    assert granted_outcomes(None) == STANDARD


@pytest.mark.spec("2.6.3-5")
def test_a_terminus_is_said_to_end_with_its_link() -> None:
    sender, receiver = agreed(expiry_policy=TerminusExpiryPolicy.NEVER)
    anonymous = sender.client.sender(None)
    for terminus in (answer(receiver).source, answer(sender).target, answer(anonymous).target):
        assert isinstance(terminus, Source | Target)
        assert terminus.expiry_policy == TerminusExpiryPolicy.LINK_DETACH


@pytest.mark.spec("2.7.3-4")
@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (SenderSettleMode.UNSETTLED, SenderSettleMode.MIXED),
        (SenderSettleMode.SETTLED, SenderSettleMode.SETTLED),
        (SenderSettleMode.MIXED, SenderSettleMode.MIXED),
    ],
)
def test_settled_messages_are_not_denied(
    asked: SenderSettleMode, granted: SenderSettleMode
) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5, snd_settle_mode=asked)
    assert answer(receiver).snd_settle_mode == granted
    router.client().sender("q").send(b"x", settled=True)
    assert receiver.received[0].settled


@pytest.mark.spec("2.7.5-15")
@pytest.mark.parametrize("more", [False, True])
def test_a_transfer_that_asks_for_second_costs_the_link(more: bool) -> None:
    sender, receiver = agreed()
    sender.send(b"x", more=more, rcv_settle_mode=ReceiverSettleMode.SECOND)
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == "amqp:not-allowed"
    assert receiver.received == []


def test_a_settled_transfer_may_say_what_it_likes_about_settling() -> None:
    sender, receiver = agreed()
    sender.send(b"x", settled=True, rcv_settle_mode=ReceiverSettleMode.SECOND)
    assert receiver.take() == b"x"
    assert sender.detached is None


# Outcomes that were not agreed on.


@pytest.mark.spec("B2.3.11.3-4")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_an_outcome_that_was_not_agreed_costs_the_link(default: str, settled: bool) -> None:
    sender, receiver = agreed(default, outcomes=(Symbol(Accepted.NAME),))
    sent = [sender.send(b"x") for _ in range(3)]
    receiver.client.dispose([0], Accepted())
    receiver.client.dispose([1, 2], Rejected(), settled=settled)
    assert [each.outcome for each in sent] == [Accepted(), FAILED, FAILED]
    assert receiver.detached is not None
    assert receiver.detached.error is not None
    assert receiver.detached.error.condition == "amqp:not-allowed"


def test_outcomes_that_were_agreed_are_told() -> None:
    sender, receiver = agreed(outcomes=(Symbol(Accepted.NAME), Symbol(Released.NAME)))
    sent = [sender.send(b"x") for _ in range(2)]
    receiver.client.dispose([0], Accepted())
    receiver.client.dispose([1], Received(0, 0), settled=False)
    receiver.client.dispose([1], Released())
    assert [each.outcome for each in sent] == [Accepted(), Released()]
    assert receiver.detached is None


# The default outcome.


@pytest.mark.spec("3.5.3-9")
@pytest.mark.parametrize("outcome", DEFAULTS)
@pytest.mark.parametrize("default", ["balanced", "multicast"])
@pytest.mark.parametrize("state", [None, Received(0, 0)])
def test_what_is_settled_without_an_outcome_has_the_default(
    default: str, outcome: Any, state: Any
) -> None:
    sender, receiver = agreed(default, default_outcome=outcome)
    source = answer(receiver).source
    assert source is not None
    assert source.default_outcome == outcome
    sending = sender.send(b"x")
    receiver.client.say(Disposition(True, 0, settled=True, state=state))
    assert sending.outcome == outcome
    # an outcome that is told goes before it
    sending = sender.send(b"x")
    receiver.settle(Accepted())
    assert sending.outcome == Accepted()


@pytest.mark.spec("3.5.3-9")
@pytest.mark.parametrize("outcome", DEFAULTS)
@pytest.mark.parametrize("default", ["balanced", "multicast"])
def test_what_is_lost_has_the_default(default: str, outcome: Any) -> None:
    sender, receiver = agreed(default, default_outcome=outcome)
    sending = sender.send(b"x")
    receiver.client.lose()
    assert sending.outcome == outcome


@pytest.mark.spec("3.5.3-9", "3.4-1")
def test_an_outcome_that_was_told_is_not_changed_to_the_default() -> None:
    _, receiver = agreed(default_outcome=Released())
    router = receiver.client.router
    sender = router.client().sender("q", rcv_settle_mode=ReceiverSettleMode.SECOND)
    sent = [sender.send(b"x") for _ in range(2)]
    receiver.client.dispose([0, 1], Accepted(), settled=False)
    receiver.client.say(Disposition(True, 0, settled=True))
    receiver.client.lose()
    for each in sent:
        assert each.states == [Accepted()]
    total = router.table.total()
    assert (total.accepted, total.released) == (2, 0)


@pytest.mark.spec("3.5.3-9")
def test_what_was_sent_in_part_has_not_the_default() -> None:
    sender, receiver = agreed(default_outcome=Accepted())
    sending = sender.send(b"x", more=True)
    receiver.client.lose()
    assert sending.outcome == FAILED


@pytest.mark.spec("B2.3.7-1")
def test_a_default_outcome_of_another_s_making_is_refused() -> None:
    mine = Described(Symbol("x:mine:list"), [])
    _, receiver = agreed(default_outcome=mine)
    assert answer(receiver).source is None
    assert receiver.detached is not None
    assert receiver.detached.error is not None
    assert receiver.detached.error.condition == "amqp:not-implemented"
