"""Link routes as somebody asked for them, and the ways that lead to their containers.

`link_routes` knows all of them, and chooses. None of this runs once a message.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import attrs

from router.core.network.reach import Reach
from router.core.patterns import pattern_of
from router.core.table import path_of
from router.engine.states import ConnectionState

NEVER: Final = 2**62
# A container that refused a link, or ended one with an error, is asked last for so long.
REST_S = 5.0


class Rule(NamedTuple):
    """One link route as somebody asked for it.

    `direction` is the router's: links that peers send on (`in`) or receive on (`out`). Its
    containers are those of `container_id`, or at the listener or connector named `connection`, or
    the one whose `scope` it is: the connection that asked for it. The address at the container is
    without `del_prefix`, where it begins with that, and then behind `add_prefix`.
    """

    name: str
    direction: str
    is_prefix: bool
    pattern: str
    container_id: str | None = None
    connection: str | None = None
    add_prefix: str = ""
    del_prefix: str = ""
    scope: Any = None

    @property
    def whole_pattern(self) -> str:
        """The pattern that says the same as the prefix, if it is one."""
        return pattern_of(self.pattern) if self.is_prefix else self.pattern

    def outward(self, text: str) -> str:
        """The address at the container of what a peer calls `text`."""
        path = path_of(text)
        if self.del_prefix and path.startswith(self.del_prefix) and path != self.del_prefix:
            path = path[len(self.del_prefix) :]
        return self.add_prefix + path

    def inward(self, text: str) -> str:
        """What a peer calls the address that is `text` at the container."""
        if self.add_prefix and text.startswith(self.add_prefix) and text != self.add_prefix:
            text = text[len(self.add_prefix) :]
        return self.del_prefix + text


@attrs.define(eq=False, kw_only=True)
class Load:
    """How much one place has of a link route's links, and how it fares."""

    links: int = 0
    # when it was chosen last, in the order of all choices
    chosen: int = 0
    # when it refused a link last, or ended one with an error, by the turn's clock
    refused_at: float = float("-inf")

    def rests(self, now: float) -> bool:
        """Whether it refused a link of late."""
        return now - self.refused_at < REST_S


@attrs.define(eq=False)
class Outlet(Load):
    """A connection to a container, as one link route uses it."""

    connection: Any
    # how far away it is, as a way in the network is
    cost: int = 0

    @property
    def place(self) -> Any:
        """What is the same for all outlets that lead there."""
        return self.connection

    @property
    def is_open(self) -> bool:
        """Whether links can be attached over it."""
        return bool(self.connection.state == ConnectionState.OPENED)


@attrs.define(eq=False)
class FarOutlet(Load):
    """Another router that has containers for the links of a route."""

    router: str
    reach: Reach
    # by how many of its keys it has said so
    told: int = 0

    @property
    def place(self) -> Any:
        """What is the same for all outlets that lead there."""
        return self.router

    @property
    def cost(self) -> int:
        """The sum of the costs of the way there; there is one while it is open."""
        path = self.reach.path(self.router)
        return 0 if path is None else path.cost

    @property
    def connection(self) -> Any:
        """The connection to the next router on the way, or None where there is none."""
        path = self.reach.path(self.router)
        return None if path is None else self.reach.connection(path.via)

    @property
    def is_open(self) -> bool:
        """Whether links can be attached over it."""
        connection = self.connection
        return connection is not None and bool(connection.state == ConnectionState.OPENED)


@attrs.define(eq=False)
class UplinkOutlet(Load):
    """The router at the other end of an uplink, which has containers for the links of a route, or
    knows where they are: an edge of this router, or the interior router of this edge.
    """

    router: str
    connection: Any
    # by how many of its keys it has said so
    told: int = 0
    # how far away it is; all uplinks cost the same
    cost: int = 1

    @property
    def place(self) -> Any:
        """What is the same for all outlets that lead there."""
        return self.connection

    @property
    def leads_down(self) -> bool:
        """Whether it leads to an edge; edges connect."""
        return not self.connection.is_client

    @property
    def is_open(self) -> bool:
        """Whether links can be attached over it."""
        return bool(self.connection.state == ConnectionState.OPENED)


@attrs.define(eq=False)
class Way:
    """A link route: its rule, and its containers' connections.

    There is one from the edition `since` of all link routes (`LinkRoutes.edition`), and until, but
    not in, the edition `until`.
    """

    rule: Rule
    outlets: dict[Any, Outlet] = attrs.Factory(dict)
    # links that were forwarded, and of these those that their containers refused
    placed: int = 0
    refused: int = 0
    # in words, why a container refused or ended one last; empty where none has
    last_refusal: str = ""
    last_refusal_at: float = 0.0
    since: int = 0
    until: int = NEVER

    @property
    def links(self) -> int:
        """How many links are forwarded by it now."""
        return sum(outlet.links for outlet in self.outlets.values())

    @property
    def is_active(self) -> bool:
        """Whether a container of it is there."""
        return bool(self.outlets)
