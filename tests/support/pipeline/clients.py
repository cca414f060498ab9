"""Clients of simulated networks that can be made to misbehave."""

from __future__ import annotations

from collections import deque
from random import Random
from typing import Any

from router.amqp.message import Message, encode_message
from router.amqp.redirects import redirect_of
from router.amqp.sections import Header, Properties
from router.client.receiver import Received
from router.simulation.containers import Container
from router.simulation.host import Host, shared_buffer
from router.simulation.links import ReceiverPlan, SenderPlan
from router.simulation.network import BESIDE, Network

BODY = b"\x00\x53\x75\xa0\x08" + bytes(8)
# How long one waits that takes its link back, or goes where it is sent.
RETURN_S = (0.2, 0.5)


class NamedContainer(Container):
    """A container whose link has the same name each time, and which follows redirects."""

    def __init__(self, network: Network, name: str, router: str, key: str = "") -> None:
        chance = network.chance(key or name)
        host = network.hosts[router]
        super().__init__(name, host, network.agenda, BESIDE, chance, shared_buffer())
        self._hosts: dict[str, Host] = network.hosts
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

        self.agenda.after(self.chance.uniform(*RETURN_S), again)


class Talker:
    """Sends to an address, at `rate` messages a second; with `ttl_ms` they expire."""

    def __init__(
        self, network: Network, name: str, router: str, address: str, rate: float, ttl_ms: int
    ) -> None:
        self.name, self.router, self.address, self.rate = name, router, address, rate
        self.agenda = network.agenda
        self.chance: Random = network.chance(f"talker/{name}")
        self.is_anonymous = False
        self._octets = b""
        self.set_ttl(ttl_ms)
        self._due = 0
        self.plan = SenderPlan(address, self._send, lambda _: None)
        self.container = NamedContainer(network, name, router)
        self.container.add_sender(self.plan)

    def set_ttl(self, ttl_ms: int) -> None:
        """Have messages expire after a while from now on, or with 0 never."""
        header = Header(ttl=ttl_ms) if ttl_ms else None
        to = Properties(to=self.address) if self.is_anonymous else None
        self._octets = encode_message(Message(header=header, properties=to)) + BODY

    def be_anonymous(self) -> None:
        """Say the address in each message; its router does not know what there is room for, and
        lets messages wait.
        """
        self.is_anonymous = True
        self.plan.address = None

    def begin(self) -> None:
        """Send from now on."""
        self.agenda.after(self.chance.uniform(0, 1 / self.rate), self._tick)

    def _tick(self) -> None:
        # who cannot send does not save up all that it had to say
        self._due = min(self._due + 1, 20)
        self.agenda.after(self.chance.uniform(0.5, 1.5) / self.rate, self._tick)
        self._send()

    def _send(self) -> None:
        sender = self.plan.sender()
        while sender is not None and self._due and sender.has_room():
            self._due -= 1
            sender.send_nowait(self._octets)


class Taker:
    """Receives from an address and accepts one message after another, each after `service_s`."""

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
        self.agenda = network.agenda
        self.chance: Random = network.chance(f"taker/{key or name}")
        self._waiting: deque[Received] = deque()
        self._is_busy = False
        self.plan = ReceiverPlan(address, self._take, credit=credit)
        self.container = NamedContainer(network, name, router, key)
        self.container.add_receiver(self.plan)

    def _take(self, received: Received) -> None:
        self._waiting.append(received)
        self._work()

    def _work(self) -> None:
        if self._is_busy or self.is_stuck or not self._waiting:
            return
        self._is_busy = True
        received = self._waiting.popleft()
        time_s = self.service_s * self.chance.uniform(0.8, 1.2)
        self.agenda.after(time_s, lambda: self._done(received))

    def _done(self, received: Received) -> None:
        self._is_busy = False
        live = self.plan.live
        if not received.is_settled and live is not None and not live.is_over:
            if received._receiver is live:
                received.accept()
        self._work()
