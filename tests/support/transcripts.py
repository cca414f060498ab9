"""Transcripts: what a peer says to a connection, and what it must hear in answer.

    talk = Talk()
    talk >> AMQP_HEADER << AMQP_HEADER
    talk >> Open("c") << like(Open, container_id="router")
    talk >> On(3, begin()) << On(0, like(Begin, remote_channel=3)) << NOTHING

`>>` is what goes in, `<<` what must come out next. Frames are written and read by the table-driven
codec, never by the data plane that is under test. Lists go in with one read; `octets_a_read` cuts
what goes in into pieces. The read buffer behind the octets that were read is full of 0xFF, so that
a reader that goes too far finds no zeroes there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from router.amqp.constants import AMQP_FRAME, SASL_FRAME
from router.amqp.framing import decode_frame_body, decode_frame_header, encode_frame
from router.amqp.performatives import (
    Attach,
    Begin,
    Composite,
    Error,
    Open,
    Source,
    Target,
    Transfer,
)
from router.amqp.reading import TransferFrame
from router.amqp.reading_disposition import DispositionFrame
from router.engine import attaching
from router.engine.connection import Connection
from router.engine.delivery import Delivery
from router.engine.events import LinkAttachReceived, LinkDetached
from router.engine.handler import Handler
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.outbox import Turn
from router.engine.settings import ConnectionSettings

_READ_BYTES: Final = 1 << 20
_BUFFER_BYTES: Final = _READ_BYTES + (1 << 18)


@attrs.frozen
class On:
    """Frame on a channel of its own, or with a payload; an expected payload of None matches any."""

    channel: int
    performative: Any
    payload: bytes | None = None
    frame_type: int = AMQP_FRAME


@attrs.frozen
class _Like:
    kind: type[Composite]
    fields: dict[str, Any]


def like(kind: type[Composite], **fields: Any) -> Any:
    """Expect a performative of this kind whose fields named here are these."""
    return _Like(kind, fields)


def failed(kind: type[Composite], condition: str) -> Any:
    """Expect a close, end or detach with this error condition."""
    return _Like(kind, {"error": condition})


class _Mark:
    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


OPAQUE: Final = 0x7E57
"""A message-format of our own: a router passes on whatever octets are said to be of it."""
NOTHING: Final = _Mark("NOTHING")
"""Expected where the connection has no more to say, and goes on."""

OVER: Final = _Mark("OVER")
"""Expected where the connection has no more to say, and the socket is to be closed."""


# Frames with the fields that every test would repeat.


def begin(**fields: Any) -> Begin:
    """Begin a session with wide windows."""
    every: dict[str, Any] = {"next_outgoing_id": 0, "incoming_window": 1000}
    return Begin(**{**every, "outgoing_window": 1000, **fields})


def attach_sender(handle: int = 0, address: str | None = "q", **fields: Any) -> Attach:
    """Attach the peer's sending link."""
    every = {
        "name": f"sender-{handle}",
        "handle": handle,
        "role": False,
        "source": Source(),
        "target": Target(address=address),
        "initial_delivery_count": 0,
    }
    return Attach(**{**every, **fields})


def attach_receiver(handle: int = 1, address: str | None = "q", **fields: Any) -> Attach:
    """Attach the peer's receiving link."""
    every = {
        "name": f"receiver-{handle}",
        "handle": handle,
        "role": True,
        "source": Source(address=address),
        "target": Target(),
    }
    return Attach(**{**every, **fields})


def message_format(payload: bytes) -> int:
    """Return 0 for what may be an AMQP message, OPAQUE for other octets."""
    return 0 if payload[:2] == b"\0\x53" else OPAQUE


def message(delivery_id: int, payload: bytes = b"x", handle: int = 0, **fields: Any) -> On:
    """Send a frame of a delivery on channel 0."""
    every = {"delivery_tag": b"%d" % delivery_id, "message_format": message_format(payload)}
    return On(0, Transfer(handle, delivery_id=delivery_id, **{**every, **fields}), payload)


@attrs.frozen
class Heard:
    """Call of a handler: a name, and what a test wants to compare."""

    what: str
    about: tuple[Any, ...] = ()


