"""Links that are routed: what one peer says of its link is what the other one hears."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from router.amqp.constants import (
    ReceiverSettleMode,
    SenderSettleMode,
    TerminusDurability,
    TerminusExpiryPolicy,
)
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Coordinator,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Modified,
    Received,
    Rejected,
    Source,
    Target,
    TransactionalState,
    Transfer,
)
from router.amqp.types import Described, Symbol, UInt, ULong

from support.routed import EDGES, Pair, Peer, flow, receiver, routers_between, sender
from support.transcripts import NOTHING, On, like

SELECTOR = Described(Symbol("apache.org:selector-filter:string"), "colour = 'red'")
GONE = Error(
    condition=Symbol("amqp:resource-deleted"),
    description="the queue was deleted",
    info={Symbol("queue"): "a"},
)
ELSEWHERE = Error(
    condition=Symbol("amqp:link:redirect"),
    description=None,
    info={Symbol("network-host"): "other.example", Symbol("port"): UInt(5672)},
)

WHOLE_SOURCE = Source(
    address="q.a",
    durable=TerminusDurability.UNSETTLED_STATE,
    expiry_policy=TerminusExpiryPolicy.NEVER,
    timeout=60,
    distribution_mode=Symbol("copy"),
    filter={Symbol("selector"): SELECTOR},
    default_outcome=Modified(delivery_failed=True),
    outcomes=(Symbol("amqp:accepted:list"), Symbol("amqp:modified:list")),
    capabilities=(Symbol("topic"), Symbol("shared")),
)
WHOLE_TARGET = Target(
    address="q.a",
    durable=TerminusDurability.CONFIGURATION,
    expiry_policy=TerminusExpiryPolicy.CONNECTION_CLOSE,
    timeout=30,
    capabilities=(Symbol("queue"),),
)
WHOLE: dict[str, Any] = {
    "snd_settle_mode": SenderSettleMode.UNSETTLED,
    "rcv_settle_mode": ReceiverSettleMode.SECOND,
    "unsettled": {b"t1": Accepted(), b"t2": None, b"t3": Received(1, 2)},
    "incomplete_unsettled": True,
    "max_message_size": 123456,
    "offered_capabilities": (Symbol("offered"),),
    "desired_capabilities": (Symbol("desired"),),
    "properties": {Symbol("colour"): "red", Symbol("size"): UInt(3)},
}


@pytest.fixture(autouse=True, params=[1, 3, EDGES], ids=["one router", "three routers", "edges"])
def in_line(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test with the client and the container at one router, and at the ends of a line."""
    routers_between[0] = request.param
    yield
    routers_between[0] = 1


# Attaching.


@pytest.mark.spec("2.6.1-1", "F2.2-2")
@pytest.mark.parametrize(
    "attach",
    [
        receiver(source=WHOLE_SOURCE, target=Target(address="me"), **WHOLE),
        sender(source=Source(address="me"), target=WHOLE_TARGET, **WHOLE),
    ],
)
def test_an_attach_is_passed_on_whole_and_so_is_its_answer(attach: Attach) -> None:
    pair = Pair()
    asked = pair.ask(attach)
    assert asked == attrs.evolve(attach, name=f"{attach.name}@client", handle=asked.handle)
    granted: dict[str, Any] = {
        "snd_settle_mode": SenderSettleMode.SETTLED,
        "rcv_settle_mode": ReceiverSettleMode.FIRST,
        "source": attrs.evolve(source_of(asked), filter=None, timeout=0, capabilities=()),
        "unsettled": {b"t4": Rejected(error=GONE)},
        "incomplete_unsettled": False,
        "max_message_size": 10,
        "offered_capabilities": (Symbol("AMQP_FILTEX_SQL_V1_0"), Symbol("else")),
        "properties": {Symbol("broker"): "x"},
        "initial_delivery_count": 77 if attach.role else None,
    }
    pair.answer(asked, **granted)
    (heard,) = pair.to_client()
    assert heard == attrs.evolve(asked, name=attach.name, handle=0, role=not attach.role, **granted)


def source_of(attach: Attach) -> Source:
    assert attach.source is not None
    return attach.source


