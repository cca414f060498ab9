"""Failures of a client: no connection, a lost connection, a link that is refused or lost."""

from __future__ import annotations

from router.amqp.performatives import Error
from router.amqp.redirects import redirect_of
from router.errors import TriouteError


class ClientError(TriouteError):
    """Failure of a connection or link: it has ended, or was never established.

    `condition` is the peer's error condition, or "" if there is none; `description` is for people.
    """

    def __init__(self, condition: str, description: str) -> None:
        super().__init__(condition, description)
        self.condition = condition
        self.description = description

    def __str__(self) -> str:
        return ": ".join(part for part in (self.condition, self.description) if part)


class ConnectFailed(ClientError):
    """Failure to connect: no server listens there, or the peer refused the connection."""


class ConnectionLost(ClientError):
    """End of the connection: closed by the peer, or its socket lost."""


class LinkLost(ClientError):
    """Refusal of a link, or its detach by the peer."""


def error_from_peer(kind: type[ClientError], error: Error | None, otherwise: str) -> ClientError:
    """Return an exception of class `kind` for a peer's error.

    `otherwise` describes the failure if there is no error.
    """
    if error is None:
        return kind("", otherwise)
    return kind(str(error.condition), describe_peer_error(error))


def describe_peer_error(error: Error) -> str:
    """Return the description of a peer's error, including the address in its info.

    For a redirect, its destination is added, because the client does not follow redirects.
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
