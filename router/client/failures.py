"""Exceptions of the client: connections that fail or are lost, links that are refused or lost."""

from __future__ import annotations

from router.amqp.performatives import Error
from router.amqp.redirects import redirect_of
from router.errors import TriouteError


class ClientError(TriouteError):
    """Failure of a connection or link, which has ended or was never established.

    `condition` is the peer's error condition, or "" if there is none; `description` is for people.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.condition = condition
        self.description = description

    def __str__(self) -> str:
        return ": ".join(part for part in (self.condition, self.description) if part)


class ConnectFailed(ClientError):
    """Failure to connect: no server was reached, or the peer did not open the connection."""


class ConnectionLost(ClientError):
    """Failure because the connection has ended: the peer closed it, or the socket was lost."""


class LinkLost(ClientError):
    """Failure of a link: the peer refused or detached the link, or the link was closed."""


def error_from_peer(kind: type[ClientError], error: Error | None, otherwise: str) -> ClientError:
    """Return an exception of class `kind` for a peer's error.

    `otherwise` describes the failure if `error` is None.
    """
    if error is None:
        return kind("", otherwise)
    return kind(str(error.condition), describe_peer_error(error))


def describe_peer_error(error: Error) -> str:
    """Return the description of a peer's error, with the address or redirect in the error's info.

    The destination of a redirect is included because the client does not follow redirects.
    """
    description = error.description or ""
    redirect = redirect_of(error)
    if redirect is None:
        return _with_address(description, error)
    if str(redirect) in description:
        return description
    return "; ".join(part for part in (description, f"redirected to {redirect}") if part)


def _with_address(description: str, error: Error) -> str:
    address = (error.info or {}).get("address")
    if not isinstance(address, str) or address in description:
        return description
    return ": ".join(part for part in (description, address) if part)