class Recorder(Handler):
    """Handler that accepts every link and writes down what it hears.

    `heard` has everything but payloads; `payloads` has them by delivery-id. With `accepts` False
    attaches are left without an answer.
    """

    def __init__(self, *, accepts: bool = True) -> None:
        self.heard: list[Heard] = []
        self.events: list[Any] = []
        self.payloads: dict[int, bytes] = {}
        self.deliveries: list[Delivery] = []
        self.links: dict[str, Any] = {}
        self.accepts = accepts

    def told(self, what: str) -> list[tuple[Any, ...]]:
        """Return what was told under one name, in order."""
        return [heard.about for heard in self.heard if heard.what == what]

    def of(self, kind: type) -> list[Any]:
        """Return the events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def _hear(self, what: str, *about: Any) -> None:
        self.heard.append(Heard(what, about))

    def transfer_received(self, delivery: Delivery, frame: TransferFrame) -> None:
        if delivery not in self.deliveries:
            self.deliveries.append(delivery)
        number = delivery.incoming_id
        payload = bytes(memoryview(frame.octets)[frame.payload_at : frame.end])
        self.payloads[number] = self.payloads.get(number, b"") + payload
        self._hear("transfer", number, bool(delivery.complete), bool(delivery.settled))

    def transfer_aborted(self, delivery: Delivery) -> None:
        self._hear("aborted", delivery.incoming_id)

    def outcome_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        self._hear("outcome", delivery.outgoing_id, bool(frame.settled), frame.state_code)

    def settlement_received(self, delivery: Delivery, frame: DispositionFrame) -> None:
        self._hear("settlement", delivery.incoming_id, bool(frame.settled), frame.state_code)

    def credit_received(self, link: OutgoingLink) -> None:
        self._hear("credit", link.name, link.credit, bool(link.drain))

    def flow_received(self, link: IncomingLink) -> None:
        self._hear("flow", link.name, link.credit)

    def room_made(self, connection: Any, session: Any) -> None:
        self._hear("room")

    def event_received(self, connection: Any, event: Any) -> None:
        self.events.append(event)
        self._hear(type(event).__name__)
        if isinstance(event, LinkAttachReceived):
            link = event.link
            self.links[link.name] = link
            if self.accepts:
                remote = link.remote_attach
                attaching.accept(link, remote.source or Source(), remote.target or Target())


def server_settings(**fields: Any) -> ConnectionSettings:
    """Return settings of the router's side with limits small enough for tests to reach."""
    return ConnectionSettings(**{"container_id": "router", **fields})


class Talk:
    """Connection under test and the peer that talks to it."""

    def __init__(
        self,
        handler: Handler | None = None,
        *,
        is_client: bool = False,
        octets_a_read: int = 0,
        turn: Turn | None = None,
        **settings: Any,
    ) -> None:
        self.turn = turn or Turn()
        self.handler = handler or Recorder()
        self.connection = Connection(
            server_settings(**settings), self.handler, self.turn, "test", is_client
        )
        self.connection.owner = self
        self._octets_a_read = octets_a_read
        self._said = b""
        self._buffer = memoryview(bytearray(b"\xff" * _BUFFER_BYTES))

    @property
    def recorder(self) -> Recorder:
        """Return the handler, which must be a recorder."""
        assert isinstance(self.handler, Recorder)
        return self.handler

    # What goes in.

    def __rshift__(self, said: Any) -> Talk:
        octets = wire(said)
        step = self._octets_a_read or _READ_BYTES
        for at in range(0, len(octets), step):
            self.read(octets[at : at + step])
        return self

    def read(self, octets: bytes) -> None:
        """Have the connection read these octets, at once."""
        kept = self.connection.prepare(self._buffer)
        end = kept + len(octets)
        self._buffer[kept:end] = octets
        self.connection.receive(self._buffer, end)
        self._buffer[:end] = b"\xff" * end
        while self.connection.is_behind:
            self.connection.resume()

    # What comes out.

    def __lshift__(self, expected: Any) -> Talk:
        self.drain()
        if expected is NOTHING or expected is OVER:
            assert not self._said, f"nothing was expected, and there came {self._next()}"
            assert bool(self.connection.finished) is (expected is OVER), "is the socket closed?"
        elif isinstance(expected, bytes):
            said, self._said = self._said[: len(expected)], self._said[len(expected) :]
            assert said == expected
        else:
            assert self._said, f"{expected} was expected, and nothing came"
            _compare(self._next(), expected)
        return self

    def drain(self) -> None:
        """Take the connection's output, as a socket does at the end of a turn."""
        self.turn.touched.clear()
        self.connection.write_due()
        waiting = bytes(self.connection.outbox.output.waiting())
        if waiting:
            self._said += waiting
            self.connection.sent(len(waiting))
            self.turn.touched.clear()
            self.connection.write_due()
            more = bytes(self.connection.outbox.output.waiting())
            self._said += more
            self.connection.sent(len(more))

    def frames(self) -> list[On]:
        """Return all frames that wait to be heard."""
        self.drain()
        found = []
        while self._said:
            found.append(self._next())
        return found

    def skip(self) -> Talk:
        """Ignore what has been said so far."""
        self.drain()
        self._said = b""
        return self

    def _next(self) -> On:
        header = decode_frame_header(self._said)
        octets, self._said = self._said[: header.size], self._said[header.size :]
        assert len(octets) == header.size, "half a frame was said"
        return read_frame(octets)


