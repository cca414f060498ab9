"""One end of a routed link is over: what the other end hears, and what becomes of deliveries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode, TerminusExpiryPolicy
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Coordinator,
    Detach,
    Disposition,
    End,
    Error,
    Modified,
    Released,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from router.amqp.types import Symbol
from router.core.diagnosis.blocking import Reason, Survey
from router.core.links import detach
from router.engine.deferred import ITEMS_AT_ONCE, STEPS_A_ROUND

from support.routed import EDGES, Pair, flow, receiver, routers_between, sender
from support.transcripts import NOTHING, On, like

GONE = Error(
    condition=Symbol("amqp:resource-deleted"),
    description="the queue was deleted",
    info={Symbol("queue"): "a"},
)
FAILED = Modified(delivery_failed=True)
LOST = "qd:routed-link-lost"


@pytest.fixture(autouse=True, params=[1, 3, EDGES], ids=["one router", "three routers", "edges"])
def in_line(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test with the client and the container at one router, and at the ends of a line."""
    routers_between[0] = request.param
    yield
    routers_between[0] = 1


def conditions(heard: list[Any]) -> list[Any]:
    """Of what was heard, its kind, or for a detach whether it closes and why."""
    return [
        (bool(each.closed), each.error and str(each.error.condition))
        if isinstance(each, Detach)
        else type(each)
        for each in heard
    ]


def sending(credit: int = 10, **fields: Any) -> Pair:
    """Return a pair whose client may send."""
    pair = Pair()
    pair.attach(sender(**fields))
    pair.from_container(flow(credit=credit))
    pair.client.skip()
    return pair


def receiving(credit: int = 10, **fields: Any) -> Pair:
    """Return a pair whose container may send."""
    pair = Pair()
    pair.attach(receiver(**fields))
    pair.client >> flow(credit=credit, count=None)
    pair.container.skip()
    return pair


def send(pair: Pair, number: int, **fields: Any) -> None:
    """Have the client send a delivery."""
    pair.client >> On(0, Transfer(0, number, b"%d" % number, 7, **fields), b"x")


def lose(pair: Pair) -> None:
    """Have the container's socket break."""
    pair.container.connection.end_of_input()


def is_tidy(pair: Pair) -> bool:
    """Whether nothing is left of any routed link."""
    cores = [router.forwarder for router in pair.routers]
    return not any(way.links for way in pair.ways) and all(
        len(core.routed) == 0
        and core.link_routes.links == 0
        and len(core.link_names) == 0
        and core.link_names.forwarded_count == 0
        and core.backlog.held_bytes == 0
        for core in cores
    )


# A detach says what it says.


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("error", [None, GONE], ids=["orderly", "error"])
@pytest.mark.parametrize("make", [sending, receiving])
def test_a_detach_is_passed_on_as_it_is(make: Any, closed: bool, error: Error | None) -> None:
    pair = make()
    pair.client >> Detach(0, closed=closed, error=error)
    pair.client << NOTHING
    assert pair.to_container() == [Detach(0, closed=closed, error=error)]
    assert is_tidy(pair)
    pair.from_container(Detach(0, closed=closed))
    pair.client << Detach(0, closed=closed) << NOTHING
    assert conditions(pair.to_container()) == [End]

    pair = make()
    pair.from_container(Detach(0, closed=closed, error=error))
    pair.client << Detach(0, closed=closed, error=error) << NOTHING
    assert is_tidy(pair)


@pytest.mark.parametrize("closed", [False, True])
def test_a_detach_is_answered_by_the_container(closed: bool) -> None:
    pair = receiving()
    pair.client >> Detach(0, closed=closed)
    pair.to_container()
    pair.from_container(Detach(0, closed=not closed, error=GONE))
    pair.client << Detach(0, closed=not closed, error=GONE) << NOTHING
    assert conditions(pair.to_container()) == [End]
    assert not pair.client.connection.local_sessions[0].local_links


@pytest.mark.parametrize("how", ["socket", "session"])
def test_a_container_that_is_lost_before_it_answers_a_detach(how: str) -> None:
    pair = receiving()
    pair.client >> Detach(0, closed=True)
    pair.client << NOTHING
    if how == "socket":
        lose(pair)
    else:
        pair.from_container(End())
    pair.client << Detach(0, closed=True) << NOTHING


