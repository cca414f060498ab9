"""The ttl of messages on routed links: less by the time that they were held here."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Data, Header, Message, decode_message, encode_message
from router.amqp.performatives import (
    Disposition,
    Flow,
    TransactionalState,
    Transfer,
)

from support.pairs import rejected
from support.routed import Pair, flow, receiver, sender
from support.transcripts import NOTHING, On, like


def message(ttl: int | None) -> bytes:
    return encode_message(Message(Header(ttl=ttl), body=(Data(b"body"),)))


def ttl_of(octets: bytes | None) -> int | None:
    assert octets is not None
    header = decode_message(octets).header
    assert header is not None
    return header.ttl


def closed_window() -> Flow:
    return Flow(next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=100)


def held(payload: bytes, seconds: float, transfer: Transfer | None = None, **fields: Any) -> Pair:
    """Send a message from the client that the container takes after `seconds`."""
    pair = Pair()
    pair.attach(sender("q.a", **fields))
    pair.from_container(flow(credit=5))
    pair.client.skip()
    pair.from_container(closed_window())
    pair.client >> On(0, transfer or Transfer(0, 0, b"0", 0), payload)
    pair.container << NOTHING
    pair.router.turn.now += seconds
    pair.from_container(flow(credit=5))
    return pair


@pytest.mark.parametrize(
    ("seconds", "ttl", "left"),
    [(0, 5000, 5000), (0.0005, 5000, 5000), (2, 5000, 3000), (4.998, 5000, 2), (2, None, None)],
)
@pytest.mark.spec("3.2.1-6", "G2.1-1")
def test_what_is_left_of_the_ttl_goes_on(seconds: float, ttl: int | None, left: int | None) -> None:
    (heard,) = held(message(ttl), seconds).container.frames()
    assert ttl_of(heard.payload) == left
    assert heard.payload is not None
    assert decode_message(heard.payload).body == (Data(b"body"),)


def test_so_it_does_from_the_container() -> None:
    pair = Pair()
    pair.attach(receiver("q.a"))
    pair.client >> flow(credit=1, count=None)
    pair.container.skip()
    for number in range(2):
        pair.from_container(Transfer(0, number, b"%d" % number, 0), message(5000))
    (first,) = pair.client.frames()
    assert ttl_of(first.payload) == 5000
    pair.router.turn.now += 2
    pair.client >> flow(credit=1, count=1)
    second = pair.client.frames()[0]
    assert ttl_of(second.payload) == 3000


def test_what_is_resumed_goes_on_as_it_is() -> None:
    octets = message(5000)
    (heard,) = held(octets, 2, Transfer(0, 0, b"0", 0, resume=True)).container.frames()
    assert heard.payload == octets


@pytest.mark.parametrize("payload", [b"x", b"\0\x53\x70", b"\0\x53\x70\xc0\x04\x03\x40\x50", b""])
def test_what_has_no_whole_header_goes_on_as_it_is(payload: bytes) -> None:
    (heard,) = held(payload, 2).container.frames()
    assert heard.payload == payload


def test_what_is_of_another_format_goes_on_as_it_is() -> None:
    (heard,) = held(message(5000), 2, Transfer(0, 0, b"0", 7)).container.frames()
    assert heard.payload == message(5000)


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.spec("3.2.1-5", "B2.2.5-1", "G2.1-1")
def test_what_has_expired_here_is_rejected_and_not_sent(settled: bool) -> None:
    pair = held(message(1000), 1, Transfer(0, 0, b"0", 0, settled=settled))
    # it has taken its credit all the same
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"0", aborted=True), b"")
    if not settled:
        expected = rejected("trioute:expired")
        pair.client << like(Disposition, role=True, first=0, settled=True, state=expected)
    pair.client >> On(0, Transfer(0, 1, b"1", 0), message(1000))
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"1"), message(1000))
    assert pair.router.forwarder.backlog.held_bytes == 0


def test_the_rest_of_what_has_expired_is_not_sent_either() -> None:
    octets = message(1000)
    pair = held(octets[:-1], 1, Transfer(0, 0, b"0", 0, more=True))
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"0", aborted=True), b"")
    pair.client.skip() >> On(0, Transfer(0), octets[-1:])
    pair.container << NOTHING


def test_what_belongs_to_a_transaction_is_not_for_the_router_to_reject() -> None:
    state = TransactionalState(b"tx")
    pair = held(message(1000), 2, Transfer(0, 0, b"0", 0, state=state))
    (heard,) = pair.container.frames()
    assert ttl_of(heard.payload) == 1
    pair.client << NOTHING