def test_a_container_is_told_its_own_address_and_the_peer_the_one_it_knows() -> None:
    pair = Pair(rule={"add_prefix": "ext/", "del_prefix": "q."})
    asked = pair.ask(receiver("q.a"))
    assert asked.source == Source(address="ext/a")
    pair.answer(asked)
    (heard,) = pair.to_client()
    assert heard.source.address == "q.a"


def test_a_dynamic_node_is_the_containers() -> None:
    pair = Pair()
    properties = {Symbol("x-opt-qd.address"): "q.any", Symbol("lifetime-policy"): "x"}
    source = Source(dynamic=True, dynamic_node_properties=properties)
    asked = pair.ask(receiver(source=source))
    assert asked.source == source
    pair.answer(asked, source=attrs.evolve(source, address="made-up"))
    (heard,) = pair.to_client()
    assert heard.source == attrs.evolve(source, address="made-up")


@pytest.mark.parametrize("error", [GONE, ELSEWHERE], ids=["gone", "redirect"])
@pytest.mark.parametrize("attach", [sender(), receiver()], ids=["sender", "receiver"])
def test_a_refusal_is_passed_on_with_its_reason(attach: Attach, error: Error) -> None:
    pair = Pair()
    asked = pair.ask(attach)
    pair.answer(asked, **{"source" if attach.role else "target": None})
    pair.from_container(Detach(0, closed=True, error=error))
    answered, detached = pair.to_client()
    assert (answered.source if attach.role else answered.target) is None
    assert detached == Detach(answered.handle, closed=True, error=error)
    assert [type(each) for each in pair.to_container_till_end()] == [Detach, End]
    assert len(pair.router.forwarder.routed) == 0
    assert pair.ways[0].links == pair.ways[1].links == 0


def test_a_session_that_ends_instead_of_an_answer_is_a_refusal() -> None:
    pair = Pair()
    pair.ask(sender())
    pair.from_container(End(error=GONE))
    assert pair.to_client()[1].error == GONE


def test_a_container_that_is_lost_before_it_answers() -> None:
    pair = Pair()
    pair.ask(sender())
    pair.container.connection.end_of_input()
    answered, detached = pair.to_client()
    assert answered.target is None
    assert str(detached.error.condition) == "qd:routed-link-lost"


def test_a_peer_that_is_gone_before_the_answer() -> None:
    pair = Pair()
    pair.ask(sender())
    pair.client >> Detach(0, closed=True)
    assert [type(each) for each in pair.to_client()] == [Attach, Detach]
    assert [type(each) for each in pair.to_container_till_end()] == [Detach, End]


def test_without_a_container_there_is_no_route() -> None:
    pair = Pair()
    pair.container.connection.end_of_input()
    for way in pair.ways:
        pair.router.forwarder.link_routes.close(way, pair.container.connection)
    pair.client >> sender()
    answered, detached = pair.to_client()
    assert answered.target is None
    assert str(detached.error.condition) == "qd:no-route-to-dest"


def test_a_peer_that_takes_no_frame_of_the_answers_size() -> None:
    pair = Pair(remote={"max_frame_size": 512})
    asked = pair.ask(receiver())
    pair.answer(asked, properties={Symbol("long"): "x" * 600})
    answered, detached = pair.to_client()
    assert answered.source is None
    assert str(detached.error.condition) == "amqp:frame-size-too-small"
    assert [type(each) for each in pair.to_container_till_end()] == [Detach, End]


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [({"timeout": 5}, False), ({"expiry_policy": TerminusExpiryPolicy.NEVER}, False), ({}, True)],
)
def test_termini_that_outlive_their_links_where_they_may_not(
    fields: dict[str, Any], allowed: bool
) -> None:
    pair = Pair()
    pair.router.forwarder.link_routes.allows_resumable = False
    pair.client >> receiver(source=Source(address="q.a", **fields))
    if allowed:
        pair.container << like(Begin)
    else:
        refusal = pair.to_client()[1]
        assert str(refusal.error.condition) == "qd:link-expiration"
        pair.container << NOTHING


# Deliveries.


def attached(attach: Attach, **fields: Any) -> Pair:
    pair = Pair(**fields.pop("pair", {}))
    pair.attach(attach, **fields)
    return pair


def sending(credit: int = 10, **fields: Any) -> Pair:
    """Return a pair whose client may send."""
    pair = attached(sender(**fields))
    pair.from_container(flow(credit=credit))
    pair.client << like(Flow, link_credit=credit)
    return pair


