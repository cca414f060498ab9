"""What each thing that happens costs: between it and the next, how long the network takes to be
right again, what it says for that, and what becomes of messages.
"""

from __future__ import annotations

from bisect import bisect_right

import attrs

from router.control.network.adjacency import Adjacency
from router.core.routers.routing_state import mobile_key
from router.simulation.host import Host
from router.simulation.ledger import Entry, Ledger
from router.simulation.traffic import Flow, Listener, Sink
from router.simulation.truth import Truth


@attrs.define(eq=False)
class Phase:
    """From one thing that happens to the next. Times are in seconds."""

    action: str
    what: str
    began: float
    ended: float = 0.0
    # until all routers knew what there was; None where that did not come to be
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
    # for how long a sender at most had something to send and nothing was accepted
    longest_wait_s: float = 0.0
    # from sent to delivered
    latency_s: float = 0.0
    longest_latency_s: float = 0.0
    # how much the ways cost that messages took, by what the cheapest would have, of how many
    stretch: float = 0.0
    longest_stretch: float = 0.0
    stretched: int = 0


class Account(Listener):
    """Notes what happens in which phase."""

    def __init__(self, truth: Truth, ledger: Ledger) -> None:
        self.truth = truth
        self.ledger = ledger
        self.agenda = truth.network.agenda
        self.phases: list[Phase] = []
        self._starts: list[float] = []
        # what counts the messages of each life of each router, and what all of them had said by
        # the end of the phase before
        self._spoken: list[Adjacency] = []
        self._told = (0, 0)
        for host in truth.network.hosts.values():
            host.born.append(self._born)
        self._version = -1
        self._costs: dict[tuple[str, str], int | None] = {}

    @property
    def phase(self) -> Phase:
        """The present phase."""
        return self.phases[-1]

    def begin(self, action: str, what: str) -> Phase:
        """Something has happened: a phase is over, and another begins."""
        if self.phases:
            self.end()
        self.phases.append(Phase(action, what, self.agenda.now))
        self._starts.append(self.agenda.now)
        return self.phase

    def end(self) -> None:
        """The present phase is over."""
        phase, truth = self.phase, self.truth
        phase.ended = self.agenda.now
        messages, octets = self._said()
        phase.control_messages += messages
        phase.control_octets += octets
        if truth.is_right():
            phase.converged_s = max(0.0, truth.right_since - phase.began)

    def _said(self) -> tuple[int, int]:
        """What routers have told each other since this was asked last: messages and octets."""
        messages = octets = 0
        for spoken in self._spoken:
            messages += sum(spoken.messages[key] for key in spoken.messages if key[0] == "out")
            octets += sum(spoken.octets[key] for key in spoken.octets if key[0] == "out")
        told, self._told = self._told, (messages, octets)
        return messages - told[0], octets - told[1]

    def _born(self, host: Host) -> None:
        if host.control.network is not None:
            self._spoken.append(host.control.network)

    def end_waits(self, flows: list[Flow]) -> None:
        """Nothing more will be accepted: what was waited for until now counts as well."""
        for flow in flows:
            if flow.wanting_since is not None:
                self._waited(flow.wanting_since)

    def _waited(self, since: float) -> None:
        phase = self.phases[max(0, bisect_right(self._starts, since) - 1)]
        phase.longest_wait_s = max(phase.longest_wait_s, self.agenda.now - since)

    # What happens to messages.

    def sent(self, flow: Flow) -> None:
        """A message is sent."""
        self.phase.sent += 1

    def told(self, flow: Flow, entry: Entry) -> None:
        """A sender is told what became of a message, or that it will never hear of it."""
        phase, outcome = self.phase, entry.outcome
        setattr(phase, outcome, getattr(phase, outcome) + 1)
        if outcome == "accepted":
            self._arrived(flow)

    def delivered(self, sink: Sink, flow: Flow, entry: Entry) -> None:
        """A receiver got a message."""
        phase = self.phase
        phase.delivered += 1
        if entry.receivers.count(sink.number) > 1 or (
            len(entry.receivers) > 1 and flow.number not in self.ledger.multicast
        ):
            phase.doubled += 1
        latency = self.agenda.now - entry.sent_at
        phase.latency_s += latency
        phase.longest_latency_s = max(phase.longest_latency_s, latency)
        if entry.presettled:
            self._arrived(flow)
        self._stretch(sink, flow)

    def _arrived(self, flow: Flow) -> None:
        if flow.wanting_since is not None:
            self._waited(flow.wanting_since)
        flow.wanting_since = self.agenda.now if flow.is_wanting() else None

    def _stretch(self, sink: Sink, flow: Flow) -> None:
        """How far from the cheapest was the way that a message took, as far as that is known?"""
        start, end = flow.router, sink.router
        ways = self.truth.ways.get(start)
        if start == end or ways is None or end not in ways:
            return
        if self._version != self.truth.version:
            self._version = self.truth.version
            self._costs.clear()
        if (start, end) not in self._costs:
            self._costs[start, end] = self.truth.cost_taken(start, end)
        taken = self._costs[start, end]
        best = ways[end]
        if flow.number not in self.ledger.multicast:
            places = self.truth.wanted.get(mobile_key(flow.address), {})
            best = min(
                [0 if place == start else ways.get(place, best) for place in places] or [best]
            )
        if taken and best:
            phase = self.phase
            phase.stretched += 1
            phase.stretch += taken / best
            phase.longest_stretch = max(phase.longest_stretch, taken / best)
