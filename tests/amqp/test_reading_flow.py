"""FLOW read by hand; random fields and encodings of it are tested in `test_reading`."""

from __future__ import annotations

import pytest

from router.amqp.composite import encode_composite
from router.amqp.performatives import Flow
from router.amqp.reading import Cursor
from router.amqp.reading_flow import FlowFrame
from router.errors import AmqpError, Scope

PAST = b"\xff" * 16


def read(body: bytes, past: bytes = b"", frame: FlowFrame | None = None) -> FlowFrame:
    """Read what follows the descriptor of a flow's body."""
    cursor = Cursor()
    cursor.move(memoryview(body + past), 0, len(body))
    assert cursor.take_descriptor() == Flow.CODE
    frame = frame or FlowFrame()
    frame.read(cursor)
    return frame


def test_a_session_s_flow_names_no_link() -> None:
    frame = read(
        encode_composite(Flow(incoming_window=10, next_outgoing_id=20, outgoing_window=30))
    )
    assert not frame.has_next_incoming_id
    assert (frame.incoming_window, frame.next_outgoing_id, frame.outgoing_window) == (10, 20, 30)
    assert not frame.has_handle
    assert not frame.has_link_credit
    assert not frame.echo


def test_nothing_is_left_of_the_flow_before() -> None:
    frame = FlowFrame()
    read(encode_composite(Flow(2, 3, 4, 5, 6, 7, 8, True, True, next_incoming_id=1)), frame=frame)
    assert (frame.handle, frame.delivery_count, frame.link_credit, frame.available) == (5, 6, 7, 8)
    assert frame.drain
    assert frame.echo
    read(
        encode_composite(Flow(incoming_window=2, next_outgoing_id=3, outgoing_window=4)),
        frame=frame,
    )
    for name in ("has_next_incoming_id", "has_handle", "has_delivery_count", "has_link_credit"):
        assert not getattr(frame, name), name
    for name in ("available", "drain", "echo"):
        assert not getattr(frame, name), name


@pytest.mark.spec("1.3.4-1")
@pytest.mark.parametrize(
    ("items", "count"),
    [
        ("", 0),
        ("404343", 3),
        ("40404343", 4),
        ("40434043", 4),
        ("40434340", 4),
        ("4043434343", 4),
        ("43434343" + "40" * 8, 12),
        ("434343434343434341a0", 10),
    ],
)
@pytest.mark.parametrize("past", [b"", PAST, bytes(16)])
def test_fields_that_cannot_be_are_refused(items: str, count: int, past: bytes) -> None:
    octets = bytes.fromhex(items)
    body = bytes((0x00, 0x53, Flow.CODE, 0xC0, len(octets) + 1, count)) + octets
    with pytest.raises(AmqpError) as caught:
        read(body, past)
    assert caught.value.scope is Scope.CONNECTION
