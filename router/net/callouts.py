"""Callouts to plugins, which ask whether a peer may log in, and what it may do.

`router.hosting.callouts` implements them. A callout that fails allows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from router.amqp.constants import SaslCode

if TYPE_CHECKING:
    from router.engine.connection import Connection

# The longest time that a callout may take. Before the connection is open, it must also end within
# this part of the handshake time-out, which begins when the peer connects: otherwise the peer would
# be disconnected before it gets the outcome.
LONGEST_S = 8.0
PART_OF_HANDSHAKE = 0.8


class CalloutFailed(Exception):
    """Failure of a callout, with the code for the SASL outcome (section 5.3.3.6).

    The text is for the log, and contains nothing from the peer or the plugin.
    """

    def __init__(self, code: SaslCode, plugin: str, reason: str) -> None:
        super().__init__(f"plugin {plugin}: {reason}")
        self.code = code
        self.plugin = plugin
        self.reason = reason


@attrs.frozen
class Attempt:
    """Attempt of a peer to log in; `external_user` is the user of its certificate."""

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
    """Return how many seconds a callout may take for a connection that is not open yet."""
    limit = connection.settings.handshake_timeout_s
    if not limit:
        return LONGEST_S
    left = limit * PART_OF_HANDSHAKE - (now - connection.started_at)
    return min(max(left, 0.0), LONGEST_S)
