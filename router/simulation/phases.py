"""Measure what each event of a simulation costs, in the phase until the next event.

A phase records how long the network takes to converge, the control traffic, and the outcomes of
messages.
"""

from __future__ import annotations

from bisect import bisect_right

import attrs

from router.control.network.adjacency import Neighbours
from router.core.routers.routing_state import mobile_key
from router.simulation.host import SimulatedRouter
from router.simulation.ledger import Entry, Ledger
from router.simulation.traffic import Flow, Listener, Sink
from router.simulation.truth import GroundTruth


@attrs.define(eq=False)
class Phase:
    """Measurements for the time from one event to the next. Times are in seconds."""

    action: str
    what: str
    began: float
    ended: float = 0.0
    # time until all routers knew the network's state; None if they never did
    converged_s: float | None = None
    control_messages: int = 0
    control_octets: int = 0
    sent: int = 0
    accepted: int = 0
    released: int = 0
    modified: int = 0
    rejected: int = 0
    lost: int = 0
    delivered: int = 0
    doubled: int = 0
    # the longest time in which a sender had something to send and nothing was accepted
    longest_wait_s: float = 0.0
    # time from sending to delivery
    latency_s: float = 0.0
    longest_latency_s: float = 0.0
    # stretch of paths, which is their cost divided by the cheapest: sum, maximum and number
    stretch: float = 0.0
    longest_stretch: float = 0.0
    stretched: int = 0


class PhaseRecorder(Listener):
    """Observer of messages, which adds up measurements for each phase."""

    def __init__(self, truth: GroundTruth, ledger: Ledger) -> None:
        self.truth = truth
        self.ledger = ledger
        self.scheduler = truth.network.scheduler
        self.phases: list[Phase] = []
        self._starts: list[float] = []
        # the counters of control messages, one for each life of a router, and their totals at the
        # end of the previous phase
        self._spoken: list[Neighbours] = []
        self._counted = (0, 0)
        for host in truth.network.hosts.values():
            host.on_start.append(self._router_started)
        self._version = -1
        self._costs: dict[tuple[str, str], int | None] = {}

    @property
    def phase(self) -> Phase:
        """Return the current phase."""
        return self.phases[-1]

    def begin(self, action: str, what: str) -> Phase:
        """End the current phase, and begin the phase after the event that `what` describes."""
        if self.phases:
            self.end()
        self.phases.append(Phase(action, what, self.scheduler.now))
        self._starts.append(self.scheduler.now)
        return self.phase

    def end(self) -> None:
        """End the current phase."""
        phase, truth = self.phase, self.truth
        phase.ended = self.scheduler.now
        messages, octets = self._said()
        phase.control_messages += messages
        phase.control_octets += octets
        if truth.is_right():
            phase.converged_s = max(0.0, truth.right_since - phase.began)

    def _said(self) -> tuple[int, int]:
        """Return how many control messages and octets routers have sent since the last call."""
        messages = octets = 0
        for spoken in self._spoken:
            messages += sum(
                spoken.outboxes.messages[key] for key in spoken.outboxes.messages if key[0] == "out"
            )
            octets += sum(
                spoken.outboxes.octets[key] for key in spoken.outboxes.octets if key[0] == "out"
            )
        before, self._counted = self._counted, (messages, octets)
        return messages - before[0], octets - before[1]

    def _router_started(self, host: SimulatedRouter) -> None:
        if host.control.network is not None:
            self._spoken.append(host.control.network)

    def end_waits(self, flows: list[Flow]) -> None:
        """Record how long pending messages have waited until the end of the simulation."""
        for flow in flows:
            if flow.pending_since is not None:
                self._waited(flow.pending_since)

    def _waited(self, since: float) -> None:
        phase = self.phases[max(0, bisect_right(self._starts, since) - 1)]
        phase.longest_wait_s = max(phase.longest_wait_s, self.scheduler.now - since)

    # Events of messages.

    def sent(self, flow: Flow) -> None:
        """Count a message that a sender has sent."""
        self.phase.sent += 1

    def outcome_known(self, flow: Flow, entry: Entry) -> None:
        """Count a message whose outcome its sender has received or will never receive."""
        phase, outcome = self.phase, entry.outcome
        setattr(phase, outcome, getattr(phase, outcome) + 1)
        if outcome == "accepted":
            self._arrived(flow)

    def delivered(self, sink: Sink, flow: Flow, entry: Entry) -> None:
        """Count a message that a receiver has received."""
        phase = self.phase
        phase.delivered += 1
        if entry.receivers.count(sink.number) > 1 or (
            len(entry.receivers) > 1 and flow.number not in self.ledger.multicast
        ):
            phase.doubled += 1
        latency = self.scheduler.now - entry.sent_at
        phase.latency_s += latency
        phase.longest_latency_s = max(phase.longest_latency_s, latency)
        if entry.presettled:
            self._arrived(flow)
        self._stretch(sink, flow)

    def _arrived(self, flow: Flow) -> None:
        if flow.pending_since is not None:
            self._waited(flow.pending_since)
        flow.pending_since = self.scheduler.now if flow.has_pending() else None

    def _stretch(self, sink: Sink, flow: Flow) -> None:
        """Record the cost of a message's path, divided by the cost of the cheapest path.

        Nothing is recorded if one of the two costs is not known.
        """
        start, end = flow.router, sink.router
        path_costs = self.truth.path_costs.get(start)
        if start == end or path_costs is None or end not in path_costs:
            return
        if self._version != self.truth.version:
            self._version = self.truth.version
            self._costs.clear()
        if (start, end) not in self._costs:
            self._costs[start, end] = self.truth.cost_taken(start, end)
        taken = self._costs[start, end]
        best = path_costs[end]
        if flow.number not in self.ledger.multicast:
            places = self.truth.wanted.get(mobile_key(flow.address), {})
            best = min(
                [0 if place == start else path_costs.get(place, best) for place in places] or [best]
            )
        if taken and best:
            phase = self.phase
            phase.stretched += 1
            phase.stretch += taken / best
            phase.longest_stretch = max(phase.longest_stretch, taken / best)
