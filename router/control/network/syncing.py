"""Whether a router that has started knows by now what its network knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from router.control.network.adjacency import Adjacency

# After so long it is ready without: a network that is away is no reason to serve nobody.
PATIENCE_S: Final = 10.0


class FirstSync:
    """Begins with the router; once it is over it stays so.

    `unreached` gives the names of the connectors to other routers that have had no connection yet.
    """

    def __init__(
        self, network: Adjacency, unreached: Callable[[], Iterable[str]], now: float
    ) -> None:
        self._network = network
        self._unreached = unreached
        self._until = now + PATIENCE_S
        self._is_over = False

    def lacks(self) -> str | None:
        """What is still to come, or None."""
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
            return "the routes of the network are not known yet"
        return None
