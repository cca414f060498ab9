"""Plugin contract: the interface between a plugin and its router.

A plugin is a class. Its distribution declares it as an entry point:

    [project.entry-points."trioute.plugins"]
    example = "router_example:Example"

A router runs the plugins that its configuration names:

    [[plugin]]
    plugin = "example"
    settings = { intervalSeconds = 5 }

The router creates an instance of the class with these settings, and awaits its `run` in a nursery
of its own. A plugin is stopped if `run` raises, if its code blocks the event loop for a second, or
if its code takes more than half of the router's time. The router goes on without it. See
docs/how-to/plugins.md.

The contract is this module and `router.client`. Anything else may change at any time. Within a
major version (`API_VERSION`) no plugin has to change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import ClassVar, Protocol

import attrs
from prometheus_client import Counter, Gauge, Histogram

from router.client import ClientConnection
from router.config.kinds import (
    Kind,
    ValueNotAllowed,
    address,
    choice,
    file_path,
    flag,
    number,
    seconds,
    secret_reference as secret,
    text,
    whole_number,
)
from router.config.plugin_classes import API_VERSION, ENTRY_POINTS
from router.config.secret import Secret, SecretUnavailable
from router.config.setting import checked, setting
from router.errors import PluginHung
from router.plugin_credentials import Password, Token, read_plain, read_token
from router.plugin_events import (
    ConnectionClosed,
    ConnectionInfo,
    ConnectionOpened,
    ConnectionRefused,
    Event,
    LinkAttached,
    LinkDetached,
    LinkInfo,
    LinkRefused,
    LinkResumed,
    LinkStolen,
    LinkSuspended,
    LinkTotals,
    MessagesExpired,
    NeighbourCostChanged,
    NeighbourFound,
    NeighbourLost,
    NeighbourMeasured,
    OutcomesSettled,
    Redirected,
    RoutersChanged,
)
from router.plugin_samples import ABSENT, DeliverySamples, SampleBatch

__all__ = [
    "ABSENT",
    "API_VERSION",
    "ENTRY_POINTS",
    "AccessRequest",
    "Authenticator",
    "Authorizer",
    "BoundLogger",
    "ConnectionClosed",
    "ConnectionInfo",
    "ConnectionOpened",
    "ConnectionRefused",
    "DeliverySamples",
    "Event",
    "Identity",
    "Kind",
    "LinkAttached",
    "LinkDetached",
    "LinkInfo",
    "LinkRefused",
    "LinkResumed",
    "LinkStolen",
    "LinkSuspended",
    "LinkTotals",
    "Login",
    "ManagedAttribute",
    "ManagedType",
    "ManagedValue",
    "MessagesExpired",
    "NeighbourCostChanged",
    "NeighbourFound",
    "NeighbourLost",
    "NeighbourMeasured",
    "NoSettings",
    "OutcomesSettled",
    "Password",
    "Plugin",
    "PluginHung",
    "Redirected",
    "Router",
    "RoutersChanged",
    "SampleBatch",
    "Secret",
    "SecretUnavailable",
    "Subscription",
    "Token",
    "ValueNotAllowed",
    "address",
    "checked",
    "choice",
    "file_path",
    "flag",
    "number",
    "read_plain",
    "read_token",
    "seconds",
    "secret",
    "setting",
    "text",
    "whole_number",
]


@attrs.frozen(kw_only=True, field_transformer=checked)
class NoSettings:
    """Settings class for a plugin that has no settings."""


class Plugin(ABC):
    """Base class of plugins.

    A subclass states the version of the contract it was written for, so that a router can tell
    whether it provides everything that the plugin needs. A router runs plugins with the router's
    major version and a minor version that is not higher than the router's. `trioute plugins` shows
    the first line of the class's docstring.
    """

    api_version: ClassVar[tuple[int, int]]
    """Major and minor version of the contract, as in `(1, 0)`."""

    settings_class: ClassVar[type[attrs.AttrsInstance]] = NoSettings
    """Class of the settings.

    It is an attrs class with `field_transformer=checked`, whose fields have defaults and the
    metadata of `setting`. `trioute check` validates the plugin's section with it. A field
    `interval_seconds` is `intervalSeconds` in the file.
    """

    def __init__(self, settings: attrs.AttrsInstance) -> None:
        """Keep the settings, an instance of `settings_class`. This is called in a worker thread."""
        self.settings = settings

    @abstractmethod
    async def run(self, router: Router) -> None:
        """Do the plugin's work until cancelled; return earlier if nothing is left to do.

        Call `router.started()` once everything is set up; the router waits 30 s for this call.
        `run` is cancelled when the router stops, when the plugin's section in the configuration is
        changed or removed, and when other code of the plugin fails. Clean up in `finally` blocks.
        If cleaning up has to await something, use `trio.move_on_after(1, shield=True)`: a stopping
        router waits for 2 s.
        """


class Subscription(Protocol):
    """Stream of events for a plugin, in the order in which they happened: use `async for`."""

    @property
    def lost(self) -> int:
        """Return how many events were lost because the plugin did not receive them in time."""

    def __aiter__(self) -> AsyncIterator[Event]:
        """Return this subscription."""

    async def __anext__(self) -> Event:
        """Wait for the next event, and return it."""

    def close(self) -> None:
        """End the subscription; the iteration ends after the events that are already queued."""


ManagedValue = str | int | float | bool | None | list["ManagedValue"] | dict[str, "ManagedValue"]
"""A value that management clients can read."""


@attrs.frozen
class ManagedAttribute:
    """Attribute of a plugin's management entities.

    `type` is `string`, `integer`, `boolean`, `list` or `map`, as in Qpid Dispatch. There is no type
    for other numbers.
    """

    name: str
    type: str
    description: str


@attrs.frozen
class ManagedType:
    """Type of management entities that a plugin reports.

    Clients query it as `router.plugin.NAME.type`, where NAME is the plugin's name in the
    configuration. `read` returns one mapping of attribute names to values for each entity. Each
    mapping must have a `name` that is a string; the router adds `identity` and `type`. At most
    10,000 entities are read. If `read` raises, the plugin is stopped.
    """

    type: str
    description: str
    attributes: tuple[ManagedAttribute, ...]
    read: Callable[[], Iterable[Mapping[str, ManagedValue]]] = attrs.field(repr=False)


@attrs.frozen
class Login:
    """Attempt of a peer to authenticate by SASL (section 5.3).

    `response` is the first response, which may hold a password: it must not be logged. `read_plain`
    and `read_token` read it. `hostname` is the host name in the peer's sasl-init. `peer` is the
    peer's address and port. `external_user` is the user that the peer's certificate stands for, if
    it has shown one (since version 1.1).
    """

    mechanism: str
    response: bytes = attrs.field(repr=False)
    hostname: str | None
    peer: str
    external_user: str | None = None


@attrs.frozen
class Identity:
    """Result of a successful login: the user, and groups for authorization.

    Each name has 1 to 1024 characters, and there are at most 1000 groups.
    """

    user: str
    groups: frozenset[str] = frozenset()


class Authenticator(Protocol):
    """Part of a plugin that authenticates peers: a plugin with these two members is one.

    Routers call it since version 1.1, for listeners that name the plugin in authenticationPlugin.
    At most 64 calls of a plugin are in progress, and hosts take turns. A call is cancelled when the
    peer hangs up, when the plugin stops, or when it has taken 8 s or 80 % of the handshake
    time-out. If it raises an exception, the peer is told that the login could not be decided, and
    the plugin goes on.
    """

    mechanisms: tuple[str, ...]
    """SASL mechanisms that it handles, of PLAIN, XOAUTH2, OAUTHBEARER, EXTERNAL and ANONYMOUS.

    A listener offers those that are in its saslMechanisms as well, in the order there.
    """

    async def authenticate(self, login: Login) -> Identity | None:
        """Return the identity of the peer, or None to refuse it.

        Take as long for a user that does not exist as for a wrong password.
        """


@attrs.frozen
class AccessRequest:
    """Request of a peer to `open` a connection, or to `send` to or `receive` from an address.

    `address` is the name of the address, without scheme and outer separators. It is empty for
    `open`, for a receiver that asks for a dynamic node, and for an anonymous sender, whose messages
    may go to every address that the policy allows. For a link to a transaction coordinator it is
    `$coordinator`.
    """

    action: str
    address: str
    user: str | None
    groups: frozenset[str]
    connection: ConnectionInfo


class Authorizer(Protocol):
    """Part of a plugin that decides what peers may do: a plugin with this method is one.

    Since version 1.1, routers ask it at listeners that name the plugin in authorizationPlugin: once
    for `open`, and then for each link that the peer attaches, which waits for the answer. Its calls
    are limited like those of an Authenticator. A call that fails allows nothing.
    """

    async def authorize(self, request: AccessRequest) -> bool:
        """Return whether to allow the request."""


class BoundLogger(Protocol):
    """Logger for a plugin; keyword arguments become fields of the log line.

    It is a structlog logger, of which the contract includes only these methods.
    """

    def debug(self, event: str, **facts: object) -> None:
        """Write a line at level debug."""

    def info(self, event: str, **facts: object) -> None:
        """Write a line at level info."""

    def warning(self, event: str, **facts: object) -> None:
        """Write a line at level warning."""

    def error(self, event: str, **facts: object) -> None:
        """Write a line at level error."""


class Router(Protocol):
    """Interface of a running plugin to its router. Use it only in the router's thread."""

    @property
    def id(self) -> str:
        """Return the router's id."""

    @property
    def name(self) -> str:
        """Return the plugin's name in the configuration."""

    @property
    def log(self) -> BoundLogger:
        """Return a structlog logger for the log module PYTHON, bound to the plugin's name."""

    def counter(self, name: str, description: str, labels: Sequence[str] = ()) -> Counter:
        """Add a counter to the router's /metrics page, as `plugin_NAME_name_total`.

        NAME is the plugin's name, with `_` for each character that is neither a letter nor a digit.
        A plugin with more than 10,000 series in all is stopped. Raises ValueError if the name is
        invalid or already used by another plugin.
        """

    def gauge(self, name: str, description: str, labels: Sequence[str] = ()) -> Gauge:
        """Add a gauge, named like a `counter` but without `_total`."""

    def histogram(
        self,
        name: str,
        description: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = Histogram.DEFAULT_BUCKETS,
    ) -> Histogram:
        """Add a histogram, named like a `gauge`; `buckets` lists the upper bounds."""

    def started(self) -> None:
        """Report that the plugin is set up."""

    def subscribe(self, *types: type[Event], capacity: int = 10_000) -> Subscription:
        """Subscribe to events of these types from now on.

        At most `capacity` events wait for the plugin; further ones are lost, and counted. Related
        events come in this order: `ConnectionRefused` before `ConnectionClosed`; `LinkStolen` and
        `LinkSuspended` before `LinkDetached`; `LinkResumed` before `LinkAttached`. A peer that is
        redirected causes `Redirected` instead of a refusal. The plugin's own connections cause
        events as well. Raises ValueError if no types are given, if one is not an event type, or if
        `capacity` is less than 1.
        """

    def sample_deliveries(self, share: float, capacity: int = 65_536) -> DeliverySamples:
        """Sample this share (0 to 1) of the deliveries that enter the network at this router.

        Deliveries are chosen by a hash. Their trace is sent with them, so that other sampling
        routers record the same deliveries. This router also records deliveries that other routers
        have chosen, regardless of `share`. Deliveries on link routes are not sampled. At most
        `capacity` samples, of 128 octets each, are kept until the plugin takes them. Raises
        ValueError if an argument is out of range, or if this or another plugin samples already.
        """

    def connections(self) -> Iterator[ConnectionInfo]:
        """Iterate over the connections that are open now."""

    async def links(self) -> list[LinkTotals]:
        """Return the totals of each link so far.

        Links are read a few at a time while the router continues, so the result is not a snapshot:
        a link may be detached before all have been read. Its final totals are in `LinkDetached`.
        """

    def manage(self, entity_type: ManagedType) -> None:
        """Add a type of management entities until the plugin stops.

        Raises ValueError if the type is invalid or has already been added.
        """

    def connect(self) -> AbstractAsyncContextManager[ClientConnection]:
        """Connect to the router itself, to send to and receive from any address.

        The connection is like that of any client, but does not leave the process. By attaching a
        receiver, a plugin becomes a node of the network: peers can send to its address. Each
        connection has its own container-id.
        """
