"""Peers that come back: places, which have a connection, and roles, which are links by name.

A `Place` has one connection at a time, and makes another when it needs one and the last is over.
A `Role` is a sender or receiver of one name. Its link is attached at a place, and attached again,
there or at another place, when it has gone or is to be stolen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.performatives import Received, Source, Target
from router.core.links.resuming import ALL_OF_IT

from support.audit import router_end
from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.ledger import UNTOLD, Arrival, Ledger

R = TypeVar("R", bound="SenderRole | ReceiverRole")
# for how long a terminus is to stay: policy and timeout in seconds
Lifetime = tuple[TerminusExpiryPolicy, int]
# how a link is attached again: without a map, with a map of all, of some as if the others were
# not known, or of some and saying that there are others
PLAIN, ALL, FORGETS, INCOMPLETE = "plain", "all", "forgets", "incomplete"
# what a receiver says of a delivery that it has got and said nothing of
UNSAID = [None, ALL_OF_IT, Received(0, 0), ALL_OF_IT]
DYNAMIC = "dynamic"
# what the names of dynamic nodes begin with
MADE = "amqp:/temp/"


@attrs.define(eq=False)
class Place:
    """Place of one connection of a container. `settings` are those of `Client`."""

    router: Router
    container: str
    settings: dict[str, Any]
    current: Client | None = None

    def client(self) -> Client:
        """Return the connection, made anew if the last one is over."""
        if self.current is None or self.current.over:
            self.current = self.router.client(container=self.container, **self.settings)
        return self.current


@attrs.define(eq=False)
class Network:
    """All places and roles of a router, its ledger, and all links' ends that ever existed."""

    router: Router
    ledger: Ledger
    # where the links meet, by number
    addresses: list[str] = attrs.Factory(list)
    places: list[Place] = attrs.Factory(list)
    senders: list[SenderRole] = attrs.Factory(list)
    receivers: list[ReceiverRole] = attrs.Factory(list)
    ends: list[Any] = attrs.Factory(list)

    def neighbour(self, at: int, step: int) -> int:
        """Return the number of another place of the same container, or of this one."""
        same = [
            number
            for number, each in enumerate(self.places)
            if each.container == self.places[at].container
        ]
        return same[(same.index(at) + step) % len(same)]

    def address(self, number: int) -> str:
        """Return an address to send to; for a dynamic node that of a known one, if any."""
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
        self.ledger.ends[link] = end


def who_can(roles: list[R], role: R, can: Callable[[Any], bool]) -> R:
    """Return this role, or else the first with an attached link that can do something."""
    for each in (role, *roles):
        link = each.link
        if link is not None and link.attached and can(link):
            return each
    return role


def _terminus_fields(lifetime: Lifetime | None) -> dict[str, Any]:
    return {} if lifetime is None else {"expiry_policy": lifetime[0], "timeout": lifetime[1]}


def _some(tags: list[bytes], how: str) -> set[bytes]:
    """Those that a map tells of."""
    return set(tags[::2] if how in (FORGETS, INCOMPLETE) else tags)


@attrs.define(eq=False)
class SenderRole:
    """Sender of one name. Without an address (by its number) it is anonymous."""

    network: Network
    # the number of its place
    at: int
    name: str
    address: int | None
    fields: dict[str, Any]
    lifetime: Lifetime | None = None
    link: SendingLink | None = None
    # links that were stolen from it, which it may not know
    former: list[SendingLink] = attrs.Factory(list)

    def settles(self, *, settled: bool) -> bool:
        """Return whether it sends a delivery settled, given its settle mode and the wish."""
        mode = self.fields["snd_settle_mode"]
        return mode == 1 or (mode == 2 and settled)

    def living(self) -> SendingLink:
        """Return the link; attach it first if it is not attached."""
        link = self.link
        if link is None or not link.attached or link.client.over:
            link = self.attach(0)
        return link

    def attach(self, step: int, how: str = ALL) -> SendingLink:
        """Attach where it is, or at so many places on, wherever it is attached now."""
        ledger = self.network.ledger
        self.at = self.network.neighbour(self.at, step)
        old, client = self.link, self.network.places[self.at].client()
        mine, claimed = {}, set()
        fields = dict(self.fields)
        was_suspended = False
        if self.lifetime is not None and old is not None:
            _hear_all(ledger, old.client, client)
            was_suspended = ledger.is_suspended(old)
            mine = ledger.sent_by(old)
            if how != PLAIN:
                claimed = _some(list(mine), how)
                fields["unsettled"] = {
                    tag: (mine[tag].sending.states or [None])[-1] for tag in claimed
                }
                fields["incomplete_unsettled"] = how == INCOMPLETE
        if old is not None and router_end(old) is not None:
            self.former.append(old)
            ledger.stolen.add(old)
        address = None if self.address is None else self.network.address(self.address)
        target = Target(address=address, **_terminus_fields(self.lifetime))
        self.link = link = client.sender(address, name=self.name, target=target, **fields)
        self.network._attached(link)
        if self.lifetime is not None and old is not None:
            if is_resumed(old, link, how, was_suspended=was_suspended):
                if how == INCOMPLETE:
                    ledger.held.add(link)
                ledger.sender_resumed(link, mine, claimed)
            elif was_suspended and old.address == link.address:
                ledger.reattached(old, link)
            ledger.look()
        return link


