"""Events of a router for plugins; part of the plugin contract (`router.plugin`).

Names and texts chosen by peers (containers, links, addresses, descriptions) are passed on
unchanged. Times are in seconds since 1970, by the router's wall clock.
"""

from __future__ import annotations

from typing import Literal

import attrs

Direction = Literal["in", "out"]
"""Direction of a link as seen from the router: on an `in` link, the peer is the sender."""


@attrs.frozen
class ConnectionInfo:
    """Connection of a router. `number` is not reused within the same process."""

    number: int
    container: str
    peer: str
    role: str
    user: str | None


@attrs.frozen
class LinkInfo:
    """Link that is, or was, attached.

    `number` is not reused within the same process. `id` is unique among the links that are attached
    at the same time: the number of the connection, the channel of the session and the handle.
    `address` is None for an anonymous sender (one whose target has no address) and for links whose
    address is not known yet.
    """

    number: int
    id: str
    name: str
    direction: Direction
    address: str | None
    connection: ConnectionInfo


@attrs.frozen
class LinkTotals:
    """Counters of a link since it was attached.

    `deliveries` counts all deliveries. Settled ones are also counted by their outcome (section
    3.4), or in `presettled` if they were sent settled.
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
    """Base class of events, which happened at `time`."""

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
    """A connection has ended. `condition` is empty if it was closed without an error."""

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

    `closed` is the flag of the detach (section 2.7.7): the terminus is destroyed as well.
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
    """A link has taken the name of another link of the same container (section 2.6.1).

    The other one, `previous`, is detached.
    """

    link: LinkInfo
    previous: LinkInfo


@attrs.frozen
class OutcomesSettled(Event):
    """The senders of `count` deliveries of a link were told the same outcome.

    They came together and left by the link `out_link`; it is None if they have not left, or were
    copied to several receivers. `outcome` is the name of the outcome (section 3.4), of a receiver
    or of the router, and `age_s` how long ago they came, in seconds. Deliveries that were sent
    settled have no outcome.
    """

    link: LinkInfo
    out_link: LinkInfo | None
    outcome: str
    age_s: float
    count: int


@attrs.frozen
class MessagesExpired(Event):
    """The ttl of `count` messages of a link (section 3.2.1) has ended before a receiver took them.

    `address` is where they waited.
    """

    link: LinkInfo
    address: str
    count: int


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
    """A peer was redirected (sections 2.8.16 and 2.8.18): its connection or, if given, its link."""

    connection: ConnectionInfo
    link: LinkInfo | None
    host: str
    port: int | None
    address: str | None


@attrs.frozen
class NeighbourFound(Event):
    """Another router has become a neighbour: messages go to it directly."""

    router: str
    cost: int


@attrs.frozen
class NeighbourCostChanged(Event):
    """The cost of the connection to a neighbour has changed; `before` is the previous cost."""

    router: str
    cost: int
    before: int


@attrs.frozen
class NeighbourMeasured(Event):
    """The shortest round trip of the last HELLOs with a neighbour, in seconds.

    It takes the time of both routers' turns with it. It comes every 8 `helloIntervalSeconds`.
    """

    router: str
    cost: int
    round_trip_s: float


@attrs.frozen
class NeighbourLost(Event):
    """The last connection to a neighbour was lost."""

    router: str


@attrs.frozen
class RoutersChanged(Event):
    """The set of reachable routers has changed; `known` is their number now."""

    found: tuple[str, ...]
    lost: tuple[str, ...]
    known: int
