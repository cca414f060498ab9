"""Messages whose sections are none, and what is left out of those that are sent on."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import Condition
from router.amqp.message import Data, Header, Message, Properties, encode_message
from router.amqp.performatives import Rejected
from router.engine.events import LinkDetached

from support.pairs import pair, several
from support.transcripts import OPAQUE

BODY = Data(b"body")
SOUND = encode_message(Message(header=Header(), properties=Properties(to="q"), body=(BODY,)))
DOUBLED = encode_message(Message(header=Header())) + SOUND
ANNOTATED = encode_message(
    Message(
        header=Header(durable=True),
        delivery_annotations={"hop": 1},
        message_annotations={"kept": "x" * 300},
        properties=Properties(subject="s"),
        body=(BODY,),
    )
)
CLEAN = encode_message(
    Message(
        header=Header(durable=True),
        message_annotations={"kept": "x" * 300},
        properties=Properties(subject="s"),
        body=(BODY,),
    )
)


def problem_of(sending: Any) -> str:
    """Return the description of the decode error that a delivery was rejected with."""
    assert isinstance(sending.outcome, Rejected)
    error = sending.outcome.error
    assert error is not None
    assert error.condition == Condition.DECODE_ERROR
    return str(error.description)


def test_a_sound_message_is_sent_on_as_it_came() -> None:
    _, sender, receiver = pair()
    sender.send(SOUND)
    assert receiver.received[0].payload == SOUND


@pytest.mark.spec("3.2-3", "B2.2.1-2")
def test_sections_out_of_order_are_refused_and_the_link_goes_on() -> None:
    router, sender, receiver = pair()
    sending = sender.send(DOUBLED)
    assert problem_of(sending) == "the header section after the header section"
    assert receiver.received == []
    sender.send(SOUND)
    assert receiver.received[0].payload == SOUND
    assert router.table.total().malformed == 1
    assert router.table.total().ingress == 2


def test_a_message_that_ends_inside_of_a_section_is_refused() -> None:
    _, sender, receiver = pair()
    assert "ends inside" in problem_of(sender.send(SOUND[:-1]))
    assert receiver.received == []


def test_what_turns_out_to_be_none_is_aborted_where_it_has_been_sent() -> None:
    _, sender, receiver = pair()
    sending = sender.send(SOUND, more=True)
    sender.go_on(b"\0\x53\x70\x45", more=True)
    assert problem_of(sending) == "the header section after the data section"
    assert receiver.received[0].aborted
    # the rest of it is nobody's
    sender.go_on(b"and so on")
    sender.send(SOUND)
    assert receiver.received[1].payload == SOUND


def test_all_copies_of_it_are_aborted() -> None:
    _, sender, receivers = several("multicast", [5, 5, 5])
    sending = sender.send(SOUND, more=True)
    sender.go_on(b"nothing")
    assert "where a section begins" in problem_of(sending)
    assert [receiver.received[0].aborted for receiver in receivers] == [True] * 3


def test_what_waits_of_it_goes_nowhere() -> None:
    router, sender, receiver = pair(window=1)
    sender.send(SOUND)
    waiting = sender.send(SOUND, more=True)
    assert router.forwarder.backlog.held_bytes == len(SOUND)
    sender.go_on(b"nothing")
    assert "where a section begins" in problem_of(waiting)
    assert router.forwarder.backlog.held_bytes == 0
    receiver.client.open_window(10)
    assert len(receiver.received) == 1


def test_a_settled_one_has_no_outcome_to_be_refused_by() -> None:
    router, sender, receiver = pair()
    sender.send(DOUBLED, settled=True)
    assert receiver.received == []
    assert sender.detached is not None
    assert sender.detached.error is not None
    assert sender.detached.error.condition == Condition.DECODE_ERROR
    detached = [event for event in router.events if isinstance(event, LinkDetached)]
    assert len(detached) == 1
    assert sender.client.connection.is_open()


@pytest.mark.parametrize("pieces", [1, 2, 7, len(ANNOTATED)])
@pytest.mark.spec("3.2.2-3")
def test_delivery_annotations_go_no_further(pieces: int) -> None:
    router, sender, receiver = pair()
    size = -(-len(ANNOTATED) // pieces)
    frames = [ANNOTATED[at : at + size] for at in range(0, len(ANNOTATED), size)]
    sender.client.open_window(1000)
    sender.send(frames[0], more=len(frames) > 1, message_format=0)
    for number, frame in enumerate(frames[1:], 2):
        sender.go_on(frame, more=number < len(frames))
    assert receiver.received[0].payload == CLEAN
    assert router.table.total().bytes_in == len(ANNOTATED)
    assert router.table.total().bytes_out == len(CLEAN)


@pytest.mark.parametrize("octets", [b"", b"\xff", DOUBLED, ANNOTATED])
def test_another_format_is_passed_on_untouched(octets: bytes) -> None:
    _, sender, receiver = pair()
    sender.send(octets, message_format=OPAQUE)
    assert receiver.received[0].payload == octets
