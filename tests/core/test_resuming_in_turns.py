"""A link with very many unsettled deliveries is resumed: the work goes on in later turns."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from router.amqp.constants import TerminusExpiryPolicy as Policy
from router.amqp.encoded import EncodedMap, decoded
from router.amqp.performatives import Accepted, Modified, Received, Released, Source, Target
from router.core.links import resuming
from router.core.links.resumption import COMPARED_AT_ONCE
from router.engine.deferred import ITEMS_AT_ONCE

from support.audit import check_accounts
from support.in_memory import Client, ReceivingLink, Router, Sending, SendingLink

FAILED = Modified(delivery_failed=True)
VERY_MANY = ITEMS_AT_ONCE + 300
LASTS: dict[str, Any] = {"expiry_policy": Policy.LINK_DETACH, "timeout": 30}


def receiving(client: Client, **fields: Any) -> ReceivingLink:
    source = Source(address="q", **LASTS)
    return client.receiver("q", fields.pop("credit", 0), name="r", source=source, **fields)


def sending(client: Client, **fields: Any) -> SendingLink:
    return client.sender("q", name="s", target=Target(address="q", **LASTS), **fields)


def again(router: Router, client: Client) -> Client:
    """Another connection of the same container."""
    return router.client(
        container=client.container, window=2 * VERY_MANY, link_capacity=2 * VERY_MANY
    )


def patient(router: Router) -> Router:
    """From now on what is put off to later turns waits."""
    router.is_patient = True
    return router


# Senders.


def suspended_sender() -> tuple[Router, ReceivingLink, Client]:
    """Lose a sender with very many deliveries; return its client and the receiver."""
    router = Router()
    receiver = router.client(window=2 * VERY_MANY).receiver("q", 2 * VERY_MANY)
    sender = sending(router.client(link_capacity=2 * VERY_MANY))
    for _ in range(VERY_MANY):
        sender.send(b"x")
    sender.client.lose()
    return patient(router), receiver, sender.client


def test_what_a_sender_has_settled_is_told_over_several_turns() -> None:
    router, receiver, client = suspended_sender()
    sender = sending(again(router, client), unsettled={})
    assert sender.attach is not None
    assert decoded(sender.attach.unsettled) == {}
    assert router.forwarder.suspended.deliveries() == 0
    assert VERY_MANY - ITEMS_AT_ONCE <= len(receiver.unsettled) < VERY_MANY
    sender.send(b"next")
    assert receiver.received[-1].payload == b"next"
    router.catch_up()
    assert [each.payload for each in receiver.unsettled.values()] == [b"next"]
    check_accounts(router)


def test_what_its_receiver_says_before_it_hears_of_that_is_not_kept() -> None:
    router, receiver, client = suspended_sender()
    sender = sending(again(router, client), unsettled={})
    count = len(receiver.unsettled)
    assert count > 0
    receiver.settle(Accepted())
    router.catch_up()
    assert receiver.unsettled == {}
    sender.client.lose()
    assert router.forwarder.suspended.deliveries() == 0
    assert router.table.total().accepted == count


def test_what_a_sender_still_has_is_not_settled() -> None:
    router, receiver, client = suspended_sender()
    kept = {b"%d" % number: None for number in range(0, VERY_MANY, 100)}
    sender = sending(again(router, client), unsettled=kept)
    assert sender.attach is not None
    assert set(decoded(sender.attach.unsettled)) == set(kept)
    router.catch_up()
    assert len(receiver.unsettled) == len(kept)
    resumed = [sender.send(b"", tag=tag, resume=True) for tag in kept]
    receiver.settle(Accepted())
    assert [each.outcome for each in resumed] == [Accepted()] * len(kept)
    check_accounts(router)


# Receivers.


def suspended_receiver(*, keeps: bool = False) -> tuple[Router, Client, SendingLink, list[Sending]]:
    """Lose a receiver with very many deliveries, kept for sending again only if `keeps`."""
    router = Router()
    if not keeps:
        router.forwarder.redelivery.limit_bytes = 0
    receiver = receiving(router.client(window=2 * VERY_MANY), credit=VERY_MANY)
    sender = router.client(link_capacity=2 * VERY_MANY).sender("q")
    sent = [sender.send(b"x") for _ in range(VERY_MANY)]
    receiver.client.lose()
    return patient(router), receiver.client, sender, sent


def test_the_senders_of_what_a_receiver_lacks_are_told_over_several_turns() -> None:
    router, client, sender, sent = suspended_receiver()
    receiver = receiving(again(router, client), unsettled={}, credit=10)
    assert receiver.attach is not None
    assert len(decoded(receiver.attach.unsettled)) == VERY_MANY
    assert 0 < sum(each.is_over for each in sent) <= ITEMS_AT_ONCE
    # nothing new can be sent to it before all have been compared
    sender.credit = 0
    router.go_on()
    assert sender.credit == 0
    router.catch_up()
    assert [each.outcome for each in sent] == [FAILED] * VERY_MANY
    following = sender.send(b"next")
    assert [each.payload for each in receiver.received] == [b"next"]
    receiver.settle()
    assert following.outcome == Accepted()
    assert router.forwarder.suspended.deliveries() == 0
    check_accounts(router)


def test_what_a_receiver_has_accepted_is_told_over_several_turns() -> None:
    router, client, _, sent = suspended_receiver()
    # its delivery-tags are the router's, from 1 on
    states = {(1 + number).to_bytes(8, "big"): Accepted() for number in range(VERY_MANY)}
    receiver = receiving(again(router, client), unsettled=states, credit=2 * VERY_MANY)
    assert sum(each.is_over for each in sent) <= ITEMS_AT_ONCE
    router.catch_up()
    assert [each.outcome for each in sent] == [Accepted()] * VERY_MANY
    # each is settled by a transfer that resumes it
    assert len(receiver.received) == VERY_MANY
    assert all(each.settled for each in receiver.received)
    check_accounts(router)


def test_what_there_is_credit_for_all_at_once_is_sent_over_several_turns() -> None:
    router, client, sender, _ = suspended_receiver(keeps=True)
    receiver = receiving(again(router, client), unsettled={})
    router.catch_up()
    patient(router)
    receiver.grant(2 * VERY_MANY)
    assert 0 < len(receiver.received) <= ITEMS_AT_ONCE
    # what is said meanwhile does not make it come sooner
    receiver.grant(receiver.credit)
    assert len(receiver.received) <= ITEMS_AT_ONCE
    sender.credit = 0
    router.catch_up()
    assert len(receiver.received) == VERY_MANY
    sender.send(b"next")
    assert receiver.received[-1].payload == b"next"


def test_no_turns_are_taken_for_what_there_is_no_credit_for() -> None:
    router, client, _, _ = suspended_receiver(keeps=True)
    deferred = router.turn.deferred
    receiver = receiving(again(router, client), unsettled={}, credit=10)
    router.catch_up()
    patient(router)
    # a round that has no steps left
    deferred.left = 0
    receiver.client.give(receiver.client.flow(handle=receiver.handle, delivery_count=10,
                                              link_credit=3))  # fmt: skip
    receiver.credit = 3
    for _ in range(5):
        deferred.left = 0
        deferred.step()
    assert not deferred
    router.end_turn()
    assert len(receiver.received) == 13


def test_the_states_that_a_receiver_tells_are_read_over_several_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    value = EncodedMap._value

    def count(self: EncodedMap, at: int) -> Any:
        read.append(at)
        return value(self, at)

    router, client, _, sent = suspended_receiver()
    states = {(1 + number).to_bytes(8, "big"): Received(number, 0) for number in range(VERY_MANY)}
    resumed = again(router, client)
    receiver = receiving(resumed, unsettled=states, credit=2 * VERY_MANY)
    assert told(receiver) == -1
    while resumed.is_behind():
        # all have been checked once the link is attached
        read.clear()
        monkeypatch.setattr(EncodedMap, "_value", count)
        resumed.go_on()
        assert len(read) <= 2 * COMPARED_AT_ONCE
    assert told(receiver) == VERY_MANY
    assert not any(each.is_over for each in sent)
    router.catch_up()
    assert [each.outcome for each in sent] == [FAILED] * VERY_MANY
    check_accounts(router)


def test_what_is_sent_again_is_sent_once_it_has_been_compared() -> None:
    router, client, _, sent = suspended_receiver(keeps=True)
    receiver = receiving(again(router, client), unsettled={}, credit=2 * VERY_MANY)
    assert 0 < len(receiver.received) <= ITEMS_AT_ONCE
    router.catch_up()
    assert len(receiver.received) == VERY_MANY
    receiver.settle()
    router.catch_up()
    assert [each.outcome for each in sent] == [Accepted()] * VERY_MANY
    check_accounts(router)


@pytest.mark.parametrize("how", ["detach", "close", "lose"])
def test_a_link_that_goes_before_all_have_been_compared(how: str) -> None:
    router, client, _, sent = suspended_receiver()
    receiver = receiving(again(router, client), unsettled={})
    told = sum(each.is_over for each in sent)
    if how == "lose":
        receiver.client.lose()
    else:
        receiver.detach(closed=how == "close")
    if how != "close":
        router.turn.deferred.step()
        assert sum(each.is_over for each in sent) == told
        router.catch_up()
        assert sum(each.is_over for each in sent) == told
        assert router.forwarder.suspended.deliveries() == VERY_MANY - told
        router.wait(31)
    router.catch_up()
    assert [each.outcome for each in sent] == [FAILED] * VERY_MANY
    assert router.forwarder.suspended.deliveries() == 0
    check_accounts(router)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_link_that_is_resumed_once_more_before_all_have_been_compared(is_lost: bool) -> None:
    router, client, _, sent = suspended_receiver()
    receiver = receiving(again(router, client), unsettled={}, credit=5)
    if is_lost:
        receiver.client.lose()
    other = receiving(again(router, client), unsettled={}, credit=5)
    assert other.attach is not None
    router.catch_up()
    assert [each.outcome for each in sent] == [FAILED] * VERY_MANY
    router.client().sender("q").send(b"next")
    assert [each.payload for each in other.received] == [b"next"]
    assert router.table.total().modified == VERY_MANY
    check_accounts(router)


def test_our_attach_tells_of_a_bounded_number_of_deliveries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resuming, "MOST_TOLD", 20)
    router, client, _, _ = suspended_receiver()
    receiver = receiving(again(router, client), unsettled={})
    assert receiver.attach is not None
    assert receiver.attach.incomplete_unsettled
    tags = [(1 + number).to_bytes(8, "big") for number in range(20)]
    assert list(decoded(receiver.attach.unsettled)) == tags


# Links that are attached again to the session that they were on.


def reattached_receiver() -> tuple[Router, ReceivingLink, list[Sending]]:
    """Reattach a receiver with very many deliveries in a past turn; return it and the sendings."""
    router = Router()
    client = router.client(window=2 * VERY_MANY)
    old = receiving(client, credit=VERY_MANY)
    sender = router.client(link_capacity=2 * VERY_MANY).sender("q")
    sent = [sender.send(b"x") for _ in range(VERY_MANY)]
    old.detach(closed=False)
    patient(router)
    new = receiving(client)
    new.unsettled = old.unsettled
    return router, new, sent


def reattached_sender(waiting: int = 0) -> tuple[Router, ReceivingLink, SendingLink, list[Sending]]:
    """Reattach a sender with very many deliveries, the last of which wait."""
    router = Router()
    receiver = router.client(window=2 * VERY_MANY).receiver("q", VERY_MANY - waiting)
    old = sending(router.client(link_capacity=2 * VERY_MANY))
    sent = [old.send(b"%d" % number) for number in range(VERY_MANY - waiting)]
    old.credit = end_of(old).credit = waiting
    sent += [old.send(b"%d" % number) for number in range(VERY_MANY - waiting, VERY_MANY)]
    old.detach(closed=False)
    patient(router)
    return router, receiver, sending(old.client), sent


def end_of(link: SendingLink | ReceivingLink) -> Any:
    """Return the router's end of a link."""
    return link.client.connection.local_sessions[0].links.find(link.handle)