def receiving(credit: int = 10, **fields: Any) -> Pair:
    """Return a pair whose container may send."""
    pair = attached(receiver(**fields))
    pair.client >> flow(credit=credit, count=None)
    pair.container << On(pair.channel, like(Flow, link_credit=credit))
    return pair


TRANSFER = Transfer(0, 0, b"a tag", 7, settled=False)


@pytest.mark.spec("4.5.6-1")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"settled": True},
        {"delivery_tag": b"t" * 32},
        {"delivery_tag": b""},
        {"message_format": 0},
        {"batchable": True},
        {"rcv_settle_mode": ReceiverSettleMode.FIRST},
        {"rcv_settle_mode": ReceiverSettleMode.SECOND},
        {"state": TransactionalState(b"tx")},
        {"state": Accepted(), "resume": True},
        {"state": Received(3, 4), "resume": True},
        {"resume": True, "aborted": True},
        {"state": Described(Symbol("of-mine:list"), [1]), "batchable": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", [ReceiverSettleMode.FIRST, ReceiverSettleMode.SECOND])
def test_a_transfer_says_the_same_on_the_other_side(
    fields: dict[str, Any], mode: ReceiverSettleMode
) -> None:
    transfer = attrs.evolve(TRANSFER, **fields)
    payload = b"" if transfer.aborted else b"\0\x53\x77\xa1\3abc, and no message at all"
    pair = sending(rcv_settle_mode=mode)
    pair.client >> On(0, transfer, payload)
    pair.container << On(pair.channel, transfer, payload)
    pair = receiving(rcv_settle_mode=mode)
    pair.from_container(transfer, payload)
    pair.client << On(0, transfer, payload)


def test_nothing_is_looked_at_or_rewritten() -> None:
    pair = sending()
    # a header with a ttl, delivery annotations, the router's own message annotations, no body
    octets = bytes.fromhex("005370c0020240524005371c10100".replace(" ", "")[:24]) + b"\xff" * 50
    pair.client >> On(0, attrs.evolve(TRANSFER, message_format=0), octets)
    pair.container << On(pair.channel, like(Transfer), octets)


def test_a_delivery_of_many_frames_is_streamed() -> None:
    pair = sending()
    pair.client >> On(0, attrs.evolve(TRANSFER, more=True), b"one")
    pair.container << On(pair.channel, like(Transfer, more=True), b"one")
    pair.client >> On(0, Transfer(0, more=True), b"two")
    pair.container << On(pair.channel, like(Transfer, delivery_id=None, more=True), b"two")
    pair.client >> On(0, Transfer(0, settled=True), b"three")
    pair.container << On(pair.channel, like(Transfer, settled=True, more=False), b"three")


def test_a_delivery_that_is_given_up_half_way() -> None:
    pair = sending()
    pair.client >> On(0, attrs.evolve(TRANSFER, more=True), b"one")
    pair.client >> On(0, Transfer(0, aborted=True), b"")
    pair.container << On(pair.channel, like(Transfer, more=True), b"one")
    pair.container << On(pair.channel, like(Transfer, aborted=True, settled=True))


STATES = [
    Accepted(),
    Rejected(error=GONE),
    Modified(True, True, {Symbol("x-why"): 1}),
    Received(1, 5),
    TransactionalState(b"tx", Accepted()),
    Described(Symbol("of-mine:list"), [1, 2]),
    None,
]


@pytest.mark.spec("4.5.6-1")
@pytest.mark.parametrize("state", STATES, ids=str)
@pytest.mark.parametrize("settled", [False, True], ids=["unsettled", "settled"])
@pytest.mark.parametrize("mode", [ReceiverSettleMode.FIRST, ReceiverSettleMode.SECOND])
def test_what_one_side_says_of_a_delivery_the_other_hears(
    state: Any, settled: bool, mode: ReceiverSettleMode
) -> None:
    if state is None and not settled:
        return
    for by_receiver in (True, False):
        pair = sending(rcv_settle_mode=mode)
        pair.client >> On(0, TRANSFER, b"x")
        pair.container << On(pair.channel, like(Transfer))
        said = Disposition(by_receiver, 0, 0, settled=settled, state=state)
        if by_receiver:
            pair.from_container(said)
            pair.client << said
            pair.client << NOTHING
        else:
            pair.client >> said
            pair.container << On(pair.channel, said)
            pair.container << NOTHING


def test_second_settles_after_first() -> None:
    pair = sending(rcv_settle_mode=ReceiverSettleMode.SECOND)
    pair.client >> On(0, TRANSFER, b"x")
    pair.from_container(Disposition(True, 0, 0, settled=False, state=Accepted()))
    pair.client << Disposition(True, 0, 0, settled=False, state=Accepted())
    pair.client >> Disposition(False, 0, 0, settled=True, state=Accepted())
    pair.container.skip()
    pair.from_container(Disposition(True, 0, 0, settled=True, state=Accepted()))
    pair.client << NOTHING
    assert session_counts(pair) == [0, 0]


def session_counts(pair: Pair) -> list[int]:
    """How many deliveries each side's sessions remember."""
    return [
        sum(s.incoming.count + s.outgoing.count for s in peer.connection.local_sessions.values())
        for peer in (pair.client, pair.container)
    ]


def test_outcomes_of_neighbours_are_told_together() -> None:
    pair = sending()
    for number in range(5):
        pair.client >> On(0, Transfer(0, number, b"%d" % number, 7), b"x")
    pair.container.skip()
    pair.from_container(Disposition(True, 0, 4, settled=True, state=Accepted()))
    pair.client << Disposition(True, 0, 4, settled=True, state=Accepted())
    pair.client << NOTHING
    address = pair.router.forwarder.routed
    assert len(address) == 1


# Credit.


def test_credit_is_passed_on_one_for_one() -> None:
    pair = sending(credit=3)
    for number in range(3):
        pair.client >> On(0, Transfer(0, number, b"%d" % number, 7), b"x")
    pair.client << NOTHING
    pair.container.skip()
    pair.from_container(flow(credit=2, count=3, next_incoming_id=3))
    pair.client << like(Flow, delivery_count=3, link_credit=2)
    pair.from_container(flow(credit=2, count=3, next_incoming_id=3))
    pair.client << NOTHING


@pytest.mark.parametrize("initial", [0, 5, 2**32 - 1])
def test_counts_begin_where_the_senders_do(initial: int) -> None:
    pair = attached(sender(initial_delivery_count=initial))
    pair.from_container(flow(credit=10, count=initial))
    pair.client << like(Flow, delivery_count=initial, link_credit=10)
    pair = attached(receiver(), initial_delivery_count=initial)
    pair.client >> flow(credit=10, count=None)
    pair.container << On(pair.channel, like(Flow, delivery_count=initial, link_credit=10))
    pair.client >> flow(credit=10, count=(initial + 2) % 2**32)
    pair.container << On(pair.channel, like(Flow, delivery_count=initial, link_credit=12))


def test_credit_that_comes_with_the_attach() -> None:
    pair = Pair()
    asked = pair.ask(receiver())
    pair.client >> flow(credit=10, count=None, echo=True)
    pair.answer(asked, initial_delivery_count=4)
    expected = like(Flow, delivery_count=4, link_credit=10, echo=True)
    pair.container << On(pair.channel, expected)
    pair.client << like(Attach, initial_delivery_count=4) << NOTHING


def test_credit_that_is_taken_back_may_have_been_used() -> None:
    pair = sending(credit=2)
    pair.from_container(flow(credit=0))
    pair.client << like(Flow, link_credit=0)
    # it left before that came
    pair.client >> On(0, Transfer(0, 0, b"0", 7), b"x")
    pair.client << NOTHING
    pair.container << NOTHING
    pair.from_container(flow(credit=1))
    pair.container << On(pair.channel, like(Transfer))
    pair.client >> On(0, Transfer(0, 1, b"1", 7), b"x")
    pair.client >> On(0, Transfer(0, 2, b"2", 7), b"x")
    pair.client << like(Detach)


def test_what_a_container_sends_beyond_the_credit_waits_for_credit() -> None:
    pair = receiving(credit=2)
    for number in range(4):
        pair.from_container(Transfer(0, number, b"%d" % number, 7), b"x")
    pair.client << like(Transfer, delivery_id=0) << like(Transfer, delivery_id=1) << NOTHING
    pair.container << NOTHING
    pair.client >> flow(credit=1, count=2)
    pair.client << like(Transfer, delivery_id=2) << NOTHING
    # one of the five is for what waits
    pair.client >> flow(credit=5, count=3)
    pair.client << like(Transfer, delivery_id=3) << NOTHING
    pair.container << On(pair.channel, like(Flow, delivery_count=4, link_credit=4)) << NOTHING


def test_a_drain_is_the_senders_to_end() -> None:
    pair = receiving(credit=5)
    pair.client >> flow(credit=5, drain=True)
    pair.container << On(pair.channel, like(Flow, link_credit=5, drain=True))
    pair.client << NOTHING
    pair.from_container(Transfer(0, 0, b"0", 7), b"x")
    pair.client << like(Transfer) << NOTHING
    pair.from_container(flow(credit=0, count=5, drain=True, next_outgoing_id=1))
    pair.client << like(Flow, delivery_count=5, link_credit=0, drain=True)
    pair.client >> flow(credit=7, count=5)
    pair.container << On(pair.channel, like(Flow, delivery_count=5, link_credit=7, drain=False))


def test_each_drain_without_credit_is_the_senders_to_answer() -> None:
    pair = receiving(credit=2)
    pair.client >> flow(credit=0, drain=True)
    pair.container << On(pair.channel, like(Flow, link_credit=0, drain=True)) << NOTHING
    pair.client << NOTHING
    pair.from_container(flow(credit=0, drain=True))
    pair.client << like(Flow, delivery_count=0, link_credit=0, drain=True) << NOTHING
    # as often as it is asked for, but a flow that nobody asked for is none
    pair.from_container(flow(credit=0, drain=True))
    pair.client << NOTHING
    for _ in range(2):
        pair.client >> flow(credit=0, drain=True)
        pair.container << On(pair.channel, like(Flow, link_credit=0, drain=True)) << NOTHING
        pair.from_container(flow(credit=0, drain=True))
        pair.client << like(Flow, delivery_count=0, link_credit=0, drain=True) << NOTHING
    pair.container << NOTHING


def test_a_drain_that_messages_use_up_is_the_senders_to_answer() -> None:
    pair = receiving(credit=1)
    pair.client >> flow(credit=1, drain=True)
    pair.container << On(pair.channel, like(Flow, link_credit=1, drain=True))
    pair.from_container(Transfer(0, 0, b"0", 7), b"x")
    pair.client << like(Transfer) << NOTHING
    pair.from_container(flow(credit=0, count=1, drain=True, next_outgoing_id=1))
    pair.client << like(Flow, delivery_count=1, link_credit=0, drain=True) << NOTHING


def test_many_drains_of_one_turn_are_passed_on_as_one() -> None:
    pair = receiving(credit=2)
    pair.client >> [flow(credit=0, drain=True) for _ in range(5)]
    pair.container << On(pair.channel, like(Flow, link_credit=0, drain=True)) << NOTHING
    for _ in range(5):
        pair.from_container(flow(credit=0, drain=True))
    pair.client << like(Flow, link_credit=0, drain=True) << NOTHING


def test_what_a_flow_says_beside_is_passed_on() -> None:
    properties = {Symbol("of-mine"): UInt(1)}
    pair = sending()
    pair.client >> flow(available=9, credit=10, echo=True, properties=properties)
    expected = like(Flow, available=9, echo=True, properties=properties, delivery_count=0)
    pair.container << On(pair.channel, expected)
    pair.client << NOTHING
    pair.from_container(flow(credit=10, properties=properties, echo=True))
    pair.client << like(Flow, properties=properties, echo=True, link_credit=10)
    pair.container << NOTHING


def test_what_waits_in_the_router_is_available() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    pair.client >> On(0, Transfer(0, 0, b"0", 7), b"x")
    pair.client >> flow(available=3, count=1, credit=4)
    pair.container << On(pair.channel, like(Flow, available=4, delivery_count=0, link_credit=5))


def closed_window() -> Flow:
    """Return a flow of a session whose window is closed."""
    return Flow(next_incoming_id=0, incoming_window=0, next_outgoing_id=0, outgoing_window=100)


def test_a_delivery_given_up_before_it_left_takes_its_credit_all_the_same() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    pair.client >> On(0, Transfer(0, 0, b"0", 7, more=True), b"x")
    pair.client >> On(0, Transfer(0, aborted=True), b"")
    pair.client >> On(0, Transfer(0, 1, b"1", 7), b"y")
    pair.container << NOTHING
    pair.from_container(flow(credit=5))
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"0", aborted=True), b"")
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"1", aborted=False), b"y")
    assert pair.router.forwarder.backlog.held_bytes == 0


