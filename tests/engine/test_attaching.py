"""Sessions and links come and go: begin, end, attach and detach, from either side."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Coordinator,
    Detach,
    End,
    Error,
    Open,
    Source,
    Target,
)
from router.amqp.types import Symbol
from router.engine import attaching
from router.engine.events import (
    LinkAttached,
    LinkAttachReceived,
    LinkDetached,
    LinkRefused,
    SessionBegun,
    SessionEnded,
)
from router.engine.link import IncomingLink, OutgoingLink
from router.errors import AmqpError, Scope

from support.transcripts import (
    NOTHING,
    OVER,
    On,
    Recorder,
    Talk,
    attach_receiver,
    attach_sender,
    begin,
    begun,
    failed,
    like,
    linked,
    message,
    opened,
    wire,
)

PROBLEM = AmqpError("amqp:link:detach-forced", "a test's own", Scope.LINK)
TOLD = Error(Symbol("amqp:link:detach-forced"), description="a test's own")


def session_of(talk: Talk, channel: int = 0) -> Any:
    return talk.connection.local_sessions[channel]


def reasons(talk: Talk) -> list[tuple[Error | None, bool]]:
    """Why links are over, and whether the peer said so."""
    return [(e.error, e.by_peer) for e in talk.recorder.of(LinkDetached)]


def gone(talk: Talk) -> list[tuple[str, bool, bool]]:
    return [(e.link.name, e.closed, e.lost) for e in talk.recorder.of(LinkDetached)]


# Sessions (section 2.5).


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
    """A begin of four fields without its next-outgoing-id, which has to be there."""
    return bytes.fromhex(f"00000012 0200 {channel:04x} 005311 c00504 40404343")


@pytest.mark.spec("B2.3.4-3")
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
    attaching.begin(talk.connection)
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
    attaching.end(session_of(talk))
    talk >> End() << End() << NOTHING
    assert len(talk.recorder.of(SessionEnded)) == 1
    talk >> begin() << like(Begin, remote_channel=0) << NOTHING


@pytest.mark.spec("2.5.2-1")
def test_links_say_what_they_were_lost_with() -> None:
    talk = linked()
    attaching.end(session_of(talk), PROBLEM)
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
@pytest.mark.spec("2.5.4-2", "2.5.5-1")
def test_what_was_under_way_when_a_session_ended_is_ignored(error: AmqpError | None) -> None:
    talk = linked()
    attaching.end(session_of(talk), error)
    attaching.end(session_of(talk), error)
    talk << End(None if error is None else TOLD)
    talk >> message(0) >> attach_sender(3) >> Detach(0) >> Detach(77) << NOTHING
    talk >> begin() << failed(Close, "amqp:not-allowed") << OVER


@pytest.mark.spec("2.5.1-3", "2.7.2-1")
def test_a_session_of_our_own() -> None:
    talk = opened()
    session = attaching.begin(talk.connection)
    talk << On(0, like(Begin, remote_channel=None)) << NOTHING
    talk >> On(6, begin(remote_channel=0, incoming_window=9)) << NOTHING
    assert talk.recorder.of(SessionBegun) == [SessionBegun(session)]
    assert (session.remote_channel, session.remote_incoming_window) == (6, 9)
    assert attaching.begin(talk.connection).channel == 1


@pytest.mark.spec("2.7.1-7")
def test_sessions_of_our_own_run_out() -> None:
    talk = opened(remote=Open("c", channel_max=1))
    attaching.begin(talk.connection)
    attaching.begin(talk.connection)
    with pytest.raises(AmqpError, match="resource-limit-exceeded"):
        attaching.begin(talk.connection)


@pytest.mark.parametrize("channel", [0, 3, 65535])
def test_an_answer_to_a_begin_that_never_was_closes(channel: int) -> None:
    talk = opened() >> On(1, begin(remote_channel=channel))
    talk << failed(Close, "amqp:invalid-field") << OVER


def test_a_begin_is_answered_once() -> None:
    talk = opened()
    attaching.begin(talk.connection)
    talk.skip() >> On(1, begin(remote_channel=0)) >> On(2, begin(remote_channel=0))
    talk << failed(Close, "amqp:illegal-state") << OVER


def test_an_end_before_our_begin_was_answered_closes() -> None:
    talk = opened()
    attaching.begin(talk.connection)
    talk.skip() >> End() << failed(Close, "amqp:not-allowed") << OVER


# Links (section 2.6).


@pytest.mark.spec("2.6.2-1", "2.6.3-3", "2.7.3-9", "2.7.3-13")
def test_an_attach_is_answered() -> None:
    talk = begun() >> attach_sender(4, "q", snd_settle_mode=0, rcv_settle_mode=1)
    talk << like(
        Attach,
        name="sender-4",
        handle=0,
        role=True,
        snd_settle_mode=0,
        rcv_settle_mode=1,
        source=Source(),
        target=Target(address="q"),
        initial_delivery_count=None,
        unsettled=None,
    )
    talk >> attach_receiver(2) << like(Attach, handle=1, role=False, initial_delivery_count=0)
    links = talk.recorder.links
    assert isinstance(links["sender-4"], IncomingLink)
    assert isinstance(links["receiver-2"], OutgoingLink)


@pytest.mark.spec("2.7.3-1", "2.7.3-3")
def test_the_lowest_free_handle_is_used() -> None:
    talk = begun() >> [attach_sender(n) for n in range(4)]
    talk.skip() >> Detach(1, True) << Detach(1, True)
    talk >> attach_sender(9) << like(Attach, handle=1)
    talk >> attach_sender(1) << like(Attach, handle=4) << NOTHING


@pytest.mark.spec("2.7.3-2")
def test_a_handle_in_use_closes() -> None:
    talk = linked() >> attach_sender(0, name="other")
    talk << failed(Close, "amqp:session:handle-in-use") << OVER
    assert len(gone(talk)) == 2


@pytest.mark.spec("2.7.2-4")
def test_a_handle_beyond_the_highest_closes() -> None:
    begun(handle_max=3) >> attach_sender(3) << Attach << NOTHING
    talk = begun(handle_max=3) >> attach_sender(4)
    talk << failed(Close, "amqp:connection:framing-error") << OVER


@pytest.mark.spec("2.4.1-4", "2.7.2-3")
def test_more_links_than_the_peer_takes_end_the_session() -> None:
    talk = begun(begin={"handle_max": 1}) >> [attach_sender(n) for n in range(2)]
    talk.skip() >> attach_sender(2) << failed(End, "amqp:resource-limit-exceeded") << NOTHING


def test_all_handles_can_be_used_in_reasonable_time() -> None:
    talk = begun(handle_max=2000)
    talk >> [attach_sender(n) for n in range(2001)]
    assert len(talk.frames()) == 2001
    talk >> [frame for _ in range(500) for frame in (Detach(5, True), attach_sender(5))]
    assert len(talk.frames()) == 1000


@pytest.mark.parametrize("frame", [Detach(0), Detach(7), Detach(65535)])
@pytest.mark.spec("2.8.17-2")
def test_detaching_what_is_not_attached_ends_the_session(frame: Detach) -> None:
    begun() >> frame << failed(End, "amqp:session:unattached-handle") << NOTHING


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.spec("2.6.4-1", "2.6.6-1", "2.8.17-2")
def test_a_detach_is_answered_in_kind(closed: bool) -> None:
    error = Error(Symbol("x"))
    talk = linked() >> Detach(0, closed, error) << Detach(0, closed) << NOTHING
    assert gone(talk) == [("sender-0", closed, False)]
    assert talk.recorder.of(LinkDetached)[0].error == error
    talk >> message(0) << failed(End, "amqp:session:unattached-handle")


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("error", [None, PROBLEM])
@pytest.mark.spec("2.6.4-1", "2.6.5-1", "2.7.7-1", "2.7.7-2")
def test_our_own_detach(closed: bool, error: AmqpError | None) -> None:
    talk = linked()
    link = talk.recorder.links["sender-0"]
    attaching.detach(link, closed, error)
    attaching.detach(link, closed, error)
    talk << Detach(0, closed, None if error is None else TOLD) << NOTHING
    assert gone(talk) == [("sender-0", closed, False)]
    # the answer need not be of the same kind
    talk >> Detach(0, not closed) << NOTHING
    assert len(gone(talk)) == 1
    talk >> attach_sender(0, name="next") << like(Attach, handle=0) << NOTHING


def test_both_may_detach_a_link_at_once() -> None:
    talk = linked()
    attaching.detach(talk.recorder.links["sender-0"], False)
    talk >> Detach(0, True, Error(Symbol("x"))) << Detach(0, False) << NOTHING
    assert gone(talk) == [("sender-0", False, False)]


def test_detaching_what_the_peer_has_detached_says_nothing() -> None:
    talk = linked()
    link = talk.recorder.links["sender-0"]
    talk >> Detach(0, True) << Detach
    attaching.detach(link, True, PROBLEM)
    talk << NOTHING
    assert len(gone(talk)) == 1


@pytest.mark.spec("2.6.3-1", "2.6.3-2", "B2.3.1-1")
def test_a_link_is_refused_without_its_terminus() -> None:
    for frame, terminus in ((attach_sender(0), "target"), (attach_receiver(0), "source")):
        talk = begun(Recorder(accepts=False)) >> frame << NOTHING
        attaching.refuse(talk.recorder.links[frame.name], PROBLEM)
        talk << like(Attach, name=frame.name, handle=0, **{terminus: None})
        talk << Detach(0, True, TOLD) << NOTHING
        if terminus == "target":
            talk >> message(0) << NOTHING
        talk >> Detach(0, True) << NOTHING
        assert not gone(talk)
        link = talk.recorder.links[frame.name]
        assert talk.recorder.of(LinkRefused) == [LinkRefused(link, PROBLEM)]


def test_a_link_without_termini_can_be_refused() -> None:
    talk = begun(Recorder(accepts=False))
    talk >> attach_sender(0, source=None, target=None) >> attach_receiver(1, source=None)
    for name in ("sender-0", "receiver-1"):
        attaching.refuse(talk.recorder.links[name], PROBLEM)
        talk << Attach << Detach
    talk << NOTHING


def test_a_peer_may_give_a_link_up_before_we_answer() -> None:
    talk = begun(Recorder(accepts=False)) >> attach_sender() >> Detach(0, True)
    # Our handle is named by an attach before a detach can name it.
    talk << like(Attach, name="sender-0", target=None, source=None) << Detach(0, True) << NOTHING
    assert gone(talk) == [("sender-0", True, False)]
    link = talk.recorder.links["sender-0"]
    attaching.accept(link, Source(), Target())
    attaching.refuse(link, PROBLEM)
    talk << NOTHING
    assert not talk.recorder.of(LinkRefused)


def test_an_answer_may_come_late() -> None:
    talk = begun(Recorder(accepts=False)) >> attach_sender() >> attach_receiver()
    talk >> message(0) << NOTHING
    attaching.accept(
        talk.recorder.links["receiver-1"],
        Source(address="q"),
        Target(),
        max_message_size=9,
        offered_capabilities=("x",),
    )
    talk << like(Attach, name="receiver-1", max_message_size=9, offered_capabilities=("x",))
    attaching.accept(talk.recorder.links["sender-0"], Source(), Target())
    talk << like(Attach, name="sender-0") << NOTHING


def test_a_session_that_ends_takes_unanswered_links_along() -> None:
    talk = begun(Recorder(accepts=False)) >> attach_sender() >> End() << End() << NOTHING
    assert gone(talk) == [("sender-0", False, True)]
    attaching.accept(talk.recorder.links["sender-0"], Source(), Target())
    talk << NOTHING


# Links of our own.


def ours(talk: Talk, name: str = "ours", *, receives: bool = True) -> Any:
    frame = Attach(name, 0, receives, source=Source("q"), target=Target())
    return attaching.attach(session_of(talk), frame)


def test_a_link_of_our_own() -> None:
    talk = begun()
    receiver, sender = ours(talk), ours(talk, receives=False)
    talk << like(Attach, name="ours", handle=0, role=True)
    talk << like(Attach, name="ours", handle=1, role=False) << NOTHING
    # Links of one name are told apart by their direction.
    talk >> attach_receiver(3, name="ours", snd_settle_mode=1)
    talk >> attach_sender(8, name="ours", initial_delivery_count=5) << NOTHING
    assert talk.recorder.of(LinkAttached) == [LinkAttached(sender), LinkAttached(receiver)]
    assert not talk.recorder.of(LinkAttachReceived)
    assert receiver.delivery_count == 5
    assert sender.presettles


def test_a_link_of_our_own_that_is_refused() -> None:
    talk = begun()
    link = ours(talk)
    error = Error(Symbol("amqp:not-found"))
    talk.skip() >> attach_sender(0, name="ours", source=None) >> Detach(0, True, error)
    talk << Detach(0, True) << NOTHING
    assert talk.recorder.of(LinkAttached)[0].link.remote_attach.source is None
    assert talk.recorder.of(LinkDetached) == [LinkDetached(link, True, error, by_peer=True)]


@pytest.mark.parametrize("error", [None, PROBLEM])
def test_a_link_of_our_own_that_we_give_up_before_the_answer(error: AmqpError | None) -> None:
    talk = begun()
    link = ours(talk)
    attaching.detach(link, True, error)
    talk << Attach << like(Detach, handle=0) << NOTHING
    talk >> attach_sender(0, name="ours") >> message(0) >> Detach(0, True) << NOTHING
    assert not talk.recorder.of(LinkAttached)
    talk >> attach_sender(0) << like(Attach, handle=0) << NOTHING


def test_a_name_that_is_not_ours_is_the_peer_s_own() -> None:
    talk = begun()
    ours(talk)
    talk.skip() >> attach_sender(0, name="theirs") << like(Attach, name="theirs", handle=1)
    talk >> attach_sender(1, name="ours") << NOTHING
    # answered once; the second is the peer's own
    talk >> attach_sender(2, name="ours") << like(Attach, name="ours", handle=2) << NOTHING


@pytest.mark.spec("2.7.2-3")
def test_links_of_our_own_run_out() -> None:
    talk = begun(begin={"handle_max": 1})
    ours(talk, "a")
    ours(talk, "b")
    with pytest.raises(AmqpError, match="resource-limit-exceeded"):
        ours(talk, "c")


# Small frames (section 2.8.15, frame-size-too-small).


def test_an_attach_larger_than_the_peer_s_frames_ends_the_session() -> None:
    talk = begun(remote=Open("c", max_frame_size=512))
    talk >> attach_sender(0, "q", name="n" * 600)
    talk << failed(End, "amqp:frame-size-too-small") << NOTHING
    assert gone(talk) == [("n" * 600, False, True)]


def test_an_attach_of_our_own_that_is_too_large_is_not_sent() -> None:
    talk = begun(remote=Open("c", max_frame_size=512))
    with pytest.raises(AmqpError, match="frame-size-too-small"):
        ours(talk, "n" * 600)
    talk << NOTHING
    ours(talk)
    talk << like(Attach, handle=0) << NOTHING


def test_an_error_larger_than_the_peer_s_frames_is_told_by_its_condition() -> None:
    long = AmqpError("x:y", "z" * 600, Scope.LINK, {Symbol("k"): "v"})
    talk = linked(remote=Open("c", max_frame_size=512))
    attaching.detach(talk.recorder.links["sender-0"], True, long)
    talk << Detach(0, True, Error(Symbol("x:y"))) << NOTHING
    attaching.end(session_of(talk), long)
    talk << End(Error(Symbol("x:y"))) << NOTHING
    talk.connection.close(long)
    talk << like(Close)
    assert talk.connection.finished


def test_a_coordinator_may_be_asked_for() -> None:
    talk = begun(Recorder(accepts=False)) >> attach_sender(0, target=Coordinator()) << NOTHING
    attaching.refuse(talk.recorder.links["sender-0"], PROBLEM)
    talk << like(Attach, target=None) << Detach << NOTHING
