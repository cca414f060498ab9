"""Run a simulation, from its topology to its result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import attrs
import structlog

from router.config.connectors import ConnectorSettings
from router.config.endpoints import Role
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.core.model.address import MULTICAST
from router.core.routers.routing_state import mobile_key
from router.simulation.network import Network
from router.simulation.phases import Phase, PhaseRecorder
from router.simulation.plan import Plan, PlannedLink, expand
from router.simulation.scheduled_events import EventSchedule
from router.simulation.topology import MOST_ROUTERS, Topology
from router.simulation.traffic import Traffic
from router.simulation.truth import GroundTruth

# Simulated time between two reports of progress.
STEP_S = 0.25
# Most calls of the scheduler between two reports: in a large network, many are due at one time.
MOST_STEPS = 2000


@attrs.frozen
class Progress:
    """Progress of a simulation in its current part.

    `now_s` of at most `of_s` seconds have passed; `what` describes the part.
    """

    now_s: float
    of_s: float
    what: str


@attrs.frozen
class Result:
    """Result of a simulation. The first phase is the start of the network."""

    topology: Topology
    plan: Plan
    phases: tuple[Phase, ...]
    mistakes: tuple[str, ...]
    sent: int
    outcomes: dict[str, int]
    unsettled: int
    is_converged: bool
    # number of calls made by the scheduler, and the time when traffic began
    steps: int
    began: float


class Simulation:
    """Simulated network and traffic that a topology describes."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.plan = plan = expand(topology)
        self.network = network = Network(topology.simulation.seed)
        modes = dict(plan.routers)
        for name, _ in plan.routers:
            network.add(name, configuration_of(topology, plan, name))
        lines: list[tuple[str, str]] = []
        for link in plan.links:
            role = role_of(modes, link)
            network.join(
                link.dialler,
                link.acceptor,
                link.distance,
                _connector(link, role),
                _listener(link, role),
            )
            if role == "inter-router":
                lines.append((link.dialler, link.acceptor))
        self.truth = GroundTruth(network, lines)
        self.traffic = Traffic(
            network, [name for name, _ in plan.routers], topology.receivers, topology.senders
        )
        self.recorder = PhaseRecorder(self.truth, self.traffic.ledger)
        self.traffic.listener = self.recorder
        self._began = network.scheduler.now
        self.schedule = EventSchedule(network, topology.events)

    def run(self, progress: Callable[[Progress], None] = lambda _: None) -> Result:
        """Run the whole simulation, and return its result."""
        settings, network, recorder = self.topology.simulation, self.network, self.recorder
        recorder.begin("start", "start")
        network.start()
        self.truth.network_changed()
        self._note_multicast()
        self._until(self._is_settled, settings.settle_seconds, "network starts", progress)
        recorder.begin("traffic", "traffic begins")
        began = self._began = network.scheduler.now
        self.traffic.begin()
        for event in self.schedule.events:
            if event.at > settings.seconds:
                break
            self._until_time(began + event.at, recorder.phase.what, began, progress)
            phase = recorder.begin(event.action, event.action)
            phase.what = event.act()
            self.truth.network_changed()
        self._until_time(began + settings.seconds, recorder.phase.what, began, progress)
        recorder.begin("end", "traffic ends")
        self.traffic.end()
        self._until(self._is_over, settings.settle_seconds, "waiting for outcomes", progress)
        recorder.end_waits(self.traffic.flows)
        recorder.end()
        return self._result()

    def _note_multicast(self) -> None:
        for flow in self.traffic.flows:
            table = self.network.hosts[flow.router].parts.table
            if table.treatment(flow.address) == MULTICAST:
                self.traffic.ledger.multicast.add(flow.number)

    def _is_settled(self) -> bool:
        """Return whether every router knows the network's state, including all receivers."""
        wanted = self.truth.wanted
        return (
            self.truth.is_right()
            and self.truth.is_whole()
            and all(container.is_connected() for container in self.network.containers.values())
            and (
                not self.truth.costs
                or all(mobile_key(sink.address) in wanted for sink in self.traffic.sinks)
            )
        )

    def _is_over(self) -> bool:
        return not self.traffic.ledger.unsettled()

    def _until(
        self,
        is_reached: Callable[[], bool],
        limit_s: float,
        what: str,
        progress: Callable[[Progress], None],
    ) -> None:
        began = self.network.scheduler.now
        while not is_reached() and self.network.scheduler.now < began + limit_s:
            left_s = began + limit_s - self.network.scheduler.now
            self.network.scheduler.run_until(is_reached, min(STEP_S, left_s), MOST_STEPS)
            progress(Progress(self.network.scheduler.now - began, limit_s, what))

    def _until_time(
        self, when: float, what: str, began: float, progress: Callable[[Progress], None]
    ) -> None:
        scheduler = self.network.scheduler
        is_done = False
        while scheduler.now < when or not is_done:
            is_done = scheduler.run(min(when, scheduler.now + STEP_S), MOST_STEPS)
            progress(Progress(scheduler.now - began, self.topology.simulation.seconds, what))

    def _result(self) -> Result:
        ledger, network = self.traffic.ledger, self.network
        is_whole = self.truth.is_right() and all(host.runs for host in network.hosts.values())
        outcomes: dict[str, int] = {}
        for entry in ledger.entries:
            word = entry.outcome or ("presettled" if entry.presettled else "unsettled")
            outcomes[word] = outcomes.get(word, 0) + 1
        return Result(
            self.topology,
            self.plan,
            tuple(self.recorder.phases),
            tuple(ledger.mistakes(is_whole=is_whole)),
            len(ledger.entries),
            outcomes,
            ledger.unsettled(),
            self.truth.is_right(),
            network.scheduler.done,
            self._began,
        )


