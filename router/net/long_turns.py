"""Give connections with much work to do their turns one at a time, between those of the others.

A connection with little to do is served between two long turns. While any such connection is
active, long turns are shorter (docs/decisions/0090-work-goes-on-in-later-turns.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import trio

from router.engine.settings import TURN_WORK

if TYPE_CHECKING:
    from types import TracebackType

# Work of a long turn while other connections are active: one frame that is not per-message, or
# about as long with per-message frames as a read of small messages takes.
SHARED_TURN_WORK: Final = 4096
# Others are active if an open connection had a turn that was not a long one at most this long ago.
SHARED_S: Final = 0.02


class LongTurns:
    """Lock for long turns; entering it returns the work that the turn may do.

    The work is counted in per-message frames, as in `Connection.turn_work`.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = trio.Lock()
        # when an open connection last had a turn that was not a long one
        self.short_turn_at = float("-inf")

    def others_are_active(self) -> bool:
        """Return whether open connections with little to do have had turns recently."""
        return self._clock() - self.short_turn_at < SHARED_S

    async def __aenter__(self) -> int:
        await self._lock.acquire()
        return SHARED_TURN_WORK if self.others_are_active() else TURN_WORK

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lock.release()
