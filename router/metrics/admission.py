"""Admit HTTP requests: limit how many are answered at a time, and how many wait for a place.

An admitted request has a permit until its response has been generated, and a place until the client
has read the response. There are few permits, so that the event loop soon returns to other work.
There are many places, because a response that is being read costs the event loop nothing. Hosts are
admitted in rotation, and none has more than half of the places, so no host can keep others out.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import trio

from router.fairness import HostFairQueue

# Maximum time that a request waits for a place and a turn.
WAIT_S: Final = 5.0


class Admission:
    """Gate for requests of one kind; the requests of each host are admitted in order of arrival.

    `places` is how many requests can be admitted at a time, `at_once` how many responses can be
    generated at a time, and `waiting` how many requests can wait for a place.
    """

    def __init__(self, places: int, at_once: int, waiting: int) -> None:
        self._places = places
        self._turns = at_once
        self._share = max(1, places // 2)
        self._held: Counter[str] = Counter()
        self._most_waiting = waiting
        self._waiting: HostFairQueue[_Waiter] = HostFairQueue()

    async def enter(self, host: str) -> Admitted | None:
        """Wait until a request is admitted; return None if it is refused, or after `WAIT_S`.

        If too many requests wait, the newest request of the host with the most waiting requests is
        refused.
        """
        if self._is_free() and self._may_have_more(host):
            return self._admit(host)
        if len(self._waiting) >= self._most_waiting and not self._make_room(host):
            return None
        waiter = _Waiter(host)
        self._waiting.add(host, waiter)
        try:
            with trio.move_on_after(WAIT_S):
                await waiter.decided.wait()
        except trio.Cancelled:
            if waiter.admitted is not None:
                waiter.admitted.leave()
            raise
        finally:
            self._waiting.discard(host, waiter)
        return waiter.admitted

    def _is_free(self) -> bool:
        return self._places > 0 and self._turns > 0

    def _may_have_more(self, host: str) -> bool:
        return self._held[host] < self._share

    def _make_room(self, host: str) -> bool:
        """Refuse a waiting request of another host in favour of `host`, if that is fair.

        The refused request is the newest of the host with the most waiting requests. No request is
        refused if that host would then have fewer waiting requests than `host`. Return whether a
        request was refused.
        """
        if not len(self._waiting):
            return False
        largest = self._waiting.largest()
        if self._waiting.count(largest) <= self._waiting.count(host) + 1:
            return False
        refused = self._waiting.newest(largest)
        self._waiting.discard(largest, refused)
        refused.decided.set()
        return True

    def _admit(self, host: str) -> Admitted:
        self._places -= 1
        self._turns -= 1
        self._held[host] += 1
        return Admitted(self, host)

    def admit_waiting(self) -> None:
        """Admit waiting requests, while there are places and permits to generate responses."""
        while self._is_free():
            waiter = self._waiting.next(self._may_have_more)
            if waiter is None:
                return
            waiter.admitted = self._admit(waiter.host)
            waiter.decided.set()

    def return_turn(self) -> None:
        """Return the permit of a request whose response has been generated."""
        self._turns += 1
        self.admit_waiting()

    def return_place(self, host: str) -> None:
        """Free the place of a request from `host`."""
        self._places += 1
        self._held[host] -= 1
        if not self._held[host]:
            del self._held[host]
        self.admit_waiting()


class _Waiter:
    """Waiting request; `decided` is set once it is admitted or refused."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.decided = trio.Event()
        self.admitted: Admitted | None = None


class Admitted:
    """Admitted request, with a place, and with a permit until its response is generated."""

    def __init__(self, admission: Admission, host: str) -> None:
        self._admission = admission
        self._host = host
        self._has_turn = True

    def answer_made(self) -> None:
        """Return the permit to generate the response; keep the place while the client reads it."""
        if self._has_turn:
            self._has_turn = False
            self._admission.return_turn()

    def leave(self) -> None:
        """Free the place, and return the permit to generate the response if it was not returned."""
        self.answer_made()
        self._admission.return_place(self._host)
