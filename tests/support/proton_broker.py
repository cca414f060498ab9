"""Broker made of a proton connection: queues, and a transaction coordinator, for link routes.

    broker = ProtonBroker(proton)
    broker.connect(url, container_id="artemis")

It accepts whatever links the router attaches. Each address is a queue; a message is accepted at
once and kept until a receiver takes it. A transaction's messages are queued at its commit. It knows
nothing of routers.
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from typing import Any

from proton import Condition, Delivery, Described, Message, Terminus, ulong

from support.proton_peers import ProtonConnection, ProtonPeers

DECLARED = 0x33
TRANSACTIONAL = 0x34
_DECLARE = ("amqp:declare:list", 0x31)
_ACCEPTED = Described(ulong(0x24), [])


class ProtonBroker(ProtonConnection):
    """Container with queues. `refusing` is the condition for refusing links, or None."""

    def __init__(self, peers: ProtonPeers) -> None:
        super().__init__(peers)
        self.queues: dict[str, deque[bytes]] = defaultdict(deque)
        # the addresses that links were attached with, in their order; coordinators as $coordinator
        self.attached: list[str] = []
        self.links: list[Any] = []
        self.refusing: str | None = None
        self.committed = 0
        self.rolled_back = 0
        self._receivers: dict[str, list[Any]] = defaultdict(list)
        self._open: dict[bytes, list[tuple[str, bytes]]] = {}
        self._transactions = itertools.count(1)

    def connect(self, url: str, **options: Any) -> ProtonBroker:
        """Connect to a router's listener and wait until the connection is open."""
        options.setdefault("reconnect", False)
        self.endpoint = self.peers.container.connect(url, handler=self, **options)
        self.peers.adopt(self)
        self.peers.until(lambda: self.is_open, "the broker's connection is open")
        return self

    def lose(self) -> None:
        """End the connection as a killed process does."""
        self.endpoint.transport.close_head()
        self.endpoint.transport.close_tail()
        self.peers.until(lambda: self.is_lost, "the broker's connection is lost")

    # What proton calls.

    def on_session_remote_open(self, event: Any) -> None:
        """Answer a begin."""
        event.session.open()

    def on_session_remote_close(self, event: Any) -> None:
        """Answer an end."""
        event.session.close()

    def on_link_remote_close(self, event: Any) -> None:
        """Answer a closing detach."""
        event.link.close()

    def on_link_remote_detach(self, event: Any) -> None:
        """Answer a detach."""
        event.link.detach()

    def on_link_remote_open(self, event: Any) -> None:
        """Answer an attach, or refuse the link."""
        link = event.link
        is_coordinator = link.is_receiver and link.remote_target.type == Terminus.COORDINATOR
        terminus = link.remote_source if link.is_sender else link.remote_target
        address = "$coordinator" if is_coordinator else terminus.address
        if self.refusing is not None:
            link.source.type = link.target.type = Terminus.UNSPECIFIED
            link.open()
            link.condition = Condition(self.refusing, "not here")
            link.close()
            return
        self.attached.append(address)
        self.links.append(link)
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        link.open()
        if link.is_receiver:
            link.flow(10)
        else:
            self._receivers[address].append(link)

    def on_link_flow(self, event: Any) -> None:
        """Serve the queue of a receiver that has granted credit."""
        if event.link.is_sender:
            self._serve(event.link.source.address)

    def on_delivery(self, event: Any) -> None:
        """Take a message, a request to the coordinator, or an outcome."""
        delivery, link = event.delivery, event.link
        if link.is_sender:
            if delivery.updated:
                delivery.settle()
            return
        if not delivery.readable or delivery.partial:
            return
        octets = link.recv(delivery.pending)
        link.advance()
        link.flow(1)
        if link.remote_target.type == Terminus.COORDINATOR:
            self._coordinate(delivery, octets)
        elif delivery.remote_state == TRANSACTIONAL:
            identity = bytes(delivery.remote.data[0])
            self._open[identity].append((link.target.address, octets))
            delivery.local.data = [identity, _ACCEPTED]
            delivery.update(TRANSACTIONAL)
            delivery.settle()
        else:
            self.queues[link.target.address].append(octets)
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
            self._serve(link.target.address)

    def _coordinate(self, delivery: Any, octets: bytes) -> None:
        request = Message()
        request.decode(octets)
        assert isinstance(request.body, Described)
        if str(request.body.descriptor) in _DECLARE or request.body.descriptor in _DECLARE:
            identity = f"{id(self)}-{next(self._transactions)}".encode()
            self._open[identity] = []
            delivery.local.data = [identity]
            delivery.update(DECLARED)
        else:
            fields: Any = request.body.value
            fails = bool(fields[1])
            posted = self._open.pop(bytes(fields[0]))
            self.committed += not fails
            self.rolled_back += fails
            delivery.update(Delivery.ACCEPTED)
            for address, message in [] if fails else posted:
                self.queues[address].append(message)
                self._serve(address)
        delivery.settle()

    def _serve(self, address: str) -> None:
        for link in self._receivers[address]:
            while link.credit > 0 and self.queues[address]:
                link.delivery(link.delivery_tag())
                link.stream(self.queues[address].popleft())
                link.advance()
