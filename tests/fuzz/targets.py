"""What is fuzzed: each target takes any octets, and raises when something does not hold.

`value` reads one value, `body` one frame's body by each of its readers, `server` talks to a router
before and after the open, and `play` is a whole run of several peers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from router.amqp.decode import DEFAULT_LIMITS, decode_value, skip_value
from router.amqp.encode import encode_value
from router.amqp.framing import AMQP_HEADER, decode_frame_body
from router.amqp.message import bare_message, decode_message
from router.amqp.peek import find_to, find_ttl
from router.amqp.performatives import Attach, Begin, Flow, Open, Source, Target
from router.amqp.reading import Cursor, DispositionFrame, FlowFrame, TransferFrame
from router.errors import AmqpError

from fuzz.choices import Choices
from fuzz.play import READ_BYTES, FuzzRouter, Peer, play
from support.transcripts import wire


def value(octets: bytes) -> None:
    """Read a value, and write what was read."""
    try:
        decoded, end = decode_value(octets)
    except AmqpError:
        return
    assert skip_value(octets) == end <= len(octets)
    again = encode_value(decoded)
    # an empty list is written with a level of its own, which it need not have come with
    limits = attrs.evolve(DEFAULT_LIMITS, max_depth=DEFAULT_LIMITS.max_depth + 1)
    assert encode_value(decode_value(again, limits=limits)[0]) == again


_FRAMES: dict[int, Any] = {0x14: TransferFrame, 0x15: DispositionFrame, 0x13: FlowFrame}


def body(octets: bytes) -> None:
    """Read a frame's body by the table, by hand where that can be, and as a message."""
    try:
        performative, after = decode_frame_body(octets)
    except AmqpError:
        performative, after = None, 0
    for read in (decode_message, bare_message):
        try:
            read(octets)
        except AmqpError:
            continue
    find_ttl(octets, 0, len(octets))
    find_to(octets, 0, len(octets))
    cursor = Cursor()
    memory = memoryview(b"\xff" * 8 + octets + b"\xff" * 8)
    cursor.move(memory, 8, 8 + len(octets))
    try:
        kind = _FRAMES.get(cursor.take_descriptor())
        if kind is None:
            return
        frame = kind()
        if kind is not FlowFrame:
            frame.octets = memory
        frame.read(cursor)
    except AmqpError:
        return
    if performative is None:
        # what is stepped over by hand the table may refuse
        return
    if isinstance(frame, TransferFrame):
        assert bytes(memory[frame.payload_at : frame.end]) == octets[after:]
    for name in ("handle", "delivery_id", "first", "next_incoming_id", "delivery_count"):
        by_table = getattr(performative, name, None)
        if by_table is not None:
            assert getattr(frame, name) == by_table, name


# What was said before the octets: nothing, a header, an open, a begin, links.
_LINKS = [
    Attach("s", 0, False, source=Source(), target=Target(address="q"), initial_delivery_count=0),
    Attach("r", 1, True, source=Source(address="q"), target=Target()),
]
_BEGIN = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
_STAGES = (
    b"",
    AMQP_HEADER,
    AMQP_HEADER + wire(Open("peer", max_frame_size=512)),
    AMQP_HEADER + wire(Open("peer")) + wire(_BEGIN),
)
_CREDIT = Flow(
    next_incoming_id=0, incoming_window=9, next_outgoing_id=0, outgoing_window=9,
    handle=1, delivery_count=0, link_credit=5,
)  # fmt: skip
_LINKED = _STAGES[3] + b"".join(wire(link) for link in _LINKS) + wire(_CREDIT)


def server(octets: bytes) -> None:
    """Say something to a router, in reads of some size; another peer listens.

    The first octet tells how far the conversation was, the second how large a read is.
    """
    stage, step = [*octets[:2], 0, 0][:2]
    router = FuzzRouter()
    peers = [Peer(router, Choices(b"")) for _ in range(2)]
    peers[0].said = _LINKED
    peers[0].give_all()
    peers[1].said = (*_STAGES, _LINKED)[stage % 5]
    peers[1].give_all()
    for at in range(2, len(octets), READ_BYTES if step == 255 else step + 1):
        peers[1].said = octets[at : at + (READ_BYTES if step == 255 else step + 1)]
        peers[1].give(READ_BYTES)
        router.finish_turn()
        router.answer(True)
    router.wait(1.0)
    assert not peers[0].connection.finished, "another peer's connection ended"
    for peer in peers:
        peer.connection.tick()
        router.finish_turn()
    for peer in peers:
        peer.lose()
    assert router.forwarder.backlog.held_bytes == 0
    assert len(router.table) == 0


def whole(octets: bytes) -> None:
    """A whole run."""
    play(octets)


TARGETS: dict[str, Callable[[bytes], None]] = {
    "value": value,
    "body": body,
    "server": server,
    "play": whole,
}
