"""Clients of simulated networks that can be made to misbehave."""

from __future__ import annotations

import struct
from collections import deque
from random import Random
from typing import Any

from router.amqp.message import Data, Message, encode_message
from router.amqp.redirects import redirect_of
from router.amqp.sections import Header, Properties
from router.client.receiver import ReceivedMessage
from router.simulation.containers import Container
from router.simulation.host import SimulatedRouter, shared_buffer
from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import BESIDE, Network

# A body begins with the time at which the message was sent.
TIME = struct.Struct(">d")
# Limits of the delay before a client takes its link back or follows a redirect.
RETURN_S = (0.2, 0.5)


class NamedContainer(Container):
    """Container whose link always has the same name, and which follows redirects."""

    def __init__(self, network: Network, name: str, router: str, key: str = "") -> None:
        chance = network.chance(key or name)
        host = network.hosts[router]
        super().__init__(name, host, network.scheduler, BESIDE, chance, shared_buffer())
        self._hosts: dict[str, SimulatedRouter] = network.hosts
        network.containers[key or name] = self

    def _link_name(self) -> str:
        return f"{self.name}-link"

    def _detached(self, link: Any) -> None:
        plan = link.plan
        if self.session is None or plan.live is not link:
            return
        redirect = None if link.error is None else redirect_of(link.error)
        session = self.session

        def again() -> None:
            if redirect is not None and redirect.host in self._hosts:
                self.host = self._hosts[redirect.host]
                self.lose()
            elif self.session is session:
                if plan in self.senders:
                    self._attach_sender(plan)
                else:
                    self._attach_receiver(plan)

        self.scheduler.after(self.chance.uniform(*RETURN_S), again)


class Talker:
    """Sender to an address, at `rate` messages per second, with `ttl_ms` as their ttl."""

    def __init__(
        self, network: Network, name: str, router: str, address: str, rate: float, ttl_ms: int
    ) -> None:
        self.name, self.router, self.address, self.rate = name, router, address, rate
        self.scheduler = network.scheduler
        self.chance: Random = network.chance(f"talker/{name}")
        self.is_anonymous = False
        # octets in the body after the time
        self.more_octets = 0
        self._head = b""
        self.set_ttl(ttl_ms)
        self._due = 0
        self.plan = SenderPlan(address, self._send, lambda _: None)
        self.container = NamedContainer(network, name, router)
        self.container.add_sender(self.plan)

    def set_ttl(self, ttl_ms: int) -> None:
        """Set the ttl of messages from now on; with 0 they have none."""
        header = Header(ttl=ttl_ms) if ttl_ms else None
        to = Properties(to=self.address) if self.is_anonymous else None
        self._head = encode_message(Message(header=header, properties=to))

    def be_anonymous(self) -> None:
        """Send to the anonymous terminus; messages have the address in `to` after `set_ttl`.

        A router cannot match the credit of such a link to receivers, so its messages may wait.
        """
        self.is_anonymous = True
        self.plan.address = None

    def begin(self) -> None:
        """Begin to send."""
        self.scheduler.after(self.chance.uniform(0, 1 / self.rate), self._tick)

    def _tick(self) -> None:
        # a sender without credit does not accumulate an unlimited backlog
        self._due = min(self._due + 1, 20)
        self.scheduler.after(self.chance.uniform(0.5, 1.5) / self.rate, self._tick)
        self._send()

    def _send(self) -> None:
        sender = self.plan.sender()
        while sender is not None and self._due and sender.has_room():
            self._due -= 1
            body = TIME.pack(self.scheduler.now) + bytes(self.more_octets)
            sender.send_nowait(self._head + encode_message(Message(body=(Data(body),))))


class Taker:
    """Receiver from an address, which accepts messages one by one, each after about `service_s`."""

    def __init__(
        self,
        network: Network,
        name: str,
        router: str,
        address: str,
        service_s: float,
        credit: int,
        key: str = "",
    ) -> None:
        self.name, self.router, self.address = name, router, address
        self.service_s, self.credit = service_s, credit
        self.is_stuck = False
        # number of messages received, and the sum of their latencies
        self.received = 0
        self.latency_s = 0.0
        self.scheduler = network.scheduler
        self.chance: Random = network.chance(f"taker/{key or name}")
        self._waiting: deque[ReceivedMessage] = deque()
        self._is_busy = False
        self.plan = ReceiverPlan(address, self._take, credit=credit)
        self.container = NamedContainer(network, name, router, key)
        self.container.add_receiver(self.plan)

    def _take(self, received: ReceivedMessage) -> None:
        (data,) = received.message.body
        assert isinstance(data, Data)
        self.received += 1
        self.latency_s += self.scheduler.now - TIME.unpack_from(data.octets)[0]
        self._waiting.append(received)
        self._work()

    def _work(self) -> None:
        if self._is_busy or self.is_stuck or not self._waiting:
            return
        self._is_busy = True
        received = self._waiting.popleft()
        time_s = self.service_s * self.chance.uniform(0.8, 1.2)
        self.scheduler.after(time_s, lambda: self._done(received))

    def _done(self, received: ReceivedMessage) -> None:
        self._is_busy = False
        live = self.plan.live
        if not received.is_settled and live is not None and not live.is_over:
            if received._receiver is live:
                received.accept()
        self._work()
