"""Floods of log lines: a burst passes, then so many a second, and the rest is counted by source."""

from __future__ import annotations

from typing import Any

import pytest
import structlog

from router.log_limits import (
    ALL_SHARES,
    BURST_S,
    HOST_SHARES,
    MOST_SOURCES,
    MOST_SUMMARIES,
    SUPPRESSED,
    LogRateLimiter,
    Summary,
)

RATE = 5
BURST = RATE * BURST_S


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Return the clock that `floods` uses."""
    return Clock()


@pytest.fixture
def floods(clock: Clock) -> LogRateLimiter:
    """Return the limiter under test."""
    return LogRateLimiter(RATE, clock)


def passed(
    floods: LogRateLimiter, count: int, event: str = "e", level: str = "info", **facts: Any
) -> int:
    """How many of so many lines are let through."""
    through = 0
    for _ in range(count):
        line = {"event": event, **facts}
        try:
            assert floods(None, level, line) is line
            through += 1
        except structlog.DropEvent:
            pass
    return through


def of(number: int, host: str = "10.0.0.1") -> dict[str, Any]:
    """Return the fields that the lines of a connection have."""
    return {"connection": number, "peer": f"{host}:{5000 + number}"}


def test_a_burst_passes_and_then_so_many_a_second(floods: LogRateLimiter, clock: Clock) -> None:
    assert passed(floods, BURST, **of(1)) == BURST
    assert passed(floods, 1000, **of(1)) == 0
    clock.now += 2
    assert passed(floods, 1000, **of(1)) == 2 * RATE
    # room does not grow beyond a burst, however long it is quiet
    clock.now += 1e6
    assert passed(floods, 1000, **of(1)) == BURST


def test_what_is_left_out_is_told_once_with_its_source(
    floods: LogRateLimiter, clock: Clock
) -> None:
    passed(floods, BURST + 4312, "link refused", "warning", **of(7))
    clock.now += 10
    facts = {"like": "link refused", "count": 4312, "in_s": 10.0}
    assert floods.take_summaries() == [Summary("warning", {**facts, **of(7)})]
    assert floods.take_summaries() == []
    clock.now += 5
    passed(floods, BURST + 3, "link refused", "warning", **of(7))
    assert [each.facts["in_s"] for each in floods.take_summaries()] == [5.0]


def test_no_flood_takes_room_from_another_kind_of_line(floods: LogRateLimiter) -> None:
    passed(floods, 1000, "link refused", "warning", **of(1))
    # another event, another level, another condition of ours; all of the same connection
    for event, level, more in (
        ("link detached", "warning", {}),
        ("link refused", "error", {}),
        ("link refused", "warning", {"by_peer": False, "condition": "amqp:not-found"}),
        ("link refused", "warning", {"by_peer": False, "condition": "amqp:not-allowed"}),
    ):
        assert passed(floods, BURST, event, level, **of(1), **more) == BURST


def test_conditions_that_peers_make_up_open_no_door(floods: LogRateLimiter) -> None:
    count = sum(
        passed(floods, 1, "link detached", by_peer=True, condition=f"x:{n}", **of(1))
        for n in range(1000)
    )
    assert count == BURST


def test_no_flood_takes_room_from_another_peer(floods: LogRateLimiter, clock: Clock) -> None:
    for _ in range(60):
        passed(floods, 1000, **of(1))
        clock.now += 1
    assert passed(floods, BURST, **of(2)) == BURST
    assert passed(floods, BURST, **of(3, "10.0.0.2")) == BURST


def test_connecting_for_ever_is_a_flood_too(floods: LogRateLimiter, clock: Clock) -> None:
    host = HOST_SHARES * BURST
    assert sum(passed(floods, 1, **of(number)) for number in range(host * 2)) == host
    (summary,) = floods.take_summaries()
    assert summary.facts == {"like": "e", "count": host, "in_s": 0.0, "peer": "10.0.0.1"}
    clock.now += 1
    assert passed(floods, 1000, **of(1)) <= HOST_SHARES * RATE
    assert passed(floods, 1, **of(1, "[::1]")) == 1


def test_so_is_it_from_everywhere(floods: LogRateLimiter) -> None:
    everybody = ALL_SHARES * BURST
    count = sum(passed(floods, 1, **of(n, f"10.0.{n >> 8}.{n & 255}")) for n in range(10_000))
    assert count == everybody
    (summary,) = floods.take_summaries()
    assert summary.facts == {"like": "e", "count": 10_000 - everybody, "in_s": 0.0}


@pytest.mark.parametrize("name", ["connector", "listener"])
def test_endpoints_are_sources_too(floods: LogRateLimiter, name: str) -> None:
    assert passed(floods, 1000, **{name: "one"}) == BURST
    assert passed(floods, 1, **{name: "other"}) == 1
    (summary,) = floods.take_summaries()
    assert summary.facts == {"like": "e", "count": 1000 - BURST, "in_s": 0.0, name: "one"}


def test_peers_at_a_listener_have_room_of_their_own(floods: LogRateLimiter) -> None:
    assert passed(floods, 1000, listener="web", peer="10.0.0.1:5001") == BURST
    assert passed(floods, BURST, listener="web", peer="10.0.0.2:5001") == BURST
    (summary,) = floods.take_summaries()
    assert summary.facts["peer"] == "10.0.0.1:5001"
    assert summary.facts["listener"] == "web"


def test_what_no_peer_causes_is_not_limited(floods: LogRateLimiter) -> None:
    assert passed(floods, 10_000) == 10_000
    assert floods.take_summaries() == []


def test_what_is_said_of_floods_is_not_limited(floods: LogRateLimiter) -> None:
    assert passed(floods, 10_000, SUPPRESSED, **of(1)) == 10_000


def test_without_a_limit_everything_passes(clock: Clock) -> None:
    floods = LogRateLimiter(0, clock)
    assert passed(floods, 10_000, **of(1)) == 10_000
    assert floods.take_summaries() == []


def test_memory_is_bounded_and_nothing_is_lost_from_the_count(clock: Clock) -> None:
    floods = LogRateLimiter(1, clock)
    sources = MOST_SOURCES + 100
    through = 0
    for number in range(sources):
        clock.now += 1000
        through += passed(floods, 2 * BURST_S, **of(number, f"host-{number}"))
    assert len(floods._buckets) == MOST_SOURCES
    summaries = floods.take_summaries()
    assert len(summaries) == MOST_SUMMARIES + 1
    assert "peer" not in summaries[-1].facts
    assert sum(_count(each) for each in summaries) == 2 * BURST_S * sources - through > 0
    assert floods.take_summaries() == []


def test_who_has_all_room_again_is_forgotten_with_a_summary(
    floods: LogRateLimiter, clock: Clock
) -> None:
    passed(floods, 2 * BURST, **of(1))
    passed(floods, 1, **of(2, "10.0.0.2"))
    clock.now += 1
    floods.take_summaries()
    # the second connection, its host and all hosts; what the first used of its room takes longer
    assert {source for _, source in floods._buckets} == {
        (("connection", 1), ("peer", "10.0.0.1:5001")),
        (("peer", "10.0.0.1"),),
    }
    clock.now += BURST_S
    floods.take_summaries()
    assert not floods._buckets
    assert passed(floods, 2 * BURST, **of(1)) == BURST


def test_the_largest_floods_are_told_first(floods: LogRateLimiter) -> None:
    for number in range(MOST_SUMMARIES * 2):
        passed(floods, BURST + 1 + number, f"e{number}", **of(number, f"host-{number}"))
    counts = [_count(each) for each in floods.take_summaries()]
    assert counts[:MOST_SUMMARIES] == list(range(MOST_SUMMARIES * 2, MOST_SUMMARIES, -1))
    assert sum(counts) == sum(range(1, MOST_SUMMARIES * 2 + 1))


def _count(summary: Summary) -> int:
    count = summary.facts["count"]
    assert isinstance(count, int)
    return count
