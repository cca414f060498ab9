"""Check the large maps of an attach over several turns, before anything is done about it.

What an unsettled map says of each delivery is a composite, which takes some microseconds to check,
and a frame has room for thousands of them. The connection waits meanwhile, so that nothing behind
the attach overtakes it (docs/decisions/0090-work-goes-on-in-later-turns.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol

from router.amqp.encoded import EncodedMap
from router.amqp.performatives import Attach

if TYPE_CHECKING:
    from router.engine.connection import Unfinished
    from router.engine.session import Session

    class Working(Protocol):
        """The connection whose turn it is, as far as the work of that goes."""

        unfinished: Unfinished | None

        def has_room_for(self, count: int) -> bool:
            """Return whether this turn goes on; so many frames' work is done in it then."""


# What one value of a map takes, in frames that come once a message (`Connection.count_work`).
WORK: Final = 128


class RestOfMaps:
    """What is left to check of an attach's maps; `act` is called once all has been checked."""

    def __init__(
        self, session: Session, checks: Iterator[object], act: Callable[[], object]
    ) -> None:
        self.session = session
        self._checks = checks
        self._act = act

    def go_on(self) -> bool:
        """Check as much as the connection's turn has room for; return whether it is done.

        Raises AmqpError, as the decoding of the frame would have.
        """
        connection: Working = self.session.connection
        while connection.has_room_for(WORK):
            if next(self._checks, self) is self:
                self._act()
                return True
        return False


def once_checked(session: Session, frame: Attach, act: Callable[[], object]) -> bool:
    """Call `act` when all maps of an attach have been checked, in a later turn if they are large;
    return False where nothing is left to check, and do nothing.

    Raises AmqpError for what the maps may not contain.
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
    """Yield the maps of an attach whose values are of certain types."""
    found: tuple[Any, ...] = (
        frame.unsettled,
        getattr(frame.source, "dynamic_node_properties", None),
        getattr(frame.target, "dynamic_node_properties", None),
    )
    return (each for each in found if isinstance(each, EncodedMap))
