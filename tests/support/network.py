"""Peers that come again: places where a connection is, and roles, which are links by name.

A `Place` has one connection at a time, and another when it is needed and the last one is over. A
`Role` is a sender or receiver of one name; its link is attached at a place, and again, there or at
another place, when it has gone or is to be stolen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from router.amqp.performatives import Source

from support.audit import router_end
from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.ledger import Ledger

R = TypeVar("R", bound="SenderRole | ReceiverRole")
DYNAMIC = "dynamic"
# what the names of dynamic nodes begin with
MADE = "amqp:/temp/"


@attrs.define(eq=False)
class Place:
    """Where one connection of a container is. `settings` are `Client`'s."""

    router: Router
    container: str
    settings: dict[str, Any]
    current: Client | None = None

    def client(self) -> Client:
        """The connection, made anew where the last one is over."""
        if self.current is None or self.current.over:
            self.current = self.router.client(container=self.container, **self.settings)
        return self.current


@attrs.define(eq=False)
class Network:
    """All places and roles of a router, its ledger, and the ends of links that there ever were."""

    router: Router
    ledger: Ledger
    # where the links meet, by number
    addresses: list[str] = attrs.Factory(list)
    places: list[Place] = attrs.Factory(list)
    senders: list[SenderRole] = attrs.Factory(list)
    receivers: list[ReceiverRole] = attrs.Factory(list)
    ends: list[Any] = attrs.Factory(list)

    def neighbour(self, at: int, step: int) -> int:
        """The number of another place of the same container, or of this one."""
        same = [
            number
            for number, each in enumerate(self.places)
            if each.container == self.places[at].container
        ]
        return same[(same.index(at) + step) % len(same)]

    def address(self, number: int) -> str:
        """An address to send to; of a dynamic node that of one that is there and known."""
        name = self.addresses[number % len(self.addresses)]
        if name != DYNAMIC:
            return name
        for role in self.receivers:
            link = role.link
            if link is not None and link.attached and str(link.address).startswith(MADE):
                assert link.address is not None
                return link.address
        return "balanced"

    def _attached(self, link: SendingLink | ReceivingLink) -> None:
        end = router_end(link)
        assert end is not None, f"{link.name} was refused"
        self.ends.append(end)


def who_can(roles: list[R], role: R, can: Callable[[Any], bool]) -> R:
    """This role, or else the first whose link is attached and can do something."""
    for each in (role, *roles):
        link = each.link
        if link is not None and link.attached and can(link):
            return each
    return role


@attrs.define(eq=False)
class SenderRole:
    """A sender of one name. Without an address (by its number) it is anonymous."""

    network: Network
    # the number of its place
    at: int
    name: str
    address: int | None
    fields: dict[str, Any]
    link: SendingLink | None = None
    # links that were stolen from it, which it may not know
    former: list[SendingLink] = attrs.Factory(list)

    def settles(self, *, settled: bool) -> bool:
        """Whether it sends settled what it would send so, as its settle mode has it."""
        mode = self.fields["snd_settle_mode"]
        return mode == 1 or (mode == 2 and settled)

    def living(self) -> SendingLink:
        """The link, attached if it is not."""
        link = self.link
        if link is None or not link.attached or link.client.over:
            link = self.attach(0)
        return link

    def attach(self, step: int) -> SendingLink:
        """Attach where it is, or at so many places on, wherever it is attached now."""
        self.at = self.network.neighbour(self.at, step)
        old, client = self.link, self.network.places[self.at].client()
        if old is not None and router_end(old) is not None:
            self.former.append(old)
            self.network.ledger.stolen.add(old)
        address = None if self.address is None else self.network.address(self.address)
        self.link = client.sender(address, name=self.name, **self.fields)
        self.network._attached(self.link)
        return self.link


@attrs.define(eq=False)
class ReceiverRole:
    """A receiver of one name."""

    network: Network
    # the number of its place
    at: int
    name: str
    address: int
    default_outcome: Any
    fields: dict[str, Any]
    credit: int
    link: ReceivingLink | None = None

    def living(self) -> ReceivingLink:
        """The link, attached if it is not."""
        link = self.link
        if link is None or not link.attached or link.client.over:
            link = self.attach(0, self.credit)
        return link

    def attach(self, step: int, credit: int) -> ReceivingLink:
        """Attach where it is, or at so many places on, wherever it is attached now."""
        self.at = self.network.neighbour(self.at, step)
        old, client = self.link, self.network.places[self.at].client()
        if old is not None and router_end(old) is not None:
            self.network.ledger.stolen.add(old)
        addresses = self.network.addresses
        name = addresses[self.address % len(addresses)]
        is_dynamic = name == DYNAMIC
        address = None if is_dynamic else name
        source = Source(address=address, dynamic=is_dynamic, default_outcome=self.default_outcome)
        link = client.receiver(address, name=self.name, source=source, **self.fields)
        self.link = link
        self.network.ledger.enter(link)
        self.network._attached(link)
        link.grant(credit)
        return link


def settle_down(clients: list[Client], reasonable: Callable[[], None]) -> None:
    """Let everybody hear, open windows and give credit; then let everybody do what is reasonable
    until nothing changes any more. From then on no flow may help out.
    """
    for client in clients:
        client.read()
        client.open_window(100_000)
    for receiver in receivers_of(clients):
        receiver.grant(10_000)
    for _ in range(200):
        before = _snapshot(clients)
        reasonable()
        if _snapshot(clients) == before:
            return
    raise AssertionError("it never comes to rest")


def senders_of(clients: list[Client]) -> list[SendingLink]:
    """All senders that are attached."""
    return [
        link
        for client in clients
        for link in client.links
        if isinstance(link, SendingLink) and link.attached
    ]


def receivers_of(clients: list[Client]) -> list[ReceivingLink]:
    """All receivers that are attached."""
    return [
        link
        for client in clients
        for link in client.links
        if isinstance(link, ReceivingLink) and link.attached
    ]


def _snapshot(clients: list[Client]) -> Any:
    received = [(link.delivery_count, len(link.unsettled)) for link in receivers_of(clients)]
    over = [sending.is_over for client in clients for sending in client.sent.values()]
    sent = [client.next_outgoing_id for client in clients]
    return received, over, sent, [link.credit for link in senders_of(clients)]
