"""Server whose every frame a test decides, for clients to talk to: a script for each connection.

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        attach = await peer.hear(Attach)
        ...

    async with serving(script) as url:
        async with connect(url) as connection:
            ...

Frames are written and read by the table-driven codec. After the script the client's close is
answered; a script that fails fails the test.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs
import trio

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Disposition,
    Flow,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Symbol

from support.transcripts import On, read_frame, wire

PATIENCE_S = 60.0
WIDE = 2**31 - 1

P = TypeVar("P")


class ServerPeer:
    """Server's end of one connection; a session of the client's is answered on channel 0."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._unread = b""

    async def octets(self, count: int) -> bytes:
        """Return `count` octets; raise EOFError if the client has closed its side."""
        while len(self._unread) < count:
            more = await self.stream.receive_some()
            if not more:
                raise EOFError(f"the client said {self._unread!r} and closed")
            self._unread += more
        taken, self._unread = self._unread[:count], self._unread[count:]
        return taken

    async def frame(self) -> On:
        """Return the next frame that is not empty."""
        while True:
            size = await self.octets(4)
            rest = await self.octets(int.from_bytes(size, "big") - 4)
            if len(rest) > 4:
                return read_frame(size + rest)

    async def hear(self, kind: type[P]) -> P:
        """Return the next frame's performative, which has to be of this kind."""
        found = (await self.frame()).performative
        assert isinstance(found, kind), f"{found} where {kind.__name__} was expected"
        return found

    async def hear_until(self, kind: type[P]) -> P:
        """Return the first performative of this kind, whatever comes before it."""
        while True:
            found = (await self.frame()).performative
            if isinstance(found, kind):
                return found

    async def message(self) -> tuple[Transfer, bytes]:
        """Return the next transfer and its payload."""
        while True:
            found = await self.frame()
            if isinstance(found.performative, Transfer):
                return found.performative, found.payload or b""

    async def say(self, *said: Any) -> None:
        """Send octets and frames, with one write."""
        await self.stream.send_all(wire(list(said)))

    # The usual beginnings.

    async def authenticate(self, *mechanisms: str, code: SaslCode = SaslCode.OK) -> SaslInit:
        """Speak SASL, and answer with an outcome."""
        assert await self.octets(8) == SASL_HEADER
        await self.say(SASL_HEADER, SaslMechanisms(tuple(map(Symbol, mechanisms))))
        init = await self.hear(SaslInit)
        await self.say(SaslOutcome(code))
        return init

    async def open(self, **fields: Any) -> Begin:
        """Let the client in and answer its open and its begin; `fields` are those of our frames."""
        ours = {field.name for field in attrs.fields(Open)}
        await self.authenticate("ANONYMOUS")
        assert await self.octets(8) == AMQP_HEADER
        await self.hear(Open)
        await self.say(
            AMQP_HEADER, Open("server", **{k: v for k, v in fields.items() if k in ours})
        )
        begin = await self.hear(Begin)
        answer: dict[str, Any] = {
            "next_outgoing_id": 0,
            "incoming_window": WIDE,
            "outgoing_window": WIDE,
        }
        answer |= {k: v for k, v in fields.items() if k not in ours}
        await self.say(Begin(remote_channel=0, **answer))
        return begin

    async def attached(self, credit: int = 0, **fields: Any) -> Attach:
        """Answer the client's attach with its own termini; with `credit`, to a sender of its."""
        remote = await self.hear(Attach)
        answer: dict[str, Any] = {
            "name": remote.name,
            "handle": 0,
            "role": not remote.role,
            "snd_settle_mode": remote.snd_settle_mode,
            "rcv_settle_mode": remote.rcv_settle_mode,
            "source": remote.source or Source(),
            "target": remote.target or Target(),
            "initial_delivery_count": 0 if remote.role else None,
        }
        await self.say(Attach(**{**answer, **fields}))
        if credit:
            await self.grant(credit)
        return remote

    async def grant(self, credit: int, *, sent: int = 0, frames: int = 0, **fields: Any) -> None:
        """Give the client's sender credit, after so many deliveries and frames."""
        windows = {"next_incoming_id": frames, "incoming_window": WIDE, "outgoing_window": WIDE}
        link = {"handle": 0, "delivery_count": sent, "link_credit": credit}
        await self.say(Flow(**{**windows, "next_outgoing_id": 0, **link, **fields}))

    async def settle(
        self, state: Any, first: int = 0, last: int | None = None, **fields: Any
    ) -> None:
        """Tell the client's sender an outcome."""
        every = {"settled": True, **fields}
        await self.say(Disposition(True, first, last, state=state, **every))


Script = Callable[[ServerPeer], Awaitable[None]]


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[str]:
    """Listen on a free port and run `script` for each connection; yields the URL."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def serve(stream: trio.SocketStream) -> None:
        peer = ServerPeer(stream)
        await script(peer)
        with contextlib.suppress(EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
            await peer.hear_until(Close)
            await peer.say(Close())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, listeners)
        host, port = listeners[0].socket.getsockname()[:2]
        with trio.fail_after(PATIENCE_S):
            yield f"amqp://{host}:{port}"
        nursery.cancel_scope.cancel()
