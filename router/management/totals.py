"""Totals of a router: its counters, and how many connections, links and deliveries it has."""

from __future__ import annotations

from collections.abc import Generator
from typing import Final

import attrs

from router.core.addresses.table import AddressTable
from router.core.diagnosis import stuck_deliveries
from router.core.model.address import MESH, Address, Consumer, Producer
from router.core.model.counters import Counters
from router.core.routers import router_traffic
from router.engine.connection import Connection
from router.engine.link import IncomingLink
from router.engine.outbox import Turn
from router.engine.traffic import Traffic, traffic_of
from router.management.ports import RouterInternals

CONTAINER: Final = "route-container"
# Addresses or links that are added up in one step.
ITEMS_PER_STEP: Final = 32
# Links of one address that are added up in one step; each of them takes less time.
LINKS_PER_STEP: Final = 128


@attrs.define
class Totals:
    """Totals over all addresses, connections and links of a router.

    `counters` exclude deliveries that the router itself has sent and received. `of_containers` is
    the traffic of connections to containers, including connections that are closed.
    """

    counters: Counters = attrs.Factory(Counters)
    of_containers: Traffic = attrs.Factory(Traffic)
    # open connections, and links
    connections: int = 0
    links: int = 0
    # links without credit for a long time
    links_blocked: int = 0
    # deliveries unsettled for a long time, counted once for each of their links
    deliveries_stuck: int = 0
    # octets of incomplete frames, and of output buffers
    input_bytes: int = 0
    output_bytes: int = 0


@attrs.define
class LinkSums:
    """Totals over the links of one address.

    `counters` are the address's counters, with the traffic of its present links. `receivers` is how
    many receivers the address has at this router, and `in_process` how many of them are the router
    itself.
    """

    counters: Counters = attrs.Factory(Counters)
    receivers: int = 0
    in_process: int = 0


def compute_link_sums(address: Address) -> Generator[None, None, LinkSums]:
    """Add up the links of an address, in steps between which other tasks may run."""
    sums = LinkSums()
    sums.counters.add(address.counters)
    ends: list[Producer | Consumer] = [*address.producers, *address.consumers, *address.resuming]
    for count, end in enumerate(ends, 1):
        if end.link.owner is end:
            router_traffic.link_over(sums.counters, end.link)
        # `place` is negative unless the consumer is among the address's consumers
        if isinstance(end, Consumer) and end.place >= 0:
            # lanes to the same edge count as one
            sums.receivers += end.side != MESH and end.lane_mask & 1
            sums.in_process += end.link.session.connection.settings.is_own
        if count % LINKS_PER_STEP == 0:
            yield
    return sums


def compute_totals(observed: RouterInternals) -> Generator[None, None, Totals]:
    """Add up all totals, in steps between which other tasks may run.

    A link that is attached or detached meanwhile may or may not be counted, but no link is counted
    twice.
    """
    totals = Totals()
    yield from _count_addresses(totals.counters, observed.table)
    for counters in observed.connection_counters:
        if counters.role == CONTAINER:
            totals.of_containers.add(counters.past)
    for count, pump in enumerate(list(observed.pumps.values()), 1):
        yield from _count_connection(totals, pump.connection, observed.turn)
        if count % ITEMS_PER_STEP == 0:
            yield
    if observed.own_pump is not None:
        _leave_out(totals.counters, observed.own_pump.connection)
    return totals


def _count_addresses(total: Counters, table: AddressTable) -> Generator[None, None, None]:
    total.add(table.retired)
    total.add(table.unused.counters)
    kept = list(table.kept.values())
    for counters in kept:
        total.add(counters)
    for count, address in enumerate((*table.all_addresses(), *table.routed), 1):
        router_traffic.add(total, address)
        if count % ITEMS_PER_STEP == 0:
            yield


def _count_connection(
    totals: Totals, connection: Connection, turn: Turn
) -> Generator[None, None, None]:
    totals.input_bytes += len(connection.kept)
    totals.output_bytes += connection.outbox.output.capacity()
    totals.connections += connection.remote_open is not None
    if connection.settings.role == CONTAINER:
        totals.of_containers.add(traffic_of(connection))
    for session in list(connection.local_sessions.values()):
        for count, link in enumerate(list(session.local_links.values()), 1):
            if link.owner is not None:
                totals.links += 1
                totals.links_blocked += stuck_deliveries.is_blocked(link, turn.now)
                totals.deliveries_stuck += int(link.stuck)
            if count % ITEMS_PER_STEP == 0:
                yield


def _leave_out(total: Counters, own: Connection) -> None:
    """Subtract the deliveries that the router itself has sent and received.

    As in Dispatch, a management request then counts only when the router receives it from the
    client, and the answer only when the router sends it to the client.
    """
    traffic = traffic_of(own)
    total.ingress -= traffic.received_deliveries
    total.egress -= traffic.sent_deliveries
    for session in own.local_sessions.values():
        for link in session.local_links.values():
            if isinstance(link, IncomingLink):
                for outcome in ("accepted", "rejected", "released", "modified"):
                    told = getattr(total, f"told_{outcome}") - getattr(link, outcome)
                    setattr(total, f"told_{outcome}", told)
