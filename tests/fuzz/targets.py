"""Fuzz targets: each takes any octets, and raises if an invariant is broken.

`value` reads one value, `body` one frame's body by each of its readers, `server` talks to a router
before and after the open, `play` is a whole run of several badly behaved peers, and `schedule` one
of well-behaved peers, where every message can be accounted for. `trace` listens to the traffic
between two others. `conf` reads a configuration file of Dispatch's, `control` one message of a
router, `gossip` has a router of a network say whatever it likes, and `edges` an edge router.
`login` and `credentials` are about SASL, `tls`, `first`, `websocket` and `proxy` about what is
below AMQP, `policy` and `vhosts` about what peers may do, and `sas`, `jwt` and `cbs` about security
tokens.
"""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable
from typing import Any

import attrs

from router.amqp.decode import decode_value, skip_value
from router.amqp.describing import Describer
from router.amqp.encode import encode_value
from router.amqp.framing import AMQP_HEADER, decode_frame_body
from router.amqp.message import bare_message, decode_message
from router.amqp.message_head import bare_content, message_id_of, outcome_text
from router.amqp.peek import find_header, find_to
from router.amqp.performatives import Attach, Begin, Flow, Open, Source, Target
from router.amqp.reader import DEFAULT_LIMITS
from router.amqp.reading import Cursor, TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.amqp.reading_flow import FlowFrame
from router.amqp.watching import KEPT_BYTES, SeenFrame, Watcher
from router.config.mistakes import InvalidConfiguration
from router.config.qdrouterd.converting import format_converted
from router.config.qdrouterd.reading import parse_dispatch
from router.config.qdrouterd.syntax import Syntax
from router.config.structure import structure
from router.control.network.codec import decode_control, encode_control
from router.errors import AmqpError

from fuzz import claims
from fuzz.choices import Choices
from fuzz.gossip import gossip
from fuzz.logins import credentials, login
from fuzz.play import READ_BYTES, FuzzRouter, Peer, play
from fuzz.policies import policy, vhosts
from fuzz.streams import first, proxy, tls, websocket
from fuzz.wild_edges import edges
from support import schedules
from support.transcripts import wire

# A schedule's steps, or one input takes seconds.
MOST_STEPS = 300


def value(octets: bytes) -> None:
    """Decode a value, and encode the result."""
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
_AROUND = b"\xff" * 32


def body(octets: bytes) -> None:
    """Read a frame's body by the table, by hand where that can be, and as a message."""
    for read in (decode_message, bare_message):
        with contextlib.suppress(AmqpError):
            read(octets)
    find_header(octets, 0, len(octets))
    find_to(octets, 0, len(octets))
    performative, after = None, 0
    with contextlib.suppress(AmqpError):
        performative, after = decode_frame_body(octets)
    kind = _kind(octets)
    if kind is None:
        return
    frame = _by_hand(kind, octets, _AROUND)
    other = _by_hand(kind, octets, b"")
    assert _attributes(frame) == _attributes(other), "what lies behind makes a difference"
    if performative is None:
        # what is stepped over by hand the table may refuse
        return
    assert frame is not None, f"refused {performative}"
    for name in (field.name for field in performative.FIELDS):
        value = getattr(performative, name)
        if hasattr(frame, f"has_{name}"):
            assert bool(getattr(frame, f"has_{name}")) is (value is not None), name
        if value is not None and hasattr(frame, name):
            assert getattr(frame, name) == value, name
    if isinstance(frame, TransferFrame):
        assert (frame.payload_at, frame.end) == (len(_AROUND) + after, len(_AROUND) + len(octets))


def _cursor(octets: bytes, behind: bytes) -> Cursor:
    cursor = Cursor()
    cursor.move(memoryview(_AROUND + octets + behind), len(_AROUND), len(_AROUND) + len(octets))
    return cursor


def _kind(octets: bytes) -> Any:
    """Return the class of the frame that these octets begin; None unless it is read by hand."""
    try:
        return _FRAMES.get(_cursor(octets, b"").take_descriptor())
    except AmqpError:
        return None


def _by_hand(kind: Any, octets: bytes, behind: bytes) -> Any:
    """Return the frame, or None if it is refused."""
    cursor, frame = _cursor(octets, behind), kind()
    cursor.take_descriptor()
    try:
        frame.read(cursor)
    except AmqpError:
        return None
    return frame


def _attributes(frame: Any) -> dict[str, Any]:
    """Return the integers that were read, by name; none if the frame was refused."""
    values = {name: getattr(frame, name) for name in dir(frame) if not name.startswith("_")}
    return {name: value for name, value in values.items() if isinstance(value, int)}


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
        assert not peer.heard.unread, "half a frame was said"
    for peer in peers:
        peer.lose()
    assert router.forwarder.backlog.held_bytes == 0
    assert len(router.table) == 0


def whole(octets: bytes) -> None:
    """Run a whole play."""
    play(octets)


def schedule(octets: bytes) -> None:
    """Run a schedule of `support.schedules`: three octets a step, what happens and to whom."""
    steps = [octets[at : at + 3] for at in range(0, len(octets) - 2, 3)][:MOST_STEPS]
    schedules.play([(schedules.STEPS[what % len(schedules.STEPS)], one, other % 41)
                    for what, one, other in steps])  # fmt: skip


# More than any frame that a watcher keeps can be in words: each octet of its begin by four
# characters, in two fields at most, and the names of the fields.
LONGEST_WORDS = 8 * KEPT_BYTES


def trace(octets: bytes) -> None:
    """Trace octets that pass in pieces.

    The first octet gives the size of the pieces, and whether they are watched from the start.
    """
    step = octets[0] % 128 + 1 if octets else 1
    passed = octets[1:]
    pieces = [passed[at : at + step] for at in range(0, len(passed), step)]
    watcher = Watcher()
    seen = [each for piece in pieces for each in watcher.feed(piece)]
    assert seen == Watcher().feed(passed), "pieces make a difference"
    describer = Describer(from_start=not octets or octets[0] < 128)
    for each in seen:
        words = describer.describe(each)
        assert words.text.isprintable(), "a terminal would obey it"
        assert len(words.text) < LONGEST_WORDS
        if isinstance(each, SeenFrame):
            head = each.body[words.payload_at :]
            message_id_of(head)
            assert bare_content(head) in head
            outcome_text(words.values.get("state"))


def conf(octets: bytes) -> None:
    """Read a configuration file of Dispatch's, in either syntax, and convert what can be run."""
    text = octets.decode("utf-8", "replace")
    forms: tuple[Syntax, ...] = ("sections", "json")
    for form in forms:
        with contextlib.suppress(InvalidConfiguration):
            moved = parse_dispatch(text, form, source="f", weaker_security=True)
            again = structure(tomllib.loads(format_converted(moved)))
            assert again.configuration == moved.configuration, again.findings


def control(octets: bytes) -> None:
    """Decode a message between routers, and encode the result."""
    try:
        message = decode_control(octets)
    except AmqpError:
        return
    assert decode_control(encode_control(message)) == message


TARGETS: dict[str, Callable[[bytes], None]] = {
    "value": value,
    "body": body,
    "server": server,
    "play": whole,
    "schedule": schedule,
    "trace": trace,
    "conf": conf,
    "control": control,
    "gossip": gossip,
    "edges": edges,
    "login": login,
    "credentials": credentials,
    "tls": tls,
    "first": first,
    "websocket": websocket,
    "proxy": proxy,
    "policy": policy,
    "vhosts": vhosts,
    "sas": claims.sas_token,
    "jwt": claims.jwt,
    "cbs": claims.cbs,
}
