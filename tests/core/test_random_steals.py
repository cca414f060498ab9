"""Links stolen at random between connections: every message gets one outcome, and none is doubled.

Senders and receivers of one address are attached under a few names, again and again, on one of
several connections of their container or on the same one. Each message is sent until it is
accepted; the ledger says how often it came, and how often it was allowed to.
"""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest
from hypothesis import given, strategies as st

from router.amqp.performatives import Accepted, Modified, Released

from support.audit import check_accounts, check_nothing_is_left
from support.examples import examples
from support.in_memory import Client, ReceivingLink, Router, Sending, SendingLink

STEPS = [
    *["send"] * 6,
    *["steal_sender", "steal_receiver"] * 3,
    *["settle", "grant"] * 4,
    *["begin", "go_on", "tell_unsettled", "take_credit", "deaf", "hear", "narrow", "lose"],
]
NAMES = 2
Schedule = list[tuple[str, int, int]]


class Ledger:
    """One address, the connections of two containers, and each message's way."""

    def __init__(self, treatment: str, *, in_turns: bool = False) -> None:
        self.router = Router(default=treatment)
        if in_turns:
            # no round has steps left, and so all work is deferred
            self.router.turn.deferred.begin_round = lambda: None  # type: ignore[method-assign]
            self.router.turn.deferred.left = 0
            self.router.is_patient = True
        self.clients = {name: [self.connect(name) for _ in range(2)] for name in ("snd", "rcv")}
        self.senders: list[SendingLink] = []
        self.receivers: list[ReceivingLink] = []
        self.to_send: deque[int] = deque()
        self.number = 0
        self.sendings: dict[int, list[Sending]] = {}
        self.open: list[tuple[int, Sending]] = []
        # every link there ever was
        self.all_receivers: list[ReceivingLink] = []
        self.accepted: set[int] = set()
        self.doubtful: Counter[int] = Counter()
        for name in range(NAMES):
            self.steal("snd", name, 0)
            self.steal("rcv", name, 0)

    def connect(self, container: str) -> Client:
        return self.router.client(container=container, max_frame_size=512)

    def steal(self, container: str, name: int, how: int) -> None:
        """Attach the link of this name once more, wherever that is."""
        clients = self.clients[container]
        client = clients[how % len(clients)]
        if container == "snd":
            self.senders = [each for each in self.senders if each.name != f"s{name}"]
            self.senders.append(client.sender("q", name=f"s{name}"))
        else:
            self.receivers = [each for each in self.receivers if each.name != f"r{name}"]
            self.receivers.append(client.receiver("q", credit=how % 7, name=f"r{name}"))
            self.all_receivers.append(self.receivers[-1])

    def step(self, what: str, one: int, other: int) -> None:
        sender = self.senders[one % NAMES]
        receiver = self.receivers[one % NAMES]
        client = self.clients["snd" if other % 2 else "rcv"][one % 2]
        match what:
            case "send" | "begin" if sender.can_send():
                self.send(sender, size=other * 90, more=what == "begin")
            case "go_on" if sender.current is not None and sender.client.router_window > 0:
                sender.go_on(b"+" * other * 50, more=other % 2 == 0)
            case "steal_sender":
                self.steal("snd", one % NAMES, other)
            case "steal_receiver":
                self.steal("rcv", one % NAMES, other)
            case "settle":
                receiver.settle()
            case "tell_unsettled":
                receiver.settle(settled=False)
            case "grant":
                receiver.grant(receiver.credit + other % 9)
            case "take_credit" if receiver.client.reads:
                receiver.grant(0)
            case "deaf" | "hear":
                client.read(reads=what == "hear")
            case "narrow" if client.reads:
                client.open_window(1 + other % 4)
            case "lose":
                self.lose(client)
            case "turn":
                self.router.go_on()
            case _:
                pass
        self.tick()

    def lose(self, client: Client) -> None:
        """Break a connection, and attach its links at another one."""
        container = client.container
        clients = self.clients[container]
        if client not in clients:
            return
        clients[clients.index(client)] = replacement = self.connect(container)
        client.lose()
        at = clients.index(replacement)
        current = self.senders if container == "snd" else self.receivers
        for link in [each for each in current if each.client is client]:
            self.steal(container, int(link.name[1:]), at)
        for number, sending in self.open:
            if sending.link.client is client and not sending.is_over:
                self.doubtful[number] += 1
                self.to_send.append(number)
        self.open = [each for each in self.open if each[1].link.client is not client]

    def send(self, sender: SendingLink, *, size: int = 0, more: bool = False) -> None:
        if self.to_send:
            number = self.to_send.popleft()
        else:
            self.number += 1
            number = self.number
        sending = sender.send(b"<%06d>" % number + b"." * size, more=more)
        self.sendings.setdefault(number, []).append(sending)
        self.open.append((number, sending))

    def tick(self) -> None:
        """See what has become of messages; what was not accepted is sent again."""
        still = []
        for number, sending in self.open:
            if sending.is_over:
                if sending.outcome == Accepted():
                    self.accepted.add(number)
                else:
                    assert sending.outcome in (Released(), Modified(delivery_failed=True))
                    self.to_send.append(number)
            elif sending.link.detached is not None:
                # What it sent before it heard that it was stolen has been ignored. All else was
                # to be told before.
                self.ignored(number, sending)
            else:
                still.append((number, sending))
        self.open = still

    def ignored(self, number: int, sending: Sending) -> None:
        assert sending.states == []
        mark = b"<%06d>" % number
        whole = sum(
            received.payload.startswith(mark) and received.complete and not received.aborted
            for link in self.all_receivers
            for received in link.received
        )
        told = [each for each in self.sendings[number] if each is not sending]
        assert whole <= len(told)
        self.to_send.append(number)

    def finish(self) -> None:
        """Let everybody do what is reasonable until every message is accepted."""
        self.router.catch_up()
        for client in [each for clients in self.clients.values() for each in clients]:
            client.read()
            client.open_window(100_000)
        for _ in range(self.number * 4 + 20):
            for receiver in self.receivers:
                receiver.grant(1000)
                receiver.settle()
            for sender in self.senders:
                if sender.current is not None and sender.client.router_window > 0:
                    sender.go_on(b"=")
                while self.to_send and sender.can_send():
                    self.send(sender)
            self.tick()
            if len(self.accepted) == self.number:
                break
        assert self.accepted == set(range(1, self.number + 1))
        assert self.open == []
        assert self.to_send == deque()

    def check(self, *, is_multicast: bool) -> None:
        """Nobody got anything twice without its sender's having been told that this may be."""
        came: Counter[tuple[int, str]] = Counter()
        for link in self.all_receivers:
            for received in link.received:
                if received.complete and not received.aborted:
                    number = int(received.payload[1:7])
                    came[number, link.name if is_multicast else ""] += 1
        assert {number for number, _ in came} == self.accepted
        for (number, _), count in came.items():
            outcomes = [sending.outcome for sending in self.sendings[number]]
            may_have_come = [each for each in outcomes if each not in (None, Released())]
            assert count <= len(may_have_come) + self.doubtful[number]
        forwarder = self.router.forwarder
        assert forwarder.backlog.held_bytes == 0
        assert len(forwarder.link_names) == 2 * NAMES
        check_accounts(self.router)
        check_nothing_is_left(self.router)


