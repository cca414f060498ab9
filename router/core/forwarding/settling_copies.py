"""Pass a sender's disposition to very many receivers of its message, over several turns.

One disposition may name many such messages, so the work for each is counted for the sender's
connection, whose turn then ends earlier (docs/decisions/0092-copies-in-later-turns.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from router.amqp.reading_disposition import DispositionFrame
from router.engine.deferred import ITEMS_PER_STEP
from router.engine.delivery import Delivery, parts_of

if TYPE_CHECKING:
    from router.core.forwarding.settlement import Settler
    from router.engine.connection import Connection

# How many receivers are told in one turn; equal to the number of copies made in one turn.
AT_ONCE = 512
# Work of telling one receiver, counted in frames (`Connection.deduct_work`).
WORK = 2


def tell(
    settler: Settler, delivery: Delivery, frame: DispositionFrame, code: int, count: int
) -> None:
    """Pass a sender's disposition to the receivers of all copies, partly in later turns."""
    connection: Connection = delivery.incoming.session.connection
    connection.deduct_work(WORK * AT_ONCE)
    # a copy, because the input buffer is about to be overwritten
    steps = _told(settler, parts_of(delivery), frame.copy(), code, count)
    settler.turn.deferred.run_steps(steps, at_once=AT_ONCE)


def _told(
    settler: Settler, copies: Iterator[Delivery], frame: DispositionFrame, code: int, count: int
) -> Iterator[object]:
    while some := list(islice(copies, ITEMS_PER_STEP)):
        settler.pass_to_receivers(some, frame, code, count)
        yield from range(len(some))
