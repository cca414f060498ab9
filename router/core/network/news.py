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
class TableTooLarge:
    """A router tells of more addresses than are kept, and so none of it are; `addresses` is how
    many there were by then. With `of_all` those of all routers together are too many.
    """

    router: str
    addresses: int
    of_all: bool = False


News = NeighbourFound | NeighbourLost | RoutersChanged | TableChanged | ConflictSeen | TableTooLarge
