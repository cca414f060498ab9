"""Many links that are lost at once are resolved over several turns; nothing is sent meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from router.amqp.performatives import (
    Accepted,
    Close,
    Detach,
    Disposition,
    End,
    Modified,
    Released,
    Source,
)
from router.engine import attaching
from router.engine.deferred import ITEMS_AT_ONCE, ITEMS_PER_STEP, STEPS_A_ROUND
from router.engine.events import ConnectionClosed, LinkDetached, SessionEnded
from router.engine.losing import AT_ONCE, HANDLES_A_STEP
from router.errors import AmqpError, Scope

from support.in_memory import Client, Router

MANY = 4 * AT_ONCE


def attached(router: Router, count: int = MANY, **settings: Any) -> Client:
    """Return a client with receivers of one address, each with credit for one message."""
    client = router.client(**settings)
    for _ in range(count):
        client.receiver("q", 1)
    return client


def lose_socket(client: Client) -> None:
    client.connection.end_of_input()


def end_session(client: Client) -> None:
    client.give(End())


def close_connection(client: Client) -> None:
    client.give(Close())


def close_from_here(client: Client) -> None:
    client.connection.close()


LOSSES = [lose_socket, end_session, close_connection, close_from_here]


def count(router: Router, kind: type) -> int:
    return sum(isinstance(event, kind) for event in router.events)


def work_off(router: Router) -> None:
    """Take the turns that are left."""
    while router.turn.deferred:
        router.turn.deferred.step()
        router.end_turn()


@pytest.mark.parametrize("lose", LOSSES)
def test_no_turn_resolves_more_than_a_few_links(lose: Callable[[Client], None]) -> None:
    router = Router()
    client = attached(router)
    client.over = True
    lose(client)
    router.end_turn()
    assert count(router, LinkDetached) == AT_ONCE
    before = AT_ONCE
    while router.turn.deferred:
        router.turn.deferred.step()
        router.end_turn()
        now = count(router, LinkDetached)
        assert now - before <= 1
        before = now
    assert before == MANY
    assert router.table.in_use("q") is None


@pytest.mark.parametrize("lose", LOSSES)
def test_no_round_resolves_more_than_a_few_links_however_many_connections_are_lost(
    lose: Callable[[Client], None],
) -> None:
    router = Router()
    clients = [attached(router, 20) for _ in range(20)]
    for client in clients:
        client.over = True
        lose(client)
    router.end_turn()
    assert 0 < count(router, LinkDetached) <= STEPS_A_ROUND
    work_off(router)
    assert count(router, LinkDetached) == 400
    assert router.table.in_use("q") is None


def test_no_round_resolves_more_than_a_few_deliveries_however_many_connections_are_lost() -> None:
    router = Router()
    receivers = [router.client().receiver(f"q{number}", 100) for number in range(100)]
    senders = [router.client(link_capacity=100).sender(f"q{number}") for number in range(100)]
    sent = [sender.send(b"x") for sender in senders for _ in range(100)]
    for receiver in receivers:
        receiver.client.over = True
        receiver.client.connection.end_of_input()
    router.end_turn()
    assert 0 < sum(each.is_over for each in sent) <= STEPS_A_ROUND * ITEMS_PER_STEP
    work_off(router)
    assert [each.outcome for each in sent] == [Modified(delivery_failed=True)] * len(sent)


def test_connections_without_a_session_are_closed_in_later_rounds_too() -> None:
    router = Router()
    clients = [router.client() for _ in range(STEPS_A_ROUND)]
    for client in clients:
        client.end()
        client.over = True
    for client in clients:
        client.connection.end_of_input()
        client.connection.turn.deferred.left = 0
    router.end_turn()
    work_off(router)
    assert count(router, ConnectionClosed) == len(clients)


@pytest.mark.parametrize("lose", LOSSES)
def test_sessions_and_connections_are_over_after_their_last_link(
    lose: Callable[[Client], None],
) -> None:
    router = Router()
    client = attached(router)
    client.over = True
    lose(client)
    router.end_turn()
    assert count(router, SessionEnded) == count(router, ConnectionClosed) == 0
    work_off(router)
    ended = [type(event) for event in router.events][-2:]
    if lose is end_session:
        assert ended == [LinkDetached, SessionEnded]
    else:
        assert ended == [SessionEnded, ConnectionClosed]


@pytest.mark.parametrize(("lose", "answer"), [(end_session, End), (close_connection, Close)])
def test_the_peer_is_answered_before_the_last_link_is_resolved(
    lose: Callable[[Client], None], answer: type
) -> None:
    router = Router()
    client = attached(router)
    lose(client)
    router.end_turn()
    assert isinstance(client.heard[-1], answer)
    assert router.turn.deferred
    work_off(router)
    assert [type(each) for each in client.heard].count(answer) == 1


def test_a_session_may_begin_again_on_a_channel_whose_links_are_being_resolved() -> None:
    router = Router()
    client = attached(router)
    end_session(client)
    router.end_turn()
    other = router.client()
    receiver = other.receiver("elsewhere", 1)
    other.sender("elsewhere").send(b"hello")
    assert receiver.take() == b"hello"
    work_off(router)
    assert router.table.in_use("elsewhere") is not None


def test_others_are_served_between_two_turns_and_nothing_goes_to_who_is_lost() -> None:
    router = Router()
    lost = attached(router)
    here = router.client().receiver("q", 10)
    sender = router.client().sender("q")
    lost.connection.end_of_input()
    router.end_turn()
    sent = [sender.send(b"%d" % number) for number in range(3)]
    work_off(router)
    assert [here.take() for _ in range(3)] == [b"0", b"1", b"2"]
    here.settle()
    assert [each.outcome for each in sent] == [Accepted()] * 3
    assert all(not link.received for link in lost.links)  # type: ignore[union-attr]


def test_what_waits_for_the_last_of_the_lost_is_released() -> None:
    router = Router()
    lost = attached(router)
    sender = router.client().sender("q")
    lost.connection.end_of_input()
    router.end_turn()
    sending = sender.send(b"for nobody")
    assert sending.outcome == Released()
    assert router.forwarder.backlog.held_bytes == 0


def test_a_link_is_taken_over_before_its_loss_has_been_resolved() -> None:
    router = Router()
    lost = attached(router, container="same")
    name = lost.links[-1].name
    lost.connection.end_of_input()
    router.end_turn()
    again = router.client(container="same").receiver("q", 1, name=name)
    assert again.attached
    sender = router.client().sender("q")
    sender.send(b"hello")
    work_off(router)
    assert again.take() == b"hello"
    address = router.table.in_use("q")
    assert address is not None
    assert [each.link.name for each in address.consumers] == [name]


def test_links_that_may_be_resumed_are_suspended_whenever_their_turn_comes() -> None:
    router = Router()
    client = router.client(container="resumes")
    for number in range(MANY):
        client.receiver(None, source=Source(address=f"q{number}", timeout=30))
    client.connection.end_of_input()
    router.end_turn()
    work_off(router)
    assert len(router.forwarder.suspended) == MANY
    router.wait(31)
    assert len(router.forwarder.suspended) == 0


def unsettled(router: Router, sent: int) -> tuple[Any, Any, list[Any]]:
    """Return a receiver with `sent` unsettled deliveries, their sender, and the sendings."""
    receiver = router.client(window=sent + 10).receiver("q", sent)
    sender = router.client(link_capacity=sent).sender("q")
    return receiver, sender, [sender.send(b"x") for _ in range(sent)]


@pytest.mark.parametrize("is_detached", [True, False])
def test_the_deliveries_of_a_lost_receiver_are_resolved_over_several_turns(
    is_detached: bool,
) -> None:
    router = Router()
    sent = ITEMS_AT_ONCE + 100
    receiver, _, sendings = unsettled(router, sent)
    if is_detached:
        receiver.attached = False
        receiver.client.give(Detach(receiver.handle, closed=True))
    else:
        receiver.client.connection.end_of_input()
    router.end_turn()
    assert 0 < sum(each.is_over for each in sendings) <= ITEMS_AT_ONCE
    work_off(router)
    assert [each.outcome for each in sendings] == [Modified(delivery_failed=True)] * sent
    assert router.table.total().modified == sent


def test_links_with_handles_far_apart_are_lost_in_order() -> None:
    router = Router()
    client = router.client()
    links = [client.receiver("q", 1) for _ in range(3 * HANDLES_A_STEP)]
    kept = [links[0], links[1], *links[-2:]]
    for link in links:
        if link not in kept:
            link.detach()
    router.events.clear()
    client.connection.end_of_input()
    router.end_turn()
    work_off(router)
    lost = [each.link.name for each in router.events if isinstance(each, LinkDetached)]
    assert lost == [each.name for each in kept]


def test_a_delivery_that_is_settled_before_its_turn_keeps_its_outcome() -> None:
    router = Router()
    sent = ITEMS_AT_ONCE + 100
    receiver, _, sendings = unsettled(router, sent)
    receiver.attached = False
    receiver.client.give(Detach(receiver.handle, closed=True))
    router.end_turn()
    receiver.client.give(Disposition(True, sent - 1, sent - 1, True, Accepted()))
    router.end_turn()
    work_off(router)
    assert sendings[-1].outcome == Accepted()
    assert sendings[-2].outcome == Modified(delivery_failed=True)


def test_the_deliveries_of_a_lost_sender_are_resolved_over_several_turns() -> None:
    router = Router()
    sent = ITEMS_AT_ONCE + 100
    receiver, sender, _ = unsettled(router, sent)
    connection = sender.client.connection
    session = connection.local_sessions[0]
    sender.client.over = True
    connection.end_of_input()
    router.end_turn()
    assert 100 <= session.incoming.count < sent
    work_off(router)
    assert session.incoming.count == 0
    receiver.settle()
    assert receiver.unsettled == {}


def test_nothing_is_sent_by_a_connection_whose_deliveries_are_still_being_resolved() -> None:
    router = Router()
    sent = ITEMS_AT_ONCE + 100
    receiver, sender, _ = unsettled(router, sent)
    connection = sender.client.connection
    sender.client.over = True
    connection.end_of_input()
    # as its pump leaves it behind
    connection.outbox.connection = None
    router.end_turn()
    assert router.turn.deferred
    receiver.client.give(Disposition(True, 0, sent - 1, True, Accepted()))
    assert None not in router.turn.touched
    router.end_turn()
    work_off(router)
    assert receiver.client.connection.local_sessions[0].outgoing.count == 0


def test_links_that_were_detached_for_an_error_are_forgotten_one_by_one() -> None:
    router = Router()
    client = router.client()
    for number in range(200):
        client.receiver(f"q{number}")
    # it does not answer
    client.read(reads=False)
    session = client.connection.local_sessions[0]
    error = AmqpError("amqp:internal-error", "an error", Scope.LINK)
    for link in list(session.local_links.values()):
        attaching.detach(link, True, error)
    router.finish_turn()
    assert len(session.errant) == 200
    router.is_patient = True
    client.connection.close()
    # all at once they would take long to free
    assert 0 < len(session.errant) < 200
    router.end_turn()
    router.catch_up()
    assert not session.errant
