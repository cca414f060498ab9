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
    """Change to the paths through the network.

    `neighbours` has the number of the connection in use, by neighbour. `paths` has the path to each
    router that can be reached. `tree_of` returns the multicast tree of a root.
    """

    neighbours: Mapping[str, int]
    paths: Mapping[str, Path]
    tree_of: Callable[[str], Tree | None]


@attrs.frozen
class InterestChanged:
    """Possible change of a router's interest in some addresses, which are given by their keys.

    `now(router, key)` returns the present interest, or None. If `whole`, `keys` has all keys of a
    router that has become reachable or unreachable.
    """

    router: str
    keys: Collection[str]
    now: Callable[[str, str], Interest | None]
    whole: bool = False

    @property
    def changes(self) -> list[tuple[str, Interest | None]]:
        """Return each key with the router's present interest in it."""
        return [(key, self.now(self.router, key)) for key in self.keys]


@attrs.frozen
class LimitReached:
    """Report that a limit was reached, so that routers or addresses beyond it are ignored.

    `what` is `routers` or `addresses`, `of` is the id of the router that advertises them, and
    `kept` is how many are kept. `most` is the limit: a count or, if `in_octets`, octets of memory.
    """

    what: str
    of: str
    kept: int
    most: int
    in_octets: bool = False


@attrs.frozen
class LinkFailed:
    """Request to close a connection with an error; the protocol has already removed it."""

    link: int
    condition: str
    why: str


@attrs.frozen
class Conflict:
    """Conflict of two routers with the same id.

    `ours` and `theirs` are the instances of the known router and of the other one. `link` is the
    connection to the other router, if that is a neighbour. If `gives_way`, the id is this router's
    own and the other router keeps it, as the neighbour `told_by` reports.
    """

    router: str
    ours: int
    theirs: int
    link: int | None = None
    gives_way: bool = False
    told_by: str | None = None

    @property
    def words(self) -> str:
        """Return a description of the conflict for operators."""
        gives_way = "this router leaves the network, since"
        who = gives_way if self.gives_way else "in addition to the known router,"
        when = "later" if self.theirs > self.ours else "earlier"
        told = f", as the neighbour {self.told_by} reports" if self.told_by is not None else ""
        return f"{who} there is another router with this id, which started {when}{told}"


Change = Send | PathsChanged | InterestChanged | LimitReached | LinkFailed | Conflict