def test_what_waits_keeps_its_order_whatever_its_priority() -> None:
    pair = sending(credit=5)
    pair.from_container(closed_window())
    headed = b"\0\x53\x70\xc0\x04\x02\x42\x50\x09\0\x53\x77\xa1\1x"
    pair.client >> On(0, Transfer(0, 0, b"0", 0), b"\0\x53\x77\xa1\1x")
    pair.client >> On(0, Transfer(0, 1, b"1", 0), headed)
    pair.from_container(flow(credit=5))
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"0"))
    pair.container << On(pair.channel, like(Transfer, delivery_tag=b"1"), headed)


# Names.


@pytest.mark.spec("2.6.1-2")
def test_a_link_attached_elsewhere_is_taken_from_where_it_was() -> None:
    pair = sending()
    other = Peer(pair.router, "client")
    other >> [On(0, like_begin()), sender()]
    (stolen,) = pair.to_client()
    assert str(stolen.error.condition) == "amqp:link:stolen"
    heard = pair.to_container()
    # one router has no more to say on the session after that; of several another one has it to say
    types = [type(each) for each in heard if not isinstance(each, End)]
    assert types in ([Detach, Begin], [Begin, Detach])
    detached = next(each for each in heard if isinstance(each, Detach))
    assert detached == Detach(0, closed=False)