def read_frame(octets: bytes) -> On:
    """Read one whole frame with the table-driven codec."""
    header = decode_frame_header(octets)
    performative, after = decode_frame_body(octets, header.body_offset, header.size)
    return On(header.channel, performative, octets[after:], header.frame_type)


def wire(said: Any) -> bytes:
    """Return the octets of what a peer says: octets, a performative, `On` or a list of these."""
    if isinstance(said, bytes):
        return said
    if isinstance(said, list):
        return b"".join(wire(each) for each in said)
    if isinstance(said, On):
        return encode_frame(said.channel, said.performative, said.payload or b"", said.frame_type)
    frame_type = SASL_FRAME if "sasl-frame" in said.PROVIDES else AMQP_FRAME
    return encode_frame(0, said, frame_type=frame_type)


def cuts(octets: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return all ways to cut octets in two."""
    return ((octets[:at], octets[at:]) for at in range(1, len(octets)))


def _compare(found: On, expected: Any) -> None:
    performative = found.performative
    if isinstance(expected, On):
        assert found.channel == expected.channel, f"{found} on another channel than {expected}"
        if expected.payload is not None:
            assert found.payload == expected.payload
        expected = expected.performative
    if isinstance(expected, type):
        assert isinstance(performative, expected), f"{found} where {expected} was expected"
    elif isinstance(expected, _Like):
        assert isinstance(performative, expected.kind), f"{found} where {expected} was expected"
        for name, value in expected.fields.items():
            actual = getattr(performative, name)
            if name == "error" and isinstance(value, str):
                assert actual is not None, f"{performative} without an error"
                actual = str(actual.condition)
            assert actual == value, f"{name} of {performative}"
    else:
        assert performative == expected


def opened(handler: Handler | None = None, **settings: Any) -> Talk:
    """Return a connection that a peer without SASL has opened, with nothing left to hear."""
    remote = settings.pop("remote", Open("peer"))
    settings.setdefault("sasl_mechanisms", ())
    talk = Talk(handler, **settings)
    talk >> b"AMQP\x00\x01\x00\x00" >> remote
    return talk.skip()


def begun(handler: Handler | None = None, **settings: Any) -> Talk:
    """Return an open connection with a session on channel 0."""
    fields = settings.pop("begin", {})
    return (opened(handler, **settings) >> begin(**fields)).skip()


def linked(handler: Handler | None = None, **settings: Any) -> Talk:
    """Return a session with the peer's sender at handle 0 and its receiver at handle 1."""
    talk = begun(handler, **settings)
    return (talk >> [attach_sender(), attach_receiver()]).skip()


def session_of(talk: Talk, channel: int = 0) -> Any:
    """Return the router's end of a session, by its own channel."""
    return talk.connection.local_sessions[channel]


def gone(talk: Talk) -> list[tuple[str, bool, bool]]:
    """Return the links that are over: their names, and whether they were closed or lost."""
    return [(e.link.name, e.closed, e.lost) for e in talk.recorder.of(LinkDetached)]


def reasons(talk: Talk) -> list[tuple[Error | None, bool]]:
    """Why links are over, and whether the peer said so."""
    return [(e.error, e.by_peer) for e in talk.recorder.of(LinkDetached)]
