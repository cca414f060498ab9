"""Multicasts while the network changes and routers disagree on it.

Nobody gets a message twice, and a message that its sender was told accepted has come to all
who were there.
"""

from __future__ import annotations

from random import Random

import attrs
from hypothesis import given, strategies as st

from router.amqp.performatives import Accepted, Modified
from router.core.addresses.rules import AddressRule

from support.examples import examples
from support.far_routers import Mesh
from support.in_memory import ReceivingLink, Sending, SendingLink
from support.waypoints import message, texts

TO_ALL = [AddressRule(True, "q", "multicast")]
CREDIT = 1000


@attrs.define(eq=False)
class Receiver:
    """A receiver at a router, which may come and go."""

    router: str
    link: ReceivingLink
    # which messages it has to get, if their senders are told accepted
    due: set[str] = attrs.Factory(set)


@attrs.define(eq=False)
class Sent:
    """A message and who was there when it was sent, as far as its router knew."""

    sending: Sending
    text: str
    settled: bool


class Story:
    """What happens to a network, by chance of a seed."""

    def __init__(self, seed: int) -> None:
        self.chance = chance = Random(seed)
        self.names = [f"r{number}" for number in range(chance.randint(2, 7))]
        self.mesh = Mesh(*self.names, rules=TO_ALL)
        self.edges: set[tuple[str, str]] = set()
        for at, name in enumerate(self.names[1:], 1):
            self._join(chance.choice(self.names[:at]), name)
        for _ in range(chance.randint(0, len(self.names))):
            self._join(*chance.sample(self.names, 2))
        self.mesh.learn()
        self.receivers = [self._receiver() for _ in range(chance.randint(1, 6))]
        self.passing: list[Receiver] = []
        self.senders = [self._sender() for _ in range(chance.randint(1, 3))]
        self.sent: list[Sent] = []
        self.mesh.settle()

    def _join(self, one: str, other: str) -> None:
        edge = min(one, other), max(one, other)
        if edge not in self.edges:
            self.edges.add(edge)
            self.mesh.join(*edge, cost=self.chance.randint(1, 3))

    def _receiver(self) -> Receiver:
        name = self.chance.choice(self.names)
        return Receiver(name, self.mesh[name].client().receiver("q", credit=CREDIT))

    def _sender(self) -> tuple[str, SendingLink]:
        name = self.chance.choice(self.names)
        return name, self.mesh[name].client(link_capacity=20).sender("q")

    def run(self, steps: int) -> None:
        for _ in range(steps):
            what = self.chance.choices(
                [self.hear, self.send, self.settle, self.learn, self.change, self.come_and_go,
                 self.wait, self.tell],
                [40, 15, 15, 6, 2, 2, 2, 10],
            )[0]  # fmt: skip
            what()

    def finish(self) -> None:
        """Let all routers know how things are, and everything come to rest."""
        self.mesh.learn()
        for _ in range(12):
            self.mesh.settle()
            for each in [*self.receivers, *self.passing]:
                each.link.settle()
            self.mesh.run()

    # What may happen.

    def hear(self) -> None:
        """Let the next octets that are under way on some connection arrive."""
        busy = [wire for wire in self.mesh.wires if wire.under_way]
        if busy:
            wire = self.chance.choice(busy)
            wire.other.hear(wire.under_way.popleft())

    def send(self) -> None:
        name, link = self.chance.choice(self.senders)
        if not link.can_send():
            return
        text = str(len(self.sent))
        settled = self.chance.random() < 0.2
        reach = self.mesh[name].forwarder.reach
        known = {name, *reach.wanted.get("M0q", ())} & {name, *reach.paths}
        for each in self.receivers:
            if each.router in known:
                each.due.add(text)
        self.sent.append(Sent(link.send(message(text), settled=settled), text, settled))

    def settle(self) -> None:
        self.chance.choice(self.receivers).link.settle()

    def tell(self) -> None:
        """Somebody who receives lets more come."""
        link = self.chance.choice(self.receivers).link
        link.grant(CREDIT)

    def learn(self) -> None:
        self.mesh.learn(self.chance.choice(self.names))

    def change(self) -> None:
        """Cut a connection, which its ends learn in any order, or add one."""
        if self.chance.random() < 0.5 and self.edges:
            edge = self.chance.choice(sorted(self.edges))
            self.edges.remove(edge)
            self.mesh.cut(*edge)
            ends = edge
        else:
            one, other = self.chance.sample(self.names, 2)
            self._join(one, other)
            ends = one, other
        for name in self.chance.sample(ends, 2):
            self.mesh.learn(name)

    def come_and_go(self) -> None:
        if self.passing and self.chance.random() < 0.5:
            gone = self.passing.pop(self.chance.randrange(len(self.passing)))
            self.check_once(gone)
            gone.link.detach()
        else:
            self.passing.append(self._receiver())

    def wait(self) -> None:
        """Let half a second pass at one router."""
        self.mesh[self.chance.choice(self.names)].wait(0.5)

    # What has to be so.

    def check_once(self, receiver: Receiver) -> None:
        got = [each.payload for each in receiver.link.received if each.complete]
        assert len(got) == len(set(got))

    def check(self) -> None:
        for each in [*self.receivers, *self.passing]:
            self.check_once(each)
        for sent in self.sent:
            if sent.settled:
                continue
            outcome = sent.sending.outcome
            assert outcome is not None, f"nothing was told of {sent.text}"
            if isinstance(outcome, Modified):
                assert outcome == Modified(delivery_failed=True)
            if outcome == Accepted():
                for each in self.receivers:
                    if sent.text in each.due:
                        assert sent.text in texts(each.link), (sent.text, each.router)
        # as it was before anything happened, and everybody gets everything
        self.mesh.learn()
        self.mesh.settle()


@examples(20)
@given(st.integers(0, 2**32))
def test_nobody_gets_a_message_twice_and_nothing_that_was_accepted_is_lost(seed: int) -> None:
    story = Story(seed)
    story.run(300)
    story.finish()
    story.check()


@examples(10)
@given(st.integers(0, 2**32), st.integers(0, 1))
def test_so_it_is_where_copies_are_made_over_several_turns(seed: int, copies_at_once: int) -> None:
    story = Story(seed)
    for name in story.names:
        story.mesh[name].forwarder.distribution.copies_at_once = copies_at_once
    story.run(300)
    story.finish()
    story.check()
