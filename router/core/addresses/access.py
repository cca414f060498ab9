"""Decide what a peer may do on its connection: which links it may attach, and where it may send.

A connection without an `Access` may use every address. The rules of an access come from a policy
(`router.control.policy`) or from claims; a link or message is refused if any of them refuses it.
The access remembers what each attached link was granted for, so that links can be detached when
rules change or expire (`router.core.links.admission`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

import attrs

if TYPE_CHECKING:
    from router.amqp.types import Symbol
    from router.core.addresses.claims import Claims
    from router.core.addresses.tenants import Tenant
    from router.engine.connection import Connection
    from router.engine.link import Link
    from router.engine.shared_accounts import Member
    from router.errors import AmqpError

# For how many address names an access remembers its decisions about messages of anonymous senders,
# and how long these names may be: a peer may send to a name that is as long as a frame.
MOST_REMEMBERED: Final = 1024
LONGEST_REMEMBERED: Final = 512


@attrs.frozen
class LinkRequest:
    """Request of a peer to attach a link, as rules see it.

    `address` is the name of the address as the peer knows it, without scheme, authority and outer
    separators. It is None for an anonymous sender and for a dynamic node that names no address.
    `capabilities` are those of the terminus at the router that the router acts on.
    """

    is_sender: bool
    address: str | None
    is_dynamic: bool = False
    is_coordinator: bool = False
    capabilities: tuple[Symbol, ...] = ()


class AccessRule(Protocol):
    """Part of an access: the rules of a policy, or the claims of the peer's tokens."""

    def link_refusal(self, access: Access, request: LinkRequest) -> AmqpError | None:
        """Return why a peer may not attach a link, at link scope; None if it may."""

    def message_refusal(self, access: Access, name: str) -> AmqpError | None:
        """Return why an anonymous sender may not send to the address `name`; None if it may."""


@attrs.define(eq=False)
class Access:
    """Rights of the peer of one connection, and the links that were granted by them.

    `max_message_size` is in octets, and 0 means that there is no limit. With `checks_user_id`, each
    message's user-id must be empty or the peer's own user (section 3.2.4). `on_closed` is called
    once, when the connection has ended. `asks` is called with each link that the rules allow; the
    link waits until `router.core.links.attach.decided` is called, in a later turn.
    """

    rules: tuple[AccessRule, ...] = ()
    tenant: Tenant | None = None
    max_message_size: int = 0
    checks_user_id: bool = False
    allows_link_routes: bool = True
    allows_admin_status: bool = True
    on_closed: Callable[[], None] | None = None
    asks: Callable[[Link, LinkRequest], None] | None = None
    # returns whether a host name is that of the peer's tenant
    names_tenant: Callable[[str], bool] | None = attrs.field(default=None, repr=False)
    # the peer's tokens, if it may put any; these are also one of `rules`
    claims: Claims | None = attrs.field(default=None, init=False, repr=False)
    # the connection's part in shared limits, which counts its links
    member: Member | None = attrs.field(default=None, init=False, repr=False)
    # the attached links with their requests, and how many of them are senders
    links: dict[Link, LinkRequest] = attrs.field(factory=dict, init=False, repr=False)
    senders: int = attrs.field(default=0, init=False)
    # how many receivers there are for each address that an attach has named
    sources: Counter[str] = attrs.field(factory=Counter, init=False, repr=False)
    # whether the links are being rechecked (`router.core.links.admission`), and then once more
    is_rechecking: bool = attrs.field(default=False, init=False, repr=False)
    must_recheck: bool = attrs.field(default=False, init=False, repr=False)
    _messages: dict[str, AmqpError | None] = attrs.field(factory=dict, init=False, repr=False)

    @property
    def receivers(self) -> int:
        """Return how many of the peer's links are receivers."""
        return len(self.links) - self.senders

    def is_of_tenant(self, host: str) -> bool:
        """Return whether a peer that opens a connection to this host belongs to the same tenant."""
        if self.names_tenant is not None:
            return self.names_tenant(host)
        return self.tenant is not None and self.tenant.name == host

    def link_refusal(self, request: LinkRequest) -> AmqpError | None:
        """Return the first refusal of a link by a rule, or None if all rules allow the link."""
        for rule in self.rules:
            refusal = rule.link_refusal(self, request)
            if refusal is not None:
                return refusal
        return None

    def message_refusal(self, name: str) -> AmqpError | None:
        """Return the first refusal of a message to the address `name`, or None.

        Decisions are remembered until `rules_changed`, for `MOST_REMEMBERED` names of at most
        `LONGEST_REMEMBERED` characters.
        """
        try:
            return self._messages[name]
        except KeyError:
            refusals = (rule.message_refusal(self, name) for rule in self.rules)
            refusal = next((each for each in refusals if each is not None), None)
            if len(name) <= LONGEST_REMEMBERED:
                if len(self._messages) >= MOST_REMEMBERED:
                    self._messages.clear()
                self._messages[name] = refusal
            return refusal

    def rules_changed(self) -> None:
        """Forget decisions, because rules have changed or claims have begun or ended."""
        self._messages.clear()

    def link_attached(self, link: Link, request: LinkRequest) -> None:
        """Count a link that is about to be attached."""
        if link not in self.links:
            self.links[link] = request
            self.senders += request.is_sender
            if self.member is not None:
                self.member.links_changed(1)
            if not request.is_sender and request.address:
                self.sources[request.address] += 1

    def link_ended(self, link: Link) -> None:
        """Stop counting a link that was refused or has ended; do nothing if it is not counted."""
        request = self.links.pop(link, None)
        if request is None:
            return
        self.senders -= request.is_sender
        if self.member is not None:
            self.member.links_changed(-1)
        if not request.is_sender and request.address:
            self.sources[request.address] -= 1
            if not self.sources[request.address]:
                del self.sources[request.address]

    def closed(self) -> None:
        """Release everything, because the connection has ended."""
        on_closed, self.on_closed = self.on_closed, None
        if self.member is not None:
            self.member.links_changed(-len(self.links))
        self.links.clear()
        self.sources.clear()
        self.senders = 0
        self._messages.clear()
        if self.claims is not None:
            self.claims.clear()
        if on_closed is not None:
            on_closed()


def provide(connection: Connection) -> Access:
    """Return the access of a connection, which gets one if it has none."""
    access: Access = connection.access or Access()
    connection.access = access
    return access


def tenant_of(connection: Connection) -> Tenant | None:
    """Return the tenant that a peer belongs to; None if it belongs to none."""
    access: Access | None = connection.access
    return None if access is None else access.tenant


def tenant_name(connection: Connection) -> str:
    """Return the name of the tenant that a peer belongs to; empty if it belongs to none."""
    tenant = tenant_of(connection)
    return "" if tenant is None else tenant.name
