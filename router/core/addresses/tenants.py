"""Give each tenant an address space: put the tenant's name before the addresses of its clients.

A client of the tenant `example.com` that attaches to `orders` gets the address
`example.com/orders`, and the router answers with `orders`. Addresses outside of all tenants are
seen from inside as follows:

- the router's own nodes have the same names, and are protected by the right to manage;
- dynamic nodes are shared only within the tenant, by a mark in their names;
- a client may send to `_local` and `_topo` addresses, which are never those of a tenant.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.amqp.types import Symbol
from router.core.addresses.access import tenant_of
from router.core.addresses.table import AddressTable, address_name
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.engine.connection import Connection
    from router.engine.link import Link

# Beginning of names that routers give: addresses of one router, and of its nodes.
ROUTERS_NAMES: Final = ("_local/", "_topo/", "_edge/")
_DYNAMIC: Final = "/temp."
_SEPARATORS: Final = ("/", ".")
_SEPARATOR: Final = re.compile(r"([/.])")
_MARK_BYTES: Final = 8


@attrs.frozen
class Tenant:
    """Tenant: the users of one virtual host, with an address space of their own."""

    name: str

    @property
    def prefix(self) -> str:
        """Return the beginning of the names of the tenant's addresses."""
        return f"{self.name}/"

    @property
    def mark(self) -> str:
        """Return the mark in the names of dynamic nodes that are made for the tenant."""
        return blake2b(self.name.encode(), digest_size=_MARK_BYTES, person=b"tenant").hexdigest()

    def inward(self, table: AddressTable, text: str, *, is_sender: bool) -> str:
        """Return the router's name for an address that a client of the tenant uses.

        Raises `AmqpError` at link scope if there is no such address for the tenant.
        """
        name = address_name(text)
        if table.is_own_node(name) and name.rpartition("/")[2].startswith("$"):
            return name
        if not name.startswith(ROUTERS_NAMES):
            if name.startswith("$") or not name:
                raise not_found(text)
            return self.prefix + name
        if _DYNAMIC in name:
            if self.mark not in name.rpartition(_DYNAMIC)[2].split("."):
                raise not_found(text)
        elif not is_sender:
            raise not_found(text)
        return name

    def is_in(self, pattern: str) -> bool:
        """Return whether a pattern that matches an address of the tenant is meant for the tenant.

        Patterns match regardless of separators, so the address `com/q` of a tenant `example` and
        the address `q` of a tenant `example.com` match the same patterns. The separators in the
        tenant's part of the pattern say which of the two is meant.
        """
        whole = zip(_split(self.prefix), _split(pattern.lstrip("/.")), strict=False)
        for mine, theirs in whole:
            if theirs == "#":
                break
            if mine in _SEPARATORS and theirs != mine:
                return False
        return True

    def outward(self, text: str) -> str:
        """Return the client's name for one of the router's names."""
        return text.removeprefix(self.prefix)


def inside(table: AddressTable, connection: Connection, text: str, *, is_sender: bool) -> str:
    """Return the router's name for an address that a peer uses; the same if it has no tenant.

    Raises `AmqpError` at link scope if there is no such address for the peer's tenant.
    """
    tenant = tenant_of(connection)
    return text if tenant is None else tenant.inward(table, text, is_sender=is_sender)


def may_use(link: Link, pattern: str) -> bool:
    """Return whether a pattern that matches the address of a peer's link is meant for the peer."""
    tenant = tenant_of(link.session.connection)
    return tenant is None or tenant.is_in(pattern)


def outside(connection: Connection, text: str) -> str:
    """Return the address by which a peer knows one of the router's names."""
    tenant = tenant_of(connection)
    return text if tenant is None else tenant.outward(text)


def marks_of(connection: Connection) -> tuple[str, ...]:
    """Return the mark of a peer's tenant for the names of dynamic nodes, if it has a tenant."""
    tenant = tenant_of(connection)
    return () if tenant is None else (tenant.mark,)


def _split(text: str) -> list[str]:
    """Return the tokens of a name or pattern, and the separators between them, in order."""
    return _SEPARATOR.split(text)


def not_found(text: str) -> AmqpError:
    """Return the error for an address that does not exist for a tenant: the usual one."""
    info = {Symbol("address"): text}
    return AmqpError(Condition.NOT_FOUND, "Node not found", Scope.LINK, info)