def moved(link: SendingLink | ReceivingLink) -> int:
    """How many deliveries go by a link of the router's by now."""
    session = link.client.connection.local_sessions[0]
    unsettled = session.outgoing if isinstance(link, ReceivingLink) else session.incoming
    ids = range(unsettled.base, unsettled.base + unsettled.span)
    found = [unsettled.find(number) for number in ids]
    end = end_of(link)
    return sum(each is not None and end in (each.incoming, each.outgoing) for each in found)


def test_deliveries_of_a_reattached_receiver_are_moved_over_several_turns() -> None:
    router, receiver, sent = reattached_receiver()
    assert 0 < moved(receiver) <= ITEMS_AT_ONCE
    assert end_of(receiver).unsettled == VERY_MANY
    # what it says of those that are not moved yet is told, too
    receiver.settle(Accepted())
    assert [each.outcome for each in sent] == [Accepted()] * VERY_MANY
    router.catch_up()
    assert end_of(receiver).unsettled == 0
    assert router.table.total().accepted == VERY_MANY
    check_accounts(router)


def test_deliveries_of_a_reattached_sender_are_moved_over_several_turns() -> None:
    router, receiver, sender, sent = reattached_sender(waiting=50)
    assert 0 < moved(sender) <= ITEMS_AT_ONCE
    assert end_of(sender).unsettled == VERY_MANY
    receiver.settle(Accepted())
    receiver.grant(100)
    receiver.settle(Accepted())
    assert [each.outcome for each in sent] == [Accepted()] * VERY_MANY
    router.catch_up()
    assert end_of(sender).unsettled == 0
    assert sender.credit > 0
    check_accounts(router)


