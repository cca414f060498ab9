"""Answer attaches on connections between routers.

The properties of an attach decide which module answers it. An attach without such properties is
refused, with the same condition and description as in Dispatch. Nothing here runs per message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.core.links import control_links, route_links
from router.core.network import in_links
from router.core.routers.link_properties import DESTINATION, ORIGIN
from router.engine import attaching
from router.engine.link import Link
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.core.ports import Core
    from router.engine.connection import Connection

# the role of listeners and connectors between interior routers
ROLE: Final = "inter-router"
# Dispatch's condition and description.
WRONG_ROLE: Final = "qd:connection-role"
WRONG_ROLE_WORDS: Final = "Connection role not allowed for this operation"


def is_between_routers(connection: Connection) -> bool:
    """Return whether a connection links this router to another interior router."""
    return bool(connection.settings.role == ROLE)


def is_of_router(link: Link) -> bool:
    """Return whether an attach is answered by this module.

    This module answers all attaches between interior routers, and those of routed links between an
    edge and its interior.
    """
    connection: Connection = link.session.connection
    return is_between_routers(connection) or (
        connection.settings.role == route_links.EDGE
        and route_links.is_routed_attach(link.remote_attach)
    )


def attach_received(forwarder: Core, link: Link) -> None:
    """Answer a router's attach, or refuse it."""
    network = forwarder.network
    remote = link.remote_attach
    properties = remote.properties or {}
    try:
        if control_links.is_control(link):
            forwarder.on_control(link)
        elif route_links.is_routed_attach(remote):
            route_links.attach_received(forwarder, link)
        elif ORIGIN in properties and network.multicast is not None:
            network.multicast.attach_received(link)
        elif DESTINATION in properties:
            in_links.attach_received(forwarder, link)
        else:
            raise refused()
    except AmqpError as error:
        if error.scope is not Scope.LINK:
            raise
        attaching.refuse(link, error)


def refused() -> AmqpError:
    """Return the error for links that are not allowed between routers."""
    return AmqpError(WRONG_ROLE, WRONG_ROLE_WORDS, Scope.LINK)
