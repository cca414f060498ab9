"""Access control for management: which operations a connection may request.

The right of a connection is the `management` setting of its listener or connector. A request
contains the number of the connection on which it arrived. The router itself writes this number into
each message that it delivers to itself, and replaces any such number from the peer
(`core/deliveries/router_annotations.py`), so no peer can forge it. See
docs/decisions/0037-who-may-manage.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import attrs

from router.amqp.constants import Condition
from router.amqp.revision import take_annotations
from router.core.addresses import tenants
from router.core.addresses.access import Access
from router.core.addresses.management_access import (
    CHANGE,
    NONE,
    READ,
    TRUSTED,
    effective_right,
    of_connection,
)
from router.core.addresses.table import AddressTable, address_name
from router.core.deliveries.router_annotations import CONNECTION, RIGHTS
from router.core.routers.membership import ROLES
from router.errors import AmqpError
from router.management.ports import ConnectionRecord
from router.management.requests import FORBIDDEN, Refused

if TYPE_CHECKING:
    from router.engine.connection import Connection

# Maximum size of a request in octets: from senders with the right to change things, and from all
# others. Requests to read need a few kilobytes; a CREATE may contain many entities.
MAX_CHANGE_BYTES: Final = 2 * 2**20
MAX_READ_BYTES: Final = 65536
# Description of the error with which management closes a connection, the same as in Dispatch.
FORCED_WORDS: Final = "Connection forced-closed by management request"

# Operations that change nothing, by name and by prefix. Any other operation may change the router.
READ_ONLY_OPERATIONS: Final = frozenset({"QUERY", "READ", "EXPLAIN"})
READ_ONLY_PREFIX: Final = "GET-"


@attrs.frozen
class Requester:
    """Sender of a management request.

    `connection` is the number of the connection on which the request arrived, None if unknown.
    `may_change` is true if another router passed the request on and states that its client may
    change things.
    """

    connection: int | None = None
    may_change: bool = False


UNKNOWN_REQUESTER: Final = Requester()


def requester_of(payload: bytes) -> Requester:
    """Return the sender of a request, as the annotations in the encoded message state it.

    Return UNKNOWN_REQUESTER unless the annotations contain exactly one connection number. The
    router adds this number only to messages with message-format 0.
    """
    try:
        _, entries = take_annotations(payload, lambda key: key in (CONNECTION, RIGHTS))
        numbers = [entry.value() for entry in entries if entry.key == CONNECTION]
        said = [entry.value() for entry in entries if entry.key == RIGHTS]
    except AmqpError:
        return UNKNOWN_REQUESTER
    if len(numbers) != 1 or isinstance(numbers[0], bool) or not isinstance(numbers[0], int):
        return UNKNOWN_REQUESTER
    return Requester(int(numbers[0]), said == [CHANGE])


def rights_of(pumps: Mapping[int, ConnectionRecord], requester: Requester) -> str:
    """Return the rights of the sender of a request: NONE, READ or CHANGE.

    Return NONE if the connection is closed, because the peer is then unknown.
    """
    pump = None if requester.connection is None else pumps.get(requester.connection)
    return NONE if pump is None else effective_right(pump.connection, requester.may_change)


def reply_address(
    table: AddressTable,
    pumps: Mapping[int, ConnectionRecord],
    requester: Requester,
    reply_to: str,
) -> str:
    """Return the reply-to of a request as the router knows it, inside the tenant of its sender.

    The agent may send to all addresses, so it must not answer to one to which the requester may not
    send, and from which it does not receive. Raises AmqpError in that case, and if the connection
    is closed or unknown.
    """
    pump = None if requester.connection is None else pumps.get(requester.connection)
    if pump is None:
        raise AmqpError(Condition.NOT_ALLOWED, "the connection of the request is closed or unknown")
    connection = pump.connection
    access: Access | None = connection.access
    if access is None:
        return reply_to
    name = table.own_name(address_name(reply_to))
    receives = _receives_from(table, connection, access, name)
    refusal = None if receives else access.message_refusal(name)
    if refusal is not None:
        raise refusal
    return tenants.inside(table, connection, reply_to, is_sender=True)


def _receives_from(table: AddressTable, connection: Connection, access: Access, name: str) -> bool:
    """Return whether a connection receives from an address, or created it as a dynamic node."""
    if access.sources[name]:
        return True
    address = table.find(name)
    creator = None if address is None else address.creator
    return creator is not None and creator.session.connection is connection


def is_read_only(operation: str) -> bool:
    """Return whether an operation, named in upper case, changes nothing."""
    return operation in READ_ONLY_OPERATIONS or operation.startswith(READ_ONLY_PREFIX)


def check_admin_status(pumps: Mapping[int, ConnectionRecord], requester: int | None) -> None:
    """Raise Refused with 403 if the policy does not allow a requester to close connections."""
    pump = None if requester is None else pumps.get(requester)
    access = None if pump is None else pump.connection.access
    if access is not None and not access.allows_admin_status:
        reason = "the policy does not allow the connection's group to close connections"
        raise Refused(FORBIDDEN, f"{reason}: allowAdminStatusUpdate is false")


def check(pumps: Mapping[int, ConnectionRecord], requester: Requester, operation: str) -> None:
    """Raise Refused with 403 if the sender may not request an operation."""
    rights = rights_of(pumps, requester)
    if rights == CHANGE or (rights == READ and is_read_only(operation)):
        return
    pump = None if requester.connection is None else pumps.get(requester.connection)
    if pump is None:
        raise Refused(FORBIDDEN, "the connection that the request came from is closed or unknown")
    connection = pump.connection
    allowed = connection.settings.management
    counters, me = pump.counters, connection.settings.container_id
    kind = "connector" if connection.is_client else "listener"
    endpoint = f"its {kind}" if counters is None else f"the {kind} {counters.name}"
    if of_connection(connection) == CHANGE:
        there = connection.remote_open.container_id
        raise Refused(
            FORBIDDEN,
            f"the sender may not request {operation}: the request came to {me} from the router "
            f"{there}, which does not state that the sender may change things; see the setting "
            "management of the listener or connector through which the request came to "
            f"{there}, or to an earlier router",
        )
    reason = (
        f"the connection may not request {operation}: "
        f'at the router {me}, {endpoint} has management = "{allowed}"'
    )
    if allowed == TRUSTED and connection.settings.role in ROLES:
        reason += ", and the peer router has not authenticated and is not on this host"
    elif allowed == TRUSTED:
        reason += ", and the peer has not authenticated and does not come from a loopback address"
    raise Refused(FORBIDDEN, reason)
