"""A disposition's state, read by hand; `test_reading` holds its fields to the tables."""

from __future__ import annotations

import pytest

from router.amqp.composite import encode_composite
from router.amqp.constants import Descriptor
from router.amqp.performatives import Accepted, Disposition, TransactionalState
from router.amqp.reading import Cursor
from router.amqp.reading_disposition import DispositionFrame
from router.errors import AmqpError


def read(octets: bytes) -> DispositionFrame:
    """Read a disposition's body."""
    cursor = Cursor()
    cursor.move(memoryview(octets), 0, len(octets))
    assert cursor.take_descriptor() == int(Descriptor.DISPOSITION)
    frame = DispositionFrame()
    frame.octets = memoryview(octets)
    frame.read(cursor)
    return frame


@pytest.mark.parametrize(
    ("state", "plain"),
    [
        ("00532445", True),
        ("005324c00100", True),
        ("005325c00100", True),
        ("005326c00100", True),
        ("005327c00100", True),
        ("005327c0020141", False),
        ("005327c0020140", False),
        ("005324d00000000400000000", False),
    ],
)
def test_a_plain_state_is_its_descriptor_alone(state: str, plain: bool) -> None:
    items = bytes.fromhex("41434042" + state)
    frame = read(b"\x00\x53\x15\xc0" + bytes((len(items) + 1, 5)) + items)
    assert bool(frame.plain) is plain
    assert frame.state_code == int(state[4:6], 16)


@pytest.mark.spec("4.5.6-1")
def test_a_transactional_state_is_kept_whole() -> None:
    state = TransactionalState(b"txn", Accepted())
    body = encode_composite(Disposition(True, 1, state=state))
    frame = read(body)
    assert frame.state_code == int(Descriptor.TRANSACTIONAL_STATE)
    assert not frame.plain
    assert body[frame.state_at : frame.state_end] == encode_composite(state)


def test_a_state_that_nobody_could_read_is_not_passed_on() -> None:
    items = bytes.fromhex("41434042" + "005325c00801" + "00531dc20301a300")
    with pytest.raises(AmqpError, match="0xc2"):
        read(b"\x00\x53\x15\xc0" + bytes((len(items) + 1, 5)) + items)


def test_a_copy_keeps_its_state_whatever_is_read_next() -> None:
    state = TransactionalState(b"txn", Accepted())
    octets = bytearray(encode_composite(Disposition(True, 1, 7, True, state)))
    frame = read(bytes(octets))
    frame.octets = memoryview(octets)
    copy = frame.copy()
    octets[:] = bytes(len(octets))
    assert (copy.from_receiver, copy.first, copy.last, copy.settled) == (True, 1, 7, True)
    assert copy.state_code == int(Descriptor.TRANSACTIONAL_STATE)
    assert bytes(copy.octets[copy.state_at : copy.state_end]) == encode_composite(state)