def test_a_client_that_is_lost_before_its_detach_is_answered() -> None:
    pair = receiving()
    pair.client >> Detach(0, closed=True)
    pair.client >> End()
    pair.client << like(End) << NOTHING
    assert conditions(pair.to_container()) == [(True, None)]
    pair.from_container(Detach(0, closed=True))
    assert conditions(pair.to_container()) == [End]


def test_a_redirect_of_an_attached_link_is_passed_on() -> None:
    info = {Symbol("network-host"): "elsewhere.example"}
    pair = sending()
    error = Error(condition=Symbol("amqp:link:redirect"), info=info)
    pair.from_container(Detach(0, closed=True, error=error))
    pair.client << Detach(0, closed=True, error=error)


def test_what_the_container_leaves_open_is_left_open() -> None:
    pair = sending()
    send(pair, 0)
    pair.from_container(Detach(0, closed=True, error=GONE))
    pair.client << like(Detach) << NOTHING
    assert pair.client.connection.local_sessions[0].incoming.count == 0


def test_a_link_that_the_peer_breaks() -> None:
    pair = sending(credit=0)
    send(pair, 0)
    (closed, condition) = conditions(pair.to_client())[0]
    assert (closed, condition) == (True, "amqp:link:transfer-limit-exceeded")
    assert conditions(pair.to_container())[0] == (True, "amqp:link:transfer-limit-exceeded")


# What was sent before the end goes before it.


def test_what_was_sent_settled_before_a_close_arrives() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    send(pair, 0, settled=True)
    send(pair, 1, settled=True)
    pair.client >> Detach(0, closed=True)
    pair.client << NOTHING
    pair.container << NOTHING
    pair.from_container(flow(credit=5))
    heard = pair.to_container()
    assert [type(each) for each in heard] == [Transfer, Transfer, Detach]
    assert is_tidy(pair)
    pair.from_container(Detach(0, closed=True))
    pair.client << Detach(0, closed=True)
    assert conditions(pair.to_container()) == [End]


@pytest.mark.parametrize("ends", ["end", "close", "lost"])
def test_what_was_sent_before_a_session_ended_arrives(ends: str) -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    send(pair, 0, settled=True)
    if ends == "lost":
        pair.client.connection.end_of_input()
    else:
        pair.client >> (End() if ends == "end" else Close())
    pair.container << NOTHING
    pair.from_container(flow(credit=5))
    heard = conditions(pair.to_container_till_end())
    assert heard == [Transfer, (True, LOST), End]
    assert is_tidy(pair)


def test_what_will_never_be_taken_is_not_waited_for() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    send(pair, 0)
    pair.from_container(withdrawn())
    pair.client >> Detach(0, closed=True)
    assert conditions(pair.to_container()) == [(True, None)]
    assert is_tidy(pair)


def test_the_receiver_goes_before_it_has_got_all() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    send(pair, 0, settled=True)
    pair.client >> Detach(0, closed=True)
    pair.from_container(Detach(0, closed=True))
    assert is_tidy(pair)
    assert conditions(pair.to_container()) == [(True, None), End]
    pair.client << Detach(0, closed=True) << NOTHING


@pytest.mark.parametrize("how", ["detach", "lost"])
def test_the_receiver_goes_in_the_middle_of_what_was_sent_before_a_close(how: str) -> None:
    pair = sending(credit=5)
    pair.from_container(narrow_window())
    pair.client >> On(0, Transfer(0, 0, b"0", 7, settled=True, more=True), b"x")
    pair.client >> On(0, Transfer(0, more=True), b"x")
    pair.client >> On(0, Transfer(0), b"x")
    pair.client >> Detach(0, closed=True)
    assert conditions(pair.to_container()) == [Transfer]
    if how == "lost":
        lose(pair)
    else:
        pair.from_container(Detach(0, closed=True))
    pair.client.drain()
    assert is_tidy(pair)


def test_half_a_delivery_is_aborted_before_the_end() -> None:
    pair = sending()
    send(pair, 0, more=True)
    pair.client >> Detach(0, closed=True)
    heard = pair.to_container()
    assert [type(each) for each in heard] == [Transfer, Transfer, Detach]
    assert heard[1].aborted
    assert is_tidy(pair)


def closed_window() -> Any:
    """Return a flow that closes the container's window."""
    closed = flow(credit=5)
    return type(closed)(
        next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=100
    )


def narrow_window() -> Any:
    """Return a flow with room for one transfer."""
    narrow = flow(credit=5)
    return type(narrow)(
        next_incoming_id=0, incoming_window=1, next_outgoing_id=0, outgoing_window=100
    )


