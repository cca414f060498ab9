"""Messages wait for each other on a line that is loaded, and not on one that is not."""

from __future__ import annotations

import math

import pytest
from router_spark.advising.observed import Direction, Observed
from router_spark.advising.prediction import Model, Queue, is_queued, service_per_s, time_by_line

from support.pipeline.small_networks import demand, line, measured, triangle


@pytest.mark.parametrize(("load", "wait_ms"), [(0.0, 0.0), (0.5, 10.0), (0.9, 90.0)])
def test_the_wait_is_that_of_a_queue(load: float, wait_ms: float) -> None:
    queue = Queue(2.0, 100.0, is_known=True)
    assert queue.round_trip_ms(100 * load) == pytest.approx(2 + wait_ms)


def test_beyond_its_limit_a_queue_grows_but_has_an_end() -> None:
    queue = Queue(2.0, 100.0, is_known=True)
    assert queue.round_trip_ms(96) == pytest.approx(queue.round_trip_ms(94.999), rel=0.3)
    assert 1000 < queue.round_trip_ms(120) < queue.round_trip_ms(200) < math.inf


def test_a_line_without_a_queue_has_none_until_more_comes_than_it_is_trusted_with() -> None:
    queue = Queue(2.0, 100.0, background_per_s=30.0)
    assert queue.round_trip_ms(70) == 2.0
    assert queue.round_trip_ms(80) > 100


def test_the_service_rate_follows_from_the_wait() -> None:
    # at half of 100 a second, messages wait for 10 ms
    assert service_per_s(measured(50, 2, 12)) == pytest.approx(100)
    assert is_queued(measured(50, 2, 12))
    # jitter
    assert not is_queued(measured(50, 20, 25))
    assert not is_queued(measured(50, 0.2, 0.6))


def test_the_time_of_all_messages_is_their_mean() -> None:
    observed = Observed(
        (line("ab", 1, there=measured(30, 4)), line("bc", 1, there=measured(10, 6))),
        (demand("ab", 20), demand("ac", 10), demand("bb", 99)),
    )
    model = Model(observed)
    assert model.now_ms == pytest.approx((20 * 4 + 10 * (4 + 6)) / 30)
    assert time_by_line(model) == {("a", "b"): 120, ("b", "c"): 60}


def test_a_line_that_no_message_has_passed_takes_what_control_messages_take() -> None:
    model = Model(triangle(1))
    routes = model.with_cost(("a", "c"), 3)
    assert model.mean_ms(routes) == 10.0
    assert [each.egress for each in model.moved(routes)] == ["c"]
    assert not model.is_measured(routes)
    assert Model(triangle(1), only_measured=True).mean_ms(routes) == math.inf


def test_what_was_measured_before_is_no_load_now() -> None:
    earlier = Direction(1000, 50.0, 2.0, 12.0, is_now=False)
    observed = Observed((line("ab", 1, there=earlier),), (demand("ab", 10),))
    model = Model(observed)
    # the queue of that time says how fast the line is
    assert model.now_ms == pytest.approx(2 + 1000 * 0.1 / 90)
    assert time_by_line(model) == {("a", "b"): 0}


def test_no_messages_take_no_time() -> None:
    assert Model(Observed((line("ab", 1),), ())).now_ms == 0.0