def test_all_that_is_not_settled_meanwhile_is_moved() -> None:
    router, receiver, sender, _ = reattached_sender()
    receiver.client.dispose([VERY_MANY - 100, VERY_MANY - 1])
    router.catch_up()
    assert moved(sender) == end_of(sender).unsettled == VERY_MANY - 100
    check_accounts(router)


@pytest.mark.parametrize("how", ["detach", "close", "end", "lose"])
def test_a_reattached_receiver_goes_before_all_have_been_moved(how: str) -> None:
    router, receiver, sent = reattached_receiver()
    if how in {"detach", "close"}:
        receiver.detach(closed=how == "close")
    else:
        getattr(receiver.client, how)()
    router.catch_up()
    if how != "close":
        assert not any(each.is_over for each in sent)
        assert len(router.forwarder.suspended) == 1
        router.wait(31)
    assert [each.outcome for each in sent] == [FAILED] * VERY_MANY
    check_accounts(router)


@pytest.mark.parametrize("how", ["detach", "close", "end", "lose"])
def test_a_reattached_sender_goes_before_all_have_been_moved(how: str) -> None:
    router, receiver, sender, _ = reattached_sender()
    if how in {"detach", "close"}:
        sender.detach(closed=how == "close")
    else:
        getattr(sender.client, how)()
    router.catch_up()
    assert (router.forwarder.suspended.deliveries() == VERY_MANY) == (how in {"end", "lose"})
    receiver.settle(Accepted())
    router.wait(31)
    assert router.table.total().accepted == VERY_MANY
    assert router.forwarder.suspended.deliveries() == 0
    check_accounts(router)