def withdrawn() -> Any:
    """Return a flow that takes credit back while the window is closed."""
    return type(flow())(
        next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=100, handle=0,
        delivery_count=0, link_credit=0,
    )  # fmt: skip


# The container is lost.


def test_the_outcomes_of_very_many_links_are_reported() -> None:
    pair = Pair(routers=1)
    turn, count = pair.router.turn, 2 * STEPS_A_ROUND
    for handle in range(count):
        pair.attach(sender(name=f"s{handle}", handle=handle))
        pair.from_container(flow(credit=5))
        pair.client.skip()
        pair.client >> On(0, Transfer(handle, 2 * handle, b"had", 7), b"x")
        pair.from_container(closed_window_at(1))
        pair.client >> On(0, Transfer(handle, 2 * handle + 1, b"had not", 7), b"x")
        pair.container.skip()
    pair.to_client()
    lose(pair)
    turns = []
    turn.deferred.begin_round()
    heard = pair.to_client()
    while turn.deferred:
        turns.append(sum(type(each) is Detach for each in heard))
        turn.deferred.step()
        heard += pair.to_client()
    assert turns[0] <= STEPS_A_ROUND
    detached = [each.handle for each in heard if type(each) is Detach]
    assert detached == list(range(count))
    states = {
        number: each.state
        for each in heard
        if type(each) is Disposition
        for number in range(each.first, (each.first if each.last is None else each.last) + 1)
    }
    assert [states[number] for number in range(2 * count)] == [FAILED, Released()] * count
    assert is_tidy(pair)


VERY_MANY = ITEMS_AT_ONCE + 100


def send_very_many(pair: Pair) -> None:
    """Have the client send very many deliveries, a few in each turn, as its window allows."""
    for number in range(VERY_MANY):
        send(pair, number)
        if number % 20 == 0:
            pair.container.skip()
            pair.client.skip()
    pair.container.skip()


def losing_very_many() -> tuple[Pair, list[Any]]:
    """Lose a container with very many unsettled deliveries; return what its client hears then."""
    pair = Pair(routers=1)
    pair.attach(sender())
    pair.from_container(flow(credit=2 * VERY_MANY))
    pair.client.skip()
    send_very_many(pair)
    lose(pair)
    heard = pair.to_client()
    assert 0 < sum(type(each) is Disposition for each in heard) <= ITEMS_AT_ONCE
    assert conditions(heard)[-1] is Disposition
    return pair, heard


def go_on(pair: Pair) -> list[Any]:
    """Take later turns until nothing is left to do; what the client hears."""
    turn, heard = pair.router.turn, pair.to_client()
    turn.deferred.begin_round()
    while turn.deferred:
        turn.deferred.step()
        heard += pair.to_client()
    return heard


def test_the_outcomes_of_very_many_deliveries_are_told_before_the_detach() -> None:
    pair, heard = losing_very_many()
    # nothing is said of the loss yet, and so the client goes on
    send(pair, VERY_MANY)
    heard += go_on(pair)
    assert conditions(heard)[-1] == (True, LOST)
    told = [each for each in heard if type(each) is Disposition]
    assert sum((each.last or each.first) - each.first + 1 for each in told) == VERY_MANY + 1
    assert [each.state for each in told if each.first < VERY_MANY] == [FAILED] * (len(told) - 1)
    assert [each.state for each in told if each.first == VERY_MANY] == [Released()]
    assert is_tidy(pair)


@pytest.mark.parametrize("how", ["detach", "end", "socket"])
def test_a_client_that_leaves_while_it_is_told_of_very_many_deliveries(how: str) -> None:
    pair, _ = losing_very_many()
    if how == "socket":
        pair.client.connection.end_of_input()
    else:
        pair.client >> (Detach(0, closed=True) if how == "detach" else End())
    heard = go_on(pair)
    if how == "detach":
        assert conditions(heard).count((True, None)) == 1
    assert is_tidy(pair)


def test_a_client_is_lost_that_has_sent_very_many_deliveries() -> None:
    pair = Pair(routers=1)
    pair.attach(sender())
    pair.from_container(flow(credit=VERY_MANY))
    pair.client.skip()
    session = pair.client.connection.local_sessions[0]
    send_very_many(pair)
    pair.client.connection.end_of_input()
    go_on(pair)
    assert session.incoming.count == 0
    assert conditions(pair.to_container_till_end()) == [(True, LOST), End]
    assert is_tidy(pair)


