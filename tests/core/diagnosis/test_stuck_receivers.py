"""Stuck receivers of multicasts: when a receiver is stuck, and that the others go on."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.constants import Condition
from router.amqp.performatives import Accepted, Detach, Modified, Released
from router.core.addresses.bindings import BindingRule, ExchangeRule
from router.core.addresses.rules import AddressRule
from router.core.diagnosis.stuck_receivers import STEPS, Inactivity, StuckReceivers
from router.core.forwarding.rule_updates import RuleUpdater
from router.core.model.address import FIRST_EDGE, MESH, NO_TREE

from support.containers import Container, ControlledRouter, plan
from support.far_routers import Mesh
from support.in_memory import ReceivingLink, Router, SendingLink
from support.waypoints import message, texts

TIMEOUT_S = 30.0
WAIT = AddressRule(True, "q", "multicast")
DROP = AddressRule(True, "q", "multicast", drop_after_s=TIMEOUT_S)
LARGE = bytes(32 * 1024)
FAILED = Modified(delivery_failed=True)


class World:
    """A router that looks for stuck receivers, and a sender of `q`."""

    def __init__(self, rule: AddressRule = DROP, router: Router | None = None) -> None:
        self.router = Router([rule]) if router is None else router
        self.stuck = StuckReceivers(self.router.forwarder)

    def receiver(self, credit: int = 1000, **settings: Any) -> ReceivingLink:
        return self.router.client(**settings).receiver("q", credit=credit)

    def sender(self) -> SendingLink:
        return self.router.client().sender("q")

    def wait(self, seconds: float) -> None:
        """Let time pass, with a look at the clocks each second."""
        for _ in range(int(seconds)):
            self.router.turn.now += 1
            self.stuck.tick(self.router.turn.now)
            self.router.finish_turn()

    def counters(self) -> Any:
        address = self.router.table.in_use("q")
        assert address is not None
        return address.counters


def send_all(sender: SendingLink, payload: bytes = LARGE, most: int = 1000) -> int:
    """Send as long as there is credit, at most so much; how many."""
    count = 0
    while sender.can_send() and count < most:
        sender.send(payload)
        count += 1
    return count


def dropped(link: ReceivingLink) -> bool:
    """Whether the router has closed a link because its peer was stuck."""
    detach = link.detached
    if detach is None:
        return False
    assert detach.closed
    assert detach.error is not None
    assert detach.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED
    return True


def test_who_does_not_read_is_dropped_and_the_others_go_on() -> None:
    world = World()
    healthy, silent = world.receiver(), world.receiver()
    beside = silent.client.receiver("other", credit=10)
    sender = world.sender()
    silent.client.read(reads=False)
    send_all(sender)
    healthy.settle()
    assert not sender.can_send()
    had = len(healthy.received)
    assert world.router.forwarder.backlog.held_bytes > 0
    world.wait(TIMEOUT_S - 1)
    assert not sender.can_send()
    world.wait(2)
    # at once, although the peer cannot hear of it
    assert silent.detached is None
    assert world.counters().receivers_dropped == 1
    assert world.router.forwarder.backlog.held_bytes == 0
    assert sender.client.connection.held_bytes == 0
    # what the other one has accepted is accepted
    assert {type(each.outcome) for each in sender.client.sent.values()} == {Accepted}
    assert send_all(sender, most=50) == 50
    assert len(healthy.received) == had + 50
    # nothing else of the connection is disturbed, and it hears of it when it reads again
    silent.client.read()
    assert dropped(silent)
    assert beside.detached is None
    world.router.client().sender("other").send(b"still there")
    assert [each.payload for each in beside.received] == [b"still there"]


def test_by_default_all_wait_for_it() -> None:
    world = World(WAIT)
    healthy, silent = world.receiver(), world.receiver()
    sender = world.sender()
    silent.client.read(reads=False)
    count = send_all(sender)
    world.wait(10 * TIMEOUT_S)
    assert not sender.can_send()
    silent.client.read()
    assert silent.detached is None
    assert len(silent.received) == len(healthy.received) == count


def test_what_nobody_has_accepted_is_modified_and_failed_where_it_was_sent() -> None:
    world = World()
    healthy, silent = world.receiver(), world.receiver(credit=2)
    sender = world.sender()
    sent = [sender.send(b"one"), sender.send(b"two")]
    healthy.settle(Released())
    assert not sender.can_send()
    world.wait(TIMEOUT_S + 1)
    assert dropped(silent)
    assert [each.outcome for each in sent] == [FAILED, FAILED]


def test_what_was_never_sent_is_modified_and_has_not_failed() -> None:
    world = World()
    healthy, receiver = world.receiver(), world.receiver(credit=5)
    sender = world.sender()
    receiver.grant(0)
    waiting = sender.send(b"waits")
    healthy.settle(Released())
    world.wait(TIMEOUT_S + 1)
    assert dropped(receiver)
    assert waiting.outcome == Modified()
    assert (world.counters().modified, world.counters().released) == (1, 1)
    assert world.router.forwarder.backlog.held_bytes == 0


@pytest.mark.parametrize("count", [1, 3])
def test_none_is_dropped_where_nobody_else_would_go_on(count: int) -> None:
    world = World()
    receivers = [world.receiver(credit=2) for _ in range(count)]
    sender = world.sender()
    sent = [sender.send(b"one"), sender.send(b"two")]
    world.wait(3 * TIMEOUT_S)
    assert [each.detached for each in receivers] == [None] * count
    assert [each.outcome for each in sent] == [None, None]
    # as soon as there is somebody they are
    healthy = world.receiver()
    world.wait(2)
    assert all(dropped(each) for each in receivers)
    sender.send(b"three")
    assert [each.payload for each in healthy.received] == [b"three"]


def test_who_gives_no_credit_is_dropped() -> None:
    world = World()
    healthy, without = world.receiver(), world.receiver(credit=0)
    sender = world.sender()
    assert not sender.can_send()
    world.wait(TIMEOUT_S + 1)
    assert dropped(without)
    sender.send(b"x")
    assert len(healthy.received) == 1


def test_who_settles_nothing_is_dropped_and_the_outcomes_are_those_of_the_others() -> None:
    world = World()
    healthy, lazy = world.receiver(), world.receiver()
    sender = world.sender()
    sent = [sender.send(b"x") for _ in range(3)]
    healthy.settle()
    assert [each.outcome for each in sent] == [None] * 3
    for _ in range(int(TIMEOUT_S) + 1):
        # that more comes is no progress
        world.wait(1)
    assert dropped(lazy)
    assert [each.outcome for each in sent] == [Accepted()] * 3


def test_more_that_is_sent_is_no_progress_of_who_settles_nothing() -> None:
    world = World()
    healthy, lazy = world.receiver(), world.receiver()
    sender = world.sender()
    for _ in range(int(TIMEOUT_S) + 2):
        if sender.can_send():
            sender.send(b"x")
            healthy.settle()
        world.wait(1)
    assert dropped(lazy)


@pytest.mark.parametrize("pause_s", [1, TIMEOUT_S - 5])
def test_who_is_slow_is_not_dropped(pause_s: float) -> None:
    world = World()
    healthy, slow = world.receiver(), world.receiver(credit=1)
    sender = world.sender()
    for count in range(1, 6):
        sender.send(b"x")
        healthy.settle()
        world.wait(pause_s)
        slow.settle()
        slow.grant(1)
        assert len(slow.received) == count
    assert slow.detached is None


def test_who_reads_a_large_message_slowly_is_not_dropped() -> None:
    world = World()
    healthy, slow = world.receiver(), world.receiver()
    sender = world.sender()
    slow.client.read(reads=False)
    send_all(sender)
    healthy.settle()
    for _ in range(int(3 * TIMEOUT_S)):
        slow.client.read_some(1024)
        world.wait(1)
    assert slow.detached is None
    slow.client.read(reads=False)
    world.wait(TIMEOUT_S + 1)
    assert world.counters().receivers_dropped == 1


@pytest.mark.parametrize("has_sender", [True, False])
def test_who_holds_nobody_up_is_not_dropped(has_sender: bool) -> None:
    world = World()
    world.receiver()
    receiver = world.receiver(credit=5)
    if has_sender:
        # it has credit, and does not use it
        sender = world.sender()
        assert sender.can_send()
    receiver.grant(0)
    world.wait(3 * TIMEOUT_S)
    assert receiver.detached is None


def test_a_sender_that_pauses_within_a_message_is_no_fault_of_receivers() -> None:
    world = World()
    receivers = [world.receiver() for _ in range(2)]
    sender = world.sender()
    sending = sender.send(b"half", more=True)
    other = world.sender()
    other.send(b"waits behind it")
    world.wait(3 * TIMEOUT_S)
    assert [each.detached for each in receivers] == [None, None]
    sender.go_on(b" and half")
    for each in receivers:
        each.settle()
    assert sending.outcome == Accepted()


def test_a_message_that_is_half_sent_is_aborted_or_over_for_who_is_dropped() -> None:
    world = World()
    healthy, silent = world.receiver(), world.receiver(window=4, max_frame_size=512)
    sender = world.sender()
    sending = sender.send(bytes(10_000))
    assert not silent.received[0].complete
    healthy.settle()
    silent.client.read(reads=False)
    world.wait(TIMEOUT_S + 1)
    assert sending.outcome == Accepted()
    assert world.router.forwarder.backlog.held_bytes == 0
    silent.client.read()
    assert dropped(silent)
    assert not silent.received[0].complete


@pytest.mark.parametrize("side", [MESH, FIRST_EDGE])
def test_links_to_other_routers_and_edges_are_never_dropped(side: int) -> None:
    world = World()
    far = world.receiver(credit=0)
    world.receiver()
    address = world.router.table.in_use("q")
    assert address is not None
    consumer = address.consumers[0]
    consumer.side, consumer.tree = side, NO_TREE
    address.remote_ends += 1
    world.sender()
    world.wait(3 * TIMEOUT_S)
    assert far.detached is None


def test_an_auto_link_is_never_dropped() -> None:
    router = ControlledRouter([DROP])
    container = Container(router)
    router.configure(plan("q"))
    [node] = container.attached("q")
    world = World(router=router)
    world.receiver()
    sender = world.sender()
    assert not sender.can_send()
    world.wait(3 * TIMEOUT_S)
    assert node.detached is None
    node.grant(1)
    assert sender.can_send()


def test_each_router_of_a_network_drops_its_own() -> None:
    mesh = Mesh("a", "b", rules=[DROP])
    mesh.join("a", "b")
    mesh.learn()
    worlds = {name: World(router=mesh[name]) for name in ("a", "b")}
    near, far = worlds["a"].receiver(), worlds["b"].receiver(credit=0)
    mesh.settle()
    sender = worlds["a"].sender()
    mesh.settle()
    assert not sender.can_send()
    for _ in range(int(TIMEOUT_S) + 2):
        for world in worlds.values():
            world.wait(1)
        mesh.settle()
    assert dropped(far)
    assert near.detached is None
    links = [each.counters.receivers_dropped for each in mesh["a"].table.addresses()]
    assert sum(links) == 0
    sender.send(b"x")
    mesh.settle()
    assert len(near.received) == 1


def test_what_an_exchange_feeds_may_hold_up_others() -> None:
    world = World()
    bindings = [BindingRule(hop, "e", "#", hop) for hop in ("q", "other")]
    world.router.forwarder.exchanges.configure([ExchangeRule("e", "e")], bindings)
    world.router.finish_turn()
    without = world.receiver(credit=0)
    other = world.router.client().receiver("other", credit=10)
    sender = world.router.client().sender("e")
    assert not sender.can_send()
    world.wait(TIMEOUT_S + 1)
    assert dropped(without)
    sender.send(message("goes on"), settled=True)
    assert texts(other) == ["goes on"]


def test_the_rule_may_change_while_one_is_stuck() -> None:
    world = World(WAIT)
    healthy, without = world.receiver(), world.receiver(credit=0)
    sender = world.sender()
    world.wait(TIMEOUT_S + 10)
    assert without.detached is None
    treating = RuleUpdater(world.router.forwarder)
    treating.change_rules([WAIT], [DROP], "balanced")
    # it has been stuck for long enough
    world.wait(1)
    assert dropped(without)
    again = world.receiver(credit=0)
    send_all(sender, b"x")
    healthy.settle()
    treating.change_rules([DROP], [WAIT], "balanced")
    world.wait(3 * TIMEOUT_S)
    assert again.detached is None
    assert not sender.can_send()
    assert healthy.detached is None


def test_what_is_known_of_a_stuck_receiver() -> None:
    world = World()
    world.receiver()
    without = world.receiver(credit=0)
    world.sender()
    world.wait(10)
    address = world.router.table.in_use("q")
    assert address is not None
    healthy, stuck = address.consumers
    assert healthy.progress is None
    assert stuck.progress is not None
    since = stuck.progress.stuck_since()
    assert since == (world.router.turn.now - 9, Inactivity.TAKES_NOTHING)
    world.wait(TIMEOUT_S)
    assert dropped(without)
    last = address.last_dropped
    assert last is not None
    assert last.link_name == without.name
    assert last.container == without.client.container
    assert last.text == "it accepts no transfers: it gives no credit"
    assert last.stuck_s == TIMEOUT_S


def test_one_that_is_no_longer_stuck_begins_anew() -> None:
    world = World()
    healthy, receiver = world.receiver(), world.receiver(credit=0)
    sender = world.sender()
    world.wait(TIMEOUT_S - 2)
    receiver.grant(1)
    sender.send(b"x")
    receiver.settle()
    healthy.settle()
    world.wait(TIMEOUT_S - 2)
    assert receiver.detached is None
    world.wait(5)
    assert dropped(receiver)


def test_very_many_are_looked_at_a_few_at_a_time() -> None:
    world = World()
    client = world.router.client()
    links = [client.receiver("q") for _ in range(2 * STEPS)]
    world.receiver()
    world.sender()
    address = world.router.table.in_use("q")
    assert address is not None
    world.stuck.tick(world.router.turn.now)
    seen = [each for each in address.consumers if each.progress is not None]
    assert 0 < len(seen) <= STEPS
    world.wait(2 * TIMEOUT_S)
    assert [each for each in links if not dropped(each)] == []


@pytest.mark.parametrize("treatment", ["closest", "balanced"])
@pytest.mark.parametrize("how", ["reads nothing", "settles nothing", "gives no credit"])
def test_elsewhere_a_stuck_receiver_keeps_only_what_it_has(treatment: str, how: str) -> None:
    world = World(AddressRule(True, "q", treatment))
    healthy = world.receiver()
    stuck = world.receiver(credit=0 if how == "gives no credit" else 1000)
    sender = world.sender()
    if how == "reads nothing":
        stuck.client.read(reads=False)
    had = 0
    for _ in range(200):
        # what comes after something got stuck goes to the other one
        sender.send(LARGE[:20_000])
        healthy.settle()
        world.wait(1)
    stuck.client.read()
    had = len(stuck.received)
    assert len(healthy.received) + had == 200
    assert len(healthy.received) >= 100
    assert stuck.detached is None


def test_a_receiver_that_its_peer_detaches_meanwhile_is_let_go() -> None:
    world = World()
    without = world.receiver(credit=0)
    world.sender()
    world.wait(TIMEOUT_S - 1)
    without.client.say(Detach(without.handle, closed=True))
    world.wait(10)
    assert without.detached is not None
    assert without.detached.error is None
