"""The catalogue keeps the conventions of Prometheus, and reads everything that is counted."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from router.core.addresses.table import AddressTable
from router.core.model.counters import Counters
from router.metrics.catalogue import METRICS
from router.metrics.metric import HistogramValue, Metric, Sample
from router.metrics.reading import Reading
from router.net.router_hub import RouterHub

from support.readings import reading_of

# Every counter of the core, each with a number of its own.
COUNTED = {
    "ingress": 101,
    "egress": 102,
    "bytes_in": 103,
    "bytes_out": 104,
    "presettled": 105,
    "dropped_presettled": 106,
    "accepted": 107,
    "rejected": 108,
    "released": 109,
    "modified": 110,
    "expired": 111,
    "aborted": 112,
    "no_destination": 113,
    "shed": 114,
    "malformed": 115,
    "redelivered": 116,
    "told_accepted": 117,
    "told_rejected": 118,
    "told_released": 119,
    "told_modified": 120,
    "delayed_1s": 121,
    "delayed_10s": 122,
    "redirected": 123,
    "receivers_dropped": 124,
    "from_routers": 24,
    "to_routers": 35,
    "from_containers": 46,
    "to_containers": 57,
}
# What is shown of these: routers are told apart from clients, and containers by their connections.
SHOWN = (
    {name: count for name, count in COUNTED.items() if not name.endswith("_containers")}
    | {"ingress": 101 - 24, "egress": 102 - 35}
)  # fmt: skip


def reading_of_one_address() -> Reading:
    table = AddressTable([], "balanced", lambda _: "")
    address = table.enter("orders")
    assert address is not None
    for name, count in COUNTED.items():
        setattr(address.counters, name, count)
    return reading_of(RouterHub(table, 2**20, 65536), limit=1)


def added(samples: Iterable[Sample]) -> float:
    """Return the sum of all samples that are not histograms."""
    return sum(value for _, value in samples if not isinstance(value, HistogramValue))


def test_every_counter_of_the_core_is_known_here() -> None:
    names = {name for name in dir(Counters()) if not name.startswith(("_", "count_"))}
    assert names - {"add", "subtract", "forward_latency", "settle_latency"} == set(COUNTED)


def test_every_counter_of_the_core_is_shown() -> None:
    reading = reading_of_one_address()
    shown = {
        value
        for metric in METRICS
        if metric.kind == "counter" and not metric.is_by_address
        for _, value in metric.read(reading)
    }
    assert set(SHOWN.values()) <= shown


def test_what_is_shown_by_address_adds_up_to_the_router() -> None:
    reading = reading_of_one_address()
    values = {metric.name: list(metric.read(reading)) for metric in METRICS}
    compared = 0
    for name, samples in values.items():
        total = values.get(name.replace("trioute_address_", "trioute_"))
        if name.startswith("trioute_address_") and total is not None:
            compared += 1
            assert added(samples) == added(total)
    assert compared == 8


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_labels(metric: Metric) -> None:
    assert re.fullmatch(r"trioute(_[a-z]+)+", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert metric.meaning.endswith(".")
    assert "|" not in metric.meaning
    for labels, value in metric.read(reading_of_one_address()):
        assert len(labels) == len(metric.labels)
        assert (value.sum if isinstance(value, HistogramValue) else value) >= 0


def test_no_name_stands_twice() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