@pytest.mark.parametrize("how", ["socket", "session", "close"])
def test_a_lost_container_leaves_the_contracts_outcomes(how: str) -> None:
    pair = sending(credit=5)
    send(pair, 0)
    pair.from_container(closed_window_at(1))
    send(pair, 1)
    if how == "socket":
        lose(pair)
    elif how == "session":
        pair.from_container(End(error=GONE))
    else:
        pair.container >> Close(error=GONE)
    heard = pair.to_client()
    states = {each.first: each.state for each in heard if isinstance(each, Disposition)}
    assert states == {0: FAILED, 1: Released()}
    assert all(each.settled for each in heard if isinstance(each, Disposition))
    detached = heard[-1]
    assert conditions([detached]) == [(True, LOST)]
    assert detached.error.description == "Connectivity to the peer container was lost"
    if how != "socket":
        assert detached.error.info[Symbol("condition")] == GONE.condition
    assert is_tidy(pair)


def closed_window_at(count: int) -> Any:
    """Return a flow that closes the container's window after `count` frames."""
    return type(flow())(
        next_incoming_id=count, incoming_window=0, next_outgoing_id=0, outgoing_window=100
    )


def test_half_a_delivery_to_a_lost_container() -> None:
    pair = sending()
    send(pair, 0, more=True)
    lose(pair)
    (outcome, detached) = pair.to_client()
    assert outcome.state == FAILED
    assert isinstance(detached, Detach)
    pair.client >> On(0, Transfer(0), b"rest")
    pair.client << NOTHING
    assert is_tidy(pair)


def test_a_sender_that_settles_second_is_told_and_settles() -> None:
    pair = sending(rcv_settle_mode=ReceiverSettleMode.SECOND)
    send(pair, 0)
    send(pair, 1)
    pair.from_container(Disposition(True, 0, 0, settled=False, state=Accepted()))
    pair.client << like(Disposition, state=Accepted())
    lose(pair)
    # what the container has said stands
    pair.client << Disposition(True, 1, 1, settled=False, state=FAILED)
    pair.client << like(Detach) << NOTHING


def test_a_transactions_deliveries_are_the_transactions() -> None:
    pair = sending()
    send(pair, 0, state=TransactionalState(b"tx"))
    lose(pair)
    pair.client << like(Detach) << NOTHING


@pytest.mark.parametrize(
    "lasting", [{"timeout": 10}, {"expiry_policy": TerminusExpiryPolicy.NEVER}], ids=str
)
def test_a_terminus_that_outlives_its_link_keeps_what_is_unsettled(lasting: Any) -> None:
    pair = sending(target=Target(address="q.a", **lasting))
    send(pair, 0)
    lose(pair)
    assert conditions(pair.to_client()) == [(False, LOST)]


@pytest.mark.spec("4.1-1")
def test_a_lost_coordinator_is_a_rollback() -> None:
    pair = Pair()
    pair.attach(sender(target=Coordinator()))
    pair.from_container(flow(credit=5))
    pair.client.skip()
    send(pair, 0)
    lose(pair)
    assert conditions(pair.to_client()) == [(True, "amqp:transaction:rollback")]


def test_what_a_lost_container_was_sending_is_aborted() -> None:
    pair = receiving()
    pair.from_container(Transfer(0, 0, b"0", 7, more=True), b"half")
    lose(pair)
    heard = pair.to_client()
    assert [type(each) for each in heard] == [Transfer, Transfer, Detach]
    assert heard[1].aborted
    assert conditions(heard)[-1] == (True, LOST)
    assert is_tidy(pair)


def test_outcomes_for_a_lost_container_are_nobodys() -> None:
    pair = receiving()
    pair.from_container(Transfer(0, 0, b"0", 7), b"x")
    lose(pair)
    pair.client.skip()
    pair.client >> Disposition(True, 0, 0, settled=True, state=Accepted())
    pair.client << NOTHING


# The client is lost.


@pytest.mark.parametrize("how", ["socket", "end", "close"])
@pytest.mark.parametrize("lasting", [False, True])
def test_a_lost_client_is_a_detach_for_the_container(how: str, lasting: bool) -> None:
    pair = receiving(source=Source(address="q.a", timeout=10 if lasting else 0))
    pair.from_container(Transfer(0, 0, b"0", 7), b"x")
    if how == "socket":
        pair.client.connection.end_of_input()
    else:
        pair.client >> (End() if how == "end" else Close())
    assert conditions(pair.to_container_till_end()) == [(not lasting, LOST), End]
    assert is_tidy(pair)
    assert not pair.container.connection.local_sessions


