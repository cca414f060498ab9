"""Management rights of peers at this router and at others.

A connection's own right is the `management` setting of its listener or connector. A router that
passes on management requests of its clients declares their rights by the link that it uses: one
link is for clients that may make changes, another for all others. Such a declaration is believed
only up to the right of the connection itself (docs/decisions/0078). None of this runs once per
message.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from router.core.addresses.access import tenant_of
from router.core.addresses.link_origins import ANONYMOUS
from router.core.model.address import MANAGEMENT_WRITERS
from router.core.routers.link_properties import RIGHTS
from router.core.routers.membership import ROLES
from router.core.routers.names import is_management_elsewhere

if TYPE_CHECKING:
    from router.amqp.types import DecodedMap
    from router.engine.connection import Connection
    from router.engine.link import Link

NONE: Final = "none"
READ: Final = "read"
CHANGE: Final = "change"
TRUSTED: Final = "trusted"


def of_connection(connection: Connection) -> str:
    """Return a connection's own management right: NONE, READ or CHANGE.

    If the peer is a router, this right is also the limit for that router's clients.
    """
    allowed = str(connection.settings.management)
    if allowed != TRUSTED:
        return allowed
    return CHANGE if _is_trusted(connection) else READ


def _is_trusted(connection: Connection) -> bool:
    """Return whether a peer has authenticated, or is on this host.

    For a web page in a browser on this host, the host does not count. A peer to which this router
    has connected has proved nothing; it is trusted only if it is a router on this host.
    """
    is_router = connection.settings.role in ROLES
    if connection.is_client:
        return is_router and is_loopback(connection.name)
    if connection.user not in (None, ANONYMOUS):
        return True
    return connection.settings.trusts_loopback and is_loopback(connection.name)


def is_loopback(name: str) -> bool:
    """Return whether the peer with the name `host:port` is on this host."""
    host = name.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def properties_for(phase: int) -> DecodedMap:
    """Return the attach properties that declare the rights of a link to a management address.

    They declare CHANGE if `phase` is MANAGEMENT_WRITERS, the phase for senders that may make
    changes.
    """
    return {RIGHTS: CHANGE} if phase == MANAGEMENT_WRITERS else {}


def declares_change(link: Link) -> bool:
    """Return whether a link's attach declares that all senders of its messages may make changes."""
    properties = link.remote_attach.properties or {}
    return bool(properties.get(RIGHTS) == CHANGE)


def effective_right(connection: Connection, is_change_declared: bool) -> str:
    """Return the management right of a message that was received on a connection.

    `is_change_declared` says whether the message's link declares CHANGE (`declares_change`). It
    matters only if the peer is a router.
    """
    allowed = of_connection(connection)
    if allowed == CHANGE and connection.settings.role in ROLES and not is_change_declared:
        return READ
    return allowed


def is_denied_elsewhere(connection: Connection, name: str, me: str) -> bool:
    """Return whether a name is another router's management node that a peer may not use.

    No client of a tenant may use one: the other router does not know the tenant, and would answer
    at any address, also at that of another tenant. `me` is this router's id.
    """
    if not is_management_elsewhere(name, me):
        return False
    return connection.settings.management == NONE or tenant_of(connection) is not None


def phase_of(link: Link, name: str, me: str, phase: int) -> int:
    """Return the phase at which a peer's link is attached to the address `name`.

    It is usually `phase`. The exception is a link to another router's management node: if the
    senders of the link's messages may make changes, MANAGEMENT_WRITERS replaces phase 0. `me` is
    this router's id.
    """
    if phase or not is_management_elsewhere(name, me):
        return phase
    may_change = effective_right(link.session.connection, declares_change(link)) == CHANGE
    return MANAGEMENT_WRITERS if may_change else 0
