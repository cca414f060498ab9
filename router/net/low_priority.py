"""Give connections that are not open yet their turns with low priority.

Anybody can connect, so a crowd of such connections must not slow down the open ones. Each of their
steps waits for a turn: to be accepted, to begin, to read, to close. They get it when the event loop
is idle. If the loop is always busy, they get about a third of its time
(docs/decisions/0120-low-priority-before-the-open.md).

Steps of failing hosts rest after each turn while open connections are active
(docs/decisions/0126-slow-service-for-those-that-fail.md).
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
from router.net.failing import FailingHosts

# An ordinary step takes 0.1 to 0.2 ms. A busy loop takes one in each interval of this length,
# and more at a time if rounds of the loop take longer.
LONGEST_WAIT_S: Final = 0.0005
MOST_AT_ONCE: Final = 8
# While more steps than this wait, as many are taken before another connection is accepted. It would
# only wait here instead of in the backlog of its listener.
MANY_STEPS: Final = 16
# Rest of all failing hosts after an ordinary step of one of them, while others are active. A
# connection takes four to six such steps.
REST_S: Final = 0.01
# The most connections of one failing host that wait to begin while others are active.
CROWD: Final = 64
# The queue of connections that wait to begin, so that they do not delay those that have begun.
BEGIN: Final = "begin"

# What a step counts as garbage, as a number of links that attach.
CHURN_OF_A_STEP: Final = 2


@attrs.frozen(eq=False)
class _Turn:
    given: trio.Event = attrs.field(factory=trio.Event, init=False)
    weight: int = 1


class LowPriorityTurns:
    """Turns for steps of connections that are not open yet; hosts get them alternately."""

    def __init__(
        self,
        clock: Callable[[], float],
        others_are_active: Callable[[], bool] = lambda: False,
        count_work: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.failing_hosts = FailingHosts(clock)
        self._clock = clock
        self.others_are_active = others_are_active
        # counts work as `memory.Churn` does
        self._count_work = count_work
        self._steps: HostFairQueue[_Turn] = HostFairQueue()
        # steps of failing hosts
        self._slow_steps: HostFairQueue[_Turn] = HostFairQueue()
        self._rests_until = float("-inf")
        self._accepts: deque[_Turn] = deque()
        # set when anything waits
        self._some_wait = trio.Event()
        # set when anything but a slow step waits
        self._some_hurry = trio.Event()
        self._steps_since_accept = 0
        # the weight of the last turns
        self._weight = 1

    async def step(
        self, host: str, weight: int = 1, queue: str = "", *, fails: bool = False
    ) -> None:
        """Wait until a connection from a host may take its next step.

        The step, with all that follows from it, takes as long as `weight` ordinary ones. Each host
        has a queue of each name that is given. With `fails`, the connection is treated as one of a
        failing host.
        """
        mine = _Turn(weight)
        is_slow = fails or self.failing_hosts.is_failing(host)
        steps = self._slow_steps if is_slow else self._steps
        who = f"{host} {queue}"
        steps.add(who, mine)
        self._wake(is_slow)
        try:
            await mine.given.wait()
        finally:
            # it is still there if it was cancelled
            steps.discard(who, mine)

    def is_slowed(self, host: str) -> bool:
        """Return whether a host fails, and others are active that come first."""
        return self.failing_hosts.is_failing(host) and self.others_are_active()

    def is_crowded(self, host: str) -> bool:
        """Return whether a host fails, and so many of its connections wait that no more should."""
        return self._slow_steps.count(f"{host} {BEGIN}") >= CROWD and self.others_are_active()

    async def begin(self, host: str) -> None:
        """Wait until a new connection from a host may begin, in a queue for these."""
        await self.step(host, queue=BEGIN)

    async def accept(self) -> None:
        """Wait until a listener may accept a connection."""
        mine = _Turn()
        self._accepts.append(mine)
        self._wake()
        try:
            await mine.given.wait()
        finally:
            if not mine.given.is_set():
                self._accepts.remove(mine)

    def _wake(self, is_slow: bool = False) -> None:
        self._some_wait.set()
        if not is_slow:
            self._some_hurry.set()

    async def run(self) -> None:
        """Give turns whenever the loop is idle, or has been busy for long; run forever."""
        while True:
            await self._some_wait.wait()
            while self._steps or self._slow_steps or self._accepts:
                await self._rest()
                began, longest_wait_s = self._clock(), LONGEST_WAIT_S * self._weight
                with trio.move_on_after(longest_wait_s):
                    await wait_all_tasks_blocked()
                more = int((self._clock() - began) / (2 * longest_wait_s))
                left = min(1 + more, MOST_AT_ONCE)
                while left > 0 and self._give_turn():
                    left -= self._weight
                # A crowd that comes and goes keeps the garbage collector busy: here it collects
                # little at a time, instead of much at some time.
                self._count_work(CHURN_OF_A_STEP * self._weight)
            self._some_wait = trio.Event()

    async def _rest(self) -> None:
        """Wait while only steps of failing hosts wait, and these rest."""
        while not (self._steps or self._accepts) and self.others_are_active():
            left_s = self._rests_until - self._clock()
            if left_s <= 0:
                return
            self._some_hurry = trio.Event()
            with trio.move_on_after(left_s):
                await self._some_hurry.wait()

    def _give_turn(self) -> bool:
        """Give the next turn; return False if nothing may have one."""
        has_rested = self._clock() >= self._rests_until
        if self._accepts and self._may_accept(has_rested):
            self._steps_since_accept = 0
            self._weight = 1
            self._accepts.popleft().given.set()
            return True
        mine = self._next_slow_step() if has_rested else None
        if mine is None:
            mine = self._steps.next()
        if mine is None and not self.others_are_active():
            mine = self._next_slow_step()
        if mine is None:
            return False
        self._steps_since_accept += 1
        self._weight = mine.weight
        mine.given.set()
        return True

    def _next_slow_step(self) -> _Turn | None:
        mine = self._slow_steps.next()
        if mine is not None:
            self._rests_until = self._clock() + REST_S * mine.weight
        return mine

    def _may_accept(self, has_rested: bool) -> bool:
        if not self._steps and not (has_rested and self._slow_steps):
            return True
        between = MANY_STEPS if len(self._steps) > MANY_STEPS else 1
        return self._steps_since_accept >= between
