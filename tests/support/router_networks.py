"""Networks of real routers: processes that can be killed, stopped, continued and restarted.

A router restarts on its old ports, and each line between two routers is a wire that can be cut.

    network = RouterNetwork(routers, [Line("a", "b"), Line("b", "c", cost=5)], edges={"e": "ab"})
    network.start()
    network.kill("b")
"""

from __future__ import annotations

import itertools
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol, TypeVar

import attrs

from support.broker_loads import Consumer, Ledger, Producer, Traffic
from support.configuring import PATIENT, entity
from support.management_tool import Tool
from support.ports import free_port
from support.proton_peers import ProtonConnection, ProtonPeers
from support.rhea_loads import RheaConsumer, RheaProducer
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tcp_wires import Wire

PATIENCE_S = 60.0
R = TypeVar("R")
# what begins so is treated so
ADDRESSES = "".join(
    entity("address", prefix=each, distribution=each)
    for each in ("closest", "balanced", "multicast")
)


@attrs.frozen
class Line:
    """Connection between two interior routers; the first one dials."""

    dials: str
    listens: str
    cost: int = 1


@attrs.frozen
class _Ports:
    clients: int = attrs.field(factory=free_port)
    routers: int = attrs.field(factory=free_port)
    edges: int = attrs.field(factory=free_port)


class RouterNetwork:
    """Routers by name. Nothing runs before `start`.

    `edges` has for each edge router the interior routers that it connects to, of which it uses
    `active_uplinks` at a time; `more` is added to every configuration.
    """

    def __init__(
        self,
        start: StartRouter,
        lines: Iterable[Line],
        *,
        edges: Mapping[str, Iterable[str]] | None = None,
        active_uplinks: int = 1,
        more: str = "",
    ) -> None:
        self._start = start
        self._lines = list(lines)
        self._edges = {name: list(uplinks) for name, uplinks in (edges or {}).items()}
        self._active_uplinks = active_uplinks
        self._more = more
        ends = ((line.dials, line.listens) for line in self._lines)
        hubs = itertools.chain.from_iterable((*ends, *self._edges.values()))
        self.interiors = list(dict.fromkeys(hubs))
        self._ports = {name: _Ports() for name in (*self.interiors, *self._edges)}
        self._routers: dict[str, RouterProcess] = {}
        self._paused: set[str] = set()
        self._wires = {
            (line.dials, line.listens): Wire(self._ports[line.listens].routers)
            for line in self._lines
        }
        self._wires |= {
            (name, uplink): Wire(self._ports[uplink].edges)
            for name, uplinks in self._edges.items()
            for uplink in uplinks
        }

    def __getitem__(self, name: str) -> RouterProcess:
        return self._routers[name]

    def url(self, name: str) -> str:
        """Return the URL where clients connect to a router, whether it runs or not."""
        return f"amqp://127.0.0.1:{self._ports[name].clients}"

    def port(self, name: str) -> int:
        """Return the port of `url`."""
        return self._ports[name].clients

    def wire(self, one: str, other: str) -> Wire:
        """Return the wire that joins two routers."""
        return self._wires.get((one, other)) or self._wires[other, one]

    # What may happen to it.

    def start(self, *names: str) -> None:
        """Start these routers, or all, and wait until they know each other.

        Returns when they use every line between them.
        """
        # whoever dials comes after whom it dials, and need not try again
        for name in names or [*reversed(self.interiors), *self._edges]:
            self._routers[name] = self._start(self.configuration(name))
        self.until_whole()
        self.until_joined()

    def kill(self, name: str) -> None:
        """End a router as a power cut would."""
        self._routers[name].stop(signal.SIGKILL)

    def leave(self, name: str) -> None:
        """Stop a router in order."""
        assert self._routers[name].stop() == 0

    def pause(self, name: str) -> None:
        """Have a router stand still."""
        self._paused.add(name)
        self._routers[name].process.send_signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Have it go on."""
        self._paused.discard(name)
        self._routers[name].process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Let everything run on, so that it can be stopped, and end the wires."""
        for name in list(self._paused):
            self.resume(name)
        for wire in self._wires.values():
            wire.close()

    # What it knows of itself.

    def running(self) -> list[str]:
        """Return the interior routers that can answer."""
        return [
            name
            for name in self.interiors
            if name in self._routers
            and name not in self._paused
            and self._routers[name].process.poll() is None
        ]

    def reached(self, name: str) -> dict[str, int]:
        """Return the routers that one reaches, with their costs."""
        tool = Tool(self._routers[name])
        try:
            nodes = tool.query("router.node", "id", "cost")
        finally:
            tool.close()
        return {each["id"]: each["cost"] for each in nodes if each["cost"]}

    def until_whole(self, *names: str) -> float:
        """Wait until these interior routers, or all that run, reach exactly one another.

        Returns how long that took, in seconds.
        """
        wanted = set(names or self.running())
        began = time.monotonic()
        for name in sorted(wanted):
            while (found := set(self.reached(name))) != wanted - {name}:
                assert time.monotonic() < began + PATIENCE_S, (
                    f"{name} reaches {found}, not {wanted}:\n{self._routers[name].log_text()}"
                )
        return time.monotonic() - began

    def until_joined(self) -> None:
        """Wait until all running interior routers know of every line between them.

        Lines that are cut do not count.
        """
        running = self.running()
        ends = [(line.dials, line.listens) for line in self._lines]
        there = [
            set(pair) for pair in ends if set(pair) <= set(running) and not self._wires[pair].is_cut
        ]
        deadline = time.monotonic() + PATIENCE_S
        for name in running:
            known = self.lines(name)
            while not all(line in known for line in there):
                known = self.lines(name)
                assert time.monotonic() < deadline, f"{name} knows of {known}, not of {there}"

    def lines(self, name: str) -> list[set[str]]:
        """Which routers are joined as one sees it, by pairs."""
        tool = Tool(self._routers[name])
        try:
            nodes = tool.query("router.node", "id", "linkState")
        finally:
            tool.close()
        return [{each["id"], other} for each in nodes for other in each["linkState"]]

    def until_costs(self, name: str, costs: Mapping[str, int]) -> None:
        """Wait until a router reaches exactly these others, at these costs."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.reached(name)) != costs:
            assert time.monotonic() < deadline, f"{name} reaches {found}, not {costs}"

    def configuration(self, name: str) -> str:
        """Return a router's configuration."""
        ports = self._ports[name]
        is_edge = name in self._edges
        text = f'[router]\nid = "{name}"\nmode = "{"edge" if is_edge else "interior"}"\n'
        if is_edge:
            text += "edgeHeartbeatSeconds = 0.5\nedgeHeartbeatMaxAgeSeconds = 2\n"
            text += f"activeUplinks = {self._active_uplinks}\n"
        text += "\n" + entity(
            "listener", name="clients", host="127.0.0.1", port=ports.clients, **PATIENT
        )
        if not is_edge:
            for role, port in (("inter-router", ports.routers), ("edge", ports.edges)):
                text += entity("listener", name=f"{role}s", host="127.0.0.1", port=port, role=role)
        for uplink in self._edges.get(name, []):
            text += self._connector(name, uplink, role="edge")
        for line in self._lines:
            if line.dials == name:
                text += self._connector(name, line.listens, role="inter-router", cost=line.cost)
        return text + self._more

    def _connector(self, name: str, to: str, **attributes: str | int) -> str:
        port = self._wires[name, to].port
        return entity("connector", name=f"to-{to}", host="127.0.0.1", port=port, **attributes)


