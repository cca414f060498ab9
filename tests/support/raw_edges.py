"""Peer that claims to be an edge router, and says whatever a test tells it."""

from __future__ import annotations

from collections.abc import Iterable

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Begin, Close, Flow, Open, Source, Transfer
from router.amqp.types import Symbol, UInt, ULong
from router.control.edge.messages import Beat, Message, UplinkUse, encode_message

from support.raw_peers import RawPeer
from support.raw_routers import CONTROL

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
        self._number = 0
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
        self.say(_BEGIN)
        self.say(Attach("qd.router.raw", 0, False, source=Source(), target=CONTROL,
                        initial_delivery_count=0))  # fmt: skip
        flow = self.hear_until(Flow)
        while flow.handle is None or not flow.link_credit:
            flow = self.hear_until(Flow)
        self.control(Beat(1, 2**32 - 1), UplinkUse(True))

    def control(self, *messages: Message | bytes) -> None:
        """Send control messages, or octets in the place of them."""
        for message in messages:
            octets = message if isinstance(message, bytes) else encode_message(message)
            number = self._number
            self._number += 1
            transfer = Transfer(0, number, number.to_bytes(4, "big"), 0, settled=True)
            self.transfer(transfer, octets)

    def control_until_closed(self, messages: Iterable[Message]) -> str:
        """Send control messages until the router closes; return the condition of its close."""
        try:
            for message in messages:
                self.control(message)
        except (ConnectionResetError, BrokenPipeError):
            # it has said why before
            pass
        return self.why_closed()

    def why_closed(self) -> str:
        """Return the condition with which the router closes the connection."""
        return str(self.hear_until(Close).error.condition)
