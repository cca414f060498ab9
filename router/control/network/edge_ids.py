"""Keep the ids of edge routers unique across all interiors.

Of two edges with one id at the same interior, the first to connect keeps the id while it sends
heartbeats. If the edges are at different interiors, the one that started first keeps the id, and
the other is turned away. Interiors notice such edges because they advertise their edges to each
other (docs/decisions/0073-one-edge-of-an-id.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from router.control.network.peerings import Peering
from router.core.model.address import BALANCED
from router.core.routers.membership import Peer
from router.core.routers.names import edge_run_in, edge_run_key
from router.core.routers.routing_state import EDGE_AWAY, EDGE_RUN, Interest, RoutingState
from router.engine.failures import NetworkCondition
from router.errors import AmqpError

# An edge that was silent for this long gives way to another one with its id.
MAX_AGE_S: Final = 8.0

# Time for which an edge that was turned away is advertised, and most such edges.
AWAY_S: Final = 60.0
MOST_AWAY: Final = 1000

Fail = Callable[[Peering, str, str], None]
Tell = Callable[[str, str], None]


class EdgeIds:
    """Record of the edges at this router, and of edges with the same ids at other interiors.

    `fail` closes a connection with a condition and a reason; `tell` reports a duplicate id; `now`
    returns the turn's time, in seconds.
    """

    def __init__(
        self, reach: RoutingState, fail: Fail, tell: Tell, now: Callable[[], float]
    ) -> None:
        self._reach = reach
        self._fail = fail
        self._tell = tell
        self._now = now
        self._peerings: dict[str, dict[int, Peering]] = {}
        # instances that other interiors advertise, by id
        self._elsewhere: dict[str, set[int]] = {}
        # keys of edges turned away here, with the time, the oldest first
        self._away: dict[str, float] = {}
        reach.on_wanted.append(self._wanted_changed)

    def came(self, peering: Peering) -> None:
        """Add a connection from an edge."""
        self._peerings.setdefault(peering.peer.router, {})[peering.number] = peering

    def left(self, peering: Peering) -> None:
        """Remove an edge's connection that has ended."""
        peerings = self._peerings.get(peering.peer.router, {})
        if peerings.pop(peering.number, None) is not None and not peerings:
            del self._peerings[peering.peer.router]

    def judge(self, peer: Peer) -> None:
        """Raise `AmqpError` if another edge already has the id of `peer`, which is connecting."""
        for peering in list(self._peerings.get(peer.router, {}).values()):
            if peering.peer.instance == peer.instance:
                continue
            if self._now() - peering.connection.last_received < MAX_AGE_S:
                where = peering.connection.name
                raise AmqpError(
                    NetworkCondition.DUPLICATE_ID,
                    f"another edge router with the id {peer.router} is connected from {where}; "
                    "each needs an id of its own",
                )
            self._fail(
                peering,
                NetworkCondition.SILENT,
                f"another edge router with the id {peer.router} has connected, "
                "and this one was silent",
            )
        earliest = min(self._elsewhere.get(peer.router, ()), default=peer.instance)
        if earliest < peer.instance:
            words = self._turn_away(peer, earliest)
            raise AmqpError(NetworkCondition.DUPLICATE_ID, words)

    def tick(self, now: float) -> None:
        """Stop advertising that edges were turned away, if they have not come back for a while."""
        while self._away:
            key, since = next(iter(self._away.items()))
            if since + AWAY_S > now:
                break
            del self._away[key]
            self._reach.set_own_interest(key, None)

    def _wanted_changed(self, key: str) -> None:
        """Handle a change in what other interiors advertise about connected and refused edges."""
        run = edge_run_in(key) if key.startswith((EDGE_RUN, EDGE_AWAY)) else None
        if run is None:
            return
        edge, instance = run
        is_told = key in self._reach.wanted
        if key.startswith(EDGE_AWAY):
            if is_told and self._is_used(edge, instance):
                where = _at(self._reach, key)
                self._tell(
                    edge,
                    f"another edge router with this id, which started later, was refused{where}",
                )
            return
        known = self._elsewhere.setdefault(edge, set())
        if not is_told:
            known.discard(instance)
        elif instance not in known:
            known.add(instance)
            self._compare(edge, instance)
        if not known:
            del self._elsewhere[edge]

    def _compare(self, edge: str, instance: int) -> None:
        """Turn away edges with this id that started later than `instance` at another interior."""
        words = None
        for peering in list(self._peerings.get(edge, {}).values()):
            if peering.peer.instance > instance:
                words = self._turn_away(peering.peer, instance)
                self._fail(peering, NetworkCondition.DUPLICATE_ID, words)
        if words is not None:
            self._tell(edge, words)

    def _turn_away(self, peer: Peer, earlier: int) -> str:
        """Advertise that an edge is turned away; return the reason to send to that edge."""
        key = edge_run_key(peer.router, peer.instance, EDGE_AWAY)
        if self._away.pop(key, None) is not None or len(self._away) < MOST_AWAY:
            self._away[key] = self._now()
            self._reach.set_own_interest(key, Interest(BALANCED))
        where = _at(self._reach, edge_run_key(peer.router, earlier))
        return (
            f"another edge router with the id {peer.router}, which started earlier, is "
            f"connected{where}"
        )

    def _is_used(self, edge: str, instance: int) -> bool:
        """Return whether an active edge at this router has the id and started before `instance`."""
        return any(
            peering.peer.instance < instance
            and edge_run_key(edge, peering.peer.instance) in self._reach.own_interests
            for peering in self._peerings.get(edge, {}).values()
        )


def _at(reach: RoutingState, key: str) -> str:
    places = reach.nearest(key)
    return f" at router {places[0][1]}" if places else ""
