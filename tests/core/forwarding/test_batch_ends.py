"""Batches whose messages, links or connections end in unusual ways leave nothing behind."""

from __future__ import annotations

from typing import Any

from core.forwarding.test_batches import accept, batch, send, splitting

from router.amqp.batches import BATCH_FORMAT
from router.amqp.constants import TerminusExpiryPolicy as Policy
from router.amqp.performatives import Accepted, Source, Target
from router.amqp.types import Symbol
from router.core.model.address import Producer
from router.engine.account import BATCHES

from support.in_memory import Client, Router, SendingLink
from support.waypoints import message, texts


def producer_of(sender: SendingLink) -> Producer:
    (session,) = sender.client.connection.local_sessions.values()
    producer = session.local_links[sender.router_handle].owner
    assert isinstance(producer, Producer)
    return producer


def in_ledger(router: Router) -> int:
    return router.turn.ledger.by_kind[BATCHES]


def test_a_batch_whose_last_frame_says_resume_is_forwarded() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    octets = batch(message("a"), message("b"))
    sending = sender.send(octets[:20], message_format=BATCH_FORMAT, more=True)
    sender.go_on(octets[20:], resume=True)
    assert texts(receiver) == ["a", "b"]
    accept(receiver, 2)
    assert sending.outcome == Accepted()
    assert in_ledger(router) == 0


def test_a_sender_detached_for_a_message_to_nobody_leaves_no_charge() -> None:
    router = Router()
    client = router.client()
    sender = client.sender(None, source=Source(outcomes=(Symbol("amqp:accepted:list"),)))
    producer_of(sender).splits_batches = True
    assert producer_of(sender).lacks_rejected
    send(sender, message("a"), message("b"))
    assert sender.detached is not None
    assert in_ledger(router) == 0


def lasting(client: Client, address: str | None = "q", **fields: Any) -> SendingLink:
    target = Target(address=address, expiry_policy=Policy.LINK_DETACH, timeout=30)
    sender = client.sender(address, name="s", target=target, **fields)
    producer_of(sender).splits_batches = True
    return sender
