"""Random networks of a few routers, with senders, receivers and failures: the books balance.

Whoever is told accepted was received exactly once, nobody is left without an outcome, nothing is
received that was released, and when all have gone nothing is left anywhere.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from hypothesis import example, given, strategies as st

from router.amqp.performatives import Accepted, Modified, Rejected, Released
from router.core.routers.router_traffic import entered, left

from support.far_routers import Mesh
from support.in_memory import ReceivingLink, Sending, SendingLink

NAMES = "abcde"
REST = b", and the rest of it"
AT = st.integers(0, 4)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("send", "send", "send", "settle", "grant", "release", "cut", "join", "learn"),
                *("run", "receiver", "sender", "detach", "lose", "wait", "hold", "drain"),
            ]
        ),
        AT,
        AT,
    ),
    max_size=60,
)
OUTCOMES = (Accepted, Released, Modified, Rejected)


class World:
    """A mesh, and what was sent and received in it."""

    def __init__(self, treatment: str, joints: list[tuple[int, int, int]]) -> None:
        self.mesh = Mesh(*NAMES, default=treatment)
        self.joints: set[tuple[int, int]] = set()
        for one, other in pairwise(range(len(NAMES))):
            self.join(one, other, 1 + (one + other) % 3)
        for one, other, cost in joints:
            self.join(one, other, cost)
        self.mesh.learn()
        self.senders: list[SendingLink] = []
        self.receivers: list[ReceivingLink] = []
        self.sent: dict[bytes, Sending] = {}
        self.accepted: Counter[bytes] = Counter()
        self.given_back: Counter[bytes] = Counter()

    def join(self, one: int, other: int, cost: int) -> None:
        """Connect two routers that are not."""
        key = min(one, other), max(one, other)
        if one != other and key not in self.joints:
            self.joints.add(key)
            self.mesh.join(NAMES[one], NAMES[other], cost)

    def step(self, what: str, at: int, other: int) -> None:
        """Do something somewhere."""
        mesh = self.mesh
        name = NAMES[at]
        if what == "send":
            for sender in self.senders[at : at + 2]:
                if sender.current is not None and sender.client.router_window > 0:
                    sender.go_on(REST)
                elif sender.can_send():
                    self.send(sender, priority=len(self.sent) % 7 * other % 10)
        elif what == "receiver":
            self.receivers.append(mesh[name].client().receiver("q", credit=other))
        elif what == "sender":
            self.senders.append(mesh[name].client().sender("q"))
        elif what == "cut":
            key = min(at, other), max(at, other)
            if key in self.joints:
                self.joints.remove(key)
                mesh.cut(name, NAMES[other])
        elif what == "join":
            self.join(at, other, 1 + at)
        elif what == "learn":
            mesh.learn(name)
        elif what == "wait":
            mesh.wait(1)
        elif what == "run":
            mesh.run()
        elif what == "hold":
            mesh.hold(name, NAMES[other], held=at < other)
        else:
            self._receive(what, at, other)

    def send(self, sender: SendingLink, priority: int) -> None:
        """Send a message: one of three or so in two frames, and the second later."""
        number = b"%6d" % len(self.sent)
        head = b"\x00\x53\x70\xc0\x04\x02\x41\x50%c" % priority
        payload = head + b"\x00\x53\x75\xa0%c" % (len(number + REST)) + number
        is_large = len(self.sent) % 3 == 2
        first = payload if is_large else payload + REST
        self.sent[payload + REST] = sender.send(first, more=is_large)

    def _receive(self, what: str, at: int, other: int) -> None:
        for receiver in self.receivers[at : at + 1]:
            if not receiver.attached or receiver.client.over:
                continue
            if what == "settle":
                self.settle(receiver, Accepted())
            elif what == "release":
                self.settle(receiver, Released())
            elif what == "grant":
                receiver.grant(other * 3)
            elif what == "drain":
                receiver.grant(other, drain=True)
            elif what == "detach":
                receiver.detach()
            elif what == "lose":
                receiver.client.lose()

    def settle(self, receiver: ReceivingLink, state: Any) -> None:
        """Say something of all that a receiver has."""
        for received in receiver.unsettled.values():
            if isinstance(state, Accepted):
                self.accepted[received.payload] += 1
            else:
                self.given_back[received.payload] += 1
        receiver.settle(state)

    def come_to_rest(self) -> None:
        """Everybody learns the truth, and receivers take all there is."""
        for one in NAMES:
            for other in NAMES:
                self.mesh.hold(one, other, held=False)
        self.mesh.learn()
        for _ in range(4):
            self.mesh.settle()
            for receiver in self.receivers:
                if receiver.attached and not receiver.client.over:
                    self.settle(receiver, Accepted())
                    receiver.grant(50)
        self.mesh.settle()

    def finish(self) -> None:
        """Whoever has sent a half sends the other."""
        for sender in self.senders:
            if sender.current is not None and sender.attached:
                sender.go_on(REST)
        self.come_to_rest()

    def check(self) -> None:
        """Each message has one outcome, and it is true."""
        for payload, sending in self.sent.items():
            assert sending.is_over, f"{payload!r} has no outcome"
            assert isinstance(sending.outcome, OUTCOMES)
            if isinstance(sending.outcome, Accepted):
                assert self.accepted[payload] == 1
            elif isinstance(sending.outcome, Released):
                assert self.accepted[payload] == 0

    def counts(self) -> list[int]:
        """Return each router's counts: from clients, to clients, from routers, to routers."""
        counted = []
        for name in NAMES:
            total = self.mesh[name].table.total()
            counted += [entered(total), left(total), total.from_routers, total.to_routers]
        return counted

    def end(self) -> None:
        """When all have gone nothing is left."""
        links: list[Any] = [*self.senders, *self.receivers]
        for link in links:
            link.client.close()
        for _ in range(8):
            self.mesh.wait(1)
            self.mesh.settle()
        for name, router in self.mesh.routers.items():
            forwarder = router.forwarder
            assert not router.table.transit, name
            assert len(router.table) == 0, name
            assert forwarder.backlog.held_bytes == 0
            assert not forwarder.network.outward.leaving
            assert not forwarder.network.outward.addresses()
            assert not forwarder.reach.own_interests
        for wire in self.mesh.wires:
            assert not wire.connection.local_sessions


@given(
    st.sampled_from(["balanced", "closest"]),
    st.lists(st.tuples(AT, AT, st.integers(1, 4)), max_size=4),
    STEPS,
)
# a link to another router takes its leave with a message that is under way
@example("closest", [], [("send", 0, 0), ("run", 0, 0), ("receiver", 0, 0)])
def test_the_books_balance(
    treatment: str, joints: list[tuple[int, int, int]], steps: list[tuple[str, int, int]]
) -> None:
    world = World(treatment, joints)
    world.step("receiver", 3, 2)
    world.step("sender", 0, 0)
    world.step("sender", 2, 0)
    world.mesh.run()
    counts = world.counts()
    for step in steps:
        world.step(*step)
        before, counts = counts, world.counts()
        # none of these ever falls
        assert all(was <= now for was, now in zip(before, counts, strict=True))
    world.finish()
    world.check()
    world.end()
    entered, left, came, went = (sum(world.counts()[kind::4]) for kind in range(4))
    assert entered == len(world.sent)
    # what is under way when a connection is lost has left, and may not arrive
    assert left == sum(len(each.received) for each in world.receivers)
    assert came <= went
