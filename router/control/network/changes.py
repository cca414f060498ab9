"""What the routing protocol wants done: messages sent, and what the router is to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from router.control.network.messages import Message
from router.core.network.reach import Interest, Path, Tree


@attrs.frozen
class Send:
    """Send a message on a connection, after those before it."""

    link: int
    message: Message


@attrs.frozen
class PathsChanged:
    """The ways through the network are others.

    `neighbours` gives for each neighbour the connection by which messages go, `paths` the way to
    each router that can be reached, `tree_of` the tree of a root.
    """

    neighbours: Mapping[str, int]
    paths: Mapping[str, Path]
    tree_of: Callable[[str], Tree | None]


@attrs.frozen
class Wanted:
    """What is received from at another router is another: by key, None for what is not any more."""

    router: str
    changes: tuple[tuple[str, Interest | None], ...]


@attrs.frozen
class TableRefused:
    """A router tells of more addresses than can be kept: none of it are, for some time. `count` is
    how many there were by then; with `of_all` it is what all routers tell of that is too much.
    """

    router: str
    count: int
    of_all: bool = False


@attrs.frozen
class LinkFailed:
    """Close a connection, which the protocol has forgotten already, with this error."""

    link: int
    condition: str
    why: str


@attrs.frozen
class Conflict:
    """Two routers have the same id.

    `ours` and `theirs` are their instances, and `link` the connection at which it was seen, if it
    is a neighbour's. With `gives_way` it is this router's id, and the other one keeps it.
    """

    router: str
    ours: int
    theirs: int
    link: int | None = None
    gives_way: bool = False


Change = Send | PathsChanged | Wanted | TableRefused | LinkFailed | Conflict
