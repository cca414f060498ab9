"""Watching a stream: every frame is told once, whatever the pieces, and little is kept."""

from __future__ import annotations

import pytest

from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import Begin, Close, Open, SaslInit
from router.amqp.types import Symbol
from router.amqp.watching import (
    KEPT_BYTES,
    Seen,
    SeenFrame,
    SeenHeader,
    SeenNonsense,
    Watcher,
)

FRAMES = (
    encode_frame(0, SaslInit(Symbol("PLAIN")), frame_type=1),
    encode_frame(0, Open("ada")),
    encode_frame(7, Begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)),
    encode_frame(0),
    encode_frame(0, Close()),
)
STREAM = SASL_HEADER + FRAMES[0] + AMQP_HEADER + b"".join(FRAMES[1:])
SEEN: list[Seen] = [
    SeenHeader(3, (1, 0, 0)),
    SeenFrame(1, 0, len(FRAMES[0]), FRAMES[0][8:]),
    SeenHeader(0, (1, 0, 0)),
    *(SeenFrame(0, 7 * (at == 1), len(f), f[8:]) for at, f in enumerate(FRAMES[1:])),
]


@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 50, len(STREAM)])
def test_pieces_make_no_difference(step: int) -> None:
    watcher = Watcher()
    seen = []
    for at in range(0, len(STREAM), step):
        seen += watcher.feed(memoryview(STREAM)[at : at + step])
    assert seen == SEEN
    assert not watcher.lost


def test_of_a_long_frame_the_begin_is_told_at_once() -> None:
    frame = encode_frame(3, Close(), b"x" * 1_000_000)
    watcher = Watcher()
    (seen,) = watcher.feed(frame[: KEPT_BYTES + 10])
    assert isinstance(seen, SeenFrame)
    assert (seen.size, seen.channel) == (len(frame), 3)
    assert (len(seen.body), seen.left) == (KEPT_BYTES - 8, len(frame) - KEPT_BYTES)
    assert watcher.feed(frame[KEPT_BYTES + 10 :] + FRAMES[3]) == [SeenFrame(0, 0, 8, b"")]


def test_an_extended_header_is_stepped_over() -> None:
    frame = b"\0\0\0\x10\x03\0\0\x05" + b"more" + b"body"
    assert Watcher().feed(frame) == [SeenFrame(0, 5, 16, b"body")]
    # one that is all header, and more of it than is kept
    watcher = Watcher()
    long = (4 * 255).to_bytes(4, "big") + b"\xff\0\0\0" + bytes(4 * 255 - 8)
    assert watcher.feed(long + FRAMES[3]) == [
        SeenFrame(0, 0, 4 * 255, b""),
        SeenFrame(0, 0, 8, b""),
    ]


@pytest.mark.parametrize(
    "octets",
    [
        b"GET / HTTP/1.1\r\n",
        b"\0\0\0\7\2\0\0\0",
        b"\0\0\0\x10\1\0\0\0",
        b"\0\0\0\x10\5\0\0\0",
        b"\0\0\0\x10\2\2\0\0",
        b"\xff" * 8,
    ],
)
def test_nonsense_is_told_once(octets: bytes) -> None:
    watcher = Watcher()
    assert watcher.feed(octets + STREAM) == [SeenNonsense(octets[:8])]
    assert watcher.lost
    assert watcher.feed(STREAM) == []


def test_the_rest_of_a_frame_can_be_skipped() -> None:
    watcher = Watcher()
    watcher.skip(5)
    assert watcher.feed(FRAMES[1][-5:-2]) == []
    assert watcher.feed(FRAMES[1][-2:] + FRAMES[3]) == [SeenFrame(0, 0, 8, b"")]
