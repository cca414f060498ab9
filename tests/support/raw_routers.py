"""Peer that claims to be an interior router, and the control link of any peer that claims so."""

from __future__ import annotations

from typing import Any

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Attach, Begin, Close, Flow, Open, Source, Target, Transfer
from router.amqp.types import Symbol, UInt, ULong

from support.raw_peers import RawPeer

CONTROL = Target(capabilities=(Symbol("qd.router"),))
_BEGIN = Begin(next_outgoing_id=0, incoming_window=2**31 - 1, outgoing_window=2**31 - 1)
_PROPERTIES = {
    "protocol": [UInt(1), UInt(1)],
    "features": [],
    "mode": Symbol("interior"),
    "instance": ULong(1),
}


class RawRouter(RawPeer):
    """Peer that has opened as an interior router.

    `changed` has other properties of its open, by their names without the prefix.
    """

    def __init__(
        self, port: int, name: str = "X", *, host: str = "127.0.0.1", **changed: Any
    ) -> None:
        super().__init__(port, host=host)
        self.send(AMQP_HEADER)
        properties = {**_PROPERTIES, **changed}
        self.say(
            Open(
                name,
                properties={Symbol(f"trioute.{key}"): each for key, each in properties.items()},
            )
        )
        self.header()


class ClosedByRouter(EOFError):
    """The router has closed the connection."""

    def __init__(self, close: Close) -> None:
        super().__init__(f"the router closed the connection: {close.error}")
        self.condition = "" if close.error is None else str(close.error.condition)


class ControlLink:
    """Control link from a peer, on a session of its own.

    It sends no more than the router's credit and window allow, and gives credit to the router's own
    control link.
    """

    def __init__(self, peer: RawPeer) -> None:
        self._peer = peer
        self._sent = 0
        self._credit_end = 0
        self._window_end = 0
        peer.say(_BEGIN)
        peer.say(Attach(f"qd.router.{id(self)}", 0, False, source=Source(), target=CONTROL,
                        initial_delivery_count=0))  # fmt: skip
        self._wait()

    def send(self, octets: bytes, *, waits: bool = True) -> None:
        """Send one message: with `waits` as soon as there is credit for it, otherwise at once.

        Raises ClosedByRouter if the router closes the connection meanwhile.
        """
        if waits:
            self._wait()
        tag = self._sent.to_bytes(4, "big")
        self._peer.transfer(Transfer(0, self._sent, tag, 0, settled=True), octets)
        self._sent += 1

    def _wait(self) -> None:
        while self._sent >= min(self._credit_end, self._window_end):
            heard = self._peer.hear_until((Attach, Flow, Close))
            if isinstance(heard, Close):
                raise ClosedByRouter(heard)
            if isinstance(heard, Flow):
                self._window_end = (heard.next_incoming_id or 0) + heard.incoming_window
                if heard.handle is not None:
                    self._credit_end = (heard.delivery_count or 0) + (heard.link_credit or 0)
            elif not heard.role:
                self._give_credit(heard)

    def _give_credit(self, attach: Attach) -> None:
        self._peer.say(
            Attach(attach.name, 1, True, source=attach.source, target=attach.target),
            Flow(
                next_incoming_id=0,
                incoming_window=2**31 - 1,
                next_outgoing_id=self._sent,
                outgoing_window=2**31 - 1,
                handle=1,
                delivery_count=0,
                link_credit=2**31 - 1,
            ),
        )
