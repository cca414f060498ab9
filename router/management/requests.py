"""Requests and answers: the types and constants that all operations share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import attrs

AnswerMap: TypeAlias = dict[str, Any]
"""Map in an answer; AMQP can carry its values."""

OK: Final = 200
CREATED: Final = 201
NO_CONTENT: Final = 204
BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
SERVER_ERROR: Final = 500
NOT_IMPLEMENTED: Final = 501
"""Status codes, which are Dispatch's (AMQP management, working draft 9)."""

# Maximum length of a request's texts in the log.
MAX_LOGGED_TEXT: Final = 100
# Maximum number of digits in a number sent as text; Python does not convert thousands of digits.
MAX_DIGITS: Final = 18


class Refused(Exception):
    """Refusal of a request, which is answered with this status and description."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(status, description)
        self.status = status
        self.description = description


@attrs.frozen
class Request:
    """Content of a request: the application-properties and the body of its message.

    `connection` is the number of the connection on which the request arrived, None if unknown.
    `may_change` is true if another router passed the request on and states that its client may
    change things.
    """

    # a client may put a token here
    properties: Mapping[str, object] = attrs.field(repr=False)
    body: object
    connection: int | None = None
    may_change: bool = False

    @property
    def operation(self) -> str:
        """Return the operation, in capitals; raise Refused if there is none."""
        operation = self.text("operation")
        if not operation:
            raise Refused(BAD_REQUEST, "the application-properties have no operation")
        return operation.upper()

    @property
    def subject(self) -> dict[str, str]:
        """Return what a log line says about the request: its operation and the entity it is about.

        Values that are not text are left out, and long ones are cut.
        """
        names = ("operation", "type", "name", "identity", "entityType")
        values = {name: self.properties.get(name) for name in names}
        return {
            name: value[:MAX_LOGGED_TEXT]
            for name, value in values.items()
            if isinstance(value, str)
        }

    def text(self, name: str) -> str | None:
        """Return the text of a property, None if it is absent; raise Refused if it is not text."""
        value = self.properties.get(name)
        if value is not None and not isinstance(value, str):
            raise Refused(BAD_REQUEST, f"{name} must be a string")
        return value

    def count(self, name: str) -> int | None:
        """Return a property that is a non-negative whole number, None if it is absent.

        Some tools send the number as text. Raise Refused if the property is anything else.
        """
        value = self.properties.get(name)
        if value is None:
            return None
        if (
            isinstance(value, str)
            and value.isascii()
            and value.isdigit()
            and len(value) <= MAX_DIGITS
        ):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Refused(BAD_REQUEST, f"{name} must be an integer of at least 0")
        return int(value)


def flag(request: Request, name: str) -> bool:
    """Return a boolean property of a request, False if it is missing. Some tools send text."""
    value = request.properties.get(name, False)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        value = value.lower() == "true"
    if not isinstance(value, bool):
        raise Refused(BAD_REQUEST, f"{name} must be true or false")
    return value


@attrs.frozen
class QueryRows:
    """Body of the answer to a QUERY.

    `rows` yields rows with the values of `names`, or None for a step without a row. Each step is
    short. Other tasks may run between two steps, so the rows do not all show the same moment.
    """

    names: list[str]
    rows: Iterator[list[object] | None]


@attrs.frozen
class LongList:
    """Body, or value in a body, that is a long list.

    Each step of `items` is short, as with `QueryRows`.
    """

    items: Iterable[object]


@attrs.frozen
class Answer:
    """Answer to a request; `body` is a value that AMQP can carry, a QueryRows or a LongList."""

    body: Any = attrs.Factory(dict)
    status: int = OK
    description: str = "OK"
