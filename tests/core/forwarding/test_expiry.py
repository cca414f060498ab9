"""Expiry of messages whose ttl ends while they wait, and the ttl that is left in those sent."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.message import Data, Header, Message, Properties, decode_message, encode_message
from router.amqp.performatives import (
    Accepted,
)
from router.amqp.types import Timestamp

from support.in_memory import ReceivingLink, Router, SendingLink
from support.pairs import pair, rejected, several

# another section of a body
MORE = b"\0\x53\x75\xa0\x01+"


def with_ttl(ttl: int | None, body: bytes = b"x") -> bytes:
    return encode_message(Message(header=Header(ttl=ttl), body=(Data(body),)))


def waiting(ttl: int, frames: int = 1) -> tuple[Router, SendingLink, ReceivingLink, Any]:
    """Send a message with a ttl that waits because its receiver's window is closed."""
    router, sender, receiver = pair(10, window=1)
    sender.send(b"first")
    octets = with_ttl(ttl)
    sending = sender.send(octets, more=frames > 1)
    for n in range(1, frames):
        sender.go_on(MORE, more=n < frames - 1)
    assert len(receiver.received) == 1
    return router, sender, receiver, sending


@pytest.mark.parametrize(("ttl", "waited", "left"), [(200, 0.15, 50), (70_000, 10, 60_000)])
@pytest.mark.spec("3.2.1-6", "G2.1-1")
def test_what_is_left_of_a_ttl_is_sent_on(ttl: int, waited: float, left: int) -> None:
    router, _, receiver, _ = waiting(ttl)
    router.wait(waited)
    receiver.client.open_window()
    message = decode_message(receiver.received[1].payload)
    assert message.header is not None
    assert message.header.ttl is not None
    assert left - 1 <= message.header.ttl <= left
    assert message.body == (Data(b"x"),)


@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("ttl", [0, 100, 70_000])
@pytest.mark.spec("3.2.1-5", "B2.2.5-1")
def test_a_message_that_expires_is_not_delivered(ttl: int, frames: int) -> None:
    router, sender, receiver, sending = waiting(ttl, frames)
    router.wait(ttl / 1000 + 0.001)
    assert rejected("trioute:expired") == sending.outcome
    assert router.forwarder.backlog.held_bytes == 0
    assert router.table.total().expired == 1
    receiver.client.open_window()
    assert len(receiver.received) == 1
    sender.send(b"next")
    receiver.client.open_window()
    assert receiver.received[-1].payload == b"next"


def test_a_message_that_has_expired_is_not_sent_although_nobody_looked() -> None:
    router, _, receiver, sending = waiting(100)
    router.turn.now += 0.2
    receiver.client.open_window()
    assert len(receiver.received) == 1
    assert rejected("trioute:expired") == sending.outcome


def test_a_message_of_which_a_part_was_sent_does_not_expire() -> None:
    router, sender, receiver = pair(10, window=1)
    sending = sender.send(with_ttl(100), more=True)
    sender.go_on(MORE)
    router.wait(10)
    receiver.client.open_window()
    assert receiver.received[0].complete
    receiver.settle()
    assert sending.outcome == Accepted()


def test_a_message_that_waited_and_has_begun_does_not_expire() -> None:
    router, _, receiver, sending = waiting(100, frames=3)
    receiver.client.open_window(1)
    assert [each.complete for each in receiver.received] == [True, False]
    router.wait(10)
    receiver.client.open_window(100)
    assert [each.complete for each in receiver.received] == [True, True]
    receiver.settle()
    assert sending.outcome == Accepted()


def test_what_is_left_is_reckoned_when_the_first_frame_leaves() -> None:
    router, _, receiver, _ = waiting(70_000, frames=2)
    router.wait(10)
    receiver.client.open_window(1)
    router.wait(10)
    receiver.client.open_window(1)
    header = decode_message(receiver.received[1].payload).header
    assert header is not None
    assert header.ttl == 60_000