@pytest.mark.spec("2.6.3-8")
@pytest.mark.parametrize(
    "attach",
    [sender(target=None), receiver(source=None), receiver(source=Source())],
    ids=["no target", "no source", "an empty source"],
)
def test_a_link_is_not_taken_by_an_attach_that_says_not_where_it_leads(attach: Any) -> None:
    pair = receiving() if attach.role else sending()
    other = Peer(pair.router, "client")
    other >> [On(0, like_begin()), attach]
    _, answer, refusal = (each.performative for each in other.frames())
    assert (answer.source is None) or (answer.target is None)
    assert str(refusal.error.condition) == "amqp:invalid-field"
    assert pair.to_client() == []
    assert pair.to_container() == []


def like_begin() -> Any:
    return Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000)


def test_a_link_that_awaits_its_container_can_be_stolen() -> None:
    pair = Pair()
    pair.ask(sender())
    other = Peer(pair.router, "client")
    other >> [On(0, like_begin()), sender()]
    answered, stolen = pair.to_client()
    assert answered.target is None
    assert str(stolen.error.condition) == "amqp:link:stolen"


def test_a_state_too_large_to_be_kept_costs_the_link() -> None:
    pair = sending()
    large = Described(ULong(0x99), "x" * 600)
    pair.client >> On(0, attrs.evolve(TRANSFER, state=large), b"x")
    (detach,) = pair.to_client()
    assert str(detach.error.condition) == "amqp:resource-limit-exceeded"
    assert "512 are allowed" in detach.error.description


# Coordinators.


@pytest.mark.spec("4.5.1-1")
def test_a_coordinator_is_the_containers() -> None:
    pair = Pair()
    coordinator = Coordinator(capabilities=(Symbol("amqp:local-transactions"),))
    asked = pair.ask(sender(target=coordinator))
    assert asked.target == coordinator
    able = Coordinator(
        capabilities=(Symbol("amqp:local-transactions"), Symbol("amqp:multi-txns-per-ssn"))
    )
    pair.answer(asked, target=able)
    (heard,) = pair.to_client()
    assert heard.target == able
    pair.from_container(flow(credit=1))
    pair.client << like(Flow, link_credit=1)


def test_without_a_route_there_is_no_coordinator() -> None:
    pair = Pair()
    pair.last.forwarder.link_routes.remove(pair.ways[2])
    pair.last.finish_turn()
    pair.client >> sender(target=Coordinator())
    answered, detached = pair.to_client()
    assert answered.target is None
    assert str(detached.error.condition) == "amqp:precondition-failed"
