"""Who settles first is agreed from end to end, also where routers are in between.

(docs/decisions/0070-settled-second-across.md; docs/decisions/0033-who-settles-first.md.)
"""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode
from router.amqp.performatives import Accepted, Disposition, Modified
from router.core.network.lane_numbers import Lane, lane_of
from router.core.network.lanes import IDLE_S
from router.core.network.out_links import OutLink
from router.core.network.transit import Transit

from support.far_routers import Mesh
from support.in_memory import ReceivingLink, SendingLink
from support.outcomes import OUTCOMES
from support.waypoints import message, texts

FIRST = ReceiverSettleMode.FIRST
SECOND = ReceiverSettleMode.SECOND
FAILED = Modified(delivery_failed=True)


def three(
    mode: ReceiverSettleMode = SECOND,
    receives: ReceiverSettleMode = SECOND,
    target: str | None = "q",
    **fields: Any,
) -> tuple[Mesh, SendingLink, ReceivingLink]:
    """Return a line of three routers with a sender at one end and a receiver at the other.

    The receiver has credit.
    """
    mesh = Mesh("a", "b", "c", **fields)
    for one, other in pairwise("abc"):
        mesh.join(one, other)
    mesh.learn()
    receiver = mesh["c"].client().receiver("q", 10, rcv_settle_mode=receives)
    sender = mesh["a"].client().sender(target, rcv_settle_mode=mode)
    mesh.run()
    return mesh, sender, receiver


def base(mesh: Mesh) -> OutLink:
    """Return the base link from a to where there are receivers."""
    address = mesh["a"].table.in_use("q")
    assert address is not None
    (link,) = mesh["a"].forwarder.network.outward.links(address)
    return link


def links_at(mesh: Mesh, name: str) -> list[Any]:
    """Those between a router and its neighbours."""
    wires = [wire.connection for wire in mesh.wires if wire.router is mesh[name]]
    sessions = [session for each in wires for session in each.local_sessions.values()]
    return [link for session in sessions for link in session.local_links.values()]


def nothing_is_open(mesh: Mesh) -> bool:
    """Whether no router has a delivery that is not settled, or keeps anything of one."""
    links = [link for name in mesh.routers for link in links_at(mesh, name)]
    clients = [client.connection for router in mesh.routers.values() for client in router.clients]
    sessions = [session for connection in clients for session in connection.local_sessions.values()]
    forwarders = [router.forwarder for router in mesh.routers.values()]
    return (
        all(link.unsettled == 0 for link in links)
        and all(session.incoming.count == session.outgoing.count == 0 for session in sessions)
        and all(each.redelivery.kept_bytes == each.backlog.held_bytes == 0 for each in forwarders)
    )


def tell(receiver: ReceivingLink, outcomes: dict[int, Any], outcome: Any, *, settled: bool) -> None:
    """Tell an outcome of all that has none, and settle it or not."""
    for number, received in list(receiver.unsettled.items()):
        if received.complete and number not in outcomes:
            outcomes[number] = outcome
            receiver.client.dispose([number], outcome, settled=settled)
            if settled:
                del receiver.unsettled[number]


def told(receiver: ReceivingLink) -> Disposition | None:
    """Return the last disposition from the sender of the first delivery, if there is any."""
    return receiver.received[0].sender_settled


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda outcome: outcome.NAME)
@pytest.mark.parametrize("settles", [True, False], ids=["settles", "tells"])
@pytest.mark.parametrize("receives", ReceiverSettleMode)
@pytest.mark.parametrize("target", ["q", None])
@pytest.mark.parametrize(
    ("link", "transfer"), [(FIRST, None), (SECOND, None), (SECOND, FIRST), (SECOND, SECOND)]
)
def test_an_outcome_is_settled_as_its_sender_wishes(
    link: ReceiverSettleMode,
    transfer: ReceiverSettleMode | None,
    target: str | None,
    receives: ReceiverSettleMode,
    settles: bool,
    outcome: Any,
) -> None:
    """As at one router (`test_settle_modes`), two routers away."""
    mesh, sender, receiver = three(link, receives, target)
    to = "q" if target is None else None
    sending = sender.send(message("hello", to), rcv_settle_mode=transfer)
    mesh.run()
    assert sending.states == []
    receiver.settle(outcome, settled=settles)
    mesh.run()
    assert sending.states == [outcome]
    is_second = link == SECOND and transfer != FIRST
    assert sending.is_over is not is_second
    # who tells its outcome and waits gets its settlement when the sender has settled
    waits = is_second and not settles
    assert bool(receiver.unsettled) is waits
    if is_second:
        assert not nothing_is_open(mesh)
        sender.settle(sending, outcome)
        mesh.run()
    assert told(receiver) == (None if settles else Disposition(False, 0, 0, True, outcome))
    assert nothing_is_open(mesh)
    assert sender.detached is receiver.detached is None


