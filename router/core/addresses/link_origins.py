"""Identify the client of a forwarded link, and the coordinator that a link is meant for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from router.amqp.types import Symbol
from router.core.addresses.access import tenant_name
from router.core.addresses.table import address_name

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.link import Link

CONTAINER_ROLE = "route-container"
ANONYMOUS = "anonymous"
# Link property that selects the container of a dynamic node, or the coordinator, by name.
ASKED_ADDRESS = Symbol("x-opt-qd.address")
# Stands between a tenant and a container-id; escaped names do not contain it.
_TENANTS = "%/"


@attrs.frozen
class Origin:
    """Client that a forwarded link comes from, at this router or another one.

    `key` is equal for all links of a client: it is the client's connection, or a text if the client
    is at another router. `name` is the client's name for the link. `is_container` says whether link
    routes may lead to the client. `user` is None if the router itself opened the connection to the
    client.
    """

    key: Connection | str
    name: str
    container_id: str
    is_container: bool
    user: str | None

    @property
    def whole_id(self) -> str:
        """Return the client's container-id in a form that differs for each tenant, without `@`."""
        tenant, is_tenants, _ = (self.user or "").partition("\0")
        escaped = _escaped(self.container_id)
        return f"{_escaped(tenant)}{_TENANTS}{escaped}" if is_tenants and escaped else escaped

    @property
    def forwarded_name(self) -> str:
        """Return the link's name at the container, which is different for each client.

        The part after the last `@` identifies the client, and contains no `@` itself. It is the
        client's container-id, or `%` and a number or text for its connection if the client has no
        container-id. The container-id of a tenant's client is preceded by the tenant and `%/`.
        """
        if self.container_id:
            return f"{self.name}@{self.whole_id}"
        return f"{self.name}@%{_escaped(str(getattr(self.key, 'number', self.key)))}"


def origin_of(link: Link) -> Origin:
    """Return the origin of a link whose client is connected to this router."""
    connection = link.session.connection
    return Origin(
        connection,
        link.name,
        connection.remote_open.container_id,
        connection.settings.role == CONTAINER_ROLE,
        None if connection.is_client else user_name(connection),
    )


def user_name(connection: Connection) -> str:
    """Return the name of a peer's user, which is different for each tenant."""
    user: str = connection.user or ANONYMOUS
    tenant = tenant_name(connection)
    # without a tenant, a user with NUL in the name must not be taken for one of a tenant
    return f"{tenant}\0{user}" if tenant or "\0" in user else user


def is_same(connection: Connection, origin: Origin) -> bool:
    """Return whether a connection to a container leads back to the origin of a link.

    That is so if the origin uses this connection, or is the same container.
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
    """Return whether the router `me` has already forwarded a link that a container attaches.

    The link's name shows this, because each router appends the container-id of the peer from which
    it got the link.
    """
    if not origin.is_container and connection is not origin.key:
        return False
    passed = (part.rpartition(_TENANTS)[2] for part in origin.name.split("@")[1:])
    return _escaped(me) in passed


def coordinator_names(link: Link) -> Iterator[str]:
    """Yield the names by which a link to a transaction coordinator may be routed.

    They are, in this order: the address in the link's properties, the hostname in the peer's open,
    the peer's user, and the name of the connection's listener or connector. What a tenant's client
    has chosen is preceded by the tenant, whose name takes the place of the hostname.
    """
    connection = link.session.connection
    asked = (link.remote_attach.properties or {}).get(ASKED_ADDRESS)
    hostname = connection.remote_open.hostname
    names = [
        address_name(name) if isinstance(name, str) else ""
        for name in (asked, hostname, connection.user, connection.settings.endpoint)
    ]
    if tenant := tenant_name(connection):
        chosen, _, user, endpoint = names
        names = [chosen and f"{tenant}/{chosen}", tenant, user and f"{tenant}/{user}", endpoint]
    yield from filter(None, names)
