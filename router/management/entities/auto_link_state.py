"""Live state of auto-links: their links, or why they have none and when they are retried."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import attrs

from router.control.auto_links import Line
from router.control.link_supervisor import Status
from router.core.links.auto_links import AutoLinkRule, phase_of
from router.engine.naming import link_identity
from router.management.schema import Attribute, LiveEntity, live_reader, settings_of
from router.management.views import RouterView


@attrs.frozen
class AutoLinkState:
    """State of an auto-link; `now` is on the engine's clock.

    `lines` has its links, attached or not, one for each connection to its container. The first of
    them determines the status, and the one that failed last determines the error.
    """

    rule: AutoLinkRule
    phase: int
    lines: tuple[Line, ...]
    now: float

    @property
    def status(self) -> Status:
        """Return Dispatch's `operStatus`."""
        return self.lines[0].status if self.lines else Status.INACTIVE

    @property
    def failed(self) -> Line | None:
        """Return the link that failed last, or None."""
        failed = [line for line in self.lines if line.failed_at]
        return max(failed, key=lambda line: line.failed_at, default=None)

    @property
    def error(self) -> str | None:
        """Return the last error's description, or its condition; None if there was no error."""
        failed = self.failed
        if failed is None:
            return None
        if failed.error is None:
            return "the container detached the link without an error"
        return failed.error.description or str(failed.error.condition)

    @property
    def retry_s(self) -> int | None:
        """Return the number of seconds until the next attempt; None if no attempt is due."""
        due = [line.retry_at for line in self.lines if line.retry_at is not None]
        return max(0, math.ceil(min(due) - self.now)) if due else None


def state_of(router: RouterView, rule: AutoLinkRule) -> AutoLinkState:
    """Return the present state of an auto-link."""
    auto_links = router.observed.auto_links
    lines = () if auto_links is None else tuple(auto_links.lines_of(rule.name))
    table = router.observed.table
    return AutoLinkState(rule, phase_of(table, rule), lines, router.observed.turn.now)


def _attribute(
    name: str, kind: str, meaning: str, read: Callable[[AutoLinkState], object]
) -> Attribute[object]:
    return Attribute(name, kind, meaning, live_reader(AutoLinkState, read))


def _link(state: AutoLinkState) -> str | None:
    links = [line.link for line in state.lines if line.link is not None]
    return link_identity(links[0]) if links else None


def _condition(state: AutoLinkState) -> str | None:
    failed = state.failed
    return str(failed.error.condition) if failed is not None and failed.error else None


AUTO_LINK_STATE: Final = (
    _attribute("linkRef", "string", "The identity of its link, or of one of its links.", _link),
    _attribute(
        "operStatus",
        "string",
        "inactive (the container is not connected), attaching, active, or failed; with several "
        "connections to the container, the best of their states. An auto-link that is no longer "
        "wanted is quiescing and then idle, and appears only in metrics.",
        lambda s: str(s.status),
    ),
    _attribute(
        "statusSeconds",
        "integer",
        "Seconds in this state; null while the container is not connected.",
        lambda s: int(s.now - s.lines[0].since) if s.lines else None,
    ),
    _attribute(
        "lastError",
        "string",
        "The last error on an open connection; it is kept after a success.",
        lambda s: s.error,
    ),
    _attribute("lastErrorCondition", "string", "The condition of the last error.", _condition),
    _attribute(
        "lastErrorSeconds",
        "integer",
        "Seconds since the last error.",
        lambda s: None if s.failed is None else int(s.now - s.failed.failed_at),
    ),
    _attribute("retrySeconds", "integer", "Seconds until the next attempt.", lambda s: s.retry_s),
    _attribute(
        "attempts",
        "integer",
        "Attempts since it was last active for a while, including the first one.",
        lambda s: max((line.attempts for line in s.lines), default=0),
    ),
    _attribute(
        "connectionCount",
        "integer",
        "Connections to its container.",
        lambda s: len(s.lines),
    ),
    _attribute(
        "linkCount",
        "integer",
        "Links that it has now, normally one on each connection.",
        lambda s: sum(line.link is not None for line in s.lines),
    ),
)


def read_phase(entity: object) -> int | None:
    """Return an auto-link's configured phase; if there is none, the phase in its live state."""
    phase: int | None = settings_of(entity).phase
    state = entity.state if isinstance(entity, LiveEntity) else None
    return state.phase if phase is None and isinstance(state, AutoLinkState) else phase
