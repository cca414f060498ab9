"""Management rights of peers, here and at other routers.

A connection's own right is the `management` of its listener or connector. A router that passes on
requests of its clients declares their rights by link: one link for clients that may change things,
and another one for all others. The connection's right is the upper bound of what is believed
(docs/decisions/0078). Nothing here runs per message.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from router.core.addresses.link_names import ANONYMOUS
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
    """Return the management right of a connection's endpoint: NONE, READ or CHANGE.

    It is the right of the peer itself, and the upper bound for another router's clients.
    """
    allowed = str(connection.settings.management)
    if allowed != TRUSTED:
        return allowed
    return CHANGE if _is_trusted(connection) else READ


def _is_trusted(connection: Connection) -> bool:
    """Return whether the peer connected to us and authenticated, or is on this host.

    A peer that we dialled has proved nothing; it is trusted only as a router on this host.
    """
    is_router = connection.settings.role in ROLES
    if connection.is_client:
        return is_router and _is_loopback(connection.name)
    return connection.user not in (None, ANONYMOUS) or _is_loopback(connection.name)


def _is_loopback(name: str) -> bool:
    """Return whether a peer that is called `host:port` is on this host."""
    host = name.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def properties_for(phase: int) -> DecodedMap:
    """Return the attach properties of a link that declare rights, for an address's phase."""
    return {RIGHTS: CHANGE} if phase == MANAGEMENT_WRITERS else {}


def declares_change(link: Link) -> bool:
    """Return whether a link's attach declares that all its senders may change things."""
    properties = link.remote_attach.properties or {}
    return bool(properties.get(RIGHTS) == CHANGE)


def effective_right(connection: Connection, said: bool) -> str:
    """Return the right of messages from a connection, given whether their link declares CHANGE."""
    allowed = of_connection(connection)
    if allowed == CHANGE and connection.settings.role in ROLES and not said:
        return READ
    return allowed


def phase_of(link: Link, name: str, me: str, phase: int) -> int:
    """Return the phase at which a peer's link enters a name.

    Senders that may change other routers reach their management by a separate phase.
    """
    if phase or not is_management_elsewhere(name, me):
        return phase
    may_change = effective_right(link.session.connection, declares_change(link)) == CHANGE
    return MANAGEMENT_WRITERS if may_change else 0
