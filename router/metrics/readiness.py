"""Whether a router should be sent new connections, and if not, why.

Whoever brings a part of the router up says what is lacking until it is there; what can be looked
at is looked at when somebody asks. A connector without a connection is no reason unless it is said
to be needed: a router whose broker is down still serves everybody else.
"""

from __future__ import annotations

from collections.abc import Callable

STARTING = "the router is starting"
STOPPING = "the router is shutting down"


class Readiness:
    """What a router still lacks; at first, everything."""

    def __init__(self) -> None:
        self._lacking: dict[str, str] = {"router": STARTING}
        self._checks: list[Callable[[], str | None]] = []

    def lacks(self, part: str, reason: str) -> None:
        """A part is not there, for a reason that is told to who asks."""
        self._lacking[part] = reason

    def has(self, part: str) -> None:
        """A part is there, or is not wanted any more."""
        self._lacking.pop(part, None)

    def watch(self, check: Callable[[], str | None]) -> None:
        """Ask this each time, too; it says what is lacking, or None."""
        self._checks.append(check)

    def reasons(self) -> list[str]:
        """Why not; nothing when the router is ready."""
        if "router" in self._lacking:
            # before the start and after the end nothing else is news
            return [self._lacking["router"]]
        found = [reason for check in self._checks if (reason := check()) is not None]
        return [*self._lacking.values(), *found]
