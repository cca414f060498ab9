"""Auto-links whose container sends them to another one by amqp:link:redirect (section 2.8.18).

Where its connector may follow, a connection is made to that container for this link alone. The link
is attached there for as long as that lasts; then it is tried again where it is configured.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import attrs

from router.amqp.constants import Condition
from router.amqp.redirects import Redirect, redirect_of
from router.control.containers import Containers
from router.core.auto_links import Plan

# How long the link may take to be attached there.
PATIENCE_S: Final = 15.0
# How many redirects may follow one another.
MOST_HOPS: Final = 5


class Connecting(Protocol):
    """Who makes connections for links that are redirected."""

    def follow(self, connection: Any, redirect: Redirect, name: str) -> str:
        """Keep a connection of this name to where a redirect leads that came by another one.

        Returns why it may not be followed, for people, or nothing.
        """

    def leave(self, name: str) -> None:
        """Close the connection of this name, and make no other."""


class Nowhere:
    """Stands in where there are no connections to be made."""

    def follow(self, connection: Any, redirect: Redirect, name: str) -> str:
        """Follow none."""
        return "the router makes no connections"

    def leave(self, name: str) -> None:
        """There is none."""


@attrs.define(eq=False)
class Way:
    """Where a line, which is its `home`, has been redirected to.

    `plan` is what is wanted there, `line` that which is; `until` is when it has to be attached by.
    """

    name: str
    home: Any
    plan: Plan
    until: float
    seen: frozenset[tuple[str | None, int | None, str]]
    line: Any = None


class Redirected:
    """The ways of those auto-links that are attached elsewhere; a watcher of their connections."""

    def __init__(self, auto_links: Any, containers: Containers) -> None:
        self.port: Connecting = Nowhere()
        self._auto_links = auto_links
        self._containers = containers
        # by the names of their connections, and by the lines where the links belong
        self._ways: dict[str, Way] = {}
        self._by_home: dict[Any, Way] = {}
        self._numbers = 0

    def __len__(self) -> int:
        """How many there are."""
        return len(self._ways)

    def owns(self, line: Any) -> bool:
        """Whether a line is one that was redirected to where it is."""
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
        """The connection is there: attach the link."""
        way = self._ways.get(connection.settings.endpoint)
        if way is not None and way.line is None:
            way.line = self._auto_links.enter(way.plan, connection)
            self._auto_links.keep(way.line)

    def container_left(self, connection: Any) -> None:
        """The connection is over, and the link with it."""
        name = connection.settings.endpoint
        way = self._ways.get(name)
        line = None if way is None else way.line
        self._auto_links.lose(connection, [] if line is None else [line])
        if way is not None:
            self._end(way)
        self._containers.aside.pop(name, None)

    def forget(self, line: Any) -> None:
        """A line is no more: where it was redirected to it is not wanted, either."""
        way = self._by_home.get(line)
        if way is not None:
            self._end(way, tries_again=False)

    def left(self, line: Any) -> None:
        """A line is to begin anew where it is configured."""
        way = self._way_of(line)
        if way is not None:
            self._end(way)

    def look(self, now: float) -> None:
        """Give up those that are not attached in time."""
        for way in list(self._ways.values()):
            is_there = way.line is not None and way.line.link is not None
            if not is_there and way.until <= now:
                self._end(way)

    def _end(self, way: Way, *, tries_again: bool = True) -> None:
        """Leave a place; the link is tried again where it belongs."""
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