@pytest.mark.parametrize("ttl", [2**32 - 2, 2**32 - 1])
def test_the_longest_ttl(ttl: int) -> None:
    router, _, receiver, sending = waiting(ttl)
    router.wait(ttl // 1000)
    assert sending.outcome is None
    receiver.client.open_window()
    header = decode_message(receiver.received[1].payload).header
    assert header is not None
    assert header.ttl is not None
    assert 0 <= ttl % 1000 - header.ttl <= 1


def test_a_ttl_of_0_is_now_or_never() -> None:
    router, sender, receiver = pair(1)
    at_once = sender.send(with_ttl(0))
    assert [each.payload for each in receiver.received] == [with_ttl(0)]
    receiver.settle()
    assert at_once.outcome == Accepted()
    router, _, receiver, sending = waiting(0)
    router.wait(0)
    assert rejected("trioute:expired") == sending.outcome


HEADERS = {
    "a list of 32 bits": ("005370d00000000b0000000340407000000064", 0x64),
    "a descriptor of 64 bits": ("00800000000000000070c0050340405264", 0x64),
    "a symbol": ("00a310" + b"amqp:header:list".hex() + "c0050340405264", 0x64),
    "a long symbol": ("00b300000010" + b"amqp:header:list".hex() + "c0050340405264", 0x64),
    "null": ("005370c00403404040", None),
    "a list that ends before": ("005370c003024140", None),
    "an empty list": ("00537045", None),
    "none at all": ("", None),
}


@pytest.mark.parametrize(("header", "ttl_ms"), HEADERS.values(), ids=list(HEADERS))
@pytest.mark.spec("3.2.1-1")
def test_a_header_of_any_form(header: str, ttl_ms: int | None) -> None:
    octets = bytes.fromhex(header) + b"\0\x53\x75\xa0\x01x"
    for waited_s in (0.05, 1.0):
        router, sender, receiver = pair(10, window=1)
        sender.send(b"first")
        sending = sender.send(octets, message_format=0)
        router.wait(waited_s)
        receiver.client.open_window(10)
        if ttl_ms is None:
            assert receiver.received[1].payload == octets
        elif waited_s < 1:
            left = decode_message(receiver.received[1].payload).header
            assert left is not None
            assert left.ttl is not None
            assert 49 <= left.ttl <= 50
        else:
            assert rejected("trioute:expired") == sending.outcome


def until(expiry_ms: int, ttl: int | None = None) -> bytes:
    return encode_message(
        Message(
            header=None if ttl is None else Header(ttl=ttl),
            properties=Properties(absolute_expiry_time=Timestamp(expiry_ms)),
            body=(Data(b"x"),),
        )
    )


@pytest.mark.parametrize(
    ("expiry_ms", "ttl", "lasts_s"),
    [
        (5_000_010_000, None, 10),
        (5_000_010_000, 20_000, 10),
        (5_000_010_000, 5_000, 5),
        (4_999_999_999, None, 0),
        (0, None, 0),
        (-(2**63), None, 0),
    ],
)
@pytest.mark.spec("3.2.4-7")
def test_an_absolute_expiry_time_is_honoured_where_asked_for(
    expiry_ms: int, ttl: int | None, lasts_s: int
) -> None:
    router, sender, receiver = pair(10, window=1)
    # the wall clock tells 5,000,000 s since 1970
    router.forwarder.backlog.wall_ahead_s = 5_000_000 - router.turn.now
    sender.send(b"first")
    sending = sender.send(until(expiry_ms, ttl))
    if lasts_s:
        router.wait(lasts_s - 0.01)
        assert router.table.total().expired == 0
        router.wait(0.011)
    else:
        router.wait(0)
    assert rejected("trioute:expired") == sending.outcome
    receiver.client.open_window(10)
    assert len(receiver.received) == 1


@pytest.mark.spec("G2.2-2")
def test_an_absolute_expiry_time_is_not_looked_at_unless_asked_for() -> None:
    router, sender, receiver = pair(10, window=1)
    sender.send(b"first")
    sender.send(until(1))
    router.wait(1000)
    receiver.client.open_window(10)
    assert receiver.received[1].payload == until(1)


def test_a_copy_of_a_multicast_expires_by_itself() -> None:
    router, sender, receivers = several("multicast", [5, 5])
    receivers[1].client.open_window(1)
    sender.send(b"first")
    sending = sender.send(with_ttl(100))
    router.wait(1)
    receivers[0].settle()
    assert rejected("trioute:expired") == sending.outcome
    assert [len(each.received) for each in receivers] == [2, 1]


def test_the_next_expiry_is_the_earliest() -> None:
    router, sender, _ = pair(10, window=1)
    sender.send(b"first")
    for ttl in (5000, 1000, 3000):
        sender.send(with_ttl(ttl))
    backlog = router.forwarder.backlog
    start = router.turn.now
    for ttl, expired in ((1, 1), (3, 2), (5, 3)):
        assert backlog.deadlines.next == start + ttl
        router.wait(start + ttl - router.turn.now)
        assert router.table.total().expired == expired
    assert backlog.deadlines.next == 0
