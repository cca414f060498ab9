"""Give connections with much work to do their turns one at a time, between those of the others.

A connection with little to do is served between two long turns. While any such connection is
active, long turns are shorter (docs/decisions/0090-work-goes-on-in-later-turns.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import trio

from router.engine.settings import TURN_WORK

if TYPE_CHECKING:
    from types import TracebackType

    from router.engine.outbox import Turn

# Work of a long turn while other connections are active: one frame that is not per-message, or
# about as long with per-message frames as a read of small messages takes.
SHARED_TURN_WORK: Final = 4096
# Other connections are active if the last turn that was not a long one is not longer ago than this.
SHARED_S: Final = 0.02


class LongTurns:
    """Lock for long turns; entering it returns the work that the turn may do.

    The work is counted in per-message frames, as in `Connection.turn_work`.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._lock = trio.Lock()
        # when the last long turn began, and until when other connections count as active
        self._last = 0.0
        self._shared_until = 0.0

    async def __aenter__(self) -> int:
        await self._lock.acquire()
        # the time when the last turn of any connection began
        now = self._turn.now
        if now != self._last:
            self._shared_until = now + SHARED_S
        return SHARED_TURN_WORK if now < self._shared_until else TURN_WORK

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._last = self._turn.now
        self._lock.release()
