"""Readiness: whether a router should receive new connections, and if not, why.

The code that starts a part of the router reports the part as lacking until it is available. Other
conditions are checked at each request. A connector without a connection is a reason only if
its setting `neededFor` says so: a router whose broker is down still serves all other clients.
"""

from __future__ import annotations

from collections.abc import Callable

STARTING = "the router is starting"
STOPPING = "the router is shutting down"


class Readiness:
    """Record of the parts that a router still lacks to be ready.

    Initially one part is lacking: `router`, because the router is starting.
    """

    def __init__(self) -> None:
        self._lacking: dict[str, str] = {"router": STARTING}
        self._checks: list[Callable[[], str | None]] = []

    def lacks(self, part: str, reason: str) -> None:
        """Report that a part is lacking; `reason` is shown by readiness checks."""
        self._lacking[part] = reason

    def has(self, part: str) -> None:
        """Report that a part is available, or no longer needed."""
        self._lacking.pop(part, None)

    def watch(self, check: Callable[[], str | None]) -> None:
        """Add a check that runs at each readiness request and returns what is lacking, or None."""
        self._checks.append(check)

    def reasons(self) -> list[str]:
        """Return why the router is not ready; an empty list if it is."""
        if "router" in self._lacking:
            # before the start, and during the shutdown, no other reason matters
            return [self._lacking["router"]]
        found = [reason for check in self._checks if (reason := check()) is not None]
        return [*self._lacking.values(), *found]