@attrs.define(eq=False)
class ReceiverRole:
    """Receiver of one name."""

    network: Network
    # the number of its place
    at: int
    name: str
    address: int
    default_outcome: Any
    fields: dict[str, Any]
    credit: int
    lifetime: Lifetime | None = None
    link: ReceivingLink | None = None

    def living(self) -> ReceivingLink:
        """Return the link; attach it first if it is not attached."""
        link = self.link
        if link is None or not link.attached or link.client.over:
            link = self.attach(0, self.credit)
        return link

    def attach(self, step: int, credit: int, how: str = ALL, said: Any = None) -> ReceivingLink:
        """Attach where it is, or at so many places on, wherever it is attached now.

        `said` is an outcome that it says first when it attaches.
        """
        ledger = self.network.ledger
        self.at = self.network.neighbour(self.at, step)
        old, client = self.link, self.network.places[self.at].client()
        addresses = self.network.addresses
        name = addresses[self.address % len(addresses)]
        is_dynamic = name == DYNAMIC
        fields = dict(self.fields)
        lifetime = None if is_dynamic else self.lifetime
        mine, claimed = {}, {}
        was_suspended = False
        if self.lifetime is not None and old is not None:
            _hear_all(ledger, old.client, client)
            was_suspended = ledger.is_suspended(old)
            mine = ledger.received_by(old)
            if how != PLAIN:
                claimed = {tag: self._state(mine[tag], said) for tag in _some(list(mine), how)}
                fields["unsettled"] = claimed
                fields["incomplete_unsettled"] = how == INCOMPLETE
        if old is not None and router_end(old) is not None:
            ledger.stolen.add(old)
        address = None if is_dynamic else name
        source = Source(
            address=address,
            dynamic=is_dynamic,
            default_outcome=self.default_outcome,
            **_terminus_fields(lifetime),
        )
        link = client.receiver(address, name=self.name, source=source, **fields)
        self.link = link
        ledger.enter(link)
        self.network._attached(link)
        if self.lifetime is not None and old is not None:
            if is_resumed(old, link, how, was_suspended=was_suspended):
                if how == INCOMPLETE:
                    ledger.held.add(link)
                ledger.receiver_resumed(link, mine, claimed)
            elif was_suspended and old.address == link.address:
                ledger.reattached(old, link)
            ledger.look()
        link.grant(credit)
        return link

    def _state(self, arrival: Arrival, said: Any) -> Any:
        """Return the state of a delivery for the unsettled map."""
        if arrival.told is not UNTOLD:
            return self.default_outcome if arrival.told is None else arrival.told
        if said is not None:
            return said
        return UNSAID[arrival.received.number % len(UNSAID)]


def _hear_all(ledger: Ledger, *clients: Client) -> None:
    """Have peers hear all that they were told, so that they know what they remember."""
    for client in clients:
        client.read()
    ledger.look()


def is_resumed(
    old: SendingLink | ReceivingLink,
    new: SendingLink | ReceivingLink,
    how: str,
    *,
    was_suspended: bool,
) -> bool:
    """Return whether a link is resumed: the router's attach has an unsettled map."""
    assert new.attach is not None
    is_same = old.client is new.client and how == PLAIN
    is_resumed = new.attach.unsettled is not None
    if was_suspended and old.address == new.address:
        assert is_resumed or is_same, "a suspended terminus, and no map"
    return is_resumed


def settle_down(clients: list[Client], reasonable: Callable[[], None]) -> None:
    """Let all clients read, open windows and grant credit, then act until nothing changes.

    `reasonable` is called until it changes nothing; no more flows are sent here meanwhile.
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
    """Return all senders that are attached."""
    return [
        link
        for client in clients
        for link in client.links
        if isinstance(link, SendingLink) and link.attached
    ]


def receivers_of(clients: list[Client]) -> list[ReceivingLink]:
    """Return all receivers that are attached."""
    return [
        link
        for client in clients
        for link in client.links
        if isinstance(link, ReceivingLink) and link.attached
    ]


def _snapshot(clients: list[Client]) -> Any:
    received = [(link.delivery_count, len(link.unsettled)) for link in receivers_of(clients)]
    over = [
        (sending.is_over, len(sending.states))
        for client in clients
        for sending in client.sent.values()
    ]
    sent = [client.next_outgoing_id for client in clients]
    links = [len(client.links) for client in clients]
    credit = [link.credit for link in senders_of(clients)]
    return received, over, sent, links, credit
