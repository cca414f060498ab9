"""Traffic to and from a broker's queue, and a ledger of it.

The ledger checks that accepted messages arrive and that messages given back do not. Messages are
durable. Each attempt to send one is a message of its own, so that the outcome that its sender was
told can be compared with what arrived. A sender tries again until its message is accepted, and both
ends attach again when their links are lost, as a serious client does.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Collection
from typing import Protocol

import attrs
from proton import Message

from support.proton_peers import ProtonConnection, ProtonReceiver, ProtonSender, Sent

# How many names of messages a failure tells.
NAMES = 10
# How long a client waits before it attaches again.
AGAIN_S = 0.1


class Ledger:
    """All attempts of all senders to one queue, by the name in their messages."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}
        self.arrived: Counter[str] = Counter()
        # what else senders heard: conditions of rejections
        self.conditions: Counter[str] = Counter()
        # where each attempt arrived first
        self.order: list[str] = []

    def arrive(self, name: str) -> None:
        """Record that a message has come to a receiver."""
        if name not in self.arrived:
            self.order.append(name)
        self.arrived[name] += 1

    @property
    def outcomes(self) -> Counter[str]:
        """Return how often senders heard each outcome; "" is a link lost without any."""
        return Counter(self.told.values())

    @property
    def missing(self) -> list[str]:
        """Return the messages that were accepted and have not arrived."""
        return [
            name
            for name, told in self.told.items()
            if told == "accepted" and not self.arrived[name]
        ]

    def is_complete(self) -> bool:
        """Return whether everything that was accepted has arrived."""
        return not self.missing

    def state(self) -> str:
        """Return what senders heard, what arrived, and what is missing, as text."""
        missing = self.missing
        more = ", ..." if len(missing) > NAMES else ""
        return (
            f"outcomes {dict(self.outcomes)}, conditions {dict(self.conditions)}, "
            f"arrived {len(self.arrived)} (in all {sum(self.arrived.values())} times), "
            f"missing {len(missing)}: {', '.join(missing[:NAMES])}{more}"
        )

    def check(self, allowed: Collection[str] = ("accepted", "released", "modified", "")) -> None:
        """Check the outcomes that senders heard against what arrived.

        Accepted messages arrived, released and rejected ones did not, and each outcome that a
        sender heard is `allowed`.
        """
        assert not self.missing, self.state()
        back = [
            f"{name} {told}"
            for name, told in self.told.items()
            if told in ("released", "rejected") and self.arrived[name]
        ]
        assert not back, f"arrived all the same: {back}"
        assert set(self.outcomes) <= set(allowed), (self.outcomes, self.conditions)
        assert set(self.arrived) <= set(self.told)

    def check_once(
        self, allowed: Collection[str] = ("accepted", "released", "modified", "")
    ) -> None:
        """Check also that no accepted message arrived twice; for routes without a store."""
        self.check(allowed)
        accepted = [name for name, told in self.told.items() if told == "accepted"]
        twice = [name for name in accepted if self.arrived[name] > 1]
        assert not twice, f"accepted, and arrived more than once: {twice}"


class Producer:
    """Sender of `count` messages, up to `window` at a time, until all of them are accepted.

    With `connect`, which begins to connect, it reconnects when its connection is lost.
    """

    def __init__(
        self,
        ledger: Ledger,
        client: ProtonConnection,
        address: str,
        count: int,
        *,
        name: str = "",
        window: int = 50,
        size: int = 0,
        connect: Callable[[], ProtonConnection] | None = None,
    ) -> None:
        self.ledger = ledger
        self.client = client
        self.connect = connect
        self.address = address
        self.name = name
        self.window = window
        self.padding = "x" * size
        self.todo = deque((number, 1) for number in range(count))
        self.open: dict[str, tuple[int, int, Sent]] = {}
        self.accepted = 0
        self.attached = 0
        self.sender: ProtonSender | None = None
        self._not_before = 0.0
        # whether what is not accepted is sent again
        self.persists = True

    def step(self) -> bool:
        """Do what can be done now; return whether all is done."""
        self._settle()
        if self.client.is_lost:
            assert self.connect is not None, "the router closed the connection"
            if time.monotonic() >= self._not_before:
                self.client, self.sender = self.connect(), None
                self._attach()
            return False
        if not self.todo and not self.open:
            return True
        sender = self.sender
        if sender is None or sender.is_over:
            self._attach()
        elif sender.is_attached:
            while self.todo and sender.link.credit > 0 and len(self.open) < self.window:
                self._send(sender, *self.todo.popleft())
        return False

    def state(self) -> str:
        """Return how many messages are still to be accepted, and the link's state."""
        link = "no link" if self.sender is None else self.sender.state()
        return (
            f"{self.accepted} accepted, {len(self.todo)} to send, {len(self.open)} unsettled, "
            f"attached {self.attached} times, now {link}"
        )

    def _attach(self) -> None:
        now = time.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + AGAIN_S
        for name, (number, attempt, _) in self.open.items():
            self._tell(name, number, attempt, "")
        self.open.clear()
        self.attached += 1
        self.sender = self.client.begin_sender(self.address)

    def _send(self, sender: ProtonSender, number: int, attempt: int) -> None:
        name = f"{self.name}{number}.{attempt}"
        message = Message(self.padding, durable=True, subject=name)
        self.open[name] = (number, attempt, sender.send(message, wait=False))

    def _settle(self) -> None:
        for name, (number, attempt, sent) in list(self.open.items()):
            if sent.is_settled:
                del self.open[name]
                if sent.condition is not None:
                    self.ledger.conditions[sent.condition.name] += 1
                self._tell(name, number, attempt, sent.outcome)

    def _tell(self, name: str, number: int, attempt: int, outcome: str) -> None:
        self.ledger.told[name] = outcome
        if outcome == "accepted":
            self.accepted += 1
        elif self.persists:
            self.todo.append((number, attempt + 1))