def test_a_link_is_reattached_once_more_before_all_have_been_moved() -> None:
    router, receiver, sent = reattached_receiver()
    receiver.detach(closed=False)
    third = receiving(receiver.client)
    third.unsettled = receiver.unsettled
    router.catch_up()
    assert moved(third) == end_of(third).unsettled == VERY_MANY
    third.settle(Accepted())
    assert [each.outcome for each in sent] == [Accepted()] * VERY_MANY
    check_accounts(router)


@pytest.mark.parametrize("closed", [True, False])
def test_no_more_are_moved_because_a_reattached_link_goes(closed: bool) -> None:
    router, receiver, sent = reattached_receiver()
    count = moved(receiver)
    end, session = end_of(receiver), receiver.client.connection.local_sessions[0]
    # a round that has no steps left
    router.turn.deferred.left = 0
    receiver.detach(closed=closed)
    assert not any(each.is_over for each in sent)
    found = [session.outgoing.find(number) for number in range(VERY_MANY)]
    assert sum(each is not None and each.outgoing is end for each in found) == count
    router.catch_up()
    assert all(each.is_over for each in sent) == closed
    check_accounts(router)


def test_a_link_is_reattached_time_and_again() -> None:
    router, receiver, sender, sent = reattached_sender(waiting=50)
    for _ in range(5):
        before = moved(sender)
        router.turn.deferred.left = 0
        sender.detach(closed=False)
        router.turn.deferred.left = 0
        sender = sending(sender.client)
        # those that had been moved are not moved at once to the next link
        assert moved(sender) < max(before, 1)
        assert end_of(sender).unsettled == VERY_MANY
        for _ in range(7):
            router.go_on()
    router.catch_up()
    assert moved(sender) == end_of(sender).unsettled == VERY_MANY
    receiver.grant(50)
    receiver.settle(Accepted())
    assert [each.outcome for each in sent] == [Accepted()] * VERY_MANY
    assert end_of(sender).unsettled == 0
    check_accounts(router)


