"""Batches whose messages, links or connections end in unusual ways leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from core.forwarding.test_batches import accept, batch, charged, many, send, settle, splitting

from router.amqp.batches import BATCH_FORMAT
from router.amqp.constants import SenderSettleMode
from router.amqp.message import Header
from router.amqp.performatives import Accepted, Modified, Rejected, Released, Source
from router.amqp.types import Symbol
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.rules import AddressRule
from router.core.model.address import Producer
from router.engine.account import BATCHES, DELIVERY_BYTES

from support.in_memory import Client, Router, SendingLink
from support.waypoints import message, texts


def producer_of(sender: SendingLink) -> Producer:
    (session,) = sender.client.connection.local_sessions.values()
    producer = session.local_links[sender.router_handle].owner
    assert isinstance(producer, Producer)
    return producer


def in_ledger(router: Router) -> int:
    return router.turn.ledger.by_kind[BATCHES]


def test_a_batch_whose_last_frame_says_resume_is_forwarded() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    octets = batch(message("a"), message("b"))
    sending = sender.send(octets[:20], message_format=BATCH_FORMAT, more=True)
    sender.go_on(octets[20:], resume=True)
    assert texts(receiver) == ["a", "b"]
    accept(receiver, 2)
    assert sending.outcome == Accepted()
    assert in_ledger(router) == 0


def test_a_sender_detached_for_a_message_to_nobody_leaves_no_charge() -> None:
    router = Router()
    client = router.client()
    sender = client.sender(None, source=Source(outcomes=(Symbol("amqp:accepted:list"),)))
    producer_of(sender).splits_batches = True
    assert producer_of(sender).lacks_rejected
    send(sender, message("a"), message("b"))
    assert sender.detached is not None
    assert in_ledger(router) == 0


def test_a_stolen_sender_learns_that_copies_may_have_been_delivered() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receiver = router.client().receiver("q", credit=10)
    client = router.client(container="c")
    sending = send(splitting(client, "q"), message("a"))
    router.client(container="c").sender("q", name="link-0")
    assert texts(receiver) == ["a"]
    assert sending.outcome == Modified(delivery_failed=True)
    assert charged(client) == 0


def test_copies_that_wait_are_taken_back_from_a_stolen_sender() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receiver = router.client().receiver("q", credit=0)
    client = router.client(container="c")
    sender = splitting(client, "q")
    receiver.grant(1)
    sending = send(sender, message("a"), message("b"))
    router.client(container="c").sender("q", name="link-0")
    receiver.grant(5)
    assert texts(receiver) == ["a"]
    assert sending.outcome == Modified(delivery_failed=True)
    assert router.forwarder.backlog.held_bytes == 0


def test_receivers_of_copies_learn_that_the_sender_has_settled() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receiver = router.client().receiver("q", credit=1)
    client = router.client()
    sender = splitting(client, "q")
    sender.settle(send(sender, message("a"), message("b")))
    assert receiver.received[0].sender_settled is not None
    receiver.grant(1)
    assert receiver.received[1].settled
    assert charged(client) == 0


@pytest.mark.parametrize("treatment", ["balanced", "multicast"])
def test_durable_messages_are_rejected_for_receivers_that_confirm_nothing(treatment: str) -> None:
    router = Router([AddressRule(True, "q", treatment)])
    router.forwarder.sources.rejects_unconfirmed = True
    receiver = router.client().receiver("q", 5, snd_settle_mode=SenderSettleMode.SETTLED)
    durable = message("a", header=Header(durable=True))
    sending = send(splitting(router.client(), "q"), durable, message("b"))
    assert texts(receiver) == ["b"]
    assert isinstance(sending.outcome, Rejected)


def test_large_states_are_not_kept_until_the_batch_is_settled() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receiver = router.client().receiver("q", credit=5)
    client = router.client()
    sending = send(splitting(client, "q"), message("a"), message("b"))
    settle(receiver, Modified(message_annotations={Symbol("x-opt-a"): "x" * 4000}))
    (session,) = client.connection.local_sessions.values()
    (held,) = [each for each in session.incoming.search(session.local_links[0]) if each]
    assert len(held.outcome_octets) < 100
    accept(receiver, 1)
    assert sending.outcome == Modified()


def test_while_an_anonymous_sender_s_message_is_copied_the_rest_waits() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    router.is_patient = True
    router.forwarder.distribution.copies_at_once = 2
    receivers = [router.client().receiver("q", credit=100) for _ in range(9)]
    sender = splitting(router.client(), None)
    copies = router.forwarder.distribution.pending_copies
    most = 0
    send(sender, *(message(str(number), to="q") for number in range(20)), settled=True)
    while router.has_work():
        most = max(most, len(copies._works))
        router.go_on()
    assert most == 1
    sender.send(message("after", to="q"), settled=True)
    router.catch_up()
    for each in receivers:
        assert texts(each) == [*map(str, range(20)), "after"]


def test_a_step_makes_copies_for_few_messages() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    router.is_patient = True
    receivers = [router.client(window=10_000).receiver("q", credit=1000) for _ in range(100)]
    send(splitting(router.client(), "q"), *many(400))
    most, before = 0, len(receivers[0].received)
    while router.has_work():
        router.turn.deferred.step()
        router.end_turn()
        count = len(receivers[0].received)
        most, before = max(most, count - before), count
    assert texts(receivers[0]) == [*map(str, range(400))]
    assert most == 1


def test_a_sender_stolen_while_its_batch_is_split_gets_an_outcome() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    router.is_patient = True
    router.forwarder.distribution.copies_at_once = 2
    receivers = [router.client().receiver("q", credit=10) for _ in range(9)]
    client = router.client(container="c")
    sending = send(splitting(client, "q"), *many(4))
    router.client(container="c").sender("q", name="link-0")
    router.catch_up()
    assert isinstance(sending.outcome, Modified)
    assert charged(client) == 0
    for each in receivers:
        assert len(each.received) <= 1
        accept(each, len(each.received))
    assert in_ledger(router) == 0


def test_copies_for_an_exchange_s_destinations_are_not_offered_again() -> None:
    router = Router()
    router.forwarder.exchanges.configure(
        [ExchangeRule("x", "e")],
        [BindingRule("1", "x", "red", "a"), BindingRule("2", "x", "red", "b")],
    )
    other = router.client().receiver("b", credit=5)
    sender = router.client().sender("e")
    first = router.client().receiver("a", credit=0)
    second = router.client().receiver("a", credit=0)
    sending = sender.send(message("red", subject="red"))
    first.grant(1)
    second.grant(1)
    assert router.forwarder.redelivery.kept_bytes == 0
    settle(first, Released())
    accept(other, 1)
    assert texts(second) == []
    assert sending.outcome == Accepted()


def test_waiting_messages_of_a_batch_expire() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    client = router.client()
    expiring = message("a", header=Header(ttl=1000))
    sending = send(splitting(client, "q"), message("first"), expiring, message("b"))
    router.wait(2)
    receiver.grant(5)
    assert texts(receiver) == ["first", "b"]
    accept(receiver, 2)
    assert sending.outcome.error.condition == "trioute:expired"
    assert in_ledger(router) == 0


def test_a_receiver_s_default_outcome_counts() -> None:
    router = Router()
    receiving = router.client()
    receiver = receiving.receiver("q", 5, source=Source(address="q", default_outcome=Released()))
    client = router.client()
    sending = send(splitting(client, "q"), message("a"), message("b"))
    settle(receiver, None)
    receiving.lose()
    assert sending.outcome == Released()
    assert in_ledger(router) == 0


@pytest.mark.parametrize("treatment", ["balanced", "multicast"])
def test_messages_larger_than_receivers_take_are_rejected(treatment: str) -> None:
    router = Router([AddressRule(True, "q", treatment)])
    receiver = router.client().receiver("q", 5, max_message_size=100)
    client = router.client()
    sending = send(splitting(client, "q"), message("a"), message("b" * 200))
    assert texts(receiver) == ["a"]
    accept(receiver, 1)
    assert sending.outcome.error.condition == "amqp:link:message-size-exceeded"
    assert in_ledger(router) == 0


@pytest.mark.parametrize("end", [Client.lose, Client.close])
def test_a_sender_lost_while_messages_are_copied_leaves_no_charge(
    end: Callable[[Client], None],
) -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    router.is_patient = True
    router.forwarder.distribution.copies_at_once = 2
    receivers = [router.client().receiver("q", credit=10) for _ in range(9)]
    client = router.client()
    send(splitting(client, "q"), *many(4))
    end(client)
    router.catch_up()
    for each in receivers:
        accept(each, len(each.received))
    assert in_ledger(router) == 0
    assert router.forwarder.backlog.held_bytes == 0


def test_shed_messages_of_a_batch_release_it() -> None:
    router = Router(limit_bytes=20_000)
    receiver = router.client().receiver("q", credit=1)
    client = router.client()
    sending = send(splitting(client, "q"), *(message("x" * 900) for _ in range(40)))
    router.catch_up()
    assert router.forwarder.backlog.held_bytes <= 20_000
    assert router.table.total().shed > 0
    receiver.grant(40)
    accept(receiver, len(receiver.received))
    assert sending.outcome == Modified(delivery_failed=True)
    assert in_ledger(router) == 0


def test_a_router_that_stops_gives_up_what_it_has_not_forwarded() -> None:
    router = Router()
    router.is_patient = True
    receiver = router.client(window=10_000).receiver("q", credit=10_000)
    client = router.client()
    sending = send(splitting(client, "q"), *many(1500))
    router.forwarder.batches.give_up_all()
    router.catch_up()
    assert len(receiver.received) < 1500
    accept(receiver, len(receiver.received))
    assert sending.outcome == Modified(delivery_failed=True)
    assert charged(client) == 0


def test_messages_that_wait_are_charged_even_if_their_sender_settles() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    client = router.client()
    sender = splitting(client, "q")
    sender.settle(send(sender, *many(5)))
    assert charged(client) == 4 * DELIVERY_BYTES
    receiver.grant(3)
    assert charged(client) == DELIVERY_BYTES
    receiver.detach()
    assert charged(client) == 0


def test_the_charge_for_very_many_messages_is_released_in_later_turns() -> None:
    router = Router()
    receiver = router.client(window=10_000).receiver("q", credit=500)
    client = router.client()
    sender = splitting(client, "q")
    sending = send(sender, *many(1500))
    router.is_patient = True
    sender.settle(sending)
    assert charged(client) > 1300 * DELIVERY_BYTES
    # some of those that wait leave before they are looked at
    receiver.grant(500)
    router.catch_up()
    assert charged(client) == 500 * DELIVERY_BYTES
    receiver.detach()
    router.catch_up()
    assert charged(client) == in_ledger(router) == 0


def test_messages_that_are_accepted_before_their_sender_settles_leave_no_charge() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    client = router.client()
    sender = splitting(client, "q")
    sending = send(sender, *many(4))
    accept(receiver, 1)
    sender.settle(sending)
    assert charged(client) == 3 * DELIVERY_BYTES
    receiver.grant(3)
    assert charged(client) == in_ledger(router) == 0
