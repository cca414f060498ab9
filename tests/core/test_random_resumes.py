"""Links that are suspended, reattached, resumed and stolen at random, all work in later turns.

One sender and one receiver of an address, each of a container of its own, are detached and lost
and attached again with whatever they say that they remember. The clients hold the router to the
protocol, and in the end nothing may be left of all that.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from router.amqp.constants import TerminusExpiryPolicy as Policy
from router.amqp.performatives import Accepted, Released, Source, Target

from support.audit import check_accounts, check_nothing_is_left
from support.in_memory import Client, ReceivingLink, Router, Sending, SendingLink

LASTS: dict[str, Any] = {"expiry_policy": Policy.LINK_DETACH, "timeout": 30}
STEPS = [
    *["send"] * 9,
    *["settle", "grant"] * 2,
    *["turn"] * 4,
    *["detach", "reattach", "lose", "steal"] * 2,
    "wait",
]


class Pair:
    """A sender and a receiver, and all that went between them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.router = Router(default=self.chance.choice(["balanced", "closest", "multicast"]))
        if self.chance.random() < 0.5:
            # nothing is kept to be sent again
            self.router.forwarder.redelivery.limit_bytes = 0
        if self.chance.random() < 0.8:
            # no round has steps left, and so all work is deferred
            self.router.turn.deferred.begin_round = lambda: None  # type: ignore[method-assign]
            self.router.turn.deferred.left = 0
            self.router.is_patient = True
        self.sent: dict[bytes, Sending] = {}
        self.tags: set[bytes] = set()
        self.receiver = self.receive(self.router.client(container="R"))
        self.sender = self.send_by(self.router.client(container="S"))

    def receive(self, client: Client, **fields: Any) -> ReceivingLink:
        source = Source(address="q", **LASTS)
        credit = self.chance.randrange(20)
        return client.receiver("q", credit, name="r", source=source, **fields)

    def send_by(self, client: Client, **fields: Any) -> SendingLink:
        return client.sender("q", name="s", target=Target(address="q", **LASTS), **fields)

    def step(self, what: str) -> None:
        self.tags |= {each.tag for each in self.receiver.received if each.tag is not None}
        is_receiver = self.chance.random() < 0.5
        link = self.receiver if is_receiver else self.sender
        is_there = link.attached and not link.client.over
        match what:
            case "send":
                self.send()
            case "settle" if self.receiver.attached and not self.receiver.client.over:
                state = self.chance.choice([Accepted(), Released()])
                self.receiver.settle(state, settled=self.chance.random() < 0.7)
            case "grant" if self.receiver.attached and not self.receiver.client.over:
                self.receiver.grant(self.chance.randrange(20))
            case "turn":
                self.router.go_on()
            case "detach" if is_there:
                link.detach(closed=self.chance.random() < 0.2)
            case "reattach" if not link.attached and not link.client.over:
                if is_receiver:
                    self.receiver = self.receive(link.client)
                else:
                    self.sender = self.send_by(link.client)
            case "lose" | "steal":
                if what == "lose" and not link.client.over:
                    link.client.lose()
                if is_receiver:
                    self.resume_receiver()
                else:
                    self.resume_sender()
            case "wait":
                self.router.wait(self.chance.choice([1, 31]))
            case _:
                pass

    def send(self) -> None:
        sender = self.sender
        if sender.can_send():
            tag = b"t%d" % len(self.sent)
            self.sent[tag] = sender.send(tag, tag=tag, more=self.chance.random() < 0.1)
        elif sender.current is not None and sender.attached and not sender.client.over:
            sender.go_on(b"rest")

    def resume_receiver(self) -> None:
        """Attach the receiver elsewhere, perhaps with what it remembers."""
        client = self.router.client(container="R")
        states = [None, None, Accepted(), Released()]
        tags = [tag for tag in sorted(self.tags) if self.chance.random() < 0.5]
        fields: dict[str, Any] = {}
        if self.chance.random() < 0.7:
            fields["unsettled"] = {tag: self.chance.choice(states) for tag in tags}
            fields["incomplete_unsettled"] = self.chance.random() < 0.15
        self.receiver = self.receive(client, **fields)

    def resume_sender(self) -> None:
        """Attach the sender elsewhere, perhaps with what it remembers, and resume some of that."""
        client = self.router.client(container="S")
        tags = [
            tag
            for tag, sending in self.sent.items()
            if not sending.is_over and self.chance.random() < 0.7
        ]
        is_resumed = self.chance.random() < 0.7
        fields = {"unsettled": dict.fromkeys(tags)} if is_resumed else {}
        self.sender = self.send_by(client, **fields)
        for tag in tags:
            if self.sender.can_send() and self.chance.random() < 0.7:
                self.sent[tag] = self.sender.send(b"", tag=tag, resume=True)

    def finish(self) -> None:
        """Let everything be over, and see that nothing is left."""
        self.router.catch_up()
        for client in self.router.clients:
            if not client.over:
                client.lose()
        self.router.catch_up()
        self.router.wait(31)
        self.router.catch_up()
        suspended = self.router.forwarder.suspended
        assert (len(suspended), suspended.deliveries()) == (0, 0)
        assert self.router.forwarder.backlog.held_bytes == 0
        check_accounts(self.router)
        check_nothing_is_left(self.router)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_nothing_is_left_of_links_that_come_and_go(first: int) -> None:
    resumed = 0
    for seed in range(first, first + 50):
        pair = Pair(seed)
        for _ in range(pair.chance.choice([20, 60, 150])):
            pair.step(pair.chance.choice(STEPS))
        pair.finish()
        resumed += pair.router.forwarder.suspended.resumed
    # it is about that, after all
    assert resumed > 50
