"""Requests of Azure's clients to `$management`, about an entity such as an event hub.

The router keeps no messages, so an address is like an event hub with a single partition that is
always empty. The other operations of Azure, such as to peek at messages or to renew a lock, need a
broker, and are answered with 501.
"""

from __future__ import annotations

import time
from typing import Final

from router.amqp.types import Array, Long, Timestamp
from router.core.addresses.claims import Claims, TokenRefused
from router.core.links.cbs import MAX_TOKEN_CHARS
from router.management.requests import (
    BAD_REQUEST,
    FORBIDDEN,
    NOT_FOUND,
    NOT_IMPLEMENTED,
    Answer,
    Refused,
    Request,
)
from router.management.views import RouterView

OPERATIONS: Final = "COM.MICROSOFT:"
HUB: Final = "com.microsoft:eventhub"
PARTITION: Final = "com.microsoft:partition"
PARTITION_ID: Final = "0"
# The application property with a token, which is good for this request only.
TOKEN: Final = "security_token"
_LONGEST_NAME: Final = 1024
# Number and offset of the last message, when there is none.
_NO_NUMBER: Final = -1


def claims_of(router: RouterView, request: Request) -> Claims | None:
    """Return the claims of the connection that a request came on; None if it has none."""
    number = request.connection
    pump = None if number is None else router.observed.pumps.get(number)
    access = None if pump is None else pump.connection.access
    return None if access is None else access.claims


def is_about_entity(request: Request) -> bool:
    """Return whether a request is about an event hub or its partition."""
    return request.text("type") in (HUB, PARTITION)


def check_claims(claims: Claims, request: Request) -> None:
    """Raise Refused unless the tokens of its connection allow a request."""
    if claims.may_manage():
        return
    if not (is_about_entity(request) and request.operation == "READ"):
        if request.operation.startswith(OPERATIONS):
            # `answer` refuses it for a more helpful reason
            return
        raise Refused(
            FORBIDDEN,
            f"the connection may not request {request.operation}: none of its valid tokens gives "
            "the right Manage at $management",
        )
    name = request.text("name") or ""
    if not (claims.may_read_entity(name) or _brings_token(claims, request, name)):
        raise Refused(
            FORBIDDEN,
            "neither a valid token of the connection nor the request's own gives a right at this "
            "entity",
        )


def _brings_token(claims: Claims, request: Request, name: str) -> bool:
    """Return whether a request brings a valid token that gives a right at the entity `name`.

    Clients of Event Hubs send one with each request, and the Java client puts none before.
    """
    token = request.properties.get(TOKEN)
    if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARS:
        return False
    try:
        claims.verify("", token, name)
    except TokenRefused:
        return False
    return True


def answer(router: RouterView, request: Request) -> Answer | None:
    """Return the answer to a request about an event hub; None if it is about something else.

    Raises Refused with 501 for an operation of Azure that needs a broker.
    """
    operation = request.operation
    if operation.startswith(OPERATIONS):
        raise Refused(
            NOT_IMPLEMENTED,
            f"{request.properties['operation']!s:.100} is not implemented: this router keeps no "
            "messages, sessions or rules",
        )
    if operation != "READ" or not is_about_entity(request):
        return None
    name = request.text("name")
    if not name or len(name) > _LONGEST_NAME:
        raise Refused(
            BAD_REQUEST,
            f"name must be the name of an event hub, of 1 to {_LONGEST_NAME} characters",
        )
    if request.text("type") == HUB:
        created_s = time.time() - router.uptime_s
        return Answer(
            {
                "name": name,
                "type": HUB,
                "created_at": Timestamp(int(created_s * 1000)),
                "partition_count": 1,
                "partition_ids": Array([PARTITION_ID]),
            }
        )
    if request.text("partition") != PARTITION_ID:
        raise Refused(NOT_FOUND, f'there is no such partition; the only one is "{PARTITION_ID}"')
    return Answer(
        {
            "name": name,
            "type": PARTITION,
            "partition": PARTITION_ID,
            "begin_sequence_number": Long(_NO_NUMBER),
            "last_enqueued_sequence_number": Long(_NO_NUMBER),
            "last_enqueued_offset": str(_NO_NUMBER),
            "last_enqueued_time_utc": Timestamp(0),
            "is_partition_empty": True,
        }
    )
