"""Round trips are measured by the clocks of each end alone."""

from __future__ import annotations

import pytest

from router.control.network.round_trips import CYCLE_US, KEPT, LONGEST_S, US_PER_S, RoundTrips


def exchange(one: RoundTrips, other: RoundTrips, at: float, trip_s: float, skew_s: float) -> None:
    """One says HELLO, and the other one half a second after it has come."""
    other.heard(one.stamps(at), at + trip_s / 2 + skew_s)
    answered = at + trip_s / 2 + 0.5
    one.heard(other.stamps(answered + skew_s), answered + trip_s / 2)


@pytest.mark.parametrize("skew_s", [0.0, 12345.6, -900.0])
def test_clocks_may_be_apart(skew_s: float) -> None:
    one, other = RoundTrips(), RoundTrips()
    assert one.least_s is None
    exchange(one, other, 1000.0, 0.03, skew_s)
    assert one.least_s == pytest.approx(0.03, abs=2e-6)
    assert other.least_s is None
    exchange(one, other, 1001.0, 0.02, skew_s)
    assert one.least_s == pytest.approx(0.02, abs=2e-6)
    # the answer to the first one took half of either round trip
    assert other.least_s == pytest.approx(0.025, abs=2e-6)


def test_times_begin_anew_after_an_hour_and_a_bit() -> None:
    one, other = RoundTrips(), RoundTrips()
    exchange(one, other, CYCLE_US / US_PER_S - 0.25, 0.03, 0.0)
    assert one.least_s == pytest.approx(0.03, abs=2e-6)


def test_the_shortest_of_the_last_ones_counts_and_is_reported_once_for_all_of_them() -> None:
    one, other = RoundTrips(), RoundTrips()
    exchange(one, other, 1.0, 0.001, 0.0)
    for number in range(1, KEPT):
        assert one.take_report() is None
        exchange(one, other, 1.0 + number, 0.05, 0.0)
    assert one.take_report() == pytest.approx(0.001, abs=2e-6)
    assert one.take_report() is None
    exchange(one, other, 100.0, 0.05, 0.0)
    assert one.least_s == pytest.approx(0.05, abs=2e-6)


@pytest.mark.parametrize("stamps", [(1, 2**32 - 1, 0), (0, 5, 2**32 - 1), (7, 1, 0)])
def test_nonsense_is_no_round_trip(stamps: tuple[int, int, int]) -> None:
    trips = RoundTrips()
    trips.heard(stamps, LONGEST_S + 1)
    assert trips.least_s is None


def test_a_time_is_never_the_one_that_stands_for_none() -> None:
    assert RoundTrips().stamps(CYCLE_US / US_PER_S)[0] == 1
    assert RoundTrips().stamps(0.0) == (1, 0, 0)
