"""Histograms of latency, in detail for the router and coarsely for addresses."""

from __future__ import annotations

from router.core.model.histogram import BOUNDS_S, Histogram
from router.metrics.metric import HistogramValue
from router.metrics.rows.latency import COARSE_S, coarse, spread

from support import audit
from support.in_memory import Router
from support.readings import idle_hub, reading_of, samples
from support.scraping import running_node


def measured(*seconds: float) -> Histogram:
    histogram = Histogram()
    for each in seconds:
        histogram.observe(each, 1)
    return histogram


def test_coarse_bounds_are_some_of_the_fine_ones() -> None:
    assert set(COARSE_S) <= set(BOUNDS_S)


def test_what_is_coarse_counts_the_same_below_its_bounds() -> None:
    histogram = measured(5e-6, 10e-6, 11e-6, 2e-3, 0.1, 0.11, 10.0, 29.0, 31.0, 100.0)
    fine, few = dict(spread(histogram).buckets()), dict(coarse(histogram).buckets())
    assert few == {bound: fine[bound] for bound in few}
    assert set(few) == {*(f"{bound:g}" for bound in COARSE_S), "+Inf"}
    assert coarse(histogram).sum == spread(histogram).sum == histogram.sum_s


def test_before_anything_was_measured_the_router_shows_nothing_but_zeros() -> None:
    reading = reading_of(idle_hub("a"))
    (value,) = samples(reading, "trioute_deliveries_settle_seconds").values()
    assert isinstance(value, HistogramValue)
    assert (sum(value.counts), value.sum) == (0, 0)
    assert samples(reading, "trioute_address_settle_seconds") == {}


def test_what_waited_and_what_was_settled_late() -> None:
    router = Router()
    receiver = router.client().receiver("q", 10)
    receiver.client.open_window(0)
    router.client().sender("q").send(b"x")
    router.turn.now += 3.0
    receiver.client.open_window(10)
    router.turn.now += 4.0
    receiver.settle()
    reading = audit.reading_of(router)
    (forward,) = samples(reading, "trioute_deliveries_forward_seconds").values()
    (settle,) = samples(reading, "trioute_deliveries_settle_seconds").values()
    assert isinstance(forward, HistogramValue)
    assert isinstance(settle, HistogramValue)
    assert (sum(forward.counts), forward.sum) == (1, 3.0)
    assert (sum(settle.counts), settle.sum) == (1, 7.0)
    assert dict(settle.buckets())["5"] == 0
    assert dict(settle.buckets())["10"] == 1


async def test_both_formats_take_histograms() -> None:
    async with running_node() as running:
        address = running.node.table.enter("orders")
        assert address is not None
        address.counters.count_forwarded(0.02, 3)
        scraped = await running.scrape()
        name = "trioute_address_forward_seconds"
        assert scraped(f"{name}_count", address="orders") == 3
        assert scraped(f"{name}_bucket", address="orders", le="0.1") == 3
        assert scraped(f"{name}_bucket", address="orders", le="0.01") == 0
        assert scraped("trioute_deliveries_forward_seconds_sum") == 0.06
