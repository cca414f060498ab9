"""Follow amqp:link:redirect for auto-links (section 2.8.18).

If the connector may follow redirects, the router connects to the other container for this link
alone. The link is attached there for as long as the connection lasts; after that it is tried again
where it is configured (docs/decisions/0026-redirects.md).
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

import attrs

from router.amqp.constants import Condition
from router.amqp.performatives import Error
from router.amqp.redirects import Redirect, redirect_of
from router.control.containers import Containers
from router.core.links.auto_links import AutoLinkRule
from router.engine.connection import Connection

# How long the link may take to be attached at the other container.
ATTACH_TIMEOUT_S: Final = 15.0
# Most redirects that are followed one after the other.
MAX_REDIRECTS: Final = 5


class RedirectConnector(Protocol):
    """Maker of connections for redirected links."""

    def follow(self, connection: Connection, redirect: Redirect, name: str) -> str:
        """Keep a connection with this name open to the target of a redirect.

        `connection` is the one on which the redirect was received. Return an empty string, or a
        message that says why the redirect cannot be followed.
        """

    def leave(self, name: str) -> None:
        """Close the connection of this name, and do not reconnect."""


class NoConnector:
    """Stand-in for `RedirectConnector` in a router that makes no connections."""

    def follow(self, connection: Connection, redirect: Redirect, name: str) -> str:
        """Refuse to follow a redirect."""
        return "the router makes no connections"

    def leave(self, name: str) -> None:
        """Do nothing: there is no connection."""


class Line(Protocol):
    """Link that is wanted on a connection, and its status there (see `link_supervisor`)."""

    connection: Connection
    plan: AutoLinkRule
    # the last error, and the time of the next attempt
    error: Error | None
    due: float | None
    is_over: bool

    @property
    def link(self) -> object:
        """Return the link; None unless it is attached."""


L = TypeVar("L", bound=Line)


class Lines(Protocol[L]):
    """Tables of all lines, and the means to attach them (`router.control.auto_links`)."""

    @property
    def now(self) -> float:
        """Return the turn's time."""

    def enter(self, plan: AutoLinkRule, connection: Connection) -> L:
        """Make a line, and add it to the tables."""

    def keep(self, line: L) -> None:
        """Keep a line attached from now on."""

    def try_again(self, line: L) -> None:
        """Attempt a failed line again after its retry delay."""

    def retire(self, line: L) -> None:
        """Quiesce a line, and detach it once its deliveries are settled."""

    def lose(self, connection: Connection) -> None:
        """Forget the lines of a connection that has ended."""


@attrs.define(eq=False)
class RedirectedLink(Generic[L]):
    """Auto-link that is redirected to another container.

    `home` is the line on the connection where it is configured, `plan` the rule for the other
    container, and `line` the line there, once the connection is open. If the link is not attached
    there by `until`, in seconds, the redirect ends. `seen` has all places tried so far.
    """

    name: str
    home: L
    plan: AutoLinkRule
    until: float
    seen: frozenset[tuple[str | None, int | None, str]]
    line: L | None = None


class Redirects(Generic[L]):
    """Redirected auto-links; a watcher of the connections that are made for them."""

    def __init__(self, auto_links: Lines[L], containers: Containers) -> None:
        self.port: RedirectConnector = NoConnector()
        self._auto_links = auto_links
        self._containers = containers
        # by connection name, and by the line where the link is configured
        self._ways: dict[str, RedirectedLink[L]] = {}
        self._by_home: dict[L, RedirectedLink[L]] = {}
        self._numbers = 0

    def __len__(self) -> int:
        """Return the number of redirected auto-links."""
        return len(self._ways)

    def owns(self, line: L) -> bool:
        """Return whether a line is attached, or being attached, at the target of a redirect."""
        return self._way_of(line) is not None

    def _way_of(self, line: L) -> RedirectedLink[L] | None:
        way = self._ways.get(line.connection.settings.endpoint)
        return way if way is not None and way.line is line else None

    def failed(self, line: L) -> None:
        """Follow the redirect that a line has failed with, if there is one."""
        way = self._way_of(line)
        error = line.error
        redirect = redirect_of(error)
        if redirect is None or error is None or error.condition != Condition.LINK_REDIRECT:
            if way is not None:
                self._end(way)
            return
        home = line if way is None else way.home
        seen = frozenset() if way is None else way.seen
        if way is not None:
            self._end(way)
        address = redirect.address or line.plan.external_address
        place = redirect.host, redirect.port, address
        if place in seen or len(seen) == MAX_REDIRECTS or home.is_over or home in self._by_home:
            return
        self._numbers += 1
        name = f"{home.connection.settings.endpoint}/redirect/{self._numbers}"
        if self.port.follow(home.connection, redirect, name):
            return
        # the same auto-link, but with another container and address
        plan = attrs.evolve(home.plan, container_id=None, connection=name, external_address=address)
        way = RedirectedLink(
            name, home, plan, self._auto_links.now + ATTACH_TIMEOUT_S, seen | {place}
        )
        self._ways[name] = self._by_home[home] = way
        self._containers.aside[name] = self
        home.due = None

    def container_came(self, connection: Connection) -> None:
        """Attach the redirected link on its connection, which has opened."""
        way = self._ways.get(connection.settings.endpoint)
        if way is not None and way.line is None:
            way.line = self._auto_links.enter(way.plan, connection)
            self._auto_links.keep(way.line)

    def container_left(self, connection: Connection) -> None:
        """End the redirect of a connection that has ended."""
        name = connection.settings.endpoint
        way = self._ways.get(name)
        self._auto_links.lose(connection)
        if way is not None:
            self._end(way)
        self._containers.aside.pop(name, None)

    def forget(self, line: L) -> None:
        """End the redirect of a line that is removed."""
        way = self._by_home.get(line)
        if way is not None:
            self._end(way, tries_again=False)

    def left(self, line: L) -> None:
        """End the redirect of this line, so that its link is attached where it is configured."""
        way = self._way_of(line)
        if way is not None:
            self._end(way)

    def tick(self, now: float) -> None:
        """Give up links that were not attached in time; `now` is in seconds."""
        for way in list(self._ways.values()):
            is_there = way.line is not None and way.line.link is not None
            if not is_there and way.until <= now:
                self._end(way)

    def _end(self, way: RedirectedLink[L], *, tries_again: bool = True) -> None:
        """End a redirect; if `tries_again`, attach the link where it is configured."""
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