class StartNetwork(Protocol):
    """Fixture function that starts networks; its arguments are those of `RouterNetwork`."""

    def __call__(
        self,
        lines: list[Line],
        *,
        edges: Mapping[str, Iterable[str]] | None = None,
        active_uplinks: int = 1,
        more: str = "",
    ) -> RouterNetwork:
        """Start a network, which ends with the test."""


def during(
    proton: ProtonPeers, work: Callable[[], R], step: Callable[[], object] = lambda: None
) -> R:
    """Have Proton's connections live on while something is done in a thread that takes its time."""
    with ThreadPoolExecutor(1) as thread:
        doing = thread.submit(work)

        def is_done() -> bool:
            step()
            return doing.done()

        proton.until(is_done, "it is done", 2 * PATIENCE_S)
    return doing.result()


class Load(Traffic):
    """Clients at routers of a network, which reconnect when theirs is lost, and their ledger."""

    def __init__(self, proton: ProtonPeers, network: RouterNetwork) -> None:
        super().__init__(Ledger(), [], [])
        self._proton = proton
        self._network = network

    def _at(self, router: str) -> Callable[[], ProtonConnection]:
        return partial(self._proton.begin_connect, self._network.url(router))

    def send(
        self,
        at: str,
        address: str,
        count: int,
        *,
        window: int = 50,
        size: int = 0,
        rhea: RheaPeer | None = None,
    ) -> None:
        """Have a client at a router send `count` messages, until all of them are accepted.

        The client is Proton's unless `rhea` is given.
        """
        name = f"{at}{len(self.producers)}."
        if rhea is not None:
            port = self._network.port(at)
            self.producers.append(
                RheaProducer(rhea, self.ledger, port, address, count, name=name, window=window)
            )
            return
        connect = self._at(at)
        self.producers.append(
            Producer(
                self.ledger,
                connect(),
                address,
                count,
                name=name,
                window=window,
                size=size,
                connect=connect,
            )
        )

    def receive(
        self, at: str, address: str, credit: int = 100, *, rhea: RheaPeer | None = None
    ) -> None:
        """Have a client at a router receive whatever comes; by Proton, or by rhea."""
        if rhea is not None:
            port = self._network.port(at)
            self.consumers.append(RheaConsumer(rhea, self.ledger, port, address, credit))
            return
        connect = self._at(at)
        self.consumers.append(Consumer(self.ledger, connect(), address, credit, connect=connect))

    def during(self, work: Callable[[], R]) -> R:
        """Run on while a function runs in a thread, and return its result."""
        return during(self._proton, work, self.step)

    def have_accepted(self, count: int) -> bool:
        """Run on; return whether so many of each sender's were accepted, or all of them."""
        self.step()
        return all(each.accepted >= count or not each.todo for each in self.producers)


def run(proton: ProtonPeers, load: Load, limit_s: float) -> None:
    """Let everything be sent, and compare it with what arrived."""
    proton.until(load.step, "all has arrived", limit_s)
    # what is under way twice would come now
    proton.run_for(0.3)
    load.step()
    load.ledger.check_once()
    print(f"outcomes {dict(load.ledger.outcomes)}")