def test_a_lane_has_the_mode_on_all_its_way() -> None:
    mesh, sender, _ = three()
    sender.send(message("hello"))
    mesh.run()
    (link,) = base(mesh).lanes.values()
    assert link.lane.number == lane_of(4, 0, settles_second=True)
    modes: dict[str, set[Any]] = {}
    for name in "abc":
        modes[name] = {
            frame.rcv_settle_mode
            for each in links_at(mesh, name)
            if each.deliveries
            for frame in (each.attach, each.remote_attach)
            if frame is not None
        }
    assert modes == {"a": {SECOND}, "b": {SECOND}, "c": {SECOND}}


def test_a_sender_may_settle_before_there_is_an_outcome() -> None:
    mesh, sender, receiver = three()
    sending = sender.send(message("hello"))
    mesh.run()
    sender.settle(sending)
    mesh.run()
    assert receiver.unsettled == {}
    assert receiver.received[0].sender_settled == Disposition(False, 0, 0, True)
    receiver.client.dispose([0], Accepted(), settled=False)
    mesh.run()
    assert sending.states == []
    assert nothing_is_open(mesh)


def test_who_settles_first_and_who_second_are_side_by_side() -> None:
    mesh, second, receiver = three()
    first = mesh["a"].client().sender("q")
    mesh.run()
    sent = [sender.send(message(str(number))) for number, sender in enumerate((first, second) * 2)]
    mesh.run()
    receiver.settle(Accepted(), settled=False)
    mesh.run()
    assert all(each.states == [Accepted()] for each in sent)
    assert [each.is_over for each in sent] == [True, False, True, False]
    assert sorted(base(mesh).lanes) == [lane_of(4, 0, settles_second=True)]
    assert len(mesh["b"].table.transit) == 2


def test_a_multicast_does_not_wait() -> None:
    # its receivers are settled one by one, also at one router
    mesh, sender, receiver = three(default="multicast")
    sending = sender.send(message("hello"))
    mesh.run()
    receiver.settle(Accepted(), settled=False)
    mesh.run()
    assert sending.states == [Accepted()]
    assert not sending.is_over
    assert receiver.unsettled == {}


def test_a_neighbour_without_lanes_settles_first() -> None:
    mesh = Mesh("a", "b")
    mesh.features["b"] = ()
    mesh.join("a", "b")
    mesh.learn()
    receiver = mesh["b"].client().receiver("q", 10, rcv_settle_mode=SECOND)
    sender = mesh["a"].client().sender("q", rcv_settle_mode=SECOND)
    mesh.run()
    sending = sender.send(message("hello"))
    mesh.run()
    receiver.settle(Accepted(), settled=False)
    mesh.run()
    # the sender sees no difference
    assert sending.states == [Accepted()]
    assert not sending.is_over
    assert told(receiver) == Disposition(False, 0, 0, True, Accepted())
    sender.settle(sending)
    mesh.run()
    assert nothing_is_open(mesh)


@pytest.mark.parametrize(("one", "other"), ["ab", "bc"])
@pytest.mark.parametrize("is_told", [True, False])
def test_what_a_lost_connection_leaves_open(one: str, other: str, is_told: bool) -> None:
    mesh, sender, receiver = three()
    sending = sender.send(message("hello"))
    mesh.run()
    if is_told:
        receiver.settle(Accepted(), settled=False)
        mesh.run()
    mesh.cut(one, other)
    mesh.learn()
    mesh.settle()
    # what was told stands; otherwise nobody knows
    assert sending.states == [Accepted() if is_told else FAILED]
    assert not sending.is_over
    # whoever has told its outcome is not kept waiting for a sender that is lost
    assert (told(receiver) is not None) is is_told
    if not is_told:
        receiver.settle(Accepted(), settled=False)
        mesh.run()
        assert told(receiver) == Disposition(False, 0, 0, True, Accepted())
    sender.settle(sending)
    mesh.run()
    assert nothing_is_open(mesh)


@pytest.mark.parametrize("is_told", [True, False])
def test_a_lost_sender_keeps_no_receiver_waiting(is_told: bool) -> None:
    mesh, sender, receiver = three()
    sender.send(message("hello"))
    mesh.run()
    if is_told:
        receiver.settle(Accepted(), settled=False)
        mesh.run()
        assert told(receiver) is None
    sender.client.lose()
    mesh.run()
    if not is_told:
        receiver.settle(Accepted(), settled=False)
        mesh.run()
    assert receiver.unsettled == {}
    assert nothing_is_open(mesh)


