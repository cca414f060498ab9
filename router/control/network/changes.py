"""What the routing protocol wants done: messages sent, and what the router is to know."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import attrs

from router.control.network.messages import Message
from router.core.routers.routing_state import Interest, Path, Tree


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
    """What is received from at another router may be another, as far as these keys go; `now` says
    what it is at any time, None for what is not received from. With `whole` they are all keys of a
    router that can be reached again, or no more.
    """

    router: str
    keys: Collection[str]
    now: Callable[[str, str], Interest | None]
    whole: bool = False

    @property
    def changes(self) -> list[tuple[str, Interest | None]]:
        """What is so now."""
        return [(key, self.now(self.router, key)) for key in self.keys]


@attrs.frozen
class LeftOut:
    """A limit has been reached, and what is beyond it is ignored: `what` is `routers` or
    `addresses`, `of` the neighbour or the router that tells of them, `kept` how many are kept, and
    `most` the limit: a number, or with `in_octets` the memory that they may take.
    """

    what: str
    of: str
    kept: int
    most: int
    in_octets: bool = False


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
    is a neighbour's. With `gives_way` it is this router's id, and the other one keeps it, as the
    neighbour `told_by` says.
    """

    router: str
    ours: int
    theirs: int
    link: int | None = None
    gives_way: bool = False
    told_by: str | None = None

    @property
    def words(self) -> str:
        """What there is, for people."""
        gives_way = "this one leaves the network, since"
        who = gives_way if self.gives_way else "beside the one known here"
        when = "later" if self.theirs > self.ours else "earlier"
        told = f", as the neighbour {self.told_by} says" if self.told_by is not None else ""
        return f"{who} there is another router of that id, which started {when}{told}"


Change = Send | PathsChanged | Wanted | LeftOut | LinkFailed | Conflict
