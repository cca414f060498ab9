"""What was seen last that should not be, for those who look at a router after it has happened."""

from __future__ import annotations

from typing import Any

from router.core.routers.news import ConflictSeen, NeighbourLost, News


class Seen:
    """Hears the news of a network; `turn` says what time it is.

    `conflict` is the last time that an id was taken twice, in words, and `conflict_at` when;
    `lost` the neighbour that was lost last, and `lost_at` when. None where that never was.
    """

    def __init__(self, turn: Any) -> None:
        self._turn = turn
        self.conflict: str | None = None
        self.conflict_at: float | None = None
        self.lost: str | None = None
        self.lost_at: float | None = None

    def heard(self, news: News) -> None:
        """Something is new."""
        if isinstance(news, ConflictSeen):
            self.conflict, self.conflict_at = f"{news.router}: {news.what}", self._turn.now
        elif isinstance(news, NeighbourLost):
            self.lost, self.lost_at = news.router, self._turn.now
