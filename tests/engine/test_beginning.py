"""Sessions come and go: begin and end, from either side."""

from __future__ import annotations

import pytest

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Begin,
    Close,
    Detach,
    End,
    Error,
    Open,
)
from router.amqp.types import Symbol
from router.engine import beginning
from router.engine.events import (
    SessionBegun,
    SessionEnded,
)
from router.errors import AmqpError, Scope

from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Talk,
    attach_sender,
    begin,
    begun,
    failed,
    gone,
    like,
    linked,
    message,
    opened,
    reasons,
    session_of,
    wire,
)

PROBLEM = AmqpError("amqp:link:detach-forced", "a test's own", Scope.LINK)
TOLD = Error(Symbol("amqp:link:detach-forced"), description="a test's own")


@pytest.mark.spec("2.1.2-2", "2.4-1", "2.5.1-1", "2.5.1-3", "2.7.2-2")
def test_a_begin_is_answered_on_a_channel_of_our_own() -> None:
    talk = opened() >> On(5, begin(next_outgoing_id=7, incoming_window=3, handle_max=4))
    talk << On(0, like(Begin, remote_channel=5, next_outgoing_id=0, incoming_window=64))
    session = talk.recorder.of(SessionBegun)[0].session
    assert (session.next_incoming_id, session.remote_incoming_window) == (7, 3)
    talk >> On(2, begin()) << On(1, like(Begin, remote_channel=2)) << NOTHING


@pytest.mark.spec("2.5.1-2")
def test_a_channel_that_ended_is_used_again() -> None:
    talk = opened() >> [On(channel, begin()) for channel in range(3)]
    talk.skip() >> On(1, End()) << On(1, End()) << NOTHING
    talk >> On(9, begin()) << On(1, like(Begin, remote_channel=9)) << NOTHING


@pytest.mark.spec("B2.3.4-3")
def test_a_begin_on_a_channel_in_use_ends_its_session() -> None:
    talk = linked() >> begin() << failed(End, "amqp:not-allowed") << NOTHING
    assert len(gone(talk)) == 2
    talk >> [message(0), End()] << NOTHING >> begin() << like(Begin, remote_channel=0) << NOTHING


def broken_begin(channel: int) -> bytes:
    """Encode a begin of four fields without its mandatory next-outgoing-id."""
    return bytes.fromhex(f"00000012 0200 {channel:04x} 005311 c00504 40404343")


@pytest.mark.spec("B2.3.4-3", "0.2-5")
def test_a_begin_whose_fields_cannot_be_is_answered_and_ended() -> None:
    talk = opened() >> broken_begin(3)
    talk << On(0, like(Begin, remote_channel=3)) << On(0, failed(End, "amqp:invalid-field"))
    # what was sent before the end was heard is ignored
    talk >> [On(3, attach_sender()), On(3, message(0).performative, b"x")] << NOTHING
    talk >> On(3, End()) << NOTHING
    assert [len(talk.recorder.of(kind)) for kind in (SessionBegun, SessionEnded)] == [1, 1]
    # channel and connection are as good as ever
    talk >> On(3, begin()) << On(0, like(Begin, remote_channel=3)) << NOTHING


@pytest.mark.spec("B2.3.4-2")
def test_a_broken_begin_closes_where_the_channels_are_not_known() -> None:
    close = failed(Close, "amqp:invalid-field")
    opened(channel_max=2) >> broken_begin(3) << close << OVER
    (opened(remote=Open("c", channel_max=0)) >> begin()).skip() >> broken_begin(3) << close << OVER
    begun() >> broken_begin(0) << close << OVER
    talk = opened()
    beginning.begin(talk.connection)
    talk.skip() >> broken_begin(3) << close << OVER
    # before the open, and where not even the frame can be read
    talk = Talk(sasl_mechanisms=()) >> AMQP_HEADER >> broken_begin(0)
    talk << AMQP_HEADER << Open << close << OVER
    opened() >> (wire(begin())[:-1] + b"\xff") << failed(Close, "amqp:decode-error") << OVER


@pytest.mark.spec("2.7.1-8")
def test_a_channel_beyond_the_highest_closes() -> None:
    opened(channel_max=3) >> On(3, begin()) << Begin << NOTHING
    for frame in (begin(), message(0).performative, End()):
        talk = opened(channel_max=3) >> On(4, frame)
        talk << failed(Close, "amqp:connection:framing-error") << OVER


