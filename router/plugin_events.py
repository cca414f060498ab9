"""What happens in a router, as plugins see it; part of the plugin contract (`router.plugin`).

Names and texts that peers have chosen (containers, links, addresses, descriptions) are passed on as
they came. Times are in seconds since 1970, by the router's wall clock.
"""

from __future__ import annotations

from typing import Literal

import attrs

Direction = Literal["in", "out"]
"""Seen from the router: a peer sends on a link with the direction `in`."""


@attrs.frozen
class ConnectionInfo:
    """A connection. `number` is never used again by the same process."""

    number: int
    container: str
    peer: str
    role: str
    user: str | None


@attrs.frozen
class LinkInfo:
    """A link that is attached, or was.

    `number` is never used again by the same process. `id` is unique among the links that are
    attached at the same time: the number of the connection, the channel of the session and the
    handle. `address` is None for an anonymous sender (a null target, section 2.6.12) and for links
    whose address is not known yet.
    """

    number: int
    id: str
    name: str
    direction: Direction
    address: str | None
    connection: ConnectionInfo


@attrs.frozen
class LinkTotals:
    """What a link has carried since it was attached.

    `deliveries` counts all of them. Those that have been settled are counted by their outcome
    (section 3.4), except those sent settled, which are in `presettled`.
    """

    link: LinkInfo
    deliveries: int
    presettled: int
    accepted: int
    rejected: int
    released: int
    modified: int
    unsettled: int


@attrs.frozen
class Event:
    """Something that happened, at `time`."""

    time: float


@attrs.frozen
class ConnectionOpened(Event):
    """Both sides have sent their open."""

    connection: ConnectionInfo


@attrs.frozen
class ConnectionRefused(Event):
    """A peer's open was answered by a close with an error."""

    connection: ConnectionInfo
    condition: str
    description: str


@attrs.frozen
class ConnectionClosed(Event):
    """A connection is over. `condition` is empty if it was closed without an error."""

    connection: ConnectionInfo
    by_peer: bool
    condition: str
    description: str


@attrs.frozen
class LinkAttached(Event):
    """A link is attached, by either side."""

    link: LinkInfo


@attrs.frozen
class LinkRefused(Event):
    """A peer's attach was answered by a detach with an error."""

    link: LinkInfo
    condition: str
    description: str


@attrs.frozen
class LinkDetached(Event):
    """A link is detached, or was lost with its session or connection; `totals` are final.

    `closed` is the flag of the detach (section 2.7.7): the terminus is gone as well.
    """

    link: LinkInfo
    totals: LinkTotals
    by_peer: bool
    closed: bool
    lost: bool
    condition: str
    description: str


@attrs.frozen
class LinkStolen(Event):
    """A link has taken the name of another link of the same container (section 2.6.1); the other
    one is detached.
    """

    link: LinkInfo
    previous: LinkInfo


@attrs.frozen
class LinkSuspended(Event):
    """A link was detached or lost while its terminus is kept, with `unsettled` deliveries."""

    link: LinkInfo
    unsettled: int


@attrs.frozen
class LinkResumed(Event):
    """A peer has attached a suspended link again (section 2.6.13)."""

    link: LinkInfo
    unsettled: int


@attrs.frozen
class Redirected(Event):
    """A peer was told to go elsewhere (sections 2.7.9 and 2.8.18): with a connection or, if `link`
    is given, with a link.
    """

    connection: ConnectionInfo
    link: LinkInfo | None
    host: str
    port: int | None
    address: str | None


@attrs.frozen
class NeighbourFound(Event):
    """Messages go to another router directly from now on."""

    router: str
    cost: int


@attrs.frozen
class NeighbourCostChanged(Event):
    """The connection to a neighbour costs another amount; `before` is the one so far."""

    router: str
    cost: int
    before: int


@attrs.frozen
class NeighbourLost(Event):
    """No connection to what was a neighbour is left."""

    router: str


@attrs.frozen
class RoutersChanged(Event):
    """The set of reachable routers has changed; `known` is their number now."""

    found: tuple[str, ...]
    lost: tuple[str, ...]
    known: int
