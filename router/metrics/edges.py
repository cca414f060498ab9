"""Read edge connections and uplinks for metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import attrs

from router.control.edge.edge import EdgeRouter
from router.control.edge.edges import Edges
from router.control.edge.proxy_lines import STATUSES, ProxyLines
from router.control.network.adjacency import Neighbours

USE_STATES = ("active", "standby")


@attrs.frozen
class EdgeReading:
    """Counts for an edge router's uplinks, or for an interior router's edges.

    `uplinks` and `edges` are counted by whether they are active or on standby, `links` by status.
    """

    uplinks: Mapping[str, int] = attrs.Factory(lambda: dict.fromkeys(USE_STATES, 0))
    losses: int = 0
    edges: Mapping[str, int] = attrs.Factory(lambda: dict.fromkeys(USE_STATES, 0))
    links: Mapping[str, int] = attrs.Factory(lambda: dict.fromkeys(map(str, STATUSES), 0))
    watched: int = 0
    silent: int = 0
    held: int = 0
    held_share: float = 0.0
    expired: int = 0
    exceeded: int = 0


def read_edges(network: Neighbours | None) -> EdgeReading:
    """Read the counts for edge connections in one step; `network` may be None."""
    part = None if network is None else network.edges
    if isinstance(part, EdgeRouter):
        proxies = part.proxies
        return EdgeReading(
            uplinks=_uses(each.is_active for each in part.uplinks.links.values()),
            losses=part.uplinks.losses,
            links=_statuses(proxies.lines),
            watched=len(proxies.watched),
            silent=part.silent,
            held=proxies.holding.held,
            held_share=proxies.holding.fullest,
            expired=proxies.holding.expired,
            exceeded=proxies.holding.exceeded,
        )
    if isinstance(part, Edges):
        return EdgeReading(
            edges=_uses(each.is_active for each in part.by_connection.values()),
            links=_statuses(part.lines),
            watched=len(part.watching.by_key),
            silent=part.silent,
        )
    return EdgeReading()


def _uses(actives: Iterable[bool]) -> dict[str, int]:
    counts = Counter(actives)
    return {"active": counts[True], "standby": counts[False]}


def _statuses(lines: ProxyLines) -> dict[str, int]:
    return {str(status): lines.statuses[status] for status in STATUSES}
