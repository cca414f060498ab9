"""Connections to other routers: which of them carry messages, and the messages to send.

Two routers are neighbours if each receives the other's HELLOs. If several connections lead to a
neighbour, the cheapest one (at equal cost the one with the lowest number) is in use: it carries the
messages, and the others are on standby.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from router.control.network.changes import LinkFailed, Send
from router.control.network.codec import CHUNK_BYTES
from router.control.network.messages import (
    Aged,
    Hello,
    LinkStateUpdate,
    Message,
    MobileRequest,
    Row,
    Rows,
    TableRequest,
)
from router.control.network.round_trips import RoundTrips
from router.control.network.timing import Timing

T = TypeVar("T")

MOST_OCTETS: Final = 200 * 1024
"""Most octets of neighbours' ids, because all of them must fit into one message."""

SILENT: Final = "trioute:neighbour-silent"
OTHER_ID: Final = "trioute:other-router"


class RouterLink:
    """Connection to another router, with the state that the routing protocol has of it."""

    def __init__(
        self, number: int, router: str, instance: int, cost: int, version: int, now: float
    ) -> None:
        self.number = number
        self.router = router
        self.instance = instance
        # its cost as announced by this router, and by the other one
        self.own_cost = cost
        self.peer_cost = 1
        self.version = version
        self.heard_at = now
        # the peer has sent a HELLO; and it has confirmed that it receives those of this router
        self.is_heard = False
        self.is_up = False
        self.carries = False
        # the peer has sent all that it knew when the connection came into use; and its rows were
        # received
        self.is_synced = False
        self.rows_came = False
        # the peer's digests, if rows are to be sent in return
        self.summary: tuple[int, ...] | None = None
        # link states, rows and requests to send at the end of the turn
        self.states_due: dict[str, None] = {}
        self.rows_due: dict[str, None] = {}
        self.wishes: dict[str, TableRequest] = {}
        # tables that the peer has requested and that are not sent yet: the number it has, by router
        self.requested_tables: dict[str, int] = {}
        self.trips = RoundTrips()

    @property
    def cost(self) -> int:
        """Return the cost of the connection: the larger of the two costs that its ends announce."""
        return max(self.own_cost, self.peer_cost)


