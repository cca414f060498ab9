"""Live state of connectors: the connection, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from router.management.schema import Attribute, live_reader
from router.management.views import ConnectorView


def _ago(state: ConnectorView, since: float | None) -> int | None:
    return None if since is None else max(0, int(state.now - since))


def _until(state: ConnectorView, then: float | None) -> int | None:
    return None if then is None else max(0, math.ceil(then - state.now))


def _attribute(
    name: str, kind: str, meaning: str, read: Callable[[ConnectorView], object]
) -> Attribute[object]:
    return Attribute(name, kind, meaning, live_reader(ConnectorView, read))


CONNECTOR_STATE: Final = (
    _attribute(
        "failoverUrls",
        "string",
        "URLs of all hosts that it knows, separated by commas: the current one, and then those "
        "that it would try next, in that order. They include hosts that the peer has announced.",
        lambda s: ", ".join(str(place) for place in s.status.places),
    ),
    _attribute(
        "connectionStatus",
        "string",
        "SUCCESS: it has a connection. CONNECTING: it is connecting, or waits until its next "
        "attempt. FAILED: the router was refused, so that somebody has to change something; "
        "attempts continue.",
        lambda s: s.status.state,
    ),
    _attribute(
        "connectionMsg",
        "string",
        "The last event, in a sentence.",
        lambda s: s.status.message or None,
    ),
    _attribute(
        "statusSeconds",
        "integer",
        "Seconds for which it has been connected, or not connected.",
        lambda s: _ago(s, s.status.since),
    ),
    _attribute(
        "connectedTo",
        "string",
        "The host and port that it is connected to, tries, or tried last.",
        lambda s: str(s.status.at),
    ),
    _attribute(
        "container",
        "string",
        "The peer's container-id.",
        lambda s: s.status.container,
    ),
    _attribute(
        "connectionId",
        "string",
        "The identity of its connection.",
        lambda s: None if s.status.connection is None else str(s.status.connection),
    ),
    _attribute(
        "lastError",
        "string",
        "Why it last failed to connect or lost its connection; it is kept after a success.",
        lambda s: s.status.failure and s.status.failure.reason,
    ),
    _attribute(
        "lastErrorKind",
        "string",
        "lastError in one word, as in the metric `trioute_connector_failures_total`.",
        lambda s: s.status.failure and s.status.failure.kind,
    ),
    _attribute(
        "lastErrorSeconds",
        "integer",
        "Seconds since the last error.",
        lambda s: _ago(s, s.status.failed_at),
    ),
    _attribute(
        "nextAttemptSeconds",
        "integer",
        "Seconds until the next attempt, while it waits.",
        lambda s: _until(s, s.status.next_at),
    ),
    _attribute(
        "failedAttempts",
        "integer",
        "Number of failed attempts in a row.",
        lambda s: s.status.failures_since_open,
    ),
    _attribute(
        "attempts",
        "integer",
        "Number of attempts.",
        lambda s: s.status.counts.attempts,
    ),
)
