"""Admit HTTP requests: limit how many are answered at once, and how many wait for their turn.

An answer is made by the router and then taken by the client. Few are made at a time, so that the
event loop soon serves everything else. Many may be taken at a time, which costs the loop nothing.
"""

from __future__ import annotations

from typing import Final

import trio

# How long a request waits for its turn.
WAIT_S: Final = 5.0


class Admission:
    """Admits requests of one kind in the order in which they came.

    `places` is how many are admitted at a time, `at_once` how many of these may have their answer
    made at a time, and `waiting` how many may wait for a place.
    """

    def __init__(self, places: int, at_once: int, waiting: int) -> None:
        self._places = trio.Semaphore(places)
        self._making = trio.Semaphore(at_once)
        self._waiting = waiting

    async def enter(self) -> Admitted | None:
        """Wait for a place and a turn; return None if too many wait, or after `WAIT_S`."""
        if self._places.statistics().tasks_waiting >= self._waiting and not self._places.value:
            return None
        with trio.move_on_after(WAIT_S):
            await self._places.acquire()
            try:
                await self._making.acquire()
            except trio.Cancelled:
                self._places.release()
                raise
            return Admitted(self._places, self._making)
        return None


class Admitted:
    """A request's place, and its turn until the answer is made."""

    def __init__(self, places: trio.Semaphore, making: trio.Semaphore) -> None:
        self._places = places
        self._making: trio.Semaphore | None = making

    def answer_made(self) -> None:
        """Pass the turn on; the place is kept while the client takes the answer."""
        making, self._making = self._making, None
        if making is not None:
            making.release()

    def leave(self) -> None:
        """Pass the place on, and the turn if it was not passed on before."""
        self.answer_made()
        self._places.release()
