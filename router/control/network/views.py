"""Views of the state of the routing protocol, for management."""

from __future__ import annotations

import attrs

from router.control.network.links import RouterLink
from router.control.network.messages import VERSION, Options
from router.control.network.protocol import Protocol


@attrs.frozen
class RouterView:
    """Known state of one router, this router included.

    `seq` counts the router's link states, `said_s` is the age of the last one, and `links` has the
    cost to each of its neighbours. `via` and `cost` are the next hop and the cost of the path to
    the router, or None without a path; this router itself has cost 0. `mobile_seq` is the version
    of the router's address table, and `addresses` is the number of its addresses and link routes.
    `is_complete` is False if addresses are missing.
    """

    router: str
    instance: int
    version: int | None
    options: Options
    seq: int
    said_s: float
    links: dict[str, int]
    via: str | None
    cost: int | None
    mobile_seq: int
    addresses: int
    is_complete: bool


@attrs.frozen
class NeighbourView:
    """Connection to a neighbour.

    `state` is `hello` until each end receives the other's HELLOs. Then it is `carries` if messages
    are sent on this connection, or `standby` if another connection is used.
    """

    link: int
    router: str
    instance: int
    version: int
    cost: int
    state: str
    heard_s: float
    round_trip_s: float | None
    is_synced: bool


def router_views(protocol: Protocol, now: float) -> list[RouterView]:
    """Return views of all known routers, this one first."""
    return [_own_view(protocol, now)] + [
        _view(protocol, router, now) for router in sorted(protocol.states.records)
    ]


def _own_view(protocol: Protocol, now: float) -> RouterView:
    own, last = protocol.mobile.own, protocol.own_state.last
    return RouterView(
        router=protocol.me,
        instance=protocol.instance,
        version=VERSION,
        options=protocol.options,
        seq=last.state.seq,
        said_s=now - last.sent_at,
        links=dict(last.state.links),
        via=None,
        cost=0,
        mobile_seq=own.seq,
        addresses=len(own.entries) - own.edges,
        is_complete=True,
    )


def _view(protocol: Protocol, router: str, now: float) -> RouterView:
    record = protocol.states.records[router]
    state, path = record.state, protocol.paths.get(router)
    table = protocol.mobile.tables.get(router)
    carrier = protocol.links.carriers.get(router)
    return RouterView(
        router=router,
        instance=state.instance,
        version=None if carrier is None else carrier.version,
        options=state.options,
        seq=state.seq,
        said_s=now - record.sent_at,
        links=dict(state.links),
        via=None if path is None else path.via,
        cost=None if path is None else path.cost,
        mobile_seq=0 if table is None else table.seq,
        addresses=0 if table is None else len(table.entries) - table.edges,
        is_complete=router not in protocol.mobile.wants,
    )


def neighbour_views(protocol: Protocol, now: float) -> list[NeighbourView]:
    """Return views of all connections to neighbours, in the order of their numbers."""
    links = protocol.links.by_number
    return [_neighbour(links[number], now) for number in sorted(links)]


def _neighbour(link: RouterLink, now: float) -> NeighbourView:
    state = "hello"
    if link.is_up:
        state = "carries" if link.carries else "standby"
    heard_s = now - link.heard_at
    return NeighbourView(
        link=link.number,
        router=link.router,
        instance=link.instance,
        version=link.version,
        cost=link.cost,
        state=state,
        heard_s=heard_s,
        round_trip_s=link.trips.least_s,
        is_synced=link.is_synced,
    )
