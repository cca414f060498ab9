"""Messages without a header get one where a receiver needs it, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import AmqpValue, Header, Message, encode_message
from router.core.deliveries.missing_headers import DEFAULTS

from support.in_memory import ReceivingLink, Router, SendingLink
from support.tokens import Claimant, Verifier

BARE = encode_message(Message(body=(AmqpValue("x"),)))


def pair(
    claimant: Claimant, *, credit: int = 0, size: int | None = None
) -> tuple[SendingLink, ReceivingLink]:
    """Attach a sender and a receiver on a connection with a `$cbs` node."""
    requests, _ = claimant.attach()
    claimant.put(requests, "listen,send:q")
    receiver = claimant.client.receiver("q", credit=credit, name="r", max_message_size=size)
    return claimant.client.sender("q"), receiver


def test_a_message_without_a_header_gets_the_defaults() -> None:
    sender, receiver = pair(Claimant(Router(), Verifier()), credit=1)
    sender.send(BARE)
    assert receiver.take() == DEFAULTS + BARE


def test_so_does_one_that_has_waited() -> None:
    claimant = Claimant(Router(), Verifier())
    sender, receiver = pair(claimant)
    sender.credit = 1
    sender.send(BARE)
    assert not receiver.received
    receiver.grant(1)
    assert receiver.take() == DEFAULTS + BARE
    assert claimant.router.forwarder.backlog.held_bytes == 0


@pytest.mark.parametrize(
    ("octets", "fields"),
    [
        (encode_message(Message(header=Header(priority=7), body=(AmqpValue("x"),))), {}),
        (b"malformed", {}),
        # the sections of another format are unknown
        (BARE, {"message_format": 7}),
    ],
    ids=["header", "malformed", "format"],
)
def test_others_are_left_as_they_are(octets: bytes, fields: dict[str, Any]) -> None:
    sender, receiver = pair(Claimant(Router(), Verifier()), credit=1)
    sender.send(octets, **fields)
    assert receiver.take() == octets


def test_a_message_never_becomes_too_large() -> None:
    sender, receiver = pair(Claimant(Router(), Verifier()), credit=1, size=len(BARE) + 1)
    sender.send(BARE)
    assert receiver.take() == BARE


def test_other_connections_get_no_header() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    router.client().sender("q").send(BARE)
    assert receiver.take() == BARE
