"""Peer that claims to be an edge router, and says whatever a test tells it."""

from __future__ import annotations

from collections.abc import Iterable

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Begin, Close, Open
from router.amqp.types import Symbol, UInt, ULong
from router.control.edge.messages import Beat, Message, UplinkUse, encode_message

from support.raw_peers import RawPeer
from support.raw_routers import ClosedByRouter, ControlLink

_BEGIN = Begin(next_outgoing_id=0, incoming_window=2**31 - 1, outgoing_window=2**31 - 1)
# Of the open: what an edge says that advertises link routes.
FEATURES = [Symbol("edge-routes")]


class RawEdge(RawPeer):
    """Peer that has opened as an edge; `attach_control` makes it one."""

    def __init__(
        self,
        port: int,
        name: str,
        instance: int = 1,
        *,
        receive_buffer_bytes: int = 0,
        host: str = "127.0.0.1",
    ) -> None:
        super().__init__(port, receive_buffer_bytes=receive_buffer_bytes, host=host)
        self._link: ControlLink | None = None
        self.send(AMQP_HEADER)
        self.say(
            Open(
                name,
                properties={
                    Symbol("trioute.protocol"): [UInt(1), UInt(1)],
                    Symbol("trioute.features"): FEATURES,
                    Symbol("trioute.mode"): Symbol("edge"),
                    Symbol("trioute.instance"): ULong(instance),
                },
            )
        )
        self.header()

    def attach_control(self) -> None:
        """Attach this end of the control link with handle 0, wait for credit, and be active."""
        self._link = ControlLink(self)
        self.control(Beat(1, 2**32 - 1), UplinkUse(True))

    def control(self, *messages: Message | bytes, waits: bool = True) -> None:
        """Send control messages, or octets in the place of them.

        With `waits`, each is sent as soon as there is credit for it, otherwise at once.
        """
        assert self._link is not None
        for message in messages:
            octets = message if isinstance(message, bytes) else encode_message(message)
            self._link.send(octets, waits=waits)

    def control_until_closed(self, messages: Iterable[Message]) -> str:
        """Send control messages until the router closes; return the condition of its close."""
        try:
            for message in messages:
                self.control(message)
        except ClosedByRouter as closed:
            return closed.condition
        return self.why_closed()

    def why_closed(self) -> str:
        """Return the condition with which the router closes the connection."""
        return str(self.hear_until(Close).error.condition)
