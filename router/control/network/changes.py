"""Output of the routing protocol: messages to send, and changes for the router."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import attrs

from router.control.network.messages import Message
from router.core.routers.routing_state import Interest, Path, Tree


@attrs.frozen
class Send:
    """Message to send on a connection, after those queued earlier."""

    link: int
    message: Message


@attrs.frozen
class PathsChanged:
    """Change of the paths through the network.

    `neighbours` has the connection in use to each neighbour, `paths` the path to each router that
    can be reached; `tree_of` returns the tree of a root.
    """

    neighbours: Mapping[str, int]
    paths: Mapping[str, Path]
    tree_of: Callable[[str], Tree | None]


@attrs.frozen
class InterestChanged:
    """Possible change of another router's interest in these keys.

    `now` returns the interest at any time, None if there is none. With `whole` they are all keys of
    a router that can be reached again, or no longer.
    """

    router: str
    keys: Collection[str]
    now: Callable[[str, str], Interest | None]
    whole: bool = False

    @property
    def changes(self) -> list[tuple[str, Interest | None]]:
        """Return the present interest for each key."""
        return [(key, self.now(self.router, key)) for key in self.keys]


@attrs.frozen
class LimitReached:
    """Limit that was reached, so that routers or addresses beyond it are ignored.

    `what` is `routers` or `addresses`, `of` the neighbour or the router that advertises them,
    `kept` how many are kept, and `most` the limit: a number, or with `in_octets` the memory for
    them.
    """

    what: str
    of: str
    kept: int
    most: int
    in_octets: bool = False


@attrs.frozen
class LinkFailed:
    """Connection to close with this error, which the protocol has forgotten already."""

    link: int
    condition: str
    why: str


@attrs.frozen
class Conflict:
    """Duplicate id of two routers.

    `ours` and `theirs` are their instances, and `link` the connection on which it was seen, if the
    other router is a neighbour. With `gives_way` it is this router's id, and the other one keeps
    it, as the neighbour `told_by` reports.
    """

    router: str
    ours: int
    theirs: int
    link: int | None = None
    gives_way: bool = False
    told_by: str | None = None

    @property
    def words(self) -> str:
        """Return a description for people."""
        gives_way = "this one leaves the network, since"
        who = gives_way if self.gives_way else "beside the one known here"
        when = "later" if self.theirs > self.ours else "earlier"
        told = f", as the neighbour {self.told_by} says" if self.told_by is not None else ""
        return f"{who} there is another router with this id, which started {when}{told}"


Change = Send | PathsChanged | InterestChanged | LimitReached | LinkFailed | Conflict
