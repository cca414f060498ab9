"""Find out whether a router that has started has learned its network's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.control.network.adjacency import Neighbours

# After this time the router is ready even without its network: it should serve clients.
PATIENCE_S: Final = 10.0


class FirstSync:
    """First synchronisation after the start; once done, it stays done.

    `unreached` gives the names of the connectors to other routers that have had no connection yet.
    """

    def __init__(
        self, network: Neighbours, unreached: Callable[[], Iterable[str]], now: float
    ) -> None:
        self._network = network
        self._unreached = unreached
        self._until = now + PATIENCE_S
        self._is_over = False

    def lacks(self) -> str | None:
        """Return what is still missing, as text for people, or None."""
        if not self._is_over:
            reason = self._reason()
            if reason is not None and self._network.now < self._until:
                return reason
            self._is_over = True
        return None

    def _reason(self) -> str | None:
        name = next(iter(self._unreached()), None)
        if name is not None:
            return f"the connector {name} has not reached its router yet"
        if not self._network.is_synced:
            return "the neighbours have not sent all routes and addresses yet"
        return None
