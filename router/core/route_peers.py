"""Who attaches a link that is forwarded: the container itself, perhaps; for which coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from router.amqp.types import Symbol
from router.core.table import address_name

CONTAINER_ROLE = "route-container"
ANONYMOUS = "anonymous"
# By which a peer asks for a dynamic node at a container, or for the coordinator of that name.
ASKED_ADDRESS = Symbol("x-opt-qd.address")


@attrs.frozen
class Origin:
    """Where a link comes from that is forwarded: a client of this router, or of another.

    `key` is what all links of one client have alike, its connection where that is here; `name` and
    `container_id` are what the client calls the link, and itself. `is_container`: it is one that
    link routes could lead to. `user` is None for whoever the router has connected to itself.
    """

    key: Any
    name: str
    container_id: str
    is_container: bool
    user: str | None

    @property
    def forwarded_name(self) -> str:
        """Return the name that the container is told, which is another one for another client.

        What follows the last `@` stands for the client, and so has no `@` of its own. A client that
        does not say its container-id is known by its connection, as `%` and the connection's key.
        """
        if self.container_id:
            return f"{self.name}@{_escaped(self.container_id)}"
        return f"{self.name}@%{_escaped(str(getattr(self.key, 'number', self.key)))}"


def origin_of(link: Any) -> Origin:
    """Where a link comes from whose client is here."""
    connection = link.session.connection
    return Origin(
        connection,
        link.name,
        connection.remote_open.container_id,
        connection.settings.role == CONTAINER_ROLE,
        None if connection.is_client else connection.user or ANONYMOUS,
    )


def is_same(connection: Any, origin: Origin) -> bool:
    """Whether a connection to a container leads to where a link comes from: to the very connection,
    or to its container.
    """
    if connection is origin.key:
        return True
    if not origin.is_container or connection.settings.role != CONTAINER_ROLE:
        # clients may well call themselves alike
        return False
    return bool(origin.container_id == connection.remote_open.container_id)


def _escaped(container_id: str) -> str:
    return container_id.replace("%", "%25").replace("@", "%40")


def comes_round(me: str, origin: Origin, connection: Any) -> bool:
    """Whether a link that a container attaches has been forwarded by the router `me` before, by its
    name: whoever forwards one puts the container-id behind it that it has it from.
    """
    if not origin.is_container and connection is not origin.key:
        return False
    return _escaped(me) in origin.name.split("@")[1:]


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
