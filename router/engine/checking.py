"""Check the large maps of an attach over several turns, before the attach is acted on.

An unsettled map holds a composite for each delivery, which takes some microseconds to check, and a
frame has room for thousands of them. Meanwhile the connection waits, so that no later frame
overtakes the attach (docs/decisions/0090-work-goes-on-in-later-turns.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from router.amqp.encoded import EncodedMap
from router.amqp.performatives import Attach

if TYPE_CHECKING:
    from router.engine.connection import Unfinished
    from router.engine.session import Session

    class Working(Protocol):
        """Interface of `Connection` that this module uses: unfinished work, and a turn's budget."""

        unfinished: Unfinished | None

        def try_deduct_work(self, count: int) -> bool:
            """Deduct the work of `count` frames; return False if the turn's budget is used up."""


# The work of checking one value of a map, counted in per-message frames (`Connection.deduct_work`).
WORK: Final = 128


class RestOfMaps:
    """Unchecked maps of an attach, and the function to call once all of them are checked."""

    def __init__(
        self, session: Session, checks: Iterator[object], act: Callable[[], object]
    ) -> None:
        self.session = session
        self._checks = checks
        self._act = act

    def go_on(self) -> bool:
        """Check more values within the turn's budget of work; return whether all are checked.

        Raises the AmqpError that decoding the whole frame at once would raise for an invalid map.
        """
        connection: Working = self.session.connection
        while connection.try_deduct_work(WORK):
            if next(self._checks, self) is self:
                self._act()
                return True
        return False


def check_then_call(session: Session, frame: Attach, act: Callable[[], object]) -> bool:
    """Check the unchecked values in an attach's large maps, then call `act`; return True.

    If there are too many values for this turn, `act` is called in a later one. Returns False, and
    does not call `act`, if no values are unchecked. Raises AmqpError for an invalid value.
    """
    checks = [each.unchecked for each in _maps(frame) if each.unchecked is not None]
    if not checks:
        return False
    rest = RestOfMaps(session, chain.from_iterable(checks), act)
    if not rest.go_on():
        working: Working = session.connection
        working.unfinished = rest
    return True


def _maps(frame: Attach) -> Iterator[EncodedMap]:
    """Yield the maps of an attach whose values must have certain types."""
    found: tuple[object, ...] = (
        frame.unsettled,
        getattr(frame.source, "dynamic_node_properties", None),
        getattr(frame.target, "dynamic_node_properties", None),
    )
    return (each for each in found if isinstance(each, EncodedMap))
