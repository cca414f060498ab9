"""Callouts to plugins: how a router asks one whether a peer may log in, or what it may do.

`router.hosting.callouts` implements them. A callout that fails allows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from router.amqp.constants import SaslCode

if TYPE_CHECKING:
    from router.engine.connection import Connection

# A callout gets no more time than this, nor than this part of the handshake time-out since the
# peer has connected: the outcome has to come before the connection is given up.
LONGEST_S = 8.0
PART_OF_HANDSHAKE = 0.8


class CalloutFailed(Exception):
    """Failure of a callout, with the SASL code that says so (section 5.3.3.6).

    The text is for the log, and holds nothing that a peer or a plugin has said.
    """

    def __init__(self, code: SaslCode, plugin: str, reason: str) -> None:
        super().__init__(f"plugin {plugin}: {reason}")
        self.code = code
        self.plugin = plugin
        self.reason = reason


@attrs.frozen
class Attempt:
    """Attempt of a peer to log in, for a plugin; `external_user` is that of its certificate."""

    mechanism: str
    response: bytes = attrs.field(repr=False)
    hostname: str | None
    peer: str
    external_user: str | None = None


@attrs.frozen
class Known:
    """User that a plugin has recognized, and the user's groups."""

    user: str
    groups: frozenset[str]


class Callouts(Protocol):
    """Callouts to the plugins of a router, by their names in the configuration.

    `host` is the host of the peer; hosts take turns. Each call raises CalloutFailed if it has no
    answer within `limit_s` seconds, or if the plugin does not run or fails.
    """

    def mechanisms(self, plugin: str) -> frozenset[str] | None:
        """Return the SASL mechanisms that a plugin handles; None if that is not known yet."""

    async def authenticate(
        self, plugin: str, host: str, attempt: Attempt, limit_s: float
    ) -> Known | None:
        """Return whom a plugin recognizes, or None if it refuses the peer."""

    async def authorize(
        self, plugin: str, host: str, action: str, address: str, peer: Connection, limit_s: float
    ) -> bool:
        """Return whether a plugin allows an action (`open`, `send` or `receive`)."""


def time_left_s(connection: Connection, now: float) -> float:
    """Return how many seconds a callout for a connection may take that is not open yet."""
    limit = connection.settings.handshake_timeout_s
    if not limit:
        return LONGEST_S
    left = limit * PART_OF_HANDSHAKE - (now - connection.started_at)
    return min(max(left, 0.0), LONGEST_S)
