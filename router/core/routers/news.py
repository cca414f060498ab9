"""News of the network for the log: neighbours, reachable routers, addresses, conflicts."""

from __future__ import annotations

import attrs


@attrs.frozen
class NeighbourFound:
    """New neighbour: messages go to it from now on, over the connection with this number."""

    router: str
    connection: int
    cost: int


@attrs.frozen
class NeighbourCostChanged:
    """Change of the cost of the connection to a neighbour from `before` to `cost`."""

    router: str
    connection: int
    cost: int
    before: int


@attrs.frozen
class NeighbourMeasured:
    """Shortest of the last round trips to a neighbour, over the connection in use."""

    router: str
    cost: int
    round_trip_s: float


@attrs.frozen
class NeighbourLost:
    """Loss of a neighbour: no connection leads to it any more."""

    router: str


@attrs.frozen
class RoutersChanged:
    """Change of the reachable routers: `came` are new, and `went` are no longer reachable.

    `known` is how many can be reached now.
    """

    came: tuple[str, ...]
    went: tuple[str, ...]
    known: int


@attrs.frozen
class TableChanged:
    """Number of addresses whose receivers at a router have changed."""

    router: str
    addresses: int


@attrs.frozen
class DuplicateRouterId:
    """Conflict of two routers with one id: `what` shows it, and was seen `times` times."""

    router: str
    what: str
    times: int = 1


@attrs.frozen
class AnnouncementsIgnored:
    """Announcements of another router that are ignored because they exceed a limit.

    `what` says whether they are about `routers` or `addresses`. `router` is the neighbour that
    announces the routers, or the router whose addresses they are. `kept` is how many are kept, and
    `most` the limit: a number, or with `in_octets` an amount of memory.
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
