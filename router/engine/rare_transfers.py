"""Transfers that say more than that a message comes (section 2.7.5).

A sender may ask with one that it be settled in another way than its link is; we say with one that
the rest of a delivery never comes.
"""

from __future__ import annotations

from typing import Any

from router.amqp.writing import write_transfer
from router.engine import serial, violations
from router.engine.states import Settling

FIRST = 0
SECOND = 1


def begin(delivery: Any, frame: Any) -> bool:
    """Note what the first transfer of an incoming delivery says, or its link stands for.

    False when the link had to be detached.
    """
    link = delivery.incoming
    if frame.settled:
        # the mode is for what is unsettled
        return True
    if link.settles_second:
        if frame.rcv_settle_mode != FIRST:
            delivery.settling = int(Settling.SECOND)
    elif frame.rcv_settle_mode == SECOND:
        link.session.connection.fail_link(link, violations.settles_first())
        return False
    return True


def abort(delivery: Any) -> None:
    """Tell the receiver that the rest of a half-sent delivery never comes."""
    link = delivery.outgoing
    session = link.session
    session.close_outgoing(delivery)
    write_transfer(
        session.outbox.output, session.channel, link.handle, False, delivery.outgoing_id, None, 0,
        True, False, True, b"", 0, 0,
    )  # fmt: skip
    session.remote_incoming_window -= 1
    session.next_outgoing_id = serial.add(session.next_outgoing_id, 1)
    session.outbox.touch()
