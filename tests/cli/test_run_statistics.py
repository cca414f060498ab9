"""Statistics of a run of messages: counts, outcomes, latencies, and their summaries."""

from __future__ import annotations

import random

import pytest

from router.amqp.performatives import Accepted, Error, Rejected, Released
from router.cli.run_statistics import REASONS, Latencies, RunStatistics

MS = 1_000_000


@pytest.mark.parametrize("count", [1, 7, 10_000])
def test_percentiles_are_near_the_exact_ones(count: int) -> None:
    chance = random.Random(count)
    times = sorted(int(chance.lognormvariate(14, 1.5)) for _ in range(count))
    latencies = Latencies()
    for each in times:
        latencies.add(each)
    for percent in (50, 90, 99, 100):
        exact = times[max(0, -(-count * percent // 100) - 1)]
        assert latencies.percentile_ns(percent) == pytest.approx(exact, rel=0.011)
    assert latencies.longest_ns == times[-1]
    assert latencies.percentile_ns(100) <= times[-1]


def test_memory_follows_the_spread_and_not_the_count() -> None:
    latencies = Latencies()
    for each in range(1, 50_000):
        latencies.add(each * 1000)
    assert len(latencies._steps) < 700


def test_without_any_there_are_none() -> None:
    latencies = Latencies()
    assert latencies.percentile_ns(50) == 0
    assert latencies.in_ms() == {}


def test_a_clock_that_went_back_counts_as_nothing() -> None:
    latencies = Latencies()
    latencies.add(-5)
    latencies.add(0)
    assert latencies.in_ms() == {"p50": 1e-6, "p90": 1e-6, "p99": 1e-6, "max": 1e-6}


def test_a_summary() -> None:
    statistics = RunStatistics("sent", 100.0)
    for number in range(4):
        statistics.add(10, 105.0 + number)
        statistics.latencies.add(2 * MS)
    statistics.add_outcome(Accepted(), 108.5)
    statistics.add_outcome(Released(), 109.0)
    statistics.add_outcome(None, 109.0)
    statistics.add_outcome(Rejected(Error("amqp:not-allowed", "no")), 110.0)
    assert list(statistics.lines()) == [
        "rejected 1: amqp:not-allowed: no",
        # from the first message on, whatever was waited for before it
        "sent 4 messages, 40 bytes, in 5.000 s (1/s)",
        "outcomes: 1 accepted, 1 rejected, 1 released, 1 settled",
        "latency: p50 2.000 ms, p90 2.000 ms, p99 2.000 ms, max 2.000 ms",
    ]
    assert statistics.progress() == "4 sent, 1 accepted, 1 rejected, 1 released, 1 settled, 1/s"
    assert statistics.as_json() == {
        "count": 4,
        "seconds": 5.0,
        "rate": 0.8,
        "bytes": 40,
        "outcomes": {"accepted": 1, "rejected": 1, "released": 1, "settled": 1},
        "reasons": {"amqp:not-allowed: no": 1},
        "latency_ms": {"p50": 2.0, "p90": 2.0, "p99": 2.0, "max": 2.0},
    }


def test_nothing_at_all() -> None:
    statistics = RunStatistics("received", 100.0)
    statistics.state = "connecting"
    assert list(statistics.lines()) == ["received 0 messages, 0 bytes, in 0.000 s (0/s)"]
    assert statistics.progress() == "0 received, connecting"
    assert statistics.as_json()["rate"] == 0


def test_reasons_are_told_once_and_only_so_many() -> None:
    statistics = RunStatistics("sent", 0.0)
    for number in range(3 * REASONS):
        for _ in range(2):
            statistics.add_outcome(Rejected(Error("amqp:not-allowed", str(number))), 1.0)
    statistics.add_outcome(Rejected(), 1.0)
    statistics.add_outcome(Rejected(Error("amqp:not-allowed")), 1.0)
    assert len(statistics.reasons) == REASONS
    assert set(statistics.reasons.values()) == {2}
    assert statistics.outcomes["rejected"] == 6 * REASONS + 2
