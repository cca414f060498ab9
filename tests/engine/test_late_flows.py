"""Senders that answer a drain behind their detach: one such flow is ignored, and no other frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from router.amqp.performatives import Attach, Detach, End, Flow
from router.engine import attaching, late_flows
from router.engine.events import FlowIgnored
from router.errors import AmqpError, Scope

from support.flow_talks import flow, granted
from support.transcripts import (
    NOTHING,
    Talk,
    attach_receiver,
    attach_sender,
    failed,
    like,
    message,
    session_of,
)

UNATTACHED = failed(End, "amqp:session:unattached-handle")
# What a sender answers that had ten.
ANSWER = flow(handle=0, delivery_count=10, link_credit=0, drain=True)


def drained() -> Talk:
    """Return a session whose peer sends on handle 0 and has been asked to drain its credit."""
    talk = granted(10)
    session_of(talk).grant(talk.recorder.links["sender-0"], 10, True)
    talk << like(Flow, handle=0, drain=True) << NOTHING
    return talk


def too_late() -> Talk:
    """Return a session whose peer has detached the link on handle 0 before it answered."""
    return drained() >> Detach(0, True) << Detach(0, True) << NOTHING


@pytest.mark.parametrize("closed", [True, False])
def test_an_answer_to_a_drain_that_comes_behind_the_detach_is_ignored_once(closed: bool) -> None:
    talk = drained() >> Detach(0, closed) << Detach(0, closed)
    talk >> ANSWER << NOTHING
    (ignored,) = talk.recorder.of(FlowIgnored)
    assert ignored == FlowIgnored(session_of(talk), "0.0.0")
    talk >> ANSWER << UNATTACHED << NOTHING


def test_what_the_late_flow_says_of_its_session_holds() -> None:
    talk = too_late()
    session = session_of(talk)
    session.remote_incoming_window = 0
    talk >> flow(handle=0, incoming_window=7, next_outgoing_id=5, echo=True)
    talk << like(Flow, handle=None, next_incoming_id=5) << NOTHING
    assert session.remote_incoming_window == 7
    assert talk.recorder.told("room") == [()]


def test_an_answer_that_crosses_our_own_detach_is_ignored_whenever_it_comes() -> None:
    talk = drained()
    problem = AmqpError("amqp:internal-error", "", Scope.LINK)
    attaching.detach(talk.recorder.links["sender-0"], True, problem)
    talk << Detach >> ANSWER >> Detach(0, True) >> ANSWER << NOTHING
    talk >> ANSWER << UNATTACHED


def test_credit_that_went_on_deliveries_or_was_granted_again_leaves_the_answer_due() -> None:
    for go_on in (spend, grant_again):
        talk = drained()
        go_on(talk)
        talk.skip() >> Detach(0, True) << Detach >> ANSWER << NOTHING


def spend(talk: Talk) -> None:
    """Have the peer send as much as it may, and tell where it stands."""
    talk >> [message(n) for n in range(10)] >> flow(handle=0, delivery_count=10)


def grant_again(talk: Talk) -> None:
    """Let the peer keep its credit before it has answered."""
    session_of(talk).grant(talk.recorder.links["sender-0"], 10, False)


def test_a_drain_that_has_been_answered_leaves_nothing_to_wait_for() -> None:
    talk = drained() >> ANSWER >> Detach(0, True) << Detach << NOTHING
    talk >> ANSWER << UNATTACHED


def test_of_a_link_that_was_not_drained_no_flow_may_come() -> None:
    granted(10) >> Detach(0, True) << Detach >> ANSWER << UNATTACHED


@pytest.mark.parametrize(
    "frame", [message(0), Detach(0, True), flow(handle=1), flow(handle=7)], ids=repr
)
@pytest.mark.spec("2.7.4-3", "2.8.17-2")
def test_any_other_frame_for_the_handle_and_a_flow_for_any_other_are_errors(frame: Any) -> None:
    talk = too_late() >> Detach(1, True) << Detach << NOTHING
    talk >> frame << UNATTACHED << NOTHING
    assert talk.recorder.of(FlowIgnored) == []


@pytest.mark.parametrize("attach", [attach_sender, attach_receiver])
def test_a_link_that_takes_the_handle_ends_the_wait(attach: Callable[..., Attach]) -> None:
    talk = too_late() >> attach(0, name="next") << Attach
    # this is about the new link
    talk >> flow(handle=0) << NOTHING
    talk >> Detach(0, True) << Detach << NOTHING
    talk >> ANSWER << UNATTACHED


def test_only_the_last_of_many_handles_are_remembered() -> None:
    talk = granted(10)
    session = session_of(talk)
    most = late_flows.MOST
    for handle in range(2, most + 3):
        talk >> attach_sender(handle)
        session.grant(talk.recorder.links[f"sender-{handle}"], 1, True)
        talk.skip() >> Detach(handle, True)
        assert len(session.late_handles) <= most
    talk.skip() >> [flow(handle=handle) for handle in range(3, most + 3)] << NOTHING
    assert len(talk.recorder.of(FlowIgnored)) == most
    assert session.late_handles == {}
    talk >> flow(handle=2) << UNATTACHED
    assert session.late_handles is None
