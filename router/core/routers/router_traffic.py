"""Counters of the deliveries that came from other routers, or went on to them.

Forwarding counts each delivery when it is received and when it is sent, for all kinds of peers. The
counts of links show how many of these deliveries came from other routers or went to them. A link's
count is added to its address's counters when the link leaves the address (`link_over`), and on
request while the link is still there. Nothing here runs per message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from router.core.model.address import ROUTED, Address
from router.core.model.counters import Counters
from router.core.routers.names import key_of
from router.engine.link import IncomingLink

if TYPE_CHECKING:
    from router.engine.link import Link

# The roles of connections to other routers, and the role of connections to containers.
ROUTERS: Final = frozenset(("inter-router", "edge"))
CONTAINER: Final = "route-container"
# If more keys than this are counted, those that are not wanted are forgotten.
MOST_PASSED: Final = 10_000


def link_over(counters: Counters, link: Link) -> None:
    """Count a link's deliveries as traffic of routers or of containers.

    The role of the link's connection says which; links of clients are not counted. Call this once
    for the counters of the link's address, when the link leaves that address.
    """
    role = link.session.connection.settings.role
    if role in ROUTERS:
        if isinstance(link, IncomingLink):
            counters.from_routers += _begun(link)
        else:
            counters.to_routers += link.deliveries
    elif role == CONTAINER:
        if isinstance(link, IncomingLink):
            counters.from_containers += _begun(link)
        else:
            counters.to_containers += link.deliveries


def total_counters(address: Address) -> Counters:
    """Return the counters of an address, including the deliveries of its present links."""
    total = Counters()
    total.add(address.counters)
    for link in _links(address):
        link_over(total, link)
    return total


def add(total: Counters, address: Address) -> None:
    """Add an address's counters to `total`, including those of its present links to routers."""
    total.add(address.counters)
    if _may_be_across(address):
        for link in _links(address):
            if link.session.connection.settings.role in ROUTERS:
                link_over(total, link)


def entered(counters: Counters) -> int:
    """Return how many deliveries came from clients and containers, not from other routers."""
    return counters.ingress - counters.from_routers


def left(counters: Counters) -> int:
    """Return how many deliveries went to clients and containers, not to other routers."""
    return counters.egress - counters.to_routers


class TransitCounts:
    """Count of the deliveries that passed this router between two others, by address key."""

    def __init__(self, wanted: Mapping[str, object]) -> None:
        # the keys for which any router of the network has receivers
        self._wanted = wanted
        self._over: Counter[str] = Counter()
        # the present transits, by key
        self._ways: dict[str, dict[Address, None]] = {}

    def add_transit(self, address: Address) -> None:
        """Add a transit."""
        self._ways.setdefault(key_of(address), {})[address] = None

    def remove_transit(self, address: Address) -> None:
        """Remove a transit, and keep its count."""
        key = key_of(address)
        ways = self._ways[key]
        del ways[address]
        if not ways:
            del self._ways[key]
        count = address.counters.to_routers
        if not count:
            return
        self._over[key] += count
        if len(self._over) > MOST_PASSED + len(self._wanted):
            self._over = Counter({k: n for k, n in self._over.items() if k in self._wanted})

    def count_of(self, key: str) -> int:
        """Return how many deliveries for an address key have passed, over all transits so far."""
        ways = self._ways.get(key, ())
        return self._over[key] + sum(total_counters(address).to_routers for address in ways)


def _may_be_across(address: Address) -> bool:
    """Return whether an address may have links to other routers; few have."""
    if address.remote_ends or address.transit is not None or address.treatment == ROUTED:
        return True
    # a link that is being detached no longer counts in `remote_ends`
    return bool(address.resuming)


def _links(address: Address) -> Iterator[Link]:
    """Yield the links that are at an address and are not lost."""
    for producer in address.producers:
        if producer.link.owner is producer:
            yield producer.link
    for consumers in (address.consumers, address.resuming):
        for consumer in consumers:
            if consumer.link.owner is consumer:
                yield consumer.link


def _begun(link: Link) -> int:
    """Return how many deliveries of a link have an address; the current one may not have it yet."""
    current = link.current
    return int(link.deliveries) - (current is not None and current.address is None)
