"""Identify the client of a forwarded link, and the coordinator that a link is meant for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from router.amqp.types import Symbol
from router.core.addresses.table import address_name

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.link import Link

CONTAINER_ROLE = "route-container"
ANONYMOUS = "anonymous"
# Link property that selects the container of a dynamic node, or the coordinator, by name.
ASKED_ADDRESS = Symbol("x-opt-qd.address")


@attrs.frozen
class Origin:
    """Client that a forwarded link comes from, at this router or another one.

    `key` is equal for all links of one client: it is the client's connection if that is at this
    router, otherwise a text. `name` and `container_id` are the client's names for the link and for
    itself. `is_container` says whether the client may itself be a container of link routes. `user`
    is None for a peer that the router itself has connected to.
    """

    key: Connection | str
    name: str
    container_id: str
    is_container: bool
    user: str | None

    @property
    def forwarded_name(self) -> str:
        """Return the link name for the container, which differs from client to client.

        The part after the last `@` stands for the client, and therefore contains no `@` itself. For
        a client without a container-id it is `%` and the key of its connection.
        """
        if self.container_id:
            return f"{self.name}@{_escaped(self.container_id)}"
        return f"{self.name}@%{_escaped(str(getattr(self.key, 'number', self.key)))}"


def origin_of(link: Link) -> Origin:
    """Return the origin of a link whose client is connected here."""
    connection = link.session.connection
    return Origin(
        connection,
        link.name,
        connection.remote_open.container_id,
        connection.settings.role == CONTAINER_ROLE,
        None if connection.is_client else connection.user or ANONYMOUS,
    )


def is_same(connection: Connection, origin: Origin) -> bool:
    """Return whether a connection to a container leads back to the origin of a link.

    It does if it is the same connection, or the same container.
    """
    if connection is origin.key:
        return True
    if not origin.is_container or connection.settings.role != CONTAINER_ROLE:
        # several clients may use the same container-id
        return False
    return bool(origin.container_id == connection.remote_open.container_id)


def _escaped(container_id: str) -> str:
    return container_id.replace("%", "%25").replace("@", "%40")


def is_loop(me: str, origin: Origin, connection: Connection) -> bool:
    """Return whether a link that a container attaches was already forwarded by the router `me`.

    The link's name shows that, because each router appends the container-id of the link's peer.
    """
    if not origin.is_container and connection is not origin.key:
        return False
    return _escaped(me) in origin.name.split("@")[1:]


def coordinator_names(link: Link) -> Iterator[str]:
    """Yield the names by which a link to a coordinator may be routed.

    In this order: the name in its properties, the hostname of its peer's open, the user, and the
    name of the listener or connector.
    """
    connection = link.session.connection
    asked = (link.remote_attach.properties or {}).get(ASKED_ADDRESS)
    hostname = connection.remote_open.hostname
    for name in (asked, hostname, connection.user, connection.settings.endpoint):
        if isinstance(name, str) and name:
            yield address_name(name)
