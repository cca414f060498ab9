"""Answers of the `$cbs` node: to whom they go, and how they wait for credit and room."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from router.amqp.message import AmqpValue, Message, Properties, encode_message
from router.amqp.types import ULong
from router.core.links import cbs

from support.in_memory import Router
from support.tokens import Claimant, Verifier, answer_in


@pytest.fixture
def claimant() -> Claimant:
    """Return a client without any token."""
    return Claimant(Router(), Verifier())


@pytest.mark.parametrize(
    "message_id", ["text", UUID(int=5), ULong(7), b"octets"], ids=lambda value: type(value).__name__
)
def test_the_correlation_id_has_the_type_of_the_message_id(
    claimant: Claimant, message_id: Any
) -> None:
    sender, receiver = claimant.attach()
    properties = Properties(message_id=message_id, correlation_id="other", reply_to="me")
    given = {"operation": "put-token", "name": "n", "type": "jwt"}
    sender.send(encode_message(Message(properties=properties, application_properties=given,
                                       body=(AmqpValue("send:a"),))))  # fmt: skip
    found = answer_in(receiver)[2]
    assert found == message_id
    assert type(found) is type(message_id)


def test_the_answer_goes_to_the_receiver_that_was_attached_last(claimant: Claimant) -> None:
    client = claimant.client
    first = client.receiver("$cbs", credit=5, name="first")
    second = client.receiver("$cbs", credit=5, name="second")
    sender = client.sender("$cbs", name="requests")
    claimant.put(sender, "send:a")
    assert not first.received
    assert answer_in(second)[0] == 200
    second.detach()
    claimant.put(sender, "send:a")
    assert answer_in(first)[0] == 200


def test_answers_wait_for_credit_and_limit_requests(claimant: Claimant) -> None:
    sender, receiver = claimant.attach(credit=0)
    for number in range(cbs.CREDIT):
        claimant.put(sender, "send:a", str(number))
    assert sender.credit == 0
    assert not receiver.received
    receiver.grant(cbs.CREDIT)
    assert [answer_in(receiver)[2] for _ in range(cbs.CREDIT)] == [
        str(number + 1) for number in range(cbs.CREDIT)
    ]
    assert sender.credit == cbs.CREDIT


def test_a_lost_receiver_drops_its_answers(claimant: Claimant) -> None:
    sender, receiver = claimant.attach(credit=0)
    for number in range(cbs.CREDIT):
        claimant.put(sender, "send:a", str(number))
    receiver.detach()
    again = claimant.client.receiver("$cbs", credit=10, name="again")
    assert sender.credit == cbs.CREDIT
    claimant.put(sender, "send:a")
    assert answer_in(again)[0] == 200


def test_answers_wait_for_the_window() -> None:
    claimant = Claimant(Router(), Verifier(), window=1, max_frame_size=512)
    sender, receiver = claimant.attach()
    # the answers, which have to repeat this, need two frames each
    properties = Properties(message_id="1", reply_to="x" * 600)
    given = {"operation": "put-token", "name": "n", "type": "jwt"}
    for _ in range(3):
        sender.send(encode_message(Message(properties=properties, application_properties=given,
                                           body=(AmqpValue("send:a"),))))  # fmt: skip
    assert not [each for each in receiver.received if each.complete]
    while len([each for each in receiver.received if each.complete]) < 3:
        claimant.client.open_window()
    assert [answer_in(receiver)[0] for _ in range(3)] == [200, 200, 200]


def test_a_drain_is_answered(claimant: Claimant) -> None:
    _, receiver = claimant.attach(credit=0)
    receiver.grant(7, drain=True)
    assert receiver.drained == 7
