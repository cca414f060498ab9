"""Batches: each message is forwarded alone, and the sender gets one outcome for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.batches import BATCH_FORMAT
from router.amqp.message import Data, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Disposition, Error, Modified, Rejected, Released
from router.amqp.types import Symbol
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.rules import AddressRule
from router.core.links.azure_clients import MAX_BATCH_BYTES
from router.core.model.address import Producer
from router.engine.account import BATCHES, DELIVERY_BYTES

from support.in_memory import Client, ReceivingLink, Router, Sending, SendingLink
from support.waypoints import message, text_of, texts

REJECTED = Rejected(Error(Symbol("x:y"), description="why"))


def batch(*messages: bytes) -> bytes:
    """Return a batch of encoded messages."""
    return encode_message(Message(body=tuple(map(Data, messages))))


def splitting(client: Client, address: str | None) -> SendingLink:
    """Attach a sender whose batches are split, as at a listener with claims."""
    sender = client.sender(address)
    (session,) = client.connection.local_sessions.values()
    producer = session.local_links[sender.router_handle].owner
    assert isinstance(producer, Producer)
    producer.splits_batches = True
    return sender


def send(sender: SendingLink, *messages: bytes, **fields: Any) -> Sending:
    return sender.send(batch(*messages), message_format=BATCH_FORMAT, **fields)


def charged(client: Client) -> int:
    """Return the octets that a client is charged for batches."""
    return client.connection.account.of_kind(BATCHES)


def formats(receiver: ReceivingLink) -> list[int | None]:
    """Return the message-formats of what a receiver has got."""
    return [each.first.message_format for each in receiver.received if each.first is not None]


def settle(receiver: ReceivingLink, *states: Any) -> None:
    """Settle the oldest unsettled deliveries of a receiver with these states."""
    for number, state in zip(list(receiver.unsettled), states, strict=False):
        del receiver.unsettled[number]
        receiver.client.say(Disposition(True, number, number, True, state))


def accept(receiver: ReceivingLink, count: int) -> None:
    settle(receiver, *[Accepted()] * count)


def test_each_message_is_forwarded_alone_and_the_last_outcome_settles_the_batch() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    client = router.client()
    sending = send(splitting(client, "q"), message("a"), message("b"), message("c"))
    assert texts(receiver) == ["a", "b", "c"]
    assert formats(receiver) == [0, 0, 0]
    accept(receiver, 2)
    assert not sending.is_over
    assert charged(client) == 3 * DELIVERY_BYTES
    accept(receiver, 1)
    assert sending.outcome == Accepted()
    assert charged(client) == 0


@pytest.mark.parametrize(
    ("states", "outcome"),
    [
        ([Accepted(), REJECTED], REJECTED),
        ([REJECTED, Released(), Modified()], REJECTED),
        ([Released(), Released()], Released()),
        ([Released(), Accepted()], Modified(delivery_failed=True)),
        ([Accepted(), Released()], Modified(delivery_failed=True)),
        ([Accepted(), Modified(undeliverable_here=True)], Modified(undeliverable_here=True)),
        ([Released(), Modified(undeliverable_here=True)], Modified(undeliverable_here=True)),
        ([Accepted(), None], None),
        ([None, Released()], Modified(delivery_failed=True)),
    ],
)
def test_the_sender_gets_the_worst_outcome(states: list[Any], outcome: Any) -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sending = send(splitting(router.client(), "q"), *(message("x") for _ in states))
    settle(receiver, *states)
    assert sending.is_over
    assert sending.outcome == outcome


def test_other_senders_batches_are_forwarded_whole() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    octets = batch(message("a"), message("b"))
    router.client().sender("q").send(octets, message_format=BATCH_FORMAT)
    assert formats(receiver) == [BATCH_FORMAT]
    assert receiver.take() == octets


def test_a_sender_s_other_messages_are_as_always() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    sender.send(message("a"))
    sender.send(b"other", message_format=7)
    assert formats(receiver) == [0, 7]


def test_a_batch_in_several_frames_is_held_until_it_is_complete() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    octets = batch(message("a"), message("b" * 100))
    sending = sender.send(octets[:20], message_format=BATCH_FORMAT, more=True)
    sender.go_on(octets[20:60], more=True)
    assert receiver.received == []
    assert router.forwarder.backlog.held_bytes == 60
    sender.go_on(octets[60:])
    assert texts(receiver) == ["a", "b" * 100]
    assert router.forwarder.backlog.held_bytes == 0
    accept(receiver, 2)
    assert sending.outcome == Accepted()


@pytest.mark.parametrize("end", [SendingLink.abort, SendingLink.detach])
def test_a_batch_that_is_not_completed_leaves_nothing(end: Callable[[SendingLink], None]) -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    sender.send(batch(message("a"))[:9], message_format=BATCH_FORMAT, more=True)
    end(sender)
    assert receiver.received == []
    assert router.forwarder.backlog.held_bytes == 0


def test_messages_beyond_the_credit_wait() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    sending = send(splitting(router.client(), "q"), message("a"), message("b"))
    assert texts(receiver) == ["a"]
    receiver.grant(5)
    assert texts(receiver) == ["a", "b"]
    accept(receiver, 2)
    assert sending.outcome == Accepted()


def test_without_a_receiver_the_batch_is_released() -> None:
    router = Router()
    other = router.client().receiver("q", credit=1)
    sender = splitting(router.client(), "q")
    other.detach()
    assert send(sender, message("a"), message("b")).outcome == Released()


def test_if_the_receiver_is_lost_some_messages_may_have_been_delivered() -> None:
    router = Router()
    receiving = router.client()
    receiver = receiving.receiver("q", credit=1)
    client = router.client()
    sending = send(splitting(client, "q"), message("a"), message("b"), message("c"))
    accept(receiver, 1)
    receiving.lose()
    assert sending.outcome == Modified(delivery_failed=True)
    assert charged(client) == 0


def test_what_one_receiver_releases_another_gets() -> None:
    router = Router([AddressRule(True, "q", "closest")])
    first = router.client().receiver("q", credit=1)
    client = router.client()
    sender = splitting(client, "q")
    second = router.client().receiver("q", credit=0)
    sending = send(sender, message("a"))
    second.grant(1)
    settle(first, Released())
    assert texts(second) == ["a"]
    accept(second, 1)
    assert sending.outcome == Accepted()
    assert router.forwarder.redelivery.kept_bytes == 0
    assert charged(client) == 0


def test_what_is_released_after_the_sender_has_gone_is_not_sent_again() -> None:
    router = Router([AddressRule(True, "q", "closest")])
    first = router.client().receiver("q", credit=1)
    client = router.client()
    sender = splitting(client, "q")
    second = router.client().receiver("q", credit=0)
    send(sender, message("a"))
    client.lose()
    second.grant(1)
    settle(first, Released())
    assert texts(second) == []
    assert router.forwarder.redelivery.kept_bytes == 0
    assert charged(client) == 0


def test_a_sender_may_settle_a_batch_without_waiting() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=1)
    client = router.client()
    sender = splitting(client, "q")
    sending = send(sender, message("a"), message("b"))
    sender.settle(sending)
    # what waits takes as much memory as before
    assert charged(client) == DELIVERY_BYTES
    # what was sent is settled, and what waits will be sent settled
    assert receiver.received[0].sender_settled is not None
    receiver.grant(1)
    assert texts(receiver) == ["a", "b"]
    assert receiver.received[1].settled
    assert charged(client) == 0


def test_every_receiver_of_a_multicast_gets_every_message() -> None:
    router = Router([AddressRule(True, "q", "multicast")])
    receivers = [router.client().receiver("q", credit=10) for _ in range(3)]
    client = router.client()
    sending = send(splitting(client, "q"), message("a"), message("b"))
    for each in receivers:
        assert texts(each) == ["a", "b"]
        # a message counts as accepted if one receiver accepts it
        settle(each, Accepted() if each is receivers[0] else Released(), Accepted())
    assert sending.outcome == Accepted()
    assert charged(client) == 0


def test_an_exchange_looks_at_each_message_s_subject() -> None:
    router = Router()
    router.forwarder.exchanges.configure(
        [ExchangeRule("x", "e")],
        [BindingRule("1", "x", "red", "a"), BindingRule("2", "x", "blue", "b")],
    )
    red, blue = (router.client().receiver(name, credit=5) for name in ("a", "b"))
    messages = [message(text, subject=text) for text in ("red", "blue", "red")]
    sending = send(splitting(router.client(), "e"), *messages)
    assert (texts(red), texts(blue)) == (["red", "red"], ["blue"])
    accept(red, 2)
    accept(blue, 1)
    assert sending.outcome == Accepted()


def test_an_anonymous_sender_s_messages_go_where_each_of_them_says() -> None:
    router = Router()
    receivers = [router.client().receiver(name, credit=1) for name in ("a", "b")]
    sender = splitting(router.client(), None)
    messages = [message(f"to {name}", to=name) for name in ("a", "b", "b")]
    sending = send(sender, *messages)
    assert [texts(each) for each in receivers] == [["to a"], ["to b"]]
    receivers[1].grant(1)
    assert texts(receivers[1]) == ["to b"] * 2
    for each, count in zip(receivers, (1, 2), strict=True):
        accept(each, count)
    assert sending.outcome == Accepted()
    # as before, so that the sender gets credit again
    assert sender.credit > 0


def test_messages_to_nobody_are_rejected_as_if_sent_alone() -> None:
    router = Router()
    receiver = router.client().receiver("a", credit=1)
    sending = send(splitting(router.client(), None), message("x", to="a"), message("y"))
    accept(receiver, 1)
    assert sending.outcome.error.condition == "amqp:precondition-failed"


def test_the_user_id_of_each_message_is_checked() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=5)
    client = router.client()
    sender = splitting(client, "q")
    (session,) = client.connection.local_sessions.values()
    session.local_links[sender.router_handle].owner.checks_user_id = True
    forged = encode_message(Message(properties=Properties(user_id=b"root"), body=(Data(b"x"),)))
    sending = send(sender, message("a"), forged)
    assert texts(receiver) == ["a"]
    accept(receiver, 1)
    assert sending.outcome.error.condition == "amqp:unauthorized-access"


@pytest.mark.parametrize(
    ("octets", "count"),
    [
        (b"\x00\x53\x77\x40", 0),
        (batch(message("a")) + b"\x00\x53\x77\x40", 1),
        (batch(message("a"), b"\x00\x53\x75", message("c")), 2),
    ],
)
def test_what_is_malformed_is_rejected(octets: bytes, count: int) -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    client = router.client()
    sending = splitting(client, "q").send(octets, message_format=BATCH_FORMAT)
    assert len(receiver.received) == count
    accept(receiver, count)
    assert sending.outcome.error.condition == "amqp:decode-error"
    assert charged(client) == 0


def test_a_malformed_batch_that_was_sent_settled_is_counted_as_dropped() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    sender.send(b"\x00\x53\x77\x40", message_format=BATCH_FORMAT, settled=True)
    address = router.table.in_use("q")
    assert address is not None
    assert address.counters.dropped_presettled == 1
    send(sender, message("a"), message("b"), settled=True)
    assert texts(receiver) == ["a", "b"]


def test_of_a_batch_that_was_sent_settled_no_more_wait_than_the_window_allows() -> None:
    router = Router()
    receiver = router.client(window=10_000).receiver("q", credit=1)
    client = router.client()
    sender, octets = splitting(client, "q"), batch(*many(9_000))
    sender.send(octets[:60_000], message_format=BATCH_FORMAT, settled=True, more=True)
    for at in range(60_000, len(octets), 60_000):
        sender.go_on(octets[at : at + 60_000], more=at + 60_000 < len(octets))
    router.catch_up()
    address = router.table.in_use("q")
    assert address is not None
    (session,) = client.connection.local_sessions.values()
    kept = session.window.whole()
    assert address.waiting.count == kept < 9_000
    assert address.counters.dropped_presettled == 1
    receiver.grant(10_000)
    assert texts(receiver) == [str(number) for number in range(kept + 1)]


def test_a_batch_may_not_be_very_large() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    part = b"x" * 60_000
    sending = sender.send(part, message_format=BATCH_FORMAT, more=True)
    for _ in range(MAX_BATCH_BYTES // len(part)):
        sender.go_on(part, more=True)
    assert sending.outcome.error.condition == "amqp:link:message-size-exceeded"
    assert router.forwarder.backlog.held_bytes == 0
    sender.go_on(part)
    send(sender, message("a"))
    assert texts(receiver) == ["a"]


def many(count: int) -> list[bytes]:
    return [message(str(number)) for number in range(count)]


@pytest.fixture
def patient() -> Router:
    """Return a router that takes later turns only when asked."""
    router = Router()
    router.is_patient = True
    return router


def test_a_batch_of_very_many_messages_takes_several_turns(patient: Router) -> None:
    receiver = patient.client(window=10_000).receiver("q", credit=10_000)
    client = patient.client()
    sender = splitting(client, "q")
    sending = send(sender, *many(1500))
    begun = len(receiver.received)
    assert 0 < begun < 1500
    # nothing that the sender sends meanwhile overtakes the rest
    sender.send(message("after"))
    assert len(receiver.received) == begun
    patient.catch_up()
    assert texts(receiver) == [*map(str, range(1500)), "after"]
    accept(receiver, 1501)
    assert sending.outcome == Accepted()
    assert charged(client) == 0


@pytest.mark.parametrize("end", [Client.lose, Client.close])
def test_a_sender_that_is_lost_meanwhile_leaves_nothing(
    patient: Router, end: Callable[[Client], None]
) -> None:
    receiver = patient.client(window=10_000).receiver("q", credit=10_000)
    client = patient.client()
    send(splitting(client, "q"), *many(1500))
    begun = len(receiver.received)
    end(client)
    patient.catch_up()
    assert len(receiver.received) == begun
    accept(receiver, begun)
    assert charged(client) == 0
    assert patient.forwarder.backlog.held_bytes == 0


def test_a_sender_whose_link_is_stolen_meanwhile_learns_that_the_rest_was_not_sent(
    patient: Router,
) -> None:
    receiver = patient.client(window=10_000).receiver("q", credit=10_000)
    client = patient.client(container="c")
    sending = send(splitting(client, "q"), *many(1500))
    begun = len(receiver.received)
    patient.client(container="c").sender("q", name="link-0")
    patient.catch_up()
    assert len(receiver.received) == begun
    accept(receiver, begun)
    assert sending.outcome == Modified(delivery_failed=True)
    assert charged(client) == 0


def test_messages_to_very_many_receivers_are_copied_one_after_another() -> None:
    patient = Router([AddressRule(True, "q", "multicast")])
    patient.is_patient = True
    patient.forwarder.distribution.copies_at_once = 2
    receivers = [patient.client().receiver("q", credit=10) for _ in range(9)]
    client = patient.client()
    sender = splitting(client, "q")
    sending = send(sender, *many(4))
    sender.send(message("after"))
    patient.catch_up()
    for each in receivers:
        assert texts(each) == ["0", "1", "2", "3", "after"]
        accept(each, 5)
    assert sending.outcome == Accepted()
    assert charged(client) == 0


def test_messages_of_batches_count_for_the_limits_of_a_connection() -> None:
    router = Router()
    receiver = router.client().receiver("q", credit=10_000)
    client = router.client()
    sender = splitting(client, "q")
    ledger = router.turn.ledger
    ledger.connection_limit_bytes = client.connection.account.total + 100 * DELIVERY_BYTES
    sending = send(sender, *many(200))
    begun = len(receiver.received)
    assert 90 < begun <= 100
    accept(receiver, begun)
    assert sending.outcome.error.condition == "amqp:resource-limit-exceeded"
    assert charged(client) == 0
    again = send(sender, *many(50))
    accept(receiver, 50)
    assert again.outcome == Accepted()


def test_beyond_the_memory_limit_the_largest_incomplete_batches_are_released() -> None:
    router = Router(limit_bytes=50_000)
    receiver = router.client().receiver("q", credit=10)
    senders = [splitting(router.client(), "q") for _ in range(3)]
    octets = batch(message("a"))
    small = senders[0].send(octets[:9], message_format=BATCH_FORMAT, more=True)
    large = [
        each.send(b"x" * 30_000, message_format=BATCH_FORMAT, more=True) for each in senders[1:]
    ]
    router.catch_up()
    assert [each.outcome for each in large] == [Released()] * 2
    assert router.table.total().shed == 2
    assert router.forwarder.backlog.held_bytes == 9
    senders[0].go_on(octets[9:])
    accept(receiver, 1)
    assert small.outcome == Accepted()
    # the rest of a batch that was released is ignored
    senders[1].go_on(b"x")
    send(senders[1], message("b"))
    assert texts(receiver) == ["a", "b"]


def test_batches_that_are_done_with_are_forgotten() -> None:
    router = Router()
    router.client().receiver("q", credit=10)
    sender = splitting(router.client(), "q")
    octets = batch(message("a"))
    for end in (SendingLink.abort, lambda link: link.go_on(octets[9:])):
        sender.send(octets[:9], message_format=BATCH_FORMAT, more=True)
        assert len(router.forwarder.backlog.batches) == 1
        end(sender)
        assert len(router.forwarder.backlog.batches) == 0


OUTCOMES = [Accepted(), Released(), Modified(delivery_failed=True), REJECTED]


@given(st.data())
def test_whatever_receivers_say_every_batch_gets_one_outcome(data: st.DataObject) -> None:
    """Random batches to receivers with little credit, which settle in any order."""
    router = Router([AddressRule(True, "q", data.draw(st.sampled_from(["balanced", "closest"])))])
    receivers = [
        router.client().receiver("q", credit=1) for _ in range(data.draw(st.integers(1, 3)))
    ]
    client = router.client()
    sender = splitting(client, "q")
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    names = [[f"{batch} {each}" for each in range(size)] for batch, size in enumerate(sizes)]
    sendings = []
    said: dict[str, Any] = {}
    for batch_names in names:
        while not sender.can_send():
            settle_one(data, receivers, said)
        sendings.append(send(sender, *map(message, batch_names)))
    while not all(sending.is_over for sending in sendings):
        settle_one(data, receivers, said)
    for sending, batch_names in zip(sendings, names, strict=True):
        states = [said[name] for name in batch_names]
        worst = max(states, key=OUTCOMES.index)
        if worst == Released() and Accepted() in states:
            worst = Modified(delivery_failed=True)
        assert sending.outcome == worst
    assert charged(client) == 0
    assert router.forwarder.backlog.held_bytes == 0


def settle_one(data: st.DataObject, receivers: list[ReceivingLink], said: dict[str, Any]) -> None:
    """Settle the oldest message of a random receiver, and grant it credit for another.

    A message that is released or modified may go to another receiver; the last outcome counts.
    """
    able = [each for each in receivers if each.unsettled]
    receiver = data.draw(st.sampled_from(able))
    state = data.draw(st.sampled_from(OUTCOMES))
    oldest = next(iter(receiver.unsettled.values()))
    said[text_of(oldest.payload)] = state
    settle(receiver, state)
    receiver.grant(1)
