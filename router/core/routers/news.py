"""Events of the network for the log: neighbours, reachable routers, addresses, conflicts."""

from __future__ import annotations

import attrs


@attrs.frozen
class NeighbourFound:
    """Event: a router has become a neighbour, over the connection with this number."""

    router: str
    connection: int
    cost: int


@attrs.frozen
class NeighbourCostChanged:
    """Event: the cost of the connection to a neighbour has changed from `before` to `cost`."""

    router: str
    connection: int
    cost: int
    before: int


@attrs.frozen
class NeighbourMeasured:
    """Event: the round trip to a neighbour was measured.

    `round_trip_s` is the shortest of the last round trips.
    """

    router: str
    cost: int
    round_trip_s: float


@attrs.frozen
class NeighbourLost:
    """Event: a router is no longer a neighbour, because no connection leads to it any more."""

    router: str


@attrs.frozen
class RoutersChanged:
    """Event: the routers `came` have become reachable, and the routers `went` unreachable.

    `known` is how many routers can be reached now.
    """

    came: tuple[str, ...]
    went: tuple[str, ...]
    known: int


@attrs.frozen
class TableChanged:
    """Event: a router has announced that its receivers have changed.

    `addresses` is how many addresses the change concerns.
    """

    router: str
    addresses: int


@attrs.frozen
class DuplicateRouterId:
    """Event: two routers have the same id.

    `what` is the evidence, which was found `times` times.
    """

    router: str
    what: str
    times: int = 1


@attrs.frozen
class AnnouncementsIgnored:
    """Event: announcements of another router are ignored because they exceed a limit.

    `what` says whether they are about `routers` or `addresses`. `router` is the neighbour that
    announces the routers, or the router that has the addresses. `kept` is how many are kept, and
    `most` the limit: a count, or with `in_octets` an amount of memory.
    """

    what: str
    router: str
    kept: int
    most: int
    in_octets: bool = False


News = (
    NeighbourFound
    | NeighbourCostChanged
    | NeighbourMeasured
    | NeighbourLost
    | RoutersChanged
    | TableChanged
    | DuplicateRouterId
    | AnnouncementsIgnored
)
