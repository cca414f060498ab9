"""Exceptions of the package (part 2, sections 2.8.14 to 2.8.18).

Whatever octets a peer sends, the code that reads them raises only one type: `AmqpError`. It carries
the error condition for the peer, and the scope that has to end: a link, a session or the
connection. The decoder does not know about links, so it names the widest scope; the engine narrows
the scope where possible. Mistakes in the router's own code, such as a value of the wrong type to be
encoded, raise `TypeError` or `ValueError` as usual in Python, because no peer is to blame.
"""

from __future__ import annotations

import enum
from typing import Any


class Scope(enum.Enum):
    """Kind of endpoint that has to end because of an error."""

    LINK = "link"
    SESSION = "session"
    CONNECTION = "connection"


class TriouteError(Exception):
    """Base class of all exceptions that this package raises on purpose."""


class ConfigurationError(TriouteError):
    """Error in a configuration, which therefore cannot be run."""


LONGEST_WORDS = 1000


def describe_exception(error: BaseException) -> str:
    """Return an exception's type and text on one line, at most `LONGEST_WORDS` characters long.

    Never raises, whatever the exception's code does. The text can always be encoded.
    """
    try:
        text = str(error)
    except BaseException as another:  # noqa: BLE001 - foreign code may raise anything
        text = f"(its text cannot be read: {type(another).__name__})"
    name = type(error).__name__
    whole = " ".join(f"{name}: {text}".split()) if text else name
    return whole[:LONGEST_WORDS].encode("utf-8", "replace").decode("utf-8")


class PluginHung(BaseException):
    """Interruption of plugin code that has kept the router's event loop for too long.

    It does not derive from `Exception`, so `except Exception` in a plugin does not catch it.
    """


class AmqpError(TriouteError):
    """Protocol violation by a peer, or request by a peer that cannot be granted.

    `condition` is the symbolic name of an error condition, `description` is a text for people, and
    `info` becomes the info map of the error.
    """

    def __init__(
        self,
        condition: str = "amqp:decode-error",
        description: str = "",
        scope: Scope = Scope.CONNECTION,
        info: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__(condition, description, scope, info)
        self.condition = condition
        self.description = description
        self.scope = scope
        self.info = info

    def __str__(self) -> str:
        return f"{self.condition}: {self.description}" if self.description else self.condition
