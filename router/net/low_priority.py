"""Give connections that are not open yet their turns with low priority.

Anybody can connect, so a crowd of such connections must not slow down the open ones. Each of their
steps waits for a turn: to be accepted, to begin, to read, to close. They get it when the event loop
is idle. If the loop is always busy, they get about a third of its time
(docs/decisions/0120-low-priority-before-the-open.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import attrs
import trio

# Nothing in it is only for tests: no other function tells whether the loop is idle.
from trio.testing import wait_all_tasks_blocked

from router.fairness import HostFairQueue

# An ordinary step takes 0.1 to 0.2 ms. A busy loop takes one in each interval of this length,
# and more at a time if rounds of the loop take longer.
LONGEST_WAIT_S: Final = 0.0005
MOST_AT_ONCE: Final = 8
# While more steps than this wait, as many are taken before another connection is accepted. It would
# only wait here instead of in the backlog of its listener.
MANY_STEPS: Final = 16


# What a step counts as garbage, as a number of links that attach.
CHURN_OF_A_STEP: Final = 2


@attrs.frozen(eq=False)
class _Turn:
    given: trio.Event = attrs.field(factory=trio.Event, init=False)
    weight: int = 1


class LowPriorityTurns:
    """Turns for steps of connections that are not open yet; hosts get them alternately."""

    def __init__(
        self, clock: Callable[[], float], count_work: Callable[[int], None] | None = None
    ) -> None:
        self._clock = clock
        # counts work as `memory.Churn` does
        self._count_work = count_work or (lambda _: None)
        self._steps: HostFairQueue[_Turn] = HostFairQueue()
        self._accepts: deque[_Turn] = deque()
        self._some_wait = trio.Event()
        self._steps_since_accept = 0
        # the weight of the last turns
        self._weight = 1

    async def step(self, who: str, weight: int = 1) -> None:
        """Wait until a connection from the host `who` may take its next step.

        The step, with all that follows from it, takes as long as `weight` ordinary ones.
        """
        mine = _Turn(weight)
        self._steps.add(who, mine)
        self._some_wait.set()
        try:
            await mine.given.wait()
        finally:
            # it is still there if it was cancelled
            self._steps.discard(who, mine)

    async def accept(self) -> None:
        """Wait until a listener may accept a connection."""
        mine = _Turn()
        self._accepts.append(mine)
        self._some_wait.set()
        try:
            await mine.given.wait()
        finally:
            if not mine.given.is_set():
                self._accepts.remove(mine)

    async def run(self) -> None:
        """Give turns whenever the loop is idle, or has been busy for long; run forever."""
        while True:
            await self._some_wait.wait()
            while self._steps or self._accepts:
                began, longest_wait_s = self._clock(), LONGEST_WAIT_S * self._weight
                with trio.move_on_after(longest_wait_s):
                    await wait_all_tasks_blocked()
                more = int((self._clock() - began) / (2 * longest_wait_s))
                left = min(1 + more, MOST_AT_ONCE)
                while left > 0 and (self._steps or self._accepts):
                    self._give_turn()
                    left -= self._weight
                # A crowd that comes and goes keeps the garbage collector busy: here it collects
                # little at a time, instead of much at some time.
                self._count_work(CHURN_OF_A_STEP * self._weight)
            self._some_wait = trio.Event()

    def _give_turn(self) -> None:
        if self._accepts and self._may_accept():
            self._steps_since_accept = 0
            self._weight = 1
            self._accepts.popleft().given.set()
            return
        mine = self._steps.next()
        if mine is not None:
            self._steps_since_accept += 1
            self._weight = mine.weight
            mine.given.set()

    def _may_accept(self) -> bool:
        if not self._steps:
            return True
        between = MANY_STEPS if len(self._steps) > MANY_STEPS else 1
        return self._steps_since_accept >= between