class Consumer:
    """Receiver that accepts whatever comes, with at most a hundred credits.

    With `connect`, which begins to connect, it reconnects when its connection is lost.
    """

    def __init__(
        self,
        ledger: Ledger,
        client: ProtonConnection,
        address: str,
        credit: int = 100,
        *,
        connect: Callable[[], ProtonConnection] | None = None,
    ) -> None:
        self.ledger = ledger
        self.client = client
        self.connect = connect
        self.address = address
        self.credit = credit
        self.attached = 0
        self.receiver: ProtonReceiver | None = None
        self.read = 0
        self.count = 0
        self._not_before = 0.0

    def step(self) -> int:
        """Do what can be done now; return how many messages have come in all."""
        if self.receiver is not None:
            for received in self.receiver.received[self.read :]:
                self.ledger.arrive(received.message.subject or "")
                self.count += 1
            self.read = len(self.receiver.received)
        if self.client.is_lost:
            assert self.connect is not None, "the router closed the connection"
            if time.monotonic() >= self._not_before:
                self.client = self.connect()
                self._attach()
        elif self.receiver is None or self.receiver.is_over:
            self._attach()
        return self.count

    def state(self) -> str:
        """Return how many messages have come, and the link's state."""
        link = "no link" if self.receiver is None else self.receiver.state()
        return f"{self.count} came, attached {self.attached} times, now {link}"

    def _attach(self) -> None:
        now = time.monotonic()
        if now < self._not_before:
            return
        self._not_before = now + AGAIN_S
        self.attached += 1
        self.read = 0
        self.receiver = self.client.begin_receiver(self.address, self.credit)
        self.receiver.renews = True


class Sends(Protocol):
    """Client that sends messages until all are accepted."""

    accepted: int
    todo: deque[tuple[int, int]]

    def step(self) -> bool:
        """Do what can be done now; return whether all is done."""

    def state(self) -> str:
        """Return its state on one line."""


class Receives(Protocol):
    """Client that receives. `attached` counts its attaches."""

    attached: int

    def step(self) -> int:
        """Do what can be done now; return how many messages have come in all."""

    def state(self) -> str:
        """Return its state on one line."""


@attrs.define
class Traffic:
    """Producers and consumers that run together."""

    ledger: Ledger
    producers: list[Sends]
    consumers: list[Receives]

    def step(self) -> bool:
        """Let each do what it can; return whether all was sent, accepted and has arrived."""
        for consumer in self.consumers:
            consumer.step()
        return self.step_producers() and self.ledger.is_complete()

    def step_producers(self) -> bool:
        """Let all producers do what they can; return whether all was sent and accepted."""
        # each of them, whatever the others say
        done = [producer.step() for producer in self.producers]
        return all(done)

    def state(self) -> str:
        """Return the state of the ledger and of each client."""
        said = [f"ledger: {self.ledger.state()}"]
        said += [f"producer: {each.state()}" for each in self.producers]
        said += [f"consumer: {each.state()}" for each in self.consumers]
        return "; ".join(said)

    @property
    def accepted(self) -> int:
        """Return how many messages were accepted so far."""
        return sum(producer.accepted for producer in self.producers)

    def has_heard(self, count: int) -> bool:
        """Run on; return whether senders have heard so many outcomes by now."""
        self.step()
        return sum(self.ledger.outcomes.values()) >= count

    def has_accepted(self, count: int) -> bool:
        """Run on; return whether so many were accepted by now."""
        self.step()
        return self.accepted >= count
