"""Management rights of peers, here and at other routers.

A connection's own right is the `management` setting of its listener or connector. A router that
passes on requests of its clients declares their rights by link: one link is for the clients that
may make changes, and another for all others. What it declares is believed only up to the right of
the connection itself (docs/decisions/0078). Nothing here runs per message.
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

    This is the right of the peer itself, and the upper bound for the clients of another router.
    """
    allowed = str(connection.settings.management)
    if allowed != TRUSTED:
        return allowed
    return CHANGE if _is_trusted(connection) else READ


def _is_trusted(connection: Connection) -> bool:
    """Return whether the peer connected to us and authenticated, or is on this host.

    A peer that we connected to has proved nothing; it is trusted only if it is a router on this
    host.
    """
    is_router = connection.settings.role in ROLES
    if connection.is_client:
        return is_router and _is_loopback(connection.name)
    return connection.user not in (None, ANONYMOUS) or _is_loopback(connection.name)


def _is_loopback(name: str) -> bool:
    """Return whether the peer with the name `host:port` is on this host."""
    host = name.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def properties_for(phase: int) -> DecodedMap:
    """Return the attach properties that declare the rights of a link to a management address.

    The address's phase decides: senders at the phase `MANAGEMENT_WRITERS` may make changes.
    """
    return {RIGHTS: CHANGE} if phase == MANAGEMENT_WRITERS else {}


def declares_change(link: Link) -> bool:
    """Return whether a link's attach declares that all its senders may make changes."""
    properties = link.remote_attach.properties or {}
    return bool(properties.get(RIGHTS) == CHANGE)


def effective_right(connection: Connection, is_change_declared: bool) -> str:
    """Return the management right of a message that was received on a connection.

    `is_change_declared` is whether the message's link declares CHANGE (`declares_change`).
    """
    allowed = of_connection(connection)
    if allowed == CHANGE and connection.settings.role in ROLES and not is_change_declared:
        return READ
    return allowed


def phase_of(link: Link, name: str, me: str, phase: int) -> int:
    """Return the phase at which a peer's link is attached to an address.

    It is `phase`, except for senders to another router's management that may make changes there:
    these have a phase of their own.
    """
    if phase or not is_management_elsewhere(name, me):
        return phase
    may_change = effective_right(link.session.connection, declares_change(link)) == CHANGE
    return MANAGEMENT_WRITERS if may_change else 0
