"""Follow amqp:link:redirect for auto-links (section 2.8.18).

If the connector is allowed to follow, a connection to the other container is made for this link
alone. The link is attached there for as long as the connection lasts; after that it is tried again
where it is configured (docs/decisions/0026-redirects.md).
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import attrs

from router.amqp.constants import Condition
from router.amqp.redirects import Redirect, redirect_of
from router.control.containers import Containers
from router.core.auto_links import Plan

# How long the link may take to be attached at the other container.
PATIENCE_S: Final = 15.0
# How many redirects may follow one another.
MOST_HOPS: Final = 5


class Connecting(Protocol):
    """Makes the connections for links that are redirected."""

    def follow(self, connection: Any, redirect: Redirect, name: str) -> str:
        """Open a connection of this name to where a redirect leads, and keep it open.

        `connection` is the one that the redirect came on. Returns why it may not be followed, for
        people, or an empty text.
        """

    def leave(self, name: str) -> None:
        """Close the connection of this name, and do not reconnect."""


class Nowhere:
    """Stands in for `Connecting` in a router that makes no connections."""

    def follow(self, connection: Any, redirect: Redirect, name: str) -> str:
        """Refuse to follow."""
        return "the router makes no connections"

    def leave(self, name: str) -> None:
        """Do nothing: there is no connection."""


@attrs.define(eq=False)
class Way:
    """The place that an auto-link has been redirected to.

    `home` is its line where it is configured, `plan` what is wanted at the other place, and `line`
    the attempt to attach it there, if any. `until` is when it has to be attached, in seconds;
    `seen` are the places tried before.
    """

    name: str
    home: Any
    plan: Plan
    until: float
    seen: frozenset[tuple[str | None, int | None, str]]
    line: Any = None


class Redirected:
    """The auto-links that are attached elsewhere; watches their connections."""

    def __init__(self, auto_links: Any, containers: Containers) -> None:
        self.port: Connecting = Nowhere()
        self._auto_links = auto_links
        self._containers = containers
        # by the names of their connections, and by the lines where the links belong
        self._ways: dict[str, Way] = {}
        self._by_home: dict[Any, Way] = {}
        self._numbers = 0

    def __len__(self) -> int:
        """Return how many auto-links are redirected."""
        return len(self._ways)

    def owns(self, line: Any) -> bool:
        """Return whether a line was made because of a redirect."""
        return self._way_of(line) is not None

    def _way_of(self, line: Any) -> Way | None:
        way = self._ways.get(line.connection.settings.endpoint)
        return way if way is not None and way.line is line else None

    def failed(self, line: Any) -> None:
        """Follow the redirect that a line has failed with, if it is one."""
        way = self._way_of(line)
        redirect = redirect_of(line.error)
        if redirect is None or line.error.condition != Condition.LINK_REDIRECT:
            if way is not None:
                self._end(way)
            return
        home = line if way is None else way.home
        seen = frozenset() if way is None else way.seen
        if way is not None:
            self._end(way)
        address = redirect.address or line.plan.external_address
        place = redirect.host, redirect.port, address
        if place in seen or len(seen) == MOST_HOPS or home.is_over or home in self._by_home:
            return
        self._numbers += 1
        name = f"{home.connection.settings.endpoint}/redirect/{self._numbers}"
        if self.port.follow(home.connection, redirect, name):
            return
        # it has the name of the auto-link, and another node
        plan = attrs.evolve(home.plan, container_id=None, connection=name, external_address=address)
        way = Way(name, home, plan, self._auto_links.now + PATIENCE_S, seen | {place})
        self._ways[name] = self._by_home[home] = way
        self._containers.aside[name] = self
        home.due = None

    def container_came(self, connection: Any) -> None:
        """Attach the link: its connection is open."""
        way = self._ways.get(connection.settings.endpoint)
        if way is not None and way.line is None:
            way.line = self._auto_links.enter(way.plan, connection)
            self._auto_links.keep(way.line)

    def container_left(self, connection: Any) -> None:
        """Give up the link: its connection is over."""
        name = connection.settings.endpoint
        way = self._ways.get(name)
        self._auto_links.lose(connection)
        if way is not None:
            self._end(way)
        self._containers.aside.pop(name, None)

    def forget(self, line: Any) -> None:
        """Give up the place that a line was redirected to, since the line is no longer wanted."""
        way = self._by_home.get(line)
        if way is not None:
            self._end(way, tries_again=False)

    def left(self, line: Any) -> None:
        """Give up a redirected line, and try its auto-link again where it is configured."""
        way = self._way_of(line)
        if way is not None:
            self._end(way)

    def look(self, now: float) -> None:
        """Give up the links that were not attached in time; `now` is in seconds."""
        for way in list(self._ways.values()):
            is_there = way.line is not None and way.line.link is not None
            if not is_there and way.until <= now:
                self._end(way)

    def _end(self, way: Way, *, tries_again: bool = True) -> None:
        """Leave a place; with `tries_again` the link is tried again where it is configured."""
        if self._ways.pop(way.name, None) is None:
            return
        del self._by_home[way.home]
        line, way.line = way.line, None
        if line is None:
            self._containers.aside.pop(way.name, None)
        elif not line.is_over:
            self._auto_links.retire(line)
        self.port.leave(way.name)
        if tries_again and not way.home.is_over:
            self._auto_links.try_again(way.home)