@pytest.mark.parametrize("seed", range(12))
def test_links_that_are_reattached_while_messages_come_and_are_settled(seed: int) -> None:
    random = Random(seed)
    router, receiver, sender, sent = reattached_sender(waiting=50)
    receiver.grant(200)
    receivers = [receiving(router.client(window=2 * VERY_MANY), credit=100)]
    client = receivers[0].client
    for _ in range(40):
        # more often than not a round has no steps left
        router.turn.deferred.left = random.choice([0, 0, 1, 3])
        match random.randrange(5):
            case 0:
                sender.detach(closed=False)
                router.turn.deferred.left = random.choice([0, 2])
                sender = sending(sender.client)
            case 1:
                last = receivers[-1]
                last.detach(closed=False)
                receivers.append(receiving(client, credit=random.randrange(10)))
                receivers[-1].unsettled = last.unsettled
            case 2 if sender.credit > 0:
                sent.append(sender.send(b"more"))
            case 3:
                for each in (receiver, receivers[-1]):
                    some = sorted(each.unsettled)[: random.randrange(30)]
                    for number in some:
                        each.unsettled.pop(number)
                        each.client.dispose([number])
            case _:
                for _ in range(random.randrange(4)):
                    router.go_on()
    router.catch_up()
    check_accounts(router)
    for each in (receiver, receivers[-1]):
        each.grant(2 * VERY_MANY)
        each.settle(Accepted())
    assert [each.outcome for each in sent] == [Accepted()] * len(sent)
    assert end_of(sender).unsettled == 0
    check_accounts(router)


@pytest.mark.parametrize("how", ["detach", "end", "lose"])
def test_a_stolen_sender_goes_before_all_have_been_moved(how: str) -> None:
    router, receiver, sender, sent = reattached_sender(waiting=50)
    router.turn.deferred.left = 0
    thief = sending(again(router, sender.client))
    assert not is_stolen(sender)
    if how == "detach":
        sender.detach()
    else:
        getattr(sender.client, how)()
    router.catch_up()
    assert not any(each.outcome == Accepted() for each in sent)
    if how == "detach":
        assert is_stolen(sender)
        session = sender.client.connection.local_sessions[0]
        assert session.incoming.count == 0
    receiver.grant(100)
    thief.send(b"next")
    assert receiver.received[-1].payload == b"next"
    check_accounts(router)


def test_a_reattached_sender_is_stolen_before_all_have_been_moved() -> None:
    router, _, sender, sent = reattached_sender(waiting=50)
    sending(again(router, sender.client))
    router.catch_up()
    assert [each.outcome for each in sent] == [FAILED] * (VERY_MANY - 50) + [Released()] * 50
    assert sender.detached is not None
    check_accounts(router)


def test_a_reattached_receiver_is_resumed_elsewhere_before_all_have_been_moved() -> None:
    router, receiver, sent = reattached_receiver()
    new = receiving(again(router, receiver.client), unsettled={})
    router.catch_up()
    assert new.attach is not None
    assert len(decoded(new.attach.unsettled)) == VERY_MANY
    assert router.forwarder.suspended.resumed == 2
    assert not any(each.outcome == Accepted() for each in sent)
    check_accounts(router)


# Links that are attached elsewhere, or whose session goes on.


