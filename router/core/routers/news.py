"""What is new of the network, for people: what the log says of it."""

from __future__ import annotations

import attrs


@attrs.frozen
class NeighbourFound:
    """Messages go to a neighbour from now on, by the connection of this number."""

    router: str
    connection: int
    cost: int


@attrs.frozen
class NeighbourCostChanged:
    """The connection to a neighbour costs another amount; `before` is the one so far."""

    router: str
    connection: int
    cost: int
    before: int


@attrs.frozen
class NeighbourMeasured:
    """The round trip to a neighbour by the connection that carries: the shortest of the last."""

    router: str
    cost: int
    round_trip_s: float


@attrs.frozen
class NeighbourLost:
    """No connection leads to what was a neighbour."""

    router: str


@attrs.frozen
class RoutersChanged:
    """Ways lead to routers that none led to before, or to some none leads any more; `known` is to
    how many they lead.
    """

    came: tuple[str, ...]
    went: tuple[str, ...]
    known: int


@attrs.frozen
class TableChanged:
    """Of so many addresses it has changed whether, or how, they are received from at a router."""

    router: str
    addresses: int


@attrs.frozen
class ConflictSeen:
    """Two routers have one id, which was seen so many times for the same reason by now."""

    router: str
    what: str
    times: int = 1


@attrs.frozen
class TooMuchTold:
    """Another router tells of more than is kept, and what is beyond the limit is ignored: of more
    `routers`, or more `addresses` as `what` says. `router` is the neighbour that tells of them, or
    whose addresses they are; `kept` is how many are, and `most` the limit, as a number or
    `in_octets` of memory.
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
    | ConflictSeen
    | TooMuchTold
)
