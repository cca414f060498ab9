"""Messages and waiting times are recorded in the phase in which they occur."""

from __future__ import annotations

from typing import Any

import pytest

from router.simulation.ledger import Ledger
from router.simulation.network import Network
from router.simulation.phases import PhaseRecorder
from router.simulation.topology import ReceiverEntry, SenderEntry
from router.simulation.traffic import Traffic
from router.simulation.truth import GroundTruth


def recorder(**receiver: Any) -> tuple[Network, Traffic, PhaseRecorder]:
    """One router with traffic, and the recorder of its phases."""
    network = Network()
    network.add("a")
    traffic = Traffic(
        network,
        ["a"],
        [ReceiverEntry(**{"address": "q", **receiver})],
        [SenderEntry(address="q", rate=10)],
    )
    made = PhaseRecorder(GroundTruth(network, ()), traffic.ledger)
    traffic.listener = made
    network.start()
    network.run(1)
    return network, traffic, made


def test_messages_are_counted_in_their_phase() -> None:
    network, traffic, made = recorder()
    first = made.begin("one", "the first")
    traffic.begin()
    network.run(2.05)
    second = made.begin("two", "the second")
    network.run(1)
    made.end()

    assert first.sent == first.accepted == first.delivered > 15
    assert 8 <= second.sent <= 11
    assert first.ended == second.began
    assert second.converged_s == 0
    assert first.latency_s / first.delivered == pytest.approx(0.0002)


def test_the_longest_wait_is_counted_where_it_began() -> None:
    network, traffic, made = recorder()
    made.begin("one", "before")
    traffic.begin()
    network.run(2)
    killed = made.begin("two", "killed")
    network.hosts["a"].kill()
    network.run(3)
    started = made.begin("three", "started")
    network.hosts["a"].start()
    network.run(10)
    made.end()

    assert made.phases[0].longest_wait_s < 0.01
    assert killed.longest_wait_s >= 2.9
    assert started.longest_wait_s < 1
    assert killed.lost == 0


def test_what_is_never_accepted_is_waited_for_until_the_end() -> None:
    network, traffic, made = recorder(outcome="release")
    phase = made.begin("one", "all of it")
    traffic.begin()
    network.run(5)
    made.end_waits(traffic.flows)
    made.end()

    assert phase.released > 40
    assert phase.longest_wait_s > 4.8


def test_a_message_that_two_receivers_get_is_doubled() -> None:
    ledger = Ledger()
    _, traffic, made = recorder()
    made.ledger = ledger
    phase = made.begin("one", "all of it")
    entry_number = ledger.sent(0, 1.0)
    sink, flow = traffic.sinks[0], traffic.flows[0]
    for _ in range(2):
        entry = ledger.delivered(entry_number, sink.number)
        assert entry is not None
        made.delivered(sink, flow, entry)

    assert phase.delivered == 2
    assert phase.doubled == 1
