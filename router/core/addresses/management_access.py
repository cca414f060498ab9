"""What a peer may ask of management, here and at other routers.

A connection's own right is what the `management` of its listener or connector says. Of what a
router passes on for its clients, the router's links say what these may: one for those who may
change things, and another one for all others. The connection's right is the upper bound of what is
believed (docs/decisions/0078). None of this runs once a message.
"""

from __future__ import annotations

import ipaddress
from typing import Any, Final

from router.core.addresses.link_names import ANONYMOUS
from router.core.model.address import CHANGERS
from router.core.routers.link_properties import RIGHTS
from router.core.routers.membership import ROLES
from router.core.routers.names import is_management_elsewhere

NONE: Final = "none"
READ: Final = "read"
CHANGE: Final = "change"
TRUSTED: Final = "trusted"


def of_connection(connection: Any) -> str:
    """What a connection's endpoint lets its peer do itself, or another router's clients at most:
    NONE, READ or CHANGE.
    """
    allowed = str(connection.settings.management)
    if allowed != TRUSTED:
        return allowed
    return CHANGE if _is_trusted(connection) else READ


def _is_trusted(connection: Any) -> bool:
    """Whether the peer came to us and proved who it is, or is on this very host.

    Whom we have dialled has proved nothing; of another router on this host that is enough.
    """
    is_router = connection.settings.role in ROLES
    if connection.is_client:
        return is_router and _is_loopback(connection.name)
    return connection.user not in (None, ANONYMOUS) or _is_loopback(connection.name)


def _is_loopback(name: str) -> bool:
    """Whether a peer that is called `host:port` is on this host."""
    host = name.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def told(phase: int) -> dict[Any, Any]:
    """What the attach of a link says for an address with this phase, among its properties."""
    return {RIGHTS: CHANGE} if phase == CHANGERS else {}


def said_on(link: Any) -> bool:
    """Whether a link's attach says that all who send by it may change things."""
    properties = link.remote_attach.properties or {}
    return bool(properties.get(RIGHTS) == CHANGE)


def bounded(connection: Any, said: bool) -> str:
    """What may be asked by what comes by a connection, if its link has said so, or not."""
    allowed = of_connection(connection)
    if allowed == CHANGE and connection.settings.role in ROLES and not said:
        return READ
    return allowed


def phase_of(link: Any, name: str, me: str, phase: int) -> int:
    """Where what a peer's link sends to a name enters: who may change other routers has a way of
    its own to their management.
    """
    if phase or not is_management_elsewhere(name, me):
        return phase
    may_change = bounded(link.session.connection, said_on(link)) == CHANGE
    return CHANGERS if may_change else 0
