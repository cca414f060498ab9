"""What can go wrong for a client: no connection, a connection lost, a link refused or lost."""

from __future__ import annotations

from router.amqp.performatives import Error
from router.amqp.redirects import redirect_of
from router.errors import TriouteError


class ClientError(TriouteError):
    """Something that was asked for ended or never began.

    `condition` is the peer's error condition, "" where there was none; `description` is for people.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.condition = condition
        self.description = description

    def __str__(self) -> str:
        return ": ".join(part for part in (self.condition, self.description) if part)


class ConnectFailed(ClientError):
    """No connection came about: nobody listens, or the peer did not let us in."""


class ConnectionLost(ClientError):
    """The connection is over, and we did not end it."""


class LinkLost(ClientError):
    """A link was refused by the peer, or detached."""


def told(kind: type[ClientError], error: Error | None, otherwise: str) -> ClientError:
    """The failure that a peer's error is; `otherwise` describes one that the peer does not."""
    if error is None:
        return kind("", otherwise)
    return kind(str(error.condition), told_description(error))


def told_description(error: Error) -> str:
    """What a peer says of its error, and which address it names beside it.

    Of a redirect also where it leads, which nobody follows.
    """
    description = error.description or ""
    redirect = redirect_of(error)
    if redirect is None:
        return _with_address(description, error)
    if str(redirect) in description:
        return description
    return "; ".join(part for part in (description, f"go to {redirect}") if part)


def _with_address(description: str, error: Error) -> str:
    address = (error.info or {}).get("address")
    if not isinstance(address, str) or address in description:
        return description
    return ": ".join(part for part in (description, address) if part)