class RouterLinks:
    """Set of the connections to all other routers, with the messages to send on them."""

    def __init__(self, me: str, instance: int, timing: Timing) -> None:
        self.me = me
        self.instance = instance
        self.timing = timing
        self.by_number: dict[int, RouterLink] = {}
        # the connection that carries, by the neighbour's id
        self.carriers: dict[str, RouterLink] = {}
        self.failed: list[LinkFailed] = []
        # whether a cost has changed since the last election
        self.has_new_costs = False
        # returns whether so many messages wait for a neighbour that no more are sent until it has
        # accepted some
        self.is_full: Callable[[RouterLink], bool] = lambda _: False
        # returns whether messages of a neighbour wait to be processed
        self.is_behind: Callable[[RouterLink], bool] = lambda _: False
        self._first: list[Send] = []
        self._then: list[Send] = []

    # Neighbours.

    def to_router(self, router: str) -> list[RouterLink]:
        """Return the connections to one router."""
        return [link for link in self.by_number.values() if link.router == router]

    def is_any_behind(self, numbers: Iterable[int]) -> bool:
        """Return whether messages on any of these connections wait to be processed."""
        links = (self.by_number.get(number) for number in numbers)
        return any(link is not None and self.is_behind(link) for link in links)

    def has_room(self, router: str) -> bool:
        """Return whether this router's link state still fits into a message with `router` added."""
        routers = {router, *(link.router for link in self.by_number.values())}
        return sum(len(each.encode()) + 8 for each in routers) <= MOST_OCTETS

    def add(self, link: RouterLink) -> None:
        """Add an open connection, and send a HELLO on it."""
        self.by_number[link.number] = link
        self.greet(link, link.heard_at)

    def remove(self, number: int) -> RouterLink | None:
        """Remove a connection by its number; return it, or None if the number is unknown."""
        return self.by_number.pop(number, None)

    def fail(self, link: RouterLink, condition: str, why: str) -> None:
        """Remove a connection, and request its close with a condition and a reason."""
        self.by_number.pop(link.number, None)
        self.failed.append(LinkFailed(link.number, condition, why))

    def greet(self, link: RouterLink, now: float) -> None:
        """Queue a HELLO on a connection."""
        heard = link.instance if link.is_heard else 0
        hello = Hello(self.me, self.instance, heard, link.own_cost, *link.trips.stamps(now))
        self._first.append(Send(link.number, hello))

    def hello_received(self, link: RouterLink, hello: Hello) -> None:
        """Handle a HELLO: the peer may become a neighbour, or stop being one."""
        if (hello.router, hello.instance) != (link.router, link.instance):
            why = f"the HELLO of {link.router} has another id or instance than its open"
            self.fail(link, OTHER_ID, why)
            return
        link.trips.heard((hello.stamp, hello.echo, hello.held), link.heard_at)
        if not link.is_heard:
            link.is_heard = True
            self.greet(link, link.heard_at)
        link.is_up = hello.heard == self.instance
        if hello.cost and hello.cost != link.peer_cost:
            link.peer_cost = hello.cost
            self.has_new_costs = True

    def set_cost(self, number: int, cost: int, now: float) -> None:
        """Change the cost that this router announces for a connection, and send it to the peer."""
        link = self.by_number.get(number)
        if link is not None and cost != link.own_cost:
            link.own_cost = cost
            self.has_new_costs = True
            self.greet(link, now)

    def drop_silent(self, now: float) -> None:
        """Close the connections on which no message was received for too long."""
        most = self.timing.hello_max_age_s
        for link in list(self.by_number.values()):
            if now - link.heard_at >= most:
                self.fail(link, SILENT, f"nothing was received from {link.router} for {most:g} s")

    def extend_deadlines(self, now: float) -> None:
        """Give all neighbours more time: this router was stalled, and has messages left to read."""
        least = now - self.timing.hello_max_age_s + self.timing.hello_interval_s
        for link in self.by_number.values():
            link.heard_at = max(link.heard_at, least)

    def next_silence(self) -> float:
        """Return the earliest time when a neighbour counts as silent for too long."""
        most = self.timing.hello_max_age_s
        return min((link.heard_at + most for link in self.by_number.values()), default=float("inf"))

    def elect(self) -> tuple[list[RouterLink], bool]:
        """Elect the connection to use for each neighbour.

        Return the connections that come into use, and whether connections in use or costs changed.
        """
        has_new_costs, self.has_new_costs = self.has_new_costs, False
        carriers: dict[str, RouterLink] = {}
        for link in self.by_number.values():
            if link.is_up:
                best = carriers.get(link.router)
                if best is None or (link.cost, link.number) < (best.cost, best.number):
                    carriers[link.router] = link
        before = self.carriers
        self.carriers = {router: carriers[router] for router in sorted(carriers)}
        begun = []
        for router, link in before.items():
            if carriers.get(router) is not link:
                link.carries = link.is_synced = link.rows_came = False
                link.summary = None
                link.states_due.clear()
                link.rows_due.clear()
                link.wishes.clear()
                link.requested_tables.clear()
        for link in self.carriers.values():
            if not link.carries:
                link.carries = True
                begun.append(link)
        return begun, has_new_costs or before != self.carriers

    def measured(self) -> list[tuple[RouterLink, float]]:
        """Return each connection that has a round trip to report, with that time in seconds."""
        found = ((link, link.trips.take_report()) for link in self.carriers.values())
        return [(link, trip_s) for link, trip_s in found if trip_s is not None]

    def costs(self) -> dict[str, int]:
        """Return the costs that this router advertises for its links, by neighbour."""
        return {router: link.cost for router, link in self.carriers.items()}

    # Messages.

    def send(self, link: RouterLink, message: Message) -> None:
        """Queue a message to one neighbour."""
        self._then.append(Send(link.number, message))

    def flood(self, message: Message, but: str | None, *, first: bool = False) -> None:
        """Queue a message to all neighbours except `but`; if `first`, ahead of other messages."""
        sends = self._first if first else self._then
        sends.extend(
            Send(link.number, message) for router, link in self.carriers.items() if router != but
        )

    def flood_state(self, router: str, but: str | None) -> None:
        """Queue the link state of a router to all neighbours except `but`."""
        for neighbour, link in self.carriers.items():
            if neighbour != but:
                link.states_due[router] = None

    def flood_row(self, router: str, but: str | None) -> None:
        """Queue a router's `Row` (its versions) to all neighbours except `but`."""
        for neighbour, link in self.carriers.items():
            if neighbour != but:
                link.rows_due[router] = None

    def take(
        self,
        aged: Callable[[Iterable[str]], Iterable[Aged]],
        rows: Callable[[Iterable[str]], Iterable[Row]],
    ) -> list[Send]:
        """Remove and return the queued messages, in the order in which to send them.

        `aged` returns the link state of some routers with its present age; `rows` returns a `Row`
        for each of them.
        """
        states: list[Send] = []
        told: list[Send] = []
        asked: list[Send] = []
        for link in self.carriers.values():
            if self.is_full(link):
                continue
            if link.states_due:
                states += [
                    Send(link.number, LinkStateUpdate(tuple(part)))
                    for part in portions(aged(link.states_due), _size_of)
                ]
                link.states_due.clear()
            if link.rows_due:
                told += [
                    Send(link.number, Rows(more=True, rows=tuple(part)))
                    for part in portions(rows(link.rows_due), lambda row: 48 + len(row.router))
                ]
                link.rows_due.clear()
            if link.wishes:
                asked += [
                    Send(link.number, MobileRequest(tuple(part)))
                    for part in portions(link.wishes.values(), lambda wish: 24 + len(wish.router))
                ]
                link.wishes.clear()
        # link state comes before addresses: those of an unknown router are ignored
        sends = [*self._first, *states, *self._then, *told, *asked]
        self._first, self._then = [], []
        return [send for send in sends if send.link in self.by_number]


def _size_of(aged: Aged) -> int:
    octets = aged.state.octets
    if octets:
        return 8 + len(octets)
    return 64 + sum(8 + len(router) for router in aged.state.links)


def portions(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield items in batches that each fit into a message; `size_of` estimates an item's octets."""
    portion: list[T] = []
    octets = 0
    for item in items:
        portion.append(item)
        octets += size_of(item)
        if octets >= CHUNK_BYTES:
            yield portion
            portion, octets = [], 0
    if portion:
        yield portion