def attached_receiver() -> tuple[Router, SendingLink, ReceivingLink]:
    """Return a receiver with very many deliveries that it has not settled, and their sender."""
    router = Router()
    receiver = receiving(router.client(window=2 * VERY_MANY), credit=2 * VERY_MANY)
    sender = router.client(link_capacity=2 * VERY_MANY).sender("q")
    for _ in range(VERY_MANY):
        sender.send(b"x")
    assert len(receiver.unsettled) == VERY_MANY
    return patient(router), sender, receiver


def attached_sender() -> tuple[Router, ReceivingLink, SendingLink]:
    """Return a sender with very many unsettled deliveries, and the receiver that got them."""
    router = Router()
    receiver = router.client(window=2 * VERY_MANY).receiver("q", 2 * VERY_MANY)
    sender = sending(router.client(link_capacity=2 * VERY_MANY))
    for _ in range(VERY_MANY):
        sender.send(b"x")
    return patient(router), receiver, sender


def is_stolen(link: SendingLink | ReceivingLink) -> bool:
    error = None if link.detached is None else link.detached.error
    return error is not None and error.condition == "amqp:link:stolen"


def told(link: SendingLink | ReceivingLink) -> int:
    """How many deliveries our attach has told of; -1 as long as there is none."""
    return -1 if link.attach is None else len(decoded(link.attach.unsettled))


def test_a_receiver_that_is_attached_elsewhere_is_resumed_over_several_turns() -> None:
    router, sender, old = attached_receiver()
    new = receiving(again(router, old.client), unsettled={})
    assert is_stolen(old)
    assert told(new) == -1
    # which comes before it is answered, and counts
    new.grant(7)
    router.catch_up()
    assert told(new) >= 0
    assert told(new) == VERY_MANY
    # all of them are sent again, before anything new is
    assert [each.payload for each in new.received] == [b"x"] * 7
    new.grant(VERY_MANY)
    router.catch_up()
    assert len(new.received) == VERY_MANY
    sender.send(b"next")
    assert new.received[-1].payload == b"next"
    check_accounts(router)


def test_a_sender_that_is_attached_elsewhere_is_resumed_over_several_turns() -> None:
    router, receiver, old = attached_sender()
    new = sending(again(router, old.client), unsettled={})
    assert is_stolen(old)
    assert told(new) == -1
    receiver.settle(Accepted())
    router.catch_up()
    assert told(new) >= 0
    assert receiver.unsettled == {}
    new.send(b"next")
    assert receiver.received[-1].payload == b"next"
    check_accounts(router)


@pytest.mark.parametrize("how", ["detach", "end", "lose"])
def test_who_resumes_a_link_that_is_attached_goes_before_it_is_answered(how: str) -> None:
    router, _sender, old = attached_receiver()
    new = receiving(again(router, old.client), unsettled={})
    if how == "detach":
        new.detach()
    elif how == "end":
        new.client.end()
    else:
        new.client.lose()
    router.catch_up()
    assert len(router.forwarder.suspended) == 1
    third = receiving(again(router, old.client), unsettled={})
    assert told(third) == VERY_MANY
    router.catch_up()
    check_accounts(router)


def test_two_links_resume_one_that_is_attached() -> None:
    router, _sender, old = attached_receiver()
    second = receiving(again(router, old.client), unsettled={})
    third = receiving(again(router, old.client), unsettled={})
    assert told(second) == -1
    assert told(third) == -1
    router.catch_up()
    assert is_stolen(second)
    assert told(third) >= 0
    assert not is_stolen(third)
    third.grant(1)
    assert [each.payload for each in third.received] == [b"x"]
    check_accounts(router)


def test_a_link_whose_session_goes_on_is_resumed_elsewhere_over_several_turns() -> None:
    router, _sender, old = attached_receiver()
    old.detach(closed=False)
    new = receiving(again(router, old.client), unsettled={})
    assert told(new) == -1
    router.catch_up()
    assert told(new) == VERY_MANY
    assert len(router.forwarder.suspended) == 0
    check_accounts(router)


def test_a_link_is_resumed_while_what_it_had_is_being_suspended() -> None:
    router, _sender, old = attached_receiver()
    old.client.lose()
    new = receiving(again(router, old.client), unsettled={})
    assert told(new) == -1
    router.catch_up()
    assert told(new) == VERY_MANY
    check_accounts(router)
