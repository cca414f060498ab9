"""Last anomalies of the network, for operators who look at a router afterwards."""

from __future__ import annotations

from router.core.routers.news import DuplicateRouterId, NeighbourLost, News
from router.engine.outbox import Turn


class LastAnomalies:
    """Record of the last anomalies in a network; `turn` provides the time.

    `conflict` describes the last duplicate id, and `conflict_at` is when it was seen. `lost` is the
    neighbour that was lost last, and `lost_at` is when it was lost. All are None at first.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.conflict: str | None = None
        self.conflict_at: float | None = None
        self.lost: str | None = None
        self.lost_at: float | None = None

    def heard(self, news: News) -> None:
        """Record a piece of news if it is an anomaly."""
        if isinstance(news, DuplicateRouterId):
            self.conflict, self.conflict_at = f"{news.router}: {news.what}", self._turn.now
        elif isinstance(news, NeighbourLost):
            self.lost, self.lost_at = news.router, self._turn.now
