"""Clients of rhea in the traffic of `broker_loads`; rhea reconnects them by itself."""

from __future__ import annotations

import base64
import itertools
from collections import deque
from typing import Any

from proton import Message

from support.broker_loads import Ledger
from support.rhea_peers import RheaPeer

OUTCOMES = ("accepted", "rejected", "released", "modified")
# How long rhea waits before it connects again, in milliseconds.
AGAIN_MS = 100

_numbers = itertools.count(1)


def _is_forced(event: dict[str, Any]) -> bool:
    """Return whether a link was detached because its connection will be closed."""
    error = event.get("error")
    return error is not None and error["condition"] == "amqp:connection:forced"


class _Client:
    """Connection of a rhea process with one link, made anew when the router closes it."""

    def __init__(self, rhea: RheaPeer, ledger: Ledger, port: int, address: str) -> None:
        self.rhea = rhea
        self.ledger = ledger
        self.port = port
        self.address = address
        self.is_attached = False
        self.attached = 0
        self.connected = 0
        self._attaches_when_open = False
        self.connection = ""
        self.link = ""
        self._read = len(rhea.events)
        self._connect()

    def _connect(self) -> None:
        self.connection = f"rhea-{next(_numbers)}"
        options = {"port": self.port, "reconnect": AGAIN_MS, "container_id": self.connection}
        self.rhea.tell("connect", connection=self.connection, options=options)
        self._attach()

    def _attach(self) -> None:
        self.link = f"{self.connection}.{next(_numbers)}"
        self.attach()

    def attach(self) -> None:
        """Attach the link."""
        raise NotImplementedError

    def heard(self, event: dict[str, Any]) -> None:
        """Take an event of the link."""
        raise NotImplementedError

    def lost(self) -> None:
        """Do nothing about a lost link, which comes back."""

    def follow(self) -> None:
        """Act on all events that rhea has reported since."""
        events = self.rhea.events
        while self._read < len(events):
            event = events[self._read]
            self._read += 1
            if event.get("link") == self.link:
                self._link(event)
            elif event.get("connection") == self.connection:
                self._connection(event)

    def _link(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind in ("sender_open", "receiver_open"):
            self.is_attached = True
            self.attached += 1
        elif kind in ("sender_close", "sender_error", "receiver_close", "receiver_error"):
            self.is_attached = False
            self.lost()
            if _is_forced(event):
                # the connection is about to be closed: rhea could not attach a new link to it
                self._attaches_when_open = True
            else:
                self._attach()
        else:
            self.heard(event)

    def _connection(self, event: dict[str, Any]) -> None:
        if event["event"] == "connection_open":
            self.connected += 1
            if self._attaches_when_open:
                self._attaches_when_open = False
                self._attach()
        elif event["event"] == "disconnected":
            self.is_attached = False
            self.lost()
            if not event["reconnecting"]:
                self._connect()

    def state(self) -> str:
        """Return the state of the link and its connection."""
        link = "attached" if self.is_attached else "not attached"
        return f"rhea, connected {self.connected} times, attached {self.attached} times, now {link}"


class RheaProducer(_Client):
    """Sender of `count` messages, up to `window` at a time, until all of them are accepted."""

    def __init__(
        self,
        rhea: RheaPeer,
        ledger: Ledger,
        port: int,
        address: str,
        count: int,
        *,
        name: str,
        window: int = 50,
    ) -> None:
        self.name = name
        self.window = window
        self.todo = deque((number, 1) for number in range(count))
        # by their numbers on the link
        self.open: dict[int, tuple[int, int]] = {}
        self.accepted = 0
        self._sent = 0
        super().__init__(rhea, ledger, port, address)

    def attach(self) -> None:
        """Attach the sender."""
        self._sent = 0
        options = {
            "name": self.link,
            "target": {"address": self.address},
            # else rhea tells of both
            "treat_modified_as_released": False,
        }
        self.rhea.tell("sender", connection=self.connection, link=self.link, options=options)

    def step(self) -> bool:
        """Do what can be done now; return whether all is done."""
        self.follow()
        while self.is_attached and self.todo and len(self.open) < self.window:
            number, attempt = self.todo.popleft()
            message = Message(subject=f"{self.name}{number}.{attempt}", durable=True)
            self.open[self._sent] = number, attempt
            self._sent += 1
            self.rhea.send(bytes(message.encode()), self.link)
        return not self.todo and not self.open

    def heard(self, event: dict[str, Any]) -> None:
        """Record an outcome, or a settlement without one."""
        kind = event["event"]
        if kind in (*OUTCOMES, "settled") and event["number"] in self.open:
            self._tell(event["number"], kind if kind in OUTCOMES else "")

    def lost(self) -> None:
        """Give up all open attempts, as their outcomes will never be heard."""
        for number in list(self.open):
            self._tell(number, "")

    def _tell(self, sent: int, outcome: str) -> None:
        number, attempt = self.open.pop(sent)
        self.ledger.told[f"{self.name}{number}.{attempt}"] = outcome
        if outcome == "accepted":
            self.accepted += 1
        else:
            self.todo.append((number, attempt + 1))

    def state(self) -> str:
        """Return how many messages are still to be accepted, and the link's state."""
        counts = f"{self.accepted} accepted, {len(self.todo)} to send, {len(self.open)} unsettled"
        return f"{counts}; {super().state()}"


class RheaConsumer(_Client):
    """Receiver that accepts whatever comes."""

    def __init__(
        self, rhea: RheaPeer, ledger: Ledger, port: int, address: str, credit: int = 100
    ) -> None:
        self.credit = credit
        self.count = 0
        super().__init__(rhea, ledger, port, address)

    def attach(self) -> None:
        """Attach the receiver."""
        options = {
            "name": self.link,
            "source": {"address": self.address},
            "credit_window": self.credit,
        }
        self.rhea.tell("receiver", connection=self.connection, link=self.link, options=options)

    def step(self) -> int:
        """Do what can be done now; return how many messages have come in all."""
        self.follow()
        return self.count

    def heard(self, event: dict[str, Any]) -> None:
        """Record a message, which rhea has accepted."""
        if event["event"] == "message":
            message = Message()
            message.decode(base64.b64decode(event["octets"]))
            self.ledger.arrive(message.subject or "")
            self.count += 1

    def state(self) -> str:
        """Return how many messages have come, and the link's state."""
        return f"{self.count} came; {super().state()}"
