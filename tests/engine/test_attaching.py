"""Links come and go: attach and detach, from either side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from router.amqp.performatives import (
    Attach,
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
from router.engine import attaching, beginning
from router.engine.events import (
    LinkAttached,
    LinkAttachReceived,
    LinkDetached,
    LinkRefused,
)
from router.engine.link import IncomingLink, OutgoingLink
from router.errors import AmqpError, Scope

from support.transcripts import (
    NOTHING,
    OVER,
    Recorder,
    Talk,
    attach_receiver,
    attach_sender,
    begun,
    failed,
    gone,
    like,
    linked,
    message,
    session_of,
)

PROBLEM = AmqpError("amqp:link:detach-forced", "a test's own", Scope.LINK)
TOLD = Error(Symbol("amqp:link:detach-forced"), description="a test's own")


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


@pytest.mark.spec("2.7.2-3")
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
@pytest.mark.spec("2.6.4-1", "2.6.5-1", "2.7.7-1", "2.7.7-2", "2.6.5-2")
def test_our_own_detach(closed: bool, error: AmqpError | None) -> None:
    talk = linked()
    link = talk.recorder.links["sender-0"]
    attaching.detach(link, closed, error)
    attaching.detach(link, closed, error)
    talk << Detach(0, closed, None if error is None else TOLD) << NOTHING
    assert gone(talk) == [("sender-0", closed, False)]
    talk >> Detach(0, closed) << NOTHING
    assert len(gone(talk)) == 1
    talk >> attach_sender(0, name="next") << like(Attach, handle=0) << NOTHING


@pytest.mark.parametrize("closed", [True, False])
def test_both_may_detach_a_link_at_once(closed: bool) -> None:
    talk = linked()
    attaching.detach(talk.recorder.links["sender-0"], closed)
    talk >> Detach(0, False, Error(Symbol("x"))) << Detach(0, closed) << NOTHING
    assert gone(talk) == [("sender-0", closed, False)]


@pytest.mark.parametrize("we_receive", [True, False])
@pytest.mark.spec("2.6.6-2")
def test_a_close_that_crosses_our_detach_is_answered_by_one(we_receive: bool) -> None:
    talk = begun() >> (attach_sender if we_receive else attach_receiver)(0) << Attach
    (link,) = talk.recorder.links.values()
    attaching.detach(link, False)
    talk << Detach(0, False) >> Detach(0, True)
    again = like(Attach, name=link.name, handle=0, role=we_receive, source=None, target=None)
    talk << again << Detach(0, True) << NOTHING
    # the peer knows no such link; it answers as it would another
    attach = Attach(link.name, 0, not we_receive, initial_delivery_count=0)
    talk >> attach >> Detach(0, True) << NOTHING
    assert gone(talk) == [(link.name, False, False)]
    talk >> attach_sender(0, name="next") << like(Attach, handle=0) << NOTHING


@pytest.mark.spec("2.6.5-5")
def test_an_attach_behind_a_link_error_costs_the_session() -> None:
    talk = linked()
    attaching.detach(talk.recorder.links["sender-0"], True, PROBLEM)
    talk << Detach >> attach_sender(5, name="sender-0")
    talk << failed(End, "amqp:session:errant-link") << NOTHING


def test_a_refused_link_may_be_tried_again_at_once() -> None:
    talk = begun(Recorder(accepts=False)) >> attach_sender(0)
    attaching.refuse(talk.recorder.links["sender-0"], PROBLEM)
    talk << Attach << Detach >> attach_sender(5, name="sender-0") << NOTHING
    attaching.refuse(talk.recorder.links["sender-0"], PROBLEM)
    talk << Attach << Detach << NOTHING


@pytest.mark.spec("2.6.5-4")
def test_a_link_may_be_resumed_behind_its_error() -> None:
    talk = linked()
    attaching.detach(talk.recorder.links["sender-0"], True, PROBLEM)
    talk << Detach >> attach_sender(5, name="sender-0", unsettled={}) << Attach << NOTHING
    talk >> Detach(0, True) >> attach_sender(0, name="sender-0") << Attach << NOTHING


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


@pytest.mark.spec("2.7.3-13")
@pytest.mark.parametrize(("attach", "count"), [(attach_sender, None), (attach_receiver, 0)])
def test_a_peer_may_give_a_link_up_before_we_answer(
    attach: Callable[..., Attach], count: int | None
) -> None:
    remote = attach(0)
    talk = begun(Recorder(accepts=False)) >> remote >> Detach(0, True)
    # Our handle is named by an attach before a detach can name it.
    answer = like(
        Attach, name=remote.name, role=not remote.role, target=None, source=None,
        initial_delivery_count=count,
    )  # fmt: skip
    talk << answer << Detach(0, True) << NOTHING
    assert gone(talk) == [(remote.name, True, False)]
    link = talk.recorder.links[remote.name]
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
    talk >> attach_sender(0, name="ours") >> Detach(0, True) << NOTHING
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
    beginning.end(session_of(talk), long)
    talk << End(Error(Symbol("x:y"))) << NOTHING
    talk.connection.close(long)
    talk << like(Close)
    assert talk.connection.finished


def test_a_coordinator_may_be_asked_for() -> None:
    talk = begun(Recorder(accepts=False)) >> attach_sender(0, target=Coordinator()) << NOTHING
    attaching.refuse(talk.recorder.links["sender-0"], PROBLEM)
    talk << like(Attach, target=None) << Detach << NOTHING
