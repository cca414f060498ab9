"""Octets of a handshake: nothing is lost, and only whole records are passed on."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from router.net.tls.channel import RECORD_BYTES, TLS_HEADER
from router.net.tls.flights import Flight, Flights

ALERT, HANDSHAKE = 21, 22


def record(kind: int, size: int) -> bytes:
    """Return a TLS record with this many octets of content."""
    return bytes((kind, 3, 3)) + size.to_bytes(2) + bytes(size)


def test_an_incomplete_record_is_held_back() -> None:
    flights, whole = Flights(), record(HANDSHAKE, 4)
    for octet in whole[:-1]:
        assert flights.add(bytes((octet,))) == Flight(b"", is_long=False)
    assert flights.add(whole[-1:]) == Flight(whole, is_long=True)
    assert flights.take_rest() == b""


def test_only_messages_of_the_handshake_may_take_long() -> None:
    assert not Flights().add(record(ALERT, 2)).is_long
    assert Flights().add(record(ALERT, 2) + record(HANDSHAKE, 2)).is_long


@pytest.mark.parametrize(
    "octets",
    [
        b"AMQP\x00\x01\x00\x00" + bytes(40),
        b"GET / HTTP/1.1\r\n",
        bytes(5),
        record(HANDSHAKE, 0)[:3] + b"\xff\xff",
        record(ALERT, 2) + b"?",
    ],
)
def test_what_is_no_record_is_passed_on(octets: bytes) -> None:
    assert Flights().add(octets).octets == octets


def test_a_record_as_long_as_allowed_is_held_back() -> None:
    flights, whole = Flights(), record(23, RECORD_BYTES + 2048)
    assert flights.add(whole[:-1]).octets == b""
    assert flights.add(whole[-1:] + b"\x16").octets == whole
    assert flights.take_rest() == b"\x16"


RECORDS = st.lists(
    st.builds(record, st.sampled_from((20, ALERT, HANDSHAKE, 23)), st.integers(0, 9))
)


@given(RECORDS, st.booleans(), st.data())
def test_records_come_out_whole_however_they_are_split(
    records: list[bytes], has_header: bool, data: st.DataObject
) -> None:
    parts = [TLS_HEADER, *records] if has_header else records
    octets = b"".join(parts)
    ends = {sum(map(len, parts[:count])) for count in range(len(parts) + 1)}
    flights, at, passed = Flights(), 0, b""
    while at < len(octets):
        count = data.draw(st.integers(1, len(octets) - at))
        passed += flights.add(octets[at : at + count]).octets
        at += count
        assert octets.startswith(passed)
        assert len(passed) == max(end for end in ends if end <= at)
    assert passed + flights.take_rest() == octets


def test_a_protocol_header_in_pieces_comes_out_whole() -> None:
    flights = Flights()
    assert flights.add(TLS_HEADER[:5]).octets == b""
    rest = TLS_HEADER[5:] + record(HANDSHAKE, 3)
    assert flights.add(rest[:-1]).octets == TLS_HEADER
    assert flights.add(rest[-1:]).octets == record(HANDSHAKE, 3)
