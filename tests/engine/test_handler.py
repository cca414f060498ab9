"""A handler that overrides nothing hears everything and does nothing."""

from __future__ import annotations

from router.amqp.performatives import Disposition, Flow, Transfer
from router.engine.handler import Handler

from support.transcripts import On, attach_receiver, attach_sender, begun


def test_a_handler_need_not_listen() -> None:
    talk = begun(Handler())
    talk >> [attach_sender(), attach_receiver()]
    flow = Flow(next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=9)
    talk >> flow >> Disposition(True, 0, 5, True) >> Disposition(False, 0, 5, True)
    talk >> On(0, Transfer(0, 0, b"t"), b"x")
    talk.connection.end_of_input()
    assert talk.connection.finished


def test_a_handler_may_override_a_part() -> None:
    class Counting(Handler):
        def __init__(self) -> None:
            self.events = 0

        def event_received(self, connection: object, event: object) -> None:
            self.events += 1

    handler = Counting()
    begun(handler)
    # the open that came, the connection and the session
    assert handler.events == 3
