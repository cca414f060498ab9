"""Tree links that other routers attach: check the attach, and join the link to its tree.

Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.amqp.performatives import Source
from router.core.addresses.related import is_exchange
from router.core.addresses.table import address_name
from router.core.links import attach
from router.core.model.address import HERE, LAST_PHASE, MESH, MULTICAST, Address, Producer
from router.core.model.waiting_queue import WaitingQueue
from router.core.network.branch_links import NO_MULTICAST
from router.core.routers.link_properties import ORIGIN, PHASE, RECEIVERS, TREE
from router.core.routers.names import key_at
from router.engine import attaching
from router.engine.link import IncomingLink
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.encoded import AnyMap
    from router.core.ports import Core
    from router.engine.link import Link

# How long a router waits to learn of receivers that its neighbour knows.
PATIENCE_S: Final = 5.0
LONGEST_DIGEST: Final = 64


@attrs.define(eq=False)
class PendingTreeLink:
    """Tree link from another router, for one branch of a multicast tree.

    `digest` identifies the branch, and `origin` is the root of the tree. `receivers` are routers in
    the branch that have receivers, as far as the link's sender knows.
    """

    link: IncomingLink
    name: str
    phase: int
    origin: str
    digest: bytes
    receivers: frozenset[str]
    waits_until: float = 0.0

    @property
    def key(self) -> str:
        """Return the key by which routers announce the address."""
        return key_at(self.name, self.phase)

    @property
    def is_patient(self) -> bool:
        """Return whether the link waits only for receivers to be announced."""
        return self.waits_until > 0

    def has_waited(self, now: float) -> bool:
        """Return whether the link has waited long enough for receivers to be announced.

        The first call begins the wait.
        """
        if not self.is_patient:
            self.waits_until = now + PATIENCE_S
        return self.waits_until <= now

    def enter(self, forwarder: Core) -> Address | None:
        """Return the link's address, added if needed; None if it cannot be multicast."""
        address: Address | None = forwarder.table.enter(self.name, self.phase)
        if address is None:
            return None
        if address.treatment != MULTICAST and forwarder.table.rule_of(address.name) is None:
            _make_multicast(forwarder, address)
        if address.treatment == MULTICAST:
            return address
        forwarder.table.leave(address)
        return None


def _make_multicast(forwarder: Core, address: Address) -> None:
    """Make an address multicast, if that is possible.

    It is not possible for dynamic addresses and nodes of this router, or while deliveries wait or a
    receiver resumes its link.
    """
    is_own = forwarder.table.is_own_node(address.name)
    if is_own or address.is_dynamic or address.waiting.count or address.resuming:
        return
    forwarder.network.outward.lanes.give_up_for_multicast(address)
    address.treatment = MULTICAST
    for consumer in address.consumers:
        consumer.waiting = WaitingQueue()
    forwarder.credit.note(address, None)


def receive(forwarder: Core, link: Link) -> PendingTreeLink:
    """Accept the attach of a tree link; raise `AmqpError` at link scope if it is invalid."""
    remote = link.remote_attach
    if not isinstance(link, IncomingLink):
        raise _invalid("a link along a multicast tree must be attached as a sender")
    pending = _read_attach(link, remote.properties or {}, getattr(remote.target, "address", None))
    if pending.origin == forwarder.reach.me:
        raise _invalid(
            "a link along a multicast tree cannot lead to its root (qd.origin is this router)"
        )
    address = pending.enter(forwarder)
    if address is None:
        described = f"the address {pending.name} is not multicast at this router"
        raise AmqpError(NO_MULTICAST, described, Scope.LINK)
    forwarder.table.leave(address)
    source = remote.source if remote.source is not None else Source()
    attaching.accept(link, source, remote.target)
    return pending


def _read_attach(link: IncomingLink, properties: AnyMap, text: object) -> PendingTreeLink:
    origin, digest = properties.get(ORIGIN), properties.get(TREE)
    phase, receivers = properties.get(PHASE, 0), properties.get(RECEIVERS, [])
    if not isinstance(text, str) or not address_name(text) or not isinstance(origin, str):
        raise _invalid(
            "the link's property qd.origin must be a string, and its target a valid address"
        )
    if not isinstance(digest, bytes) or not 0 < len(digest) <= LONGEST_DIGEST:
        raise _invalid(
            f"the link's property qd.tree must be binary, of 1 to {LONGEST_DIGEST} octets"
        )
    if isinstance(phase, bool) or not isinstance(phase, int) or not 0 <= phase <= LAST_PHASE:
        raise _invalid(f"the link's property qd.phase is {phase!r}, but must be 0 to {LAST_PHASE}")
    if not isinstance(receivers, list) or not all(isinstance(each, str) for each in receivers):
        raise _invalid("the link's property qd.receivers must be a list of strings")
    return PendingTreeLink(
        link, address_name(text), int(phase), origin, digest, frozenset(receivers)
    )


def add_sender(
    forwarder: Core, pending: PendingTreeLink, address: Address, number: int
) -> Producer:
    """Add a tree link to its address; messages go along the tree and to this router's receivers."""
    link = pending.link
    producer = Producer(link, address, link.session.connection.settings.link_capacity)
    producer.side = MESH
    # messages that an exchange forwards count as sent here
    link.side = HERE if is_exchange(address) else MESH
    producer.tree = number
    link.owner = producer
    attach.add_producer(forwarder, producer)
    return producer


def _invalid(problem: str) -> AmqpError:
    return AmqpError(Condition.INVALID_FIELD, problem, Scope.LINK)