@pytest.mark.spec("4.1-1")
@pytest.mark.parametrize("how", ["socket", "end", "close", "detach"])
def test_a_lost_client_s_link_to_a_coordinator_ends_at_the_container(how: str) -> None:
    pair = sending(target=Coordinator())
    if how == "socket":
        pair.client.connection.end_of_input()
    else:
        pair.client >> {"end": End(), "close": Close(), "detach": Detach(0, closed=True)}[how]
    error = None if how == "detach" else LOST
    heard = pair.to_container()
    assert conditions(heard)[0] == (True, error)
    assert is_tidy(pair)


def test_a_client_that_comes_back_resumes() -> None:
    pair = receiving(source=Source(address="q.a", timeout=10))
    pair.from_container(Transfer(0, 0, b"tag", 7), b"x")
    pair.client.skip()
    pair.client >> Detach(0, closed=False)
    pair.to_container()
    pair.from_container(Detach(0, closed=False))
    pair.to_container()
    pair.client << Detach(0, closed=False)
    again = receiver(source=Source(address="q.a", timeout=10), unsettled={b"tag": Accepted()})
    heard = pair.attach(again, unsettled={b"tag": None})
    assert isinstance(heard, Attach)
    assert heard.unsettled == {b"tag": None}
    pair.client >> flow(credit=5, count=None)
    pair.container.skip()
    resumed = Transfer(0, 0, b"tag", 0, settled=True, state=Accepted(), resume=True)
    pair.from_container(resumed)
    pair.client << like(Transfer, delivery_tag=b"tag", state=Accepted(), resume=True, settled=True)


def test_shutting_down() -> None:
    pair = receiving()
    list(detach.release_all(pair.router.forwarder, pair.client.connection))
    assert conditions(pair.to_container_till_end()) == [(True, LOST), End]
    assert is_tidy(pair)


@pytest.mark.parametrize("by_client", [True, False])
def test_what_was_counted_stays_when_a_link_is_over(by_client: bool) -> None:
    pair = sending()
    for number in range(3):
        send(pair, number)
    table = pair.router.table
    assert len(table.routed) == 1
    before = table.total()
    assert (before.ingress, before.egress) == (3, 3)
    if by_client:
        pair.client >> Detach(0, closed=True)
    else:
        pair.from_container(Detach(0, closed=True))
    assert len(table.routed) == 0
    after = table.total()
    assert (after.ingress, after.egress) == (3, 3)


def test_what_left_late_is_counted_too() -> None:
    routers_between[0] = 1
    pair = sending(credit=3)
    pair.container.connection.outbox.congested = True
    for number in range(3):
        send(pair, number)
    pair.client >> Detach(0, closed=True)
    table = pair.router.table
    assert (table.total().egress, len(table.routed)) == (0, 1)
    pair.container.connection.outbox.congested = False
    consumer = pair.router.forwarder.routed.addresses()
    assert consumer == []
    (address,) = table.routed
    pair.router.forwarder.queues.serve(address.consumers[0])
    (receiver,) = address.consumers
    assert receiver.resuming is not None
    receiver.resuming.go_on(pair.router.forwarder, receiver)
    assert (table.total().egress, len(table.routed)) == (3, 0)


def test_credit_for_a_sender_that_is_gone_is_told_to_nobody() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    send(pair, 0, settled=True)
    pair.client.connection.end_of_input()
    pair.router.turn.touched.clear()
    pair.from_container(more_credit())
    pair.router.forwarder.finish_turn()
    assert pair.client.connection not in pair.router.turn.touched
    pair.from_container(flow(credit=9))
    assert conditions(pair.to_container_till_end()) == [Transfer, (True, LOST), End]


def more_credit() -> Any:
    """Return a flow that gives credit while the window is closed."""
    return type(flow())(
        next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=100, handle=0,
        delivery_count=0, link_credit=9, drain=True,
    )  # fmt: skip


def test_why_a_routed_sender_stands_still() -> None:
    pair = sending(credit=0)
    survey = Survey(pair.router.forwarder)
    (link,) = pair.client.connection.local_sessions[0].local_links.values()
    assert survey.link(link) is Reason.NO_CREDIT