def test_a_lane_stays_until_its_sender_has_settled_and_goes_then() -> None:
    mesh, sender, receiver = three()
    sending = sender.send(message("hello"))
    mesh.run()
    receiver.settle(Accepted(), settled=False)
    mesh.run()
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert len(base(mesh).lanes) == 1
    assert told(receiver) is None
    sender.settle(sending)
    mesh.run()
    assert told(receiver) is not None
    for _ in range(int(IDLE_S) + 2):
        mesh.wait(1)
    assert base(mesh).lanes == {}
    assert len(mesh["b"].table.transit) == 1


def test_another_way_is_taken_without_losing_what_is_open() -> None:
    mesh, sender, receiver = three()
    sending = sender.send(message("before"))
    mesh.run()
    receiver.settle(Accepted(), settled=False)
    mesh.run()
    mesh.join("a", "c", cost=1)
    mesh.learn()
    mesh.settle()
    later = sender.send(message("after"))
    mesh.run()
    receiver.settle(Accepted(), settled=False)
    mesh.run()
    assert texts(receiver) == ["before", "after"]
    assert [each.states for each in (sending, later)] == [[Accepted()]] * 2
    assert len(receiver.unsettled) == 2
    for each in (sending, later):
        sender.settle(each)
    mesh.run()
    assert receiver.unsettled == {}
    assert nothing_is_open(mesh)
    mesh.settle()
    assert all(link.lane.mode in (FIRST, SECOND) for link in base(mesh).lanes.values())
    # nothing is left of the old way
    assert mesh["b"].table.transit == {}


@pytest.mark.parametrize("seed", range(12))
def test_order_is_kept_and_nothing_is_left_open(seed: int) -> None:
    """Senders of both modes, messages of several frames, outcomes and settlements in any order."""
    random = Random(seed)
    mesh, second, receiver = three()
    senders = [second, mesh["a"].client().sender("q"), mesh["a"].client().sender(None)]
    senders.append(mesh["a"].client().sender(None, rcv_settle_mode=SECOND))
    mesh.run()
    count = 0
    sent: list[Any] = []
    outcomes: dict[int, Any] = {}
    for _ in range(400):
        what = random.random()
        number = random.randrange(len(senders))
        sender = senders[number]
        if what < 0.4:
            if sender.current is not None:
                sender.go_on(b"", more=random.random() < 0.5)
            elif sender.can_send():
                count += 1
                to = "q" if sender.address is None else None
                octets = message(f"{number}.{count:06d}", to)
                sent.append(sender.send(octets, more=random.random() < 0.3))
        elif what < 0.7:
            mesh.step()
        elif what < 0.8:
            tell(receiver, outcomes, random.choice(OUTCOMES[:2]), settled=random.random() < 0.3)
        elif what < 0.9:
            receiver.grant(receiver.credit + random.randrange(4))
        else:
            open_ones = [each for each in sent if each.states and not each.is_over]
            for each in open_ones[: random.randrange(3)]:
                each.link.settle(each)
    for _ in range(50):
        for sender in senders:
            if sender.current is not None and sender.client.router_window > 0:
                sender.go_on(b"")
        mesh.run()
        tell(receiver, outcomes, Accepted(), settled=False)
        receiver.grant(10)
        mesh.run()
        for each in [each for each in sent if each.states and not each.is_over]:
            each.link.settle(each)
    mesh.run()
    order = [text.split(".") for text in texts(receiver)]
    assert len(order) == count
    for number in range(len(senders)):
        own = [text for who, text in order if who == str(number)]
        assert own == sorted(own)
    assert all(len(each.states) == 1 for each in sent)
    assert receiver.detached is None
    assert nothing_is_open(mesh)


def test_ways_are_kept_apart_by_who_settles_first_whatever_their_numbers() -> None:
    # another program may number its lanes in its own way
    mesh, _, _ = three()
    network = mesh["b"].forwarder.network
    ways = [network.transit_to("c", "q", 0, Lane(7, 4, mode)) for mode in (FIRST, SECOND)]
    assert ways[0] is not ways[1]
    assert network.transit_to("c", "q", 0, Lane(7, 4, SECOND)) is ways[1]
    for way in ways:
        assert isinstance(way.transit, Transit)
        network.forget_transit(way.transit)
    assert all(way not in mesh["b"].table.transit.values() for way in ways)
