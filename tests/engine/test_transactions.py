"""Links that lead to no container take part in no transaction, and are detached for one."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.composite import encode_composite
from router.amqp.performatives import (
    Accepted,
    Detach,
    Disposition,
    Flow,
    TransactionalState,
    Transfer,
)
from router.amqp.types import Described, Symbol

from support.flow_talks import credit, flow, granted, outgoing, send
from support.transcripts import NOTHING, On, Talk, failed, like, linked, message, session_of

STATES: list[Any] = [
    TransactionalState(b"t"),
    TransactionalState(b"t", Accepted()),
    # as Proton writes it
    Described(Symbol("amqp:transactional-state:list"), [b"t", None]),
]
NOT_IMPLEMENTED = "amqp:not-implemented"
TXN_ID = Symbol("txn-id")


def refused(talk: Talk) -> None:
    """See a link detached, and the session go on."""
    talk << failed(Detach, NOT_IMPLEMENTED)
    talk >> flow(echo=True) << like(Flow) << NOTHING


# Posting (section 4.4.1).


@pytest.mark.spec("0.2-7")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_a_message_in_a_transaction_is_not_taken(state: Any, more: bool, settled: bool) -> None:
    talk = granted() >> message(0, state=state, more=more, settled=settled)
    refused(talk)
    assert talk.recorder.deliveries == []
    assert session_of(talk).incoming.count == 0


@pytest.mark.parametrize("aborted", [True, False])
def test_a_later_frame_may_not_bring_a_transaction_either(aborted: bool) -> None:
    talk = granted() >> message(0, more=True)
    talk >> On(0, Transfer(0, state=STATES[0], aborted=aborted), b"y")
    refused(talk)
    # nothing came after the link was gone
    assert talk.recorder.payloads == {0: b"x"}


# Retirement (section 4.4.2).


@pytest.mark.spec("0.2-7")
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("state", STATES)
def test_an_outcome_in_a_transaction_is_not_taken(state: Any, settled: bool) -> None:
    talk = linked() >> credit(10)
    for _ in range(3):
        send(talk)
    talk.skip() >> Disposition(True, 0, 1, settled, state)
    refused(talk)
    assert talk.recorder.told("outcome") == []


def test_a_sender_s_own_transactional_state_is_not_taken() -> None:
    talk = granted() >> message(0)
    talk >> Disposition(False, 0, state=STATES[0])
    refused(talk)


def test_a_transaction_of_what_is_not_there_concerns_nobody() -> None:
    talk = linked() >> credit(10)
    send(talk)
    talk.skip() >> Disposition(True, 5, 2**31, True, STATES[0]) << NOTHING
    talk >> Disposition(True, 7, state=STATES[0]) << NOTHING
    talk >> Disposition(False, 0, state=STATES[0]) << NOTHING
    assert outgoing(talk).unsettled == 1


# Acquisition (section 4.4.3).


@pytest.mark.spec("4.4.3-1", "0.2-7")
@pytest.mark.parametrize("more", [{}, {Symbol("x"): [1, {}]}])
def test_credit_in_a_transaction_is_not_taken(more: dict[Any, Any]) -> None:
    talk = linked() >> credit(10, properties={**more, TXN_ID: b"t"})
    refused(talk)
    assert outgoing(talk).credit == 0


@pytest.mark.parametrize(
    "properties", [{}, {TXN_ID: None}, {Symbol("x"): b"t"}, {Symbol("txn-id2"): b"t"}]
)
def test_a_flow_may_have_other_properties(properties: dict[Any, Any]) -> None:
    talk = linked() >> credit(10, properties=properties) << NOTHING
    assert outgoing(talk).credit == 10


def test_a_sender_s_flow_acquires_nothing() -> None:
    talk = linked() >> flow(handle=0, delivery_count=0, properties={TXN_ID: b"t"}) << NOTHING
    talk >> flow(properties={TXN_ID: b"t"}) << NOTHING


# Between routers.


@pytest.mark.parametrize("role", ["inter-router", "edge"])
def test_other_routers_lose_no_link_by_what_their_clients_said(role: str) -> None:
    """It is for many senders; the router where the client is refuses its link."""
    talk = granted(role=role) >> message(0, state=STATES[0]) << NOTHING
    (delivery,) = talk.recorder.deliveries
    assert delivery.state == encode_composite(STATES[0])
    talk >> credit(10, properties={TXN_ID: b"t"}) << NOTHING
    assert outgoing(talk).credit == 10
