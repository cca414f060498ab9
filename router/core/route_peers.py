"""Who attaches a link that is forwarded: the container itself, perhaps; for which coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from router.amqp.types import Symbol
from router.core.table import address_name

CONTAINER_ROLE = "route-container"
# By which a peer asks for a dynamic node at a container, or for the coordinator of that name.
ASKED_ADDRESS = Symbol("x-opt-qd.address")


def is_same(connection: Any, peer: Any) -> bool:
    """Whether a connection leads to where a peer is: to itself, or to its container."""
    if connection is peer:
        return True
    if peer.settings.role != CONTAINER_ROLE or connection.settings.role != CONTAINER_ROLE:
        # clients may well call themselves alike
        return False
    return bool(peer.remote_open.container_id == connection.remote_open.container_id)


def comes_round(link: Any, connection: Any) -> bool:
    """Whether a link that a container attaches has been forwarded here before, by its name: whoever
    forwards one puts the container-id behind it that it has it from.
    """
    peer = link.session.connection
    if peer.settings.role != CONTAINER_ROLE and connection is not peer:
        return False
    return peer.settings.container_id in link.name.split("@")[1:]


def coordinator_names(link: Any) -> Iterator[str]:
    """What a link to a coordinator may be known by: what it says itself, the host that its peer has
    named in open, the user, and the listener, in this order.
    """
    connection = link.session.connection
    asked = (link.remote_attach.properties or {}).get(ASKED_ADDRESS)
    hostname = connection.remote_open.hostname
    for name in (asked, hostname, connection.user, connection.settings.endpoint):
        if isinstance(name, str) and name:
            yield address_name(name)
