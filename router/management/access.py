"""Who may ask what: each connection's `management`, as its listener or connector has it.

A request comes with the number of the connection that brought it. The router writes it on what it
delivers to itself, in the place of whatever stood there under that name (`core/passage.py`), so no
peer can make one up. (docs/decisions/0037-who-may-manage.md.)
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any, Final

from router.amqp.revision import take_annotations
from router.config.users import ANONYMOUS
from router.core.network.membership import ROLES
from router.core.passage import CONNECTION
from router.errors import AmqpError
from router.management.requests import FORBIDDEN, Refused

# What a request may measure that comes from who may change things, and from anybody else. Reading
# needs a few kilobytes; many entities can be made at once.
LARGEST_CHANGE_BYTES: Final = 2 * 2**20
LARGEST_READ_BYTES: Final = 65536

# Whatever is on no such list changes something, or might.
READING: Final = frozenset({"QUERY", "READ", "EXPLAIN"})
READING_PREFIX: Final = "GET-"

NONE: Final = "none"
READ: Final = "read"
CHANGE: Final = "change"
TRUSTED: Final = "trusted"


def connection_of(payload: bytes) -> int | None:
    """The number of the connection that a request came by, from the octets of its head.

    None where the router has not written it: only a message of AMQP's own format carries it.
    """
    try:
        _, entries = take_annotations(payload, lambda key: key == CONNECTION)
        numbers = [entry.value() for entry in entries]
    except AmqpError:
        return None
    if len(numbers) != 1 or isinstance(numbers[0], bool) or not isinstance(numbers[0], int):
        return None
    return int(numbers[0])


def rights_of(pumps: Mapping[int, Any], number: int | None) -> str:
    """What may be asked by a connection: NONE, READ or CHANGE.

    NONE is for a connection that is gone, too: nobody can tell any more whose it was.
    """
    pump = None if number is None else pumps.get(number)
    if pump is None:
        return NONE
    connection = pump.connection
    allowed = str(connection.settings.management)
    if allowed != TRUSTED:
        return allowed
    return CHANGE if _is_trusted(connection) else READ


def _is_trusted(connection: Any) -> bool:
    """Whether the peer came to us and proved who it is, or came from this very host.

    What comes from another router may be from anybody who is connected there.
    """
    if connection.is_client or connection.settings.role in ROLES:
        return False
    return connection.user not in (None, ANONYMOUS) or _is_loopback(connection.name)


def _is_loopback(name: str) -> bool:
    """Whether a peer that is called `host:port` is on this host."""
    host = name.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_reading(operation: str) -> bool:
    """Whether an operation, in capitals, changes nothing."""
    return operation in READING or operation.startswith(READING_PREFIX)


def check(pumps: Mapping[int, Any], number: int | None, operation: str) -> None:
    """Raises Refused with 403 where a connection may not ask for an operation."""
    rights = rights_of(pumps, number)
    if rights == CHANGE or (rights == READ and is_reading(operation)):
        return
    pump = None if number is None else pumps.get(number)
    if pump is None:
        raise Refused(FORBIDDEN, "the connection that the request came by is not known any more")
    allowed = pump.connection.settings.management
    tally = pump.tally
    endpoint = "its endpoint" if tally is None else tally.name
    reason = f'the connection may not ask for {operation}: {endpoint} has management = "{allowed}"'
    if allowed == TRUSTED and pump.connection.settings.role in ROLES:
        reason += ", and what comes from another router may be from anybody who is connected there"
    elif allowed == TRUSTED:
        reason += ", and the peer neither has proved who it is nor comes from a loopback address"
    raise Refused(FORBIDDEN, reason)
