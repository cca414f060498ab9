"""Determine whether a newly started router has received the state of its network."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.control.network.adjacency import Neighbours

# After this time the router is ready even without its network: it should serve clients.
PATIENCE_S: Final = 10.0


class FirstSync:
    """First synchronisation of a router with its network; once done, it stays done.

    `unreached` returns the names of the connectors to other routers that have not connected yet.
    """

    def __init__(
        self, network: Neighbours, unreached: Callable[[], Iterable[str]], now: float
    ) -> None:
        self._network = network
        self._unreached = unreached
        self._until = now + PATIENCE_S
        self._is_over = False

    def missing_reason(self) -> str | None:
        """Return why the synchronisation is not done yet, for operators; None once it is done.

        After `PATIENCE_S`, the synchronisation counts as done in any case.
        """
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
