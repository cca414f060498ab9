"""Work that is put off to later turns, a step at a time, so that no turn takes long.

What one event leads to may be as much as a peer likes: a connection that is lost may have had tens
of thousands of links. Whoever has so much to do does the first part at once and leaves the rest
here. Between two turns everybody else is served
(docs/decisions/0090-work-goes-on-in-later-turns.md).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from itertools import islice
from typing import Any, Generic, Protocol, TypeVar

# So many things are gone through in the turn that asks for it, and so many in each later step.
THINGS_AT_ONCE = 1024
THINGS_A_STEP = 32
# Of what becomes other with the configuration as much is done in the turn of the change: there may
# be several kinds of it.
CHANGES_AT_ONCE = 128

T = TypeVar("T")


class Task(Protocol):
    """Something that is done step by step."""

    def step(self) -> bool:
        """Do a little, a hundred microseconds at most; return whether anything is left to do."""


class Deferred:
    """The tasks of one router that are not done yet; they take turns, one step each."""

    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()

    def __bool__(self) -> bool:
        return bool(self.tasks)

    def add(self, task: Task) -> None:
        """Have a task done in later turns."""
        self.tasks.append(task)

    def start(
        self, task: Task, steps: int, before_deferring: Callable[[], None] | None = None
    ) -> None:
        """Take the first `steps` of a task at once, and the others in later turns.

        `before_deferring` is called where there are others.
        """
        for _ in range(steps):
            if not task.step():
                return
        if before_deferring is not None:
            before_deferring()
        self.add(task)

    def go_through(
        self,
        things: Iterable[T],
        act: Callable[[T], None],
        over: Callable[[], None] | None = None,
        at_once: int = THINGS_AT_ONCE,
    ) -> None:
        """Do something with the first of many things at once, and with the others in later turns.

        What is done has to be right for a thing to which something has happened meanwhile. `over`
        is called after the last of them.
        """
        self.start(_Things(iter(things), act, over), at_once // THINGS_A_STEP)

    def work_off(self, steps: Iterable[object]) -> None:
        """Do the first of many steps at once, which are of a configuration, and the others in later
        turns; see `go_through`.
        """
        self.go_through(steps, _nothing, at_once=CHANGES_AT_ONCE)

    def forget(self, pieces: Iterable[object]) -> None:
        """Forget in later turns what was made of very many pieces, by taking it apart: if all of it
        went at once, with the last that knew of it, that would take long.
        """
        self.add(_Things(iter(pieces), _nothing, None))

    def step(self) -> bool:
        """Do one step of the task whose turn it is; return whether anything is left to do."""
        if self.tasks:
            task = self.tasks.popleft()
            # a step may put off other work, which comes before the rest of this
            if task.step():
                self.tasks.append(task)
        return bool(self.tasks)


def emptied(mapping: MutableMapping[Any, Any]) -> Iterator[object]:
    """What is in a mapping, each taken out of it; see `Deferred.forget`."""
    while mapping:
        yield mapping.popitem()


def drained(things: list[T]) -> Iterator[T]:
    """What is on a list, from its end, each taken off it."""
    while things:
        yield things.pop()


def _nothing(_: object) -> None:
    """All that is to be done is done on the way here."""


class _Things(Generic[T]):
    """Things that something is done with one after the other."""

    def __init__(
        self, things: Iterator[T], act: Callable[[T], None], over: Callable[[], None] | None
    ) -> None:
        self._things = things
        self._act = act
        self._over = over

    def step(self) -> bool:
        """Go through a few more."""
        count = 0
        for thing in islice(self._things, THINGS_A_STEP):
            self._act(thing)
            count += 1
        if count == THINGS_A_STEP:
            return True
        if self._over is not None:
            self._over()
        return False
