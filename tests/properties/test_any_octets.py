"""Whatever octets come, they are read or they raise AmqpError, and nothing else happens."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.constants import FormatCode
from router.amqp.decode import decode_value, skip_value
from router.amqp.encode import encode_value
from router.amqp.framing import decode_frame_body, decode_frame_header, parse_protocol_header
from router.amqp.message import bare_message, decode_message, encode_message
from router.errors import AmqpError

from support.wire import COMPOSITES, VALUES, composites, cut_short, messages

READERS: list[Callable[[bytes], Any]] = [
    decode_value,
    skip_value,
    decode_composite,
    decode_frame_header,
    decode_frame_body,
    decode_message,
    bare_message,
    parse_protocol_header,
]

# Octets that mean something are more telling than those that do not.
TELLING = st.one_of(
    st.sampled_from([*FormatCode, 0x00, 0x01, 0x02, 0x03, 0x04, 0xFF]),
    st.integers(0x10, 0x34),
    st.integers(0x70, 0x78),
    st.integers(0, 255),
)
OCTETS = st.one_of(st.binary(max_size=200), st.lists(TELLING, max_size=60).map(bytes))


@pytest.mark.parametrize("read", READERS)
def test_random_octets(read: Callable[[bytes], Any]) -> None:
    @given(OCTETS)
    def check(octets: bytes) -> None:
        with contextlib.suppress(AmqpError):
            read(octets)

    check()


@given(OCTETS)
def test_what_is_read_is_written_and_read_again(octets: bytes) -> None:
    try:
        value, end = decode_value(octets)
    except AmqpError:
        return
    assert skip_value(octets) == end
    again = encode_value(value)
    # NaN differs from itself, so octets are compared and not values.
    assert encode_value(decode_value(again)[0]) == again


@given(VALUES)
def test_values_cut_short(value: Any) -> None:
    for part in cut_short(encode_value(value)):
        with pytest.raises(AmqpError):
            decode_value(part)
        with pytest.raises(AmqpError):
            skip_value(part)


@pytest.mark.parametrize("cls", COMPOSITES, ids=lambda cls: cls.__name__)
def test_composites_cut_short(cls: type[Composite]) -> None:
    @given(composites(cls))
    def check(value: Composite) -> None:
        for part in cut_short(encode_composite(value)):
            with pytest.raises(AmqpError):
                decode_composite(part)

    check()


_CHANGES = st.lists(st.tuples(st.integers(0, 1 << 16), TELLING), min_size=1, max_size=4)


def _changed(octets: bytes, changes: list[tuple[int, int]]) -> bytes:
    result = bytearray(octets)
    for place, octet in changes:
        if result:
            result[place % len(result)] = octet
    return bytes(result)


@given(st.sampled_from(COMPOSITES).flatmap(composites), _CHANGES)
def test_composites_with_changed_octets(value: Composite, changes: list[tuple[int, int]]) -> None:
    octets = _changed(encode_composite(value), changes)
    for read in (decode_value, skip_value, decode_composite, decode_frame_body):
        with contextlib.suppress(AmqpError):
            read(octets)


@given(messages().map(encode_message), _CHANGES)
def test_messages_with_changed_octets(octets: bytes, changes: list[tuple[int, int]]) -> None:
    octets = _changed(octets, changes)
    with contextlib.suppress(AmqpError):
        bare_message(octets)
    try:
        message = decode_message(octets)
    except AmqpError:
        return
    encode_message(message)
