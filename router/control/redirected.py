"""Follow amqp:link:redirect for auto-links (section 2.8.18).

If the connector may follow redirects, the router opens a connection to the container that the
redirect names, for the redirected link alone. The link is attached there while that connection
lasts; after that it is attached where it is configured (docs/decisions/0026-redirects.md).
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
    """Interface to open and close connections to the targets of redirects."""

    def follow(self, connection: Connection, redirect: Redirect, name: str) -> str:
        """Keep a connection with this name open to the target of a redirect.

        `connection` is the one on which the redirect was received. Return an empty string, or a
        message that says why the redirect cannot be followed.
        """

    def leave(self, name: str) -> None:
        """Close the connection with this name, and do not reconnect."""


class NoConnector:
    """Stand-in for `RedirectConnector` in a router that makes no connections."""

    def follow(self, connection: Connection, redirect: Redirect, name: str) -> str:
        """Refuse to follow a redirect."""
        return "the router makes no connections"

    def leave(self, name: str) -> None:
        """Do nothing: there is no connection."""


class Line(Protocol):
    """Link that is wanted on a connection, and the status of that link (see `link_supervisor`)."""

    connection: Connection
    rule: AutoLinkRule
    # the last error, and the time of the next attempt
    error: Error | None
    due: float | None
    is_over: bool

    @property
    def link(self) -> object:
        """Return the link if it is attached, otherwise None."""


L = TypeVar("L", bound=Line)


class Lines(Protocol[L]):
    """Interface to the wanted auto-links and their supervisor (`router.control.auto_links`)."""

    @property
    def now(self) -> float:
        """Return the turn's time."""

    def enter(self, rule: AutoLinkRule, connection: Connection) -> L:
        """Add an auto-link on a connection to the tables of wanted links, and return it."""

    def keep_attached(self, line: L) -> None:
        """Keep a wanted link attached from now on."""

    def try_again(self, line: L) -> None:
        """Schedule the next attempt to attach a failed link, after its retry delay."""

    def retire(self, line: L) -> None:
        """Quiesce an unwanted link, and detach it once its deliveries are settled."""

    def forget_lines(self, connection: Connection) -> None:
        """Forget the wanted links of a connection that has ended."""


@attrs.define(eq=False)
class RedirectedLink(Generic[L]):
    """Auto-link that is redirected to another container.

    `home` is the link to the container for which the auto-link is configured. `rule` is the rule
    for the other container, and `line` is the link to that container, once a connection to it is
    open. If `line` is not attached by `until`, in seconds, the redirect ends. `seen` has all
    redirect targets so far.
    """

    name: str
    home: L
    rule: AutoLinkRule
    until: float
    seen: frozenset[tuple[str | None, int | None, str]]
    line: L | None = None


class Redirects(Generic[L]):
    """Manager of redirected auto-links; observes the connections made for them."""

    def __init__(self, auto_links: Lines[L], containers: Containers) -> None:
        self.port: RedirectConnector = NoConnector()
        self._auto_links = auto_links
        self._containers = containers
        # by connection name, and by the line where the link is configured
        self._redirects: dict[str, RedirectedLink[L]] = {}
        self._by_home: dict[L, RedirectedLink[L]] = {}
        self._numbers = 0

    def __len__(self) -> int:
        """Return the number of redirected auto-links."""
        return len(self._redirects)

    def owns(self, line: L) -> bool:
        """Return whether a link is attached, or being attached, at the target of a redirect."""
        return self._redirect_of(line) is not None

    def _redirect_of(self, line: L) -> RedirectedLink[L] | None:
        redirected = self._redirects.get(line.connection.settings.endpoint)
        return redirected if redirected is not None and redirected.line is line else None

    def failed(self, line: L) -> None:
        """Follow the redirect in a failed link's error.

        Without one, end the redirect that led to this link, if any.
        """
        redirected = self._redirect_of(line)
        error = line.error
        redirect = redirect_of(error)
        if redirect is None or error is None or error.condition != Condition.LINK_REDIRECT:
            if redirected is not None:
                self._end(redirected)
            return
        home = line if redirected is None else redirected.home
        seen = frozenset() if redirected is None else redirected.seen
        if redirected is not None:
            self._end(redirected)
        address = redirect.address or line.rule.external_address
        place = redirect.host, redirect.port, address
        if place in seen or len(seen) == MAX_REDIRECTS or home.is_over or home in self._by_home:
            return
        self._numbers += 1
        name = f"{home.connection.settings.endpoint}/redirect/{self._numbers}"
        if self.port.follow(home.connection, redirect, name):
            return
        # the same auto-link, but with another container and address
        rule = attrs.evolve(home.rule, container_id=None, connection=name, external_address=address)
        redirected = RedirectedLink(
            name, home, rule, self._auto_links.now + ATTACH_TIMEOUT_S, seen | {place}
        )
        self._redirects[name] = self._by_home[home] = redirected
        self._containers.dedicated_observers[name] = self
        home.due = None

    def container_came(self, connection: Connection) -> None:
        """Attach a redirected link on the connection that was opened for it."""
        redirected = self._redirects.get(connection.settings.endpoint)
        if redirected is not None and redirected.line is None:
            redirected.line = self._auto_links.enter(redirected.rule, connection)
            self._auto_links.keep_attached(redirected.line)

    def container_left(self, connection: Connection) -> None:
        """End the redirect whose connection has ended."""
        name = connection.settings.endpoint
        redirected = self._redirects.get(name)
        self._auto_links.forget_lines(connection)
        if redirected is not None:
            self._end(redirected)
        self._containers.dedicated_observers.pop(name, None)

    def forget(self, line: L) -> None:
        """End the redirect of a link that is no longer wanted, without attaching the link again."""
        redirected = self._by_home.get(line)
        if redirected is not None:
            self._end(redirected, tries_again=False)

    def left(self, line: L) -> None:
        """End the redirect that led to this link, so that it is attached where it is configured."""
        redirected = self._redirect_of(line)
        if redirected is not None:
            self._end(redirected)

    def tick(self, now: float) -> None:
        """End redirects whose links were not attached in time; `now` is in seconds."""
        for redirected in list(self._redirects.values()):
            is_there = redirected.line is not None and redirected.line.link is not None
            if not is_there and redirected.until <= now:
                self._end(redirected)

    def _end(self, redirected: RedirectedLink[L], *, tries_again: bool = True) -> None:
        """End a redirect; if `tries_again`, attach the link where it is configured."""
        if self._redirects.pop(redirected.name, None) is None:
            return
        del self._by_home[redirected.home]
        line, redirected.line = redirected.line, None
        if line is None:
            self._containers.dedicated_observers.pop(redirected.name, None)
        elif not line.is_over:
            self._auto_links.retire(line)
        self.port.leave(redirected.name)
        if tries_again and not redirected.home.is_over:
            self._auto_links.try_again(redirected.home)