def play(treatment: str, schedule: Schedule, *, in_turns: bool = False) -> Ledger:
    ledger = Ledger(treatment, in_turns=in_turns)
    for what, one, other in schedule:
        ledger.step(what, one, other)
    ledger.finish()
    ledger.check(is_multicast=treatment == "multicast")
    return ledger


NUMBERS = st.integers(0, 20)


def schedules(steps: list[str]) -> st.SearchStrategy[Schedule]:
    return st.lists(st.tuples(st.sampled_from(steps), NUMBERS, NUMBERS), min_size=5, max_size=80)


SCHEDULES = schedules(STEPS)
IN_TURNS = [*STEPS, *["turn"] * 8]


@examples(300)
@given(st.sampled_from(["balanced", "closest", "multicast"]), SCHEDULES)
def test_nothing_is_lost_or_doubled(treatment: str, schedule: Schedule) -> None:
    play(treatment, schedule)


@examples(300)
@given(st.sampled_from(["balanced", "closest", "multicast"]), schedules(IN_TURNS))
def test_nothing_is_lost_or_doubled_in_many_turns(treatment: str, schedule: Schedule) -> None:
    play(treatment, schedule, in_turns=True)


@pytest.mark.parametrize("in_turns", [False, True])
@pytest.mark.parametrize("treatment", ["balanced", "closest", "multicast"])
def test_long_schedules(treatment: str, in_turns: bool) -> None:
    chance = random.Random(treatment)
    kinds = IN_TURNS if in_turns else STEPS
    steps = [
        (chance.choice(kinds), chance.randrange(21), chance.randrange(21)) for _ in range(1500)
    ]
    ledger = play(treatment, steps, in_turns=in_turns)
    # it is about stealing, after all
    assert ledger.router.forwarder.link_names.stolen > 50
    assert len(ledger.accepted) > 10
