"""What a request asks and what an answer tells: the words that all operations share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import attrs

OK: Final = 200
CREATED: Final = 201
NO_CONTENT: Final = 204
BAD_REQUEST: Final = 400
FORBIDDEN: Final = 403
NOT_FOUND: Final = 404
SERVER_ERROR: Final = 500
NOT_IMPLEMENTED: Final = 501
"""The status codes are Dispatch's (AMQP management, working draft 9)."""

# Of what somebody wrote, so much is told in the log.
LONGEST_TOLD: Final = 100
# Of a number that is sent as text; Python reads no number of thousands of digits.
DIGITS: Final = 18


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(status, description)
        self.status = status
        self.description = description


@attrs.frozen
class Request:
    """What one message asks: its application-properties and its body.

    `connection` is the number of the connection that it came by, None where nobody can tell;
    `may_change`: whether another router says so of who has sent it there.
    """

    properties: dict[str, Any]
    body: Any
    connection: int | None = None
    may_change: bool = False

    @property
    def operation(self) -> str:
        """What is to be done, in capitals; raises Refused where it is not said."""
        operation = self.text("operation")
        if not operation:
            raise Refused(BAD_REQUEST, "there is no operation among the application-properties")
        return operation.upper()

    @property
    def subject(self) -> dict[str, str]:
        """What is asked, and of what, for the log: what is text of it, cut where it is long."""
        names = ("operation", "type", "name", "identity", "entityType")
        values = {name: self.properties.get(name) for name in names}
        return {
            name: value[:LONGEST_TOLD] for name, value in values.items() if isinstance(value, str)
        }

    def text(self, name: str) -> str | None:
        """A property that is text; raises Refused where it is something else."""
        value = self.properties.get(name)
        if value is not None and not isinstance(value, str):
            raise Refused(BAD_REQUEST, f"{name} is no string")
        return value

    def count(self, name: str) -> int | None:
        """A property that is a whole number, not below 0; raises Refused. Some tools send text."""
        value = self.properties.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= DIGITS:
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Refused(BAD_REQUEST, f"{name} is no whole number from 0 on")
        return int(value)


@attrs.frozen
class Rows:
    """The body of the answer to a QUERY. Each step of `rows` is a short one, and yields a row of
    the values that `names` are of, or None where there is nothing to be told of an entity.

    Between two steps the router may go on: entities are told as they are when they are reached.
    """

    names: list[str]
    rows: Iterator[list[Any] | None]


@attrs.frozen
class Listed:
    """A body, or a value of one, that is a long list; each step of `items` is a short one, as with
    Rows.
    """

    items: Iterable[Any]


@attrs.frozen
class Answer:
    """What is answered. `body` is what AMQP can carry, or Rows, or Listed."""

    body: Any = attrs.Factory(dict)
    status: int = OK
    description: str = "OK"
