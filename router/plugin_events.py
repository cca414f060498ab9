"""Events of a router for plugins; part of the plugin contract (`router.plugin`).

Names and texts chosen by peers (containers, links, addresses, descriptions) are passed on
unchanged. Times are in seconds since 1970, on the router's wall clock.
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
    """Opening of a connection: both peers have sent an open."""

    connection: ConnectionInfo


@attrs.frozen
class ConnectionRefused(Event):
    """Refusal of a connection: a peer's open was answered by a close with an error."""

    connection: ConnectionInfo
    condition: str
    description: str


@attrs.frozen
class ConnectionClosed(Event):
    """End of a connection. `condition` is empty if the connection was closed without an error."""

    connection: ConnectionInfo
    by_peer: bool
    condition: str
    description: str


@attrs.frozen
class LinkAttached(Event):
    """Attaching of a link, initiated by either peer."""

    link: LinkInfo


@attrs.frozen
class LinkRefused(Event):
    """Refusal of a link: a peer's attach was answered by a detach with an error."""

    link: LinkInfo
    condition: str
    description: str


@attrs.frozen
class LinkDetached(Event):
    """End of a link: detached, or lost with its session or connection; `totals` are final.

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
    """Stealing of a link: `link` has taken over the name of `previous` (section 2.6.1).

    Both are links of the same container, and `previous` is detached.
    """

    link: LinkInfo
    previous: LinkInfo


@attrs.frozen
class OutcomesSettled(Event):
    """Settlement, with the same outcome, of `count` deliveries that a sender sent on `link`.

    The deliveries arrived together and were sent on over `out_link`. `out_link` is None if they
    were not sent on, or were copied to several receivers. `outcome` is the name of the outcome
    (section 3.4), decided by a receiver or by the router. `age_s` is the time since the deliveries
    arrived, in seconds. Deliveries that were sent settled have no outcome.
    """

    link: LinkInfo
    out_link: LinkInfo | None
    outcome: str
    age_s: float
    count: int


@attrs.frozen
class MessagesExpired(Event):
    """Expiry of `count` messages from a link: their ttl (section 3.2.1) ended while they waited.

    They waited at `address`, and no receiver has received them.
    """

    link: LinkInfo
    address: str
    count: int


@attrs.frozen
class LinkSuspended(Event):
    """Suspension of a link: detached or lost with `unsettled` deliveries; its terminus is kept."""

    link: LinkInfo
    unsettled: int


@attrs.frozen
class LinkResumed(Event):
    """Resumption of a link: a peer has attached the suspended link again (section 2.6.13)."""

    link: LinkInfo
    unsettled: int


@attrs.frozen
class Redirected(Event):
    """Redirect of a peer's connection or, if given, of its link (sections 2.8.16 and 2.8.18)."""

    connection: ConnectionInfo
    link: LinkInfo | None
    host: str
    port: int | None
    address: str | None


@attrs.frozen
class NeighbourFound(Event):
    """New neighbour: another router to which messages go directly."""

    router: str
    cost: int


@attrs.frozen
class NeighbourCostChanged(Event):
    """Change of the cost of the connection to a neighbour; `before` is the previous cost."""

    router: str
    cost: int
    before: int


@attrs.frozen
class NeighbourMeasured(Event):
    """Measurement of a neighbour: the shortest of the latest HELLO round trips, in seconds.

    The round trip includes the time of turns at both routers. The event occurs every 8
    `helloIntervalSeconds`.
    """

    router: str
    cost: int
    round_trip_s: float


@attrs.frozen
class NeighbourLost(Event):
    """Loss of the last connection to a neighbour."""

    router: str


@attrs.frozen
class RoutersChanged(Event):
    """Change of the set of reachable routers; `known` is how many can be reached now."""

    found: tuple[str, ...]
    lost: tuple[str, ...]
    known: int
