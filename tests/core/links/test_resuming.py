"""A sender resumes its link: the specification's example, with the router receiving."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode, TerminusExpiryPolicy as Policy
from router.amqp.encoded import decoded
from router.amqp.performatives import (
    Accepted,
    Disposition,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    Target,
    Transfer,
)
from router.amqp.types import Symbol
from router.core.links import suspended as suspending
from router.core.links.resuming import ALL_OF_IT

from support.in_memory import Client, ReceivingLink, Router, SendingLink
from support.schedules import to_section
from support.transcripts import On

REFUSED = Rejected(error=Error(Symbol("x"), "no"))
TAG = b"tag"


def sending_link(client: Client, address: str | None = "q", **fields: Any) -> SendingLink:
    target = Target(address=address, expiry_policy=Policy.LINK_DETACH, timeout=30)
    return client.sender(address, name="s", target=target, **fields)


def suspended(router: Router, address: str | None = "q") -> tuple[Client, ReceivingLink]:
    """Return the client of a lost sender with one delivery, and the receiver that got it."""
    receiver = router.client().receiver("q", 5)
    sender = sending_link(router.client(), address)
    sender.send(b"payload", tag=TAG)
    sender.client.lose()
    return sender.client, receiver


def resume(router: Router, client: Client, state: Any = None, **fields: Any) -> SendingLink:
    """Attach again, telling this of the delivery."""
    return sending_link(router.client(container=client.container), unsettled={TAG: state}, **fields)


def told(sender: SendingLink) -> dict[bytes, Any]:
    assert sender.attach is not None
    assert sender.attach.unsettled is not None
    return decoded(sender.attach.unsettled)


@pytest.mark.spec("2.6.3-3", "2.6.13-3", "3.4.6-2", "3.4.6-6")
@pytest.mark.parametrize("state", [None, Received(0, 200)])
def test_what_is_under_way_is_resumed_and_comes_once(state: Any) -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = resume(router, client, state)
    assert told(sender) == {TAG: ALL_OF_IT}
    resumed = sender.send(b"pay", tag=TAG, resume=True, more=True)
    sender.go_on(b"load")
    assert not resumed.states
    receiver.settle(REFUSED)
    assert resumed.outcome == REFUSED
    assert [each.payload for each in receiver.received] == [b"payload"]


@pytest.mark.spec("3.4.6-3", "2.7.3-6")
@pytest.mark.parametrize("outcome", [Accepted(), REFUSED, Modified(undeliverable_here=True)])
@pytest.mark.parametrize("settled", [True, False])
def test_an_outcome_that_came_meanwhile_is_told(outcome: Any, settled: bool) -> None:
    router = Router()
    client, receiver = suspended(router)
    receiver.settle(outcome, settled=settled)
    assert not receiver.unsettled
    sender = resume(router, client)
    assert told(sender) == {TAG: outcome}
    resumed = sender.send(b"", tag=TAG, resume=True)
    assert resumed.outcome == outcome
    assert router.table.total().ingress == 1


def test_a_sender_that_agrees_with_the_outcome_may_settle_at_once() -> None:
    router = Router()
    client, receiver = suspended(router)
    receiver.settle(Accepted())
    sender = resume(router, client)
    sender.send(b"", tag=TAG, resume=True, settled=True, state=Accepted())
    assert not router.clients[-1].connection.local_sessions[0].incoming.count


def test_a_sender_that_settles_second_is_told_something_though_its_receiver_said_nothing() -> None:
    router = Router()
    client, receiver = suspended(router)
    receiver.client.say(Disposition(True, 0, settled=True))
    sender = resume(router, client, rcv_settle_mode=ReceiverSettleMode.SECOND)
    resumed = sender.send(b"", tag=TAG, resume=True)
    assert resumed.states == [Modified(delivery_failed=True)]


def test_nothing_is_kept_of_what_its_sender_has_forgotten() -> None:
    """Two receivers, so that what one gives back might go to the other."""
    router = Router()
    receivers = [router.client().receiver("q", 5) for _ in range(2)]
    sender = sending_link(router.client())
    sender.send(b"payload", tag=TAG)
    assert router.forwarder.redelivery.kept_bytes
    sender.client.lose()
    sending_link(router.client(container=sender.client.container), unsettled={})
    assert router.forwarder.redelivery.kept_bytes == 0
    assert not any(each.unsettled for each in receivers)


@pytest.mark.spec("2.6.13-2")
def test_what_its_sender_has_forgotten_is_settled() -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = sending_link(router.client(container=client.container), unsettled={})
    assert told(sender) == {}
    assert not receiver.unsettled
    sender.send(b"next")
    assert receiver.received[1].payload == b"next"


@pytest.mark.spec("2.6.13-1", "2.7.5-17")
def test_what_the_router_does_not_remember_is_ignored() -> None:
    router = Router()
    client, receiver = suspended(router)
    receiver.settle()
    sender = resume(router, client, incomplete_unsettled=True)
    sender.send(b"", tag=TAG, resume=True)
    other = sender.send(b"unknown", tag=b"other", resume=True)
    assert not other.states
    sender.send(b"next")
    assert [each.payload for each in receiver.received] == [b"payload", b"next"]


@pytest.mark.spec("3.4.6-6")
def test_what_the_router_does_not_remember_is_not_remembered_for_being_resumed() -> None:
    router = Router()
    router.client().receiver("q", 5)
    sender = sending_link(router.client(), unsettled={TAG: None})
    sender.send(b"", tag=TAG, resume=True)
    sender.client.lose()
    assert told(resume(router, sender.client)) == {}


@pytest.mark.parametrize("state", [None, Accepted()])
def test_what_is_given_up_instead_of_resumed_is_settled(state: Any) -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = resume(router, client, state)
    sender.client.say(On(0, Transfer(sender.handle, 0, TAG, 0, resume=True, aborted=True), b""))
    assert not receiver.unsettled
    (received,) = receiver.received
    assert received.sender_settled is not None


@pytest.mark.spec("3.4.6-12", "3.4.6-9")
def test_an_outcome_of_the_sender_s_own_is_echoed() -> None:
    router = Router()
    client, receiver = suspended(router)
    receiver.settle(Released())
    sender = resume(router, client, Accepted())
    assert told(sender) == {TAG: Released()}
    resumed = sender.send(b"", tag=TAG, resume=True, state=Accepted())
    assert resumed.outcome == Accepted()


def test_a_receiver_hears_what_its_sender_has_decided_meanwhile() -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = resume(router, client, Rejected())
    resumed = sender.send(b"", tag=TAG, resume=True, state=Rejected())
    assert resumed.outcome == Rejected()
    (received,) = receiver.received
    assert received.sender_settled is not None
    assert received.sender_settled.state == Rejected()


@pytest.mark.spec("2.7.3-11", "2.6.13-4")
def test_after_an_incomplete_map_of_ours_nothing_new_may_come() -> None:
    router = Router()
    receiver = router.client().receiver("q", 100)
    sender = sending_link(router.client())
    for _ in range(60):
        sender.send(b"x")
    sender.client.lose()
    client = router.client(container=sender.client.container, max_frame_size=512)
    new = sending_link(client, unsettled={b"%d" % n: None for n in range(60)})
    assert new.attach is not None
    assert new.attach.incomplete_unsettled
    tags = list(told(new))
    assert 0 < len(tags) < 60
    receiver.settle()
    assert new.send(b"", tag=tags[0], resume=True).outcome == Accepted()
    new.send(b"new")
    assert new.detached is not None
    assert new.detached.error is not None
    assert str(new.detached.error.condition) == "amqp:not-allowed"
    assert len(receiver.received) == 60


@pytest.mark.spec("2.6.13-4")
def test_what_an_incomplete_map_leaves_out_is_still_in_doubt() -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = sending_link(
        router.client(container=client.container), unsettled={}, incomplete_unsettled=True
    )
    assert receiver.unsettled
    sender.detach(closed=False)
    last = resume(router, sender.client)
    receiver.settle(Accepted())
    assert last.send(b"", tag=TAG, resume=True).outcome == Accepted()


@pytest.mark.parametrize("address", ["q", None])
def test_a_sender_that_never_resumes_anything_gets_no_credit_in_the_end(
    monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    monkeypatch.setattr(suspending, "MAX_UNSETTLED", 10)
    router = Router()
    receiver = router.client().receiver("q", 100)
    client = router.client()
    for attempt in range(20):
        sender = sending_link(client, address, unsettled={}, incomplete_unsettled=True)
        while sender.can_send():
            sender.send(to_section("q"), tag=b"%d %d" % (attempt, len(receiver.received)))
            if len(receiver.received) % 7 == 0:
                break
        client.lose()
        client = router.client(container=client.container)
    assert 10 <= len(receiver.received) < 20
    last = sending_link(client, address, unsettled={})
    assert last.can_send()


def test_an_anonymous_sender_s_messages_are_resumed_where_they_wait() -> None:
    router = Router()
    receiver = router.client().receiver("q", 0)
    sender = sending_link(router.client(), None)
    sender.send(to_section("q"), tag=TAG)
    sender.client.lose()
    client = router.client(container=sender.client.container)
    new = sending_link(client, None, unsettled={TAG: None})
    resumed = new.send(b"", tag=TAG, resume=True)
    producer = client.connection.local_sessions[0].local_links[0].owner
    assert producer.waiting == 1
    receiver.grant(5)
    assert producer.waiting == 0
    receiver.settle(Accepted())
    assert resumed.outcome == Accepted()


def test_a_multicast_is_resumed_with_all_its_copies() -> None:
    router = Router([(False, "q", "multicast")])
    receivers = [router.client().receiver("q", 5) for _ in range(2)]
    sender = sending_link(router.client())
    sender.send(b"x", tag=TAG)
    sender.client.lose()
    receivers[0].settle(Accepted())
    new = resume(router, sender.client)
    assert told(new) == {TAG: ALL_OF_IT}
    resumed = new.send(b"", tag=TAG, resume=True)
    assert not resumed.states
    receivers[1].settle(Released())
    assert resumed.outcome == Accepted()


@pytest.mark.parametrize("how", ["forgotten", "settled", "aborted", "decided"])
def test_what_is_settled_in_place_of_being_resumed_is_kept_no_longer(how: str) -> None:
    router = Router()
    # what one of two receivers gives back would go to the other
    router.client().receiver("q", 5)
    client, _ = suspended(router)
    assert router.forwarder.redelivery.kept_bytes > 0
    if how == "forgotten":
        sending_link(router.client(container=client.container), unsettled={})
    else:
        sender = resume(router, client)
        settles: dict[str, Any] = {"settled": how == "settled", "aborted": how == "aborted"}
        state = Accepted() if how == "decided" else None
        resumed = Transfer(sender.handle, 0, TAG, 0, resume=True, state=state, **settles)
        sender.client.give(On(0, resumed, b""))
    assert router.forwarder.redelivery.kept_bytes == 0


@pytest.mark.parametrize("how", ["forgotten", "settled"])
def test_an_outcome_that_waited_for_its_sender_counts_when_that_is_back(how: str) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = sending_link(router.client(), rcv_settle_mode=ReceiverSettleMode.SECOND)
    sender.send(b"x", tag=TAG)
    receiver.settle(Rejected(), settled=False)
    assert receiver.unsettled
    sender.client.lose()
    client = router.client(container=sender.client.container)
    if how == "forgotten":
        sending_link(client, unsettled={})
    else:
        new = sending_link(client, unsettled={TAG: Rejected()})
        new.send(b"", tag=TAG, resume=True, settled=True)
    assert not receiver.unsettled
    assert router.table.total().rejected == 1


@pytest.mark.parametrize("how", ["settled", "aborted"])
@pytest.mark.spec("2.6.14-2")
def test_a_later_frame_settles_what_an_earlier_one_resumes(how: str) -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = resume(router, client)
    sender.send(b"pay", tag=TAG, resume=True, more=True)
    assert receiver.unsettled
    if how == "settled":
        sender.go_on(b"lo", settled=True, more=True)
        assert not receiver.unsettled
        sender.go_on(b"ad")
    else:
        sender.abort()
    assert not receiver.unsettled
    assert not router.clients[-1].connection.local_sessions[0].incoming.count
    sender.send(b"next")
    assert [each.payload for each in receiver.received] == [b"payload", b"next"]


@pytest.mark.parametrize("how", ["detach", "lose"])
def test_what_a_link_resumes_is_not_given_up_with_it_half_way(how: str) -> None:
    router = Router()
    client, receiver = suspended(router)
    sender = resume(router, client)
    resumed = sender.send(b"pay", tag=TAG, resume=True, more=True)
    if how == "detach":
        sender.detach(closed=False)
        # its session lasts, and with it the id
        receiver.settle(Accepted())
    else:
        sender.client.lose()
        assert receiver.unsettled
        receiver.settle(Accepted())
        resumed = resume(router, client).send(b"", tag=TAG, resume=True)
    assert resumed.outcome == Accepted()


@pytest.mark.parametrize("mode", list(ReceiverSettleMode))
def test_fields_of_an_outcome_that_would_take_much_room_are_not_kept(
    mode: ReceiverSettleMode,
) -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = sending_link(router.client(), rcv_settle_mode=mode)
    sender.send(b"x", tag=TAG)
    if mode == ReceiverSettleMode.FIRST:
        sender.client.lose()
    receiver.settle(Rejected(error=Error(Symbol("x"), "no" * 1000)), settled=False)
    sender.client.lose()
    assert told(resume(router, sender.client)) == {TAG: Rejected()}


@pytest.mark.spec("2.7.3-6")
def test_what_is_told_of_a_delivery_is_the_last_that_was_said_of_it() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = sending_link(router.client(), rcv_settle_mode=ReceiverSettleMode.SECOND)
    sender.send(b"x", tag=TAG)
    receiver.client.dispose([0], Received(1, 5), settled=False)
    receiver.client.dispose([0], Accepted(), settled=False)
    sender.client.lose()
    assert told(resume(router, sender.client)) == {TAG: Accepted()}


def test_a_tag_that_was_used_twice_is_that_of_the_later_delivery() -> None:
    router = Router()
    receiver = router.client().receiver("q", 5)
    sender = sending_link(router.client())
    sender.send(b"1", tag=TAG)
    sender.send(b"2", tag=TAG)
    sender.client.lose()
    receiver.client.dispose([0], Released())
    assert told(resume(router, sender.client)) == {TAG: ALL_OF_IT}
    receiver.client.dispose([1], Accepted())
    last = resume(router, sender.client)
    assert told(last) == {TAG: Accepted()}
    assert last.send(b"", tag=TAG, resume=True).outcome == Accepted()
    assert not last.client.connection.local_sessions[0].local_links[0].terminus.outcomes