def simulate(topology: Topology, progress: Callable[[Progress], None] = lambda _: None) -> Result:
    """Simulate the network that a topology describes, and return the result."""
    return Simulation(topology).run(progress)


def role_of(modes: Mapping[str, str], link: PlannedLink) -> Role:
    """Return the role of the connector and the listener of a link."""
    return "edge" if modes.get(link.dialler) == "edge" else "inter-router"


def configuration_of(topology: Topology, plan: Plan, name: str) -> Configuration:
    """Return the configuration of one router, with all its listeners and connectors."""
    modes = dict(plan.routers)
    settings = topology.simulation
    router = RouterSettings(
        id=name,
        mode=modes[name],
        default_distribution=settings.default_distribution,
        hello_interval_seconds=settings.hello_interval_seconds,
        hello_max_age_seconds=settings.hello_max_age_seconds,
        ra_interval_seconds=settings.ra_interval_seconds,
        max_routers_per_neighbour=MOST_ROUTERS,
    )
    return Configuration(
        router=router,
        listeners=tuple(
            _listener(link, role_of(modes, link)) for link in plan.links if link.acceptor == name
        ),
        connectors=tuple(
            _connector(link, role_of(modes, link)) for link in plan.links if link.dialler == name
        ),
        addresses=topology.addresses,
    )


def _connector(link: PlannedLink, role: Role) -> ConnectorSettings:
    cost = link.cost if role == "inter-router" else 1
    return ConnectorSettings(host=link.acceptor, name=f"to {link.acceptor}", role=role, cost=cost)


def _listener(link: PlannedLink, role: Role) -> ListenerSettings:
    cost = link.cost if role == "inter-router" else 1
    return ListenerSettings(host=link.acceptor, name=f"from {link.dialler}", role=role, cost=cost)


@contextmanager
def without_log() -> Iterator[None]:
    """Suppress the log, because its times would not be those of the virtual clock."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    try:
        yield
    finally:
        structlog.configure(**before)
