"""Protocol headers, which are messages of their own."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import Open, SaslMechanisms
from router.amqp.types import Symbol
from router.net.websockets.protocol_headers import HeaderSplitter

MECHANISMS = encode_frame(0, SaslMechanisms((Symbol("PLAIN"),)), frame_type=1)
OPEN = encode_frame(0, Open(container_id="AMQP"))

STREAMS = {
    "AMQP": (AMQP_HEADER, [AMQP_HEADER]),
    "AMQP and open": (AMQP_HEADER + OPEN, [AMQP_HEADER, OPEN]),
    "all": (
        SASL_HEADER + MECHANISMS + MECHANISMS + AMQP_HEADER + OPEN + AMQP_HEADER,
        [SASL_HEADER, MECHANISMS + MECHANISMS, AMQP_HEADER, OPEN + AMQP_HEADER],
    ),
}


@pytest.mark.parametrize(("octets", "messages"), STREAMS.values(), ids=STREAMS)
def test_headers_are_alone(octets: bytes, messages: list[bytes]) -> None:
    assert HeaderSplitter().split(octets) == messages


@pytest.mark.spec("W2.2-1", "W2.3-1")
@given(cuts=st.lists(st.integers(0, 200), max_size=20))
def test_headers_are_alone_however_the_octets_come(cuts: list[int]) -> None:
    octets, _ = STREAMS["all"]
    splitter = HeaderSplitter()
    messages = []
    places = sorted({0, len(octets), *(cut for cut in cuts if cut < len(octets))})
    for begin, end in itertools.pairwise(places):
        messages += splitter.split(octets[begin:end])
    assert b"".join(messages) == octets
    assert SASL_HEADER in messages
    assert AMQP_HEADER in messages
    assert splitter.is_done


def test_a_frame_of_no_size_ends() -> None:
    splitter = HeaderSplitter()
    assert splitter.split(SASL_HEADER + bytes(8)) == [SASL_HEADER, bytes(8)]
