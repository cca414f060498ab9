"""Defer work to later turns, step by step, so that no turn takes long.

A peer decides how much work one event causes: a lost connection may have had tens of thousands of
links. The first steps are done immediately and the rest is deferred. Between two turns the router
serves everything else (docs/decisions/0090-work-goes-on-in-later-turns.md).

Many such events may come in one round of the event loop: thousands of connections may be lost
together. So all turns of a round share one budget of immediate steps. When the budget is used up,
work is deferred from its first step on (docs/decisions/0091-one-budget-for-each-round.md).
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from itertools import islice
from typing import Generic, Protocol, TypeVar

# How many steps all turns of one round of the event loop may do immediately, together.
STEPS_A_ROUND = 64
# How many items are processed in the turn that asks for the work, and how many in each step.
ITEMS_AT_ONCE = 1024
ITEMS_PER_STEP = 32
# How many items are processed in the turn of a configuration change: fewer, because there may be
# several kinds of items.
CHANGES_AT_ONCE = 128

T = TypeVar("T")

K = TypeVar("K")
V = TypeVar("V")


class Task(Protocol):
    """Work that is done in steps."""

    def step(self) -> bool:
        """Do one step, of 100 microseconds at most; return whether anything is left to do."""


class Deferred:
    """Queue of a router's unfinished tasks, which take turns, one step each."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()
        # how many steps may still be done immediately in this round
        self.left = STEPS_A_ROUND
        self._defers = True

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def begin_round(self) -> None:
        """Start a new round of the event loop, with a full budget of immediate steps."""
        self.left = STEPS_A_ROUND

    def needs_round(self) -> bool:
        """Return whether another round is needed: to continue tasks, or to restore the budget."""
        return bool(self.tasks) or self.left < STEPS_A_ROUND

    @contextmanager
    def all_at_once(self) -> Iterator[None]:
        """Run tasks to their end as soon as they are started, within this context.

        This is for a router that is stopping: later turns would be too late.
        """
        self._defers = False
        try:
            yield
        finally:
            self._defers = True

    def add(self, task: Task) -> None:
        """Defer a task to later turns."""
        self.tasks.append(task)

    def start(
        self,
        task: Task,
        steps: int,
        before_deferring: Callable[[], None] | None = None,
        weight: int = 1,
    ) -> None:
        """Do the first `steps` steps of a task immediately and defer the others.

        If the budget of this round is used up earlier, fewer steps are done immediately; within
        `all_at_once`, all are. `before_deferring` is called if any steps are deferred. A step takes
        as long as `weight` ordinary ones.
        """
        while not self._defers or (steps > 0 and self.left >= weight):
            steps -= 1
            self.left -= weight
            if not task.step():
                return
        if before_deferring is not None:
            before_deferring()
        self.add(task)

    def process_each(
        self,
        items: Iterable[T | None],
        act: Callable[[T], None],
        over: Callable[[], None] | None = None,
        at_once: int = ITEMS_AT_ONCE,
    ) -> None:
        """Call `act` with each item: now with at most `at_once` of them, later with the rest.

        Items may change before `act` is called with them. If finding the next item takes long,
        `items` may yield None, which only counts as work. `over` is called after the last item.
        """
        self.start(_ItemTask(iter(items), act, over), at_once // ITEMS_PER_STEP)

    def run_steps(self, steps: Iterable[object], at_once: int = CHANGES_AT_ONCE) -> None:
        """Advance an iterator to its end; each advance does a step of some work.

        At most `at_once` steps are done immediately, the others in later turns.
        """
        self.process_each(steps, _nothing, at_once=at_once)

    def forget(self, pieces: Iterable[object]) -> None:
        """Free a large structure in later turns; `pieces` removes its parts and yields them.

        To free the whole structure at once would take too long for one turn.
        """
        self.add(_ItemTask(iter(pieces), _nothing, None))

    def step(self) -> bool:
        """Do one step of the next task; return whether anything is left to do."""
        if self.tasks:
            task = self.tasks.popleft()
            # a step may defer other work, which comes before the rest of this task
            if task.step():
                self.tasks.append(task)
        return bool(self.tasks)


class DeferredPass:
    """Pass over items in steps; a new pass does not start before the last one is finished.

    The first `at_once` steps of a pass are done immediately, the others in later turns.
    """

    def __init__(self, at_once: int = CHANGES_AT_ONCE) -> None:
        self.is_running = False
        self._at_once = at_once

    def start(self, deferred: Deferred, steps: Iterable[object]) -> None:
        """Start a pass, which does a step each time `steps` is advanced, unless one is running."""
        if not self.is_running:
            self.is_running = True
            deferred.run_steps(self._run(steps), self._at_once)

    def _run(self, steps: Iterable[object]) -> Iterator[object]:
        yield from steps
        self.is_running = False


def grow_old() -> None:
    """Move all objects to the garbage collector's oldest generation, in constant time.

    That generation is collected only on request, so that the collector does not walk over a large
    new structure within a turn (docs/decisions/0008-collector.md).
    """
    gc.freeze()
    gc.unfreeze()


def pop_items(mapping: MutableMapping[K, V]) -> Iterator[tuple[K, V]]:
    """Remove the items of a mapping one by one and yield each, for `Deferred.forget`."""
    while mapping:
        yield mapping.popitem()


def pop_from_end(items: list[V]) -> Iterator[V]:
    """Remove the items of a list one by one, from the last on, and yield each."""
    while items:
        yield items.pop()


def _nothing(_: object) -> None:
    """Do nothing, because the iterator has done the work already."""


class _ItemTask(Generic[T]):
    """Task that calls a function with one item after the other."""

    def __init__(
        self, items: Iterator[T | None], act: Callable[[T], None], over: Callable[[], None] | None
    ) -> None:
        self._items = items
        self._act = act
        self._over = over

    def step(self) -> bool:
        """Process the next few items; return whether there may be more."""
        count = 0
        for item in islice(self._items, ITEMS_PER_STEP):
            if item is not None:
                self._act(item)
            count += 1
        if count == ITEMS_PER_STEP:
            return True
        if self._over is not None:
            self._over()
        return False
