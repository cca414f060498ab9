"""Log what a policy refuses."""

from __future__ import annotations

import structlog

from router.engine.connection import Connection

log = structlog.get_logger("router.policy")


def log_denial(connection: Connection, what: str, reason: str) -> None:
    """Log a refusal: what was refused to whom, and which attribute of the policy says so."""
    hostname = None if connection.remote_open is None else connection.remote_open.hostname
    log.warning(
        "refused by policy",
        what=what,
        connection=connection.number,
        peer=connection.name,
        user=connection.user,
        hostname=hostname,
        reason=reason,
    )
