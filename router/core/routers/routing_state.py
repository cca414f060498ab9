"""Routing state of a router: reachable routers, the paths to them, and their receivers.

The routing protocol (`router.control.network`) writes it and the core reads it, except for the
interest of this router, which the core writes and the protocol announces. The two have no other
interface. Nothing here is read per message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import attrs

from router.core.model.split_table import ListedTable

if TYPE_CHECKING:
    from router.engine.connection import Connection

# The first letter of a key is its class; in a mobile address the phase comes next.
MOBILE = "M"
# link routes for links on which peers send (in) or receive (out), by prefix or by pattern
IN_PREFIX, OUT_PREFIX, IN_PATTERN, OUT_PATTERN = "C", "D", "E", "F"
# an edge router, by its id
EDGE = "H"
# an edge router by id and instance, so that two with the same id are noticed; J if it was refused
EDGE_RUN, EDGE_AWAY = "I", "J"
OF_EDGES = (EDGE, EDGE_RUN, EDGE_AWAY)
# How many shared entries for keys that only one router wants are kept, in addition to two per
# router.
MAX_SHARED_ENTRIES: Final = 1000
# How many of the nearest routers with receivers are looked up for a key, and for how many keys they
# are cached.
NEAREST: Final = 32
MAX_CACHED_KEYS: Final = 128
# in place of the phase: fallback receivers, for messages that no other receiver takes
FALLBACK_PHASE = "F"
# in place of the phase: management senders that may make changes there
MANAGERS_PHASE = "C"


def mobile_key(name: str, phase: str = "0") -> str:
    """Return the key by which routers announce an address."""
    return f"{MOBILE}{phase}{name}"


@attrs.frozen
class Interest:
    """Interest of a router in an address: the router has a receiver of the address.

    `treatment` is the treatment of the address at that router, such as `address.CLOSEST`. `shows`
    says whether a receiver there gets the router annotations of messages.
    """

    treatment: int
    shows: bool = False


# The cost of the path to a router, its id, and its interest.
Place: TypeAlias = tuple[int, str, Interest]


@attrs.frozen
class Path:
    """Path to a router: the neighbour that is the first hop, and the total cost."""

    via: str
    cost: int


@attrs.frozen
class Branch:
    """Part of a `Tree` that is reached through one of this router's children.

    `routers` are all routers in this part, including the child. `digest` differs between parts that
    are not the same.
    """

    child: str
    digest: bytes
    routers: frozenset[str]


@attrs.frozen
class Tree:
    """Tree of the cheapest paths from one router to all others, as seen from this router.

    `digest` identifies the part below this router, and is the digest of this router's branch at
    `parent`. The root has no parent.
    """

    root: str
    parent: str | None
    digest: bytes
    branches: tuple[Branch, ...]


class RoutingState:
    """State of the network as the router `me` sees it; a standalone router sees no others."""

    def __init__(self, me: str) -> None:
        self.me = me
        # the connections on which messages go to neighbours, by the neighbours' ids
        self.neighbours: dict[str, Connection] = {}
        # the paths to all reachable routers
        self.paths: Mapping[str, Path] = {}
        # by key, the reachable routers that have receivers
        self.wanted: ListedTable[str, dict[str, Interest]] = ListedTable()
        # how many of these keys belong to edge routers
        self.edges = 0
        # most keys are wanted by only one router: they share one entry per router and interest
        self._alone: dict[tuple[str, Interest], dict[str, Interest]] = {}
        # the nearest routers that want a key, for keys that were looked up lately
        self._found: dict[str, list[Place]] = {}
        # the interest of this router, to be announced to other routers
        self.own_interests: dict[str, Interest] = {}
        # the keys of `own_interests` that have changed since the protocol took them
        self.own_changes: dict[str, None] = {}
        # called on changes to paths and neighbours; and, with the key, on changes of interest
        self.on_paths: list[Callable[[], None]] = []
        self.on_wanted: list[Callable[[str], None]] = []
        # asks the protocol to take the changes of interest here, in this turn
        self.on_own_change: Callable[[], None] = lambda: None
        self._tree_of: Callable[[str], Tree | None] = lambda _: None

    # Written by the protocol.

    def set_paths(
        self,
        neighbours: Mapping[str, Any],
        paths: Mapping[str, Path],
        tree_of: Callable[[str], Tree | None],
    ) -> None:
        """Replace the neighbours, and the paths to all other routers.

        `tree_of` returns the tree of a root, or None if no messages come from that root.
        """
        self.neighbours = dict(neighbours)
        self.paths = paths
        self._found.clear()
        if len(self._alone) > 2 * len(paths) + MAX_SHARED_ENTRIES:
            self._alone.clear()
        self._tree_of = tree_of
        for watcher in self.on_paths:
            watcher()

    def set_interest(self, router: str, key: str, interest: Interest | None) -> None:
        """Set a reachable router's interest in the address with this key; None removes it."""
        routers = self.wanted.get(key)
        if interest is not None:
            if routers is None:
                self.wanted[key] = self._only(router, interest)
                self.edges += key.startswith(OF_EDGES)
            elif routers.get(router) == interest:
                return
            elif len(routers) > 1:
                routers[router] = interest
            elif router in routers:
                self.wanted[key] = self._only(router, interest)
            else:
                self.wanted[key] = {**routers, router: interest}
        elif routers is None or router not in routers:
            return
        elif len(routers) > 1:
            del routers[router]
            if len(routers) == 1:
                self.wanted[key] = self._only(*next(iter(routers.items())))
        else:
            del self.wanted[key]
            self.edges -= key.startswith(OF_EDGES)
        self._found.pop(key, None)
        for watcher in self.on_wanted:
            watcher(key)

    def _only(self, router: str, interest: Interest) -> dict[str, Interest]:
        """Return the entry of `wanted` for keys that only `router` is interested in.

        All keys with the same router and interest share one entry, because there may be very many.
        """
        found = self._alone.get((router, interest))
        if found is None:
            found = self._alone[router, interest] = {router: interest}
        return found

    # Read by the core.

    def path(self, router: str) -> Path | None:
        """Return the path to a router, or None if there is none."""
        return self.paths.get(router)

    def connection(self, neighbour: str) -> Connection | None:
        """Return the connection on which messages go to a neighbour, or None."""
        return self.neighbours.get(neighbour)

    def tree(self, root: str) -> Tree | None:
        """Return the tree for multicasts that enter the network at `root`, or None."""
        return self._tree_of(root)

    def count(self, key: str) -> int:
        """Return how many routers have receivers of the address with this key."""
        return len(self.wanted.get(key, ()))

    def places(self, key: str) -> list[Place]:
        """Return the other routers with receivers of the address with this key, nearest first."""
        return self._nearest(key, None)

    def nearest(self, key: str) -> list[Place]:
        """Return the first NEAREST of `places` for this key; the caller may not change the list."""
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= MAX_CACHED_KEYS:
                self._found.clear()
            found = self._found[key] = self._nearest(key, NEAREST)
        return found

    def _nearest(self, key: str, most: int | None) -> list[Place]:
        wanted, paths = self.wanted.get(key), self.paths
        if wanted is None:
            return []
        every = ((paths[router].cost, router) for router in wanted if router in paths)
        some = sorted(every) if most is None or len(wanted) <= most else nsmallest(most, every)
        return [(cost, router, wanted[router]) for cost, router in some]

    # Written by the core.

    def set_own_interest(self, key: str, interest: Interest | None) -> None:
        """Set this router's interest in the address with this key; None removes it."""
        if self.own_interests.get(key) == interest:
            return
        if interest is None:
            del self.own_interests[key]
        else:
            self.own_interests[key] = interest
        self.own_changes[key] = None
        self.on_own_change()

    def take_own_changes(self, most: int | None = None) -> Iterable[tuple[str, Interest | None]]:
        """Return changes of this router's interest since the last call, for at most `most` keys.

        The interest is None for keys that the router is no longer interested in.
        """
        changed = self.own_changes
        if most is None or len(changed) <= most:
            self.own_changes = {}
        else:
            changed = dict.fromkeys(islice(changed, most))
            for key in changed:
                del self.own_changes[key]
        return [(key, self.own_interests.get(key)) for key in sorted(changed)]
