"""A message that is sent once more differs in what the last outcome said, and in nothing else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.message import (
    AmqpValue,
    Data,
    Header,
    Message,
    Properties,
    bare_message,
    decode_message,
    encode_message,
)
from router.amqp.revision import revise
from router.amqp.types import Symbol

K, L = Symbol("x-opt-k"), Symbol("x-opt-l")
BARE: dict[str, Any] = {"properties": Properties(to="q"), "body": (Data(b"a"), Data(b"b"))}


@pytest.mark.parametrize(
    "message",
    [
        Message(body=(AmqpValue(None),)),
        Message(Header(durable=True), **BARE),
        Message(Header(ttl=5), message_annotations={K: 1}, footer={L: 2}, **BARE),
    ],
)
def test_what_has_nothing_to_change_goes_as_it_came(message: Message) -> None:
    octets = encode_message(message)
    assert revise(octets, 0, failed=False, annotations=None) == octets


@pytest.mark.spec("3.4.5-2")
@pytest.mark.parametrize(
    ("header", "failed", "count"),
    [
        (None, True, 1),
        (Header(delivery_count=3, durable=True, priority=7), True, 4),
        (Header(delivery_count=0xFFFFFFFF), True, 0xFFFFFFFF),
        (Header(delivery_count=3, first_acquirer=True), False, 3),
    ],
)
@pytest.mark.parametrize("noted", [None, {K: "old"}])
def test_the_header_is_written_anew(
    header: Header | None, failed: bool, count: int, noted: dict[Any, Any] | None
) -> None:
    octets = encode_message(Message(header, message_annotations=noted, **BARE))
    again = revise(octets, 0, failed=failed, annotations=None)
    assert again is not None
    found = decode_message(again)
    expected = attrs.evolve(header or Header(), delivery_count=count, first_acquirer=False)
    assert found.header == expected
    assert found.message_annotations == noted
    assert again[slice(*bare_message(again))] == octets[slice(*bare_message(octets))]


@pytest.mark.spec("3.4.5-1")
@pytest.mark.parametrize("header", [None, Header(durable=True)])
@pytest.mark.parametrize(
    ("noted", "merged"),
    [
        (None, {K: "new", L: [1]}),
        ({K: "old"}, {K: "new", L: [1]}),
        ({Symbol("x-opt-m"): 1}, {Symbol("x-opt-m"): 1, K: "new", L: [1]}),
    ],
)
def test_annotations_are_merged(
    header: Header | None, noted: dict[Any, Any] | None, merged: dict[Any, Any]
) -> None:
    octets = encode_message(Message(header, message_annotations=noted, footer={L: 2}, **BARE))
    again = revise(octets, 0, failed=False, annotations={K: "new", L: [1]})
    assert again is not None
    found = decode_message(again)
    assert found.message_annotations == merged
    assert found.footer == {L: 2}
    assert again[slice(*bare_message(again))] == octets[slice(*bare_message(octets))]


@pytest.mark.parametrize(("elapsed_ms", "left"), [(0, 100), (40, 60), (99, 1), (100, None)])
def test_the_ttl_goes_on(elapsed_ms: int, left: int | None) -> None:
    octets = encode_message(Message(Header(ttl=100), **BARE))
    again = revise(octets, elapsed_ms, failed=False, annotations=None)
    header = None if again is None else decode_message(again).header
    assert (None if header is None else header.ttl) == left


@pytest.mark.parametrize("octets", [b"x", b"\x00\x53\x70", b"\x00\x53\x70\xc0\x02\x01\xa1"])
def test_what_cannot_be_read_is_not_sent_again(octets: bytes) -> None:
    assert revise(octets, 0, failed=False, annotations=None) is None
