"""Read the network of routers for metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from router.control.network import messages as m
from router.control.network.adjacency import Neighbours
from router.control.network.protocol import Protocol

PROTOCOL_MESSAGES: Final = (
    m.Hello,
    m.Summary,
    m.Rows,
    m.LinkStateUpdate,
    m.LinkStateRequest,
    m.Withdrawal,
    m.MobileUpdate,
    m.MobileTable,
    m.MobileRequest,
)
# zero from the start, so that rates count the first message
NO_MESSAGES: Final = {
    (direction, kind.opcode): 0 for direction in ("in", "out") for kind in PROTOCOL_MESSAGES
}


@attrs.frozen
class NetworkReading:
    """Counts for the network, as this router sees it.

    `messages` and `octets` are counted on control links, by direction and opcode. `changed_s` is
    the time since the routes last changed, None if they have never changed.
    """

    connections: int = 0
    neighbours: int = 0
    routers: int = 0
    addresses: int = 0
    is_synced: bool = True
    messages: Mapping[tuple[str, str], int] = attrs.Factory(lambda: dict(NO_MESSAGES))
    octets: Mapping[tuple[str, str], int] = attrs.Factory(lambda: dict(NO_MESSAGES))
    changes: int = 0
    changed_s: float | None = None
    conflicts: int = 0
    refused: int = 0
    link_retries: int = 0
    routers_left_out: int = 0
    addresses_left_out: int = 0
    round_trips_s: Mapping[tuple[str], float] = attrs.Factory(dict)


def read_network(network: Neighbours | None) -> NetworkReading:
    """Read the counts for the network in one step; `network` is None for a standalone router."""
    if network is None:
        return NetworkReading()
    reach, protocol = network.reach, network.protocol
    changed = None if protocol is None else protocol.routes.changed_at
    return NetworkReading(
        connections=len(network.peerings),
        neighbours=len(reach.neighbours),
        routers=len(reach.paths),
        addresses=len(reach.wanted) - reach.edges,
        is_synced=network.is_synced,
        messages={**NO_MESSAGES, **network.outboxes.messages},
        octets={**NO_MESSAGES, **network.outboxes.octets},
        changes=network.changes,
        changed_s=None if changed is None else max(0.0, network.now - changed),
        conflicts=network.conflicts,
        refused=network.refused,
        link_retries=network.forwarder.network.outward.retries,
        routers_left_out=0 if protocol is None else protocol.states.left_out,
        addresses_left_out=0 if protocol is None else protocol.mobile.left_out,
        round_trips_s={} if protocol is None else _round_trips_s(protocol),
    )


def _round_trips_s(protocol: Protocol) -> dict[tuple[str], float]:
    """Return the shortest of the latest round-trip times for each neighbour that has any."""
    trips = ((name, link.trips.least_s) for name, link in protocol.links.carriers.items())
    return {(name,): trip_s for name, trip_s in trips if trip_s is not None}