@pytest.mark.spec("2.4.1-4", "2.7.1-7")
def test_more_sessions_than_the_peer_takes_close() -> None:
    talk = opened(remote=Open("c", channel_max=1), channel_max=9)
    talk >> [On(0, begin()), On(1, begin())] << Begin << Begin << NOTHING
    talk >> On(2, begin()) << failed(Close, "amqp:connection:framing-error") << OVER


def test_all_channels_can_be_used_in_reasonable_time() -> None:
    talk = opened()
    talk >> [On(channel, begin()) for channel in range(3000)]
    assert len(talk.connection.local_sessions) == 3000


def test_an_end_is_answered() -> None:
    error = Error(Symbol("x"))
    talk = linked() >> End(error) << End() << NOTHING
    assert gone(talk) == [("sender-0", False, True), ("receiver-1", False, True)]
    assert [(e.error, e.by_peer) for e in talk.recorder.of(SessionEnded)] == [(error, True)]
    assert reasons(talk) == [(error, True)] * 2
    talk >> message(0) << failed(Close, "amqp:not-allowed") << OVER


@pytest.mark.spec("2.5.3-1")
def test_both_may_end_a_session_at_once() -> None:
    talk = linked()
    beginning.end(session_of(talk))
    talk >> End() << End() << NOTHING
    assert len(talk.recorder.of(SessionEnded)) == 1
    talk >> begin() << like(Begin, remote_channel=0) << NOTHING


@pytest.mark.spec("2.5.2-1")
def test_links_say_what_they_were_lost_with() -> None:
    talk = linked()
    beginning.end(session_of(talk), PROBLEM)
    assert reasons(talk) == [(TOLD, False)] * 2
    assert [e.by_peer for e in talk.recorder.of(SessionEnded)] == [False]
    talk = linked()
    talk.connection.close(PROBLEM)
    assert reasons(talk) == [(TOLD, False)] * 2
    talk = linked() >> Close(TOLD)
    assert reasons(talk) == [(TOLD, True)] * 2
    assert [(e.error, e.by_peer) for e in talk.recorder.of(SessionEnded)] == [(None, True)]
    talk = linked()
    talk.connection.end_of_input()
    ((error, by_peer), _) = reasons(talk)
    assert error is not None
    assert (error.description, by_peer) == ("the socket was closed", True)


@pytest.mark.parametrize("error", [None, PROBLEM])
@pytest.mark.spec("2.5.4-2", "2.5.5-1", "2.7.8-1")
def test_what_was_under_way_when_a_session_ended_is_ignored(error: AmqpError | None) -> None:
    talk = linked()
    session = session_of(talk)
    beginning.end(session, error)
    beginning.end(session, error)
    session.schedule_flow()
    talk << End(None if error is None else TOLD)
    talk >> message(0) >> attach_sender(3) >> Detach(0) >> Detach(77) << NOTHING
    talk >> begin() << failed(Close, "amqp:not-allowed") << OVER


@pytest.mark.spec("2.5.1-3", "2.7.2-1")
def test_a_session_of_our_own() -> None:
    talk = opened()
    session = beginning.begin(talk.connection)
    talk << On(0, like(Begin, remote_channel=None)) << NOTHING
    talk >> On(6, begin(remote_channel=0, incoming_window=9)) << NOTHING
    assert talk.recorder.of(SessionBegun) == [SessionBegun(session)]
    assert (session.remote_channel, session.remote_incoming_window) == (6, 9)
    assert beginning.begin(talk.connection).channel == 1


@pytest.mark.spec("2.7.1-7")
def test_sessions_of_our_own_run_out() -> None:
    talk = opened(remote=Open("c", channel_max=1))
    beginning.begin(talk.connection)
    beginning.begin(talk.connection)
    with pytest.raises(AmqpError, match="resource-limit-exceeded"):
        beginning.begin(talk.connection)


@pytest.mark.parametrize("channel", [0, 3, 65535])
def test_an_answer_to_a_begin_that_never_was_closes(channel: int) -> None:
    talk = opened() >> On(1, begin(remote_channel=channel))
    talk << failed(Close, "amqp:invalid-field") << OVER


def test_a_begin_is_answered_once() -> None:
    talk = opened()
    beginning.begin(talk.connection)
    talk.skip() >> On(1, begin(remote_channel=0)) >> On(2, begin(remote_channel=0))
    talk << failed(Close, "amqp:illegal-state") << OVER


def test_an_end_before_our_begin_was_answered_closes() -> None:
    talk = opened()
    beginning.begin(talk.connection)
    talk.skip() >> End() << failed(Close, "amqp:not-allowed") << OVER
