"""The metrics of a plugin."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector

from router.hosting.metrics import MAX_SERIES, PluginMetrics


def test_names_begin_with_the_plugins() -> None:
    metrics = PluginMetrics("my.own-plugin", lambda *_: None)
    metrics.counter("things", "Things.", ()).inc()
    registry = CollectorRegistry()
    registry.register(metrics)
    assert b"plugin_my_own_plugin_things_total 1.0" in generate_latest(registry)


def test_two_plugins_cannot_have_one_name() -> None:
    owners: dict[str, PluginMetrics] = {}
    one, other = (PluginMetrics(name, lambda *_: None, owners) for name in ("a", "a_b"))
    one.counter("b_x", "Things.", ())
    with pytest.raises(ValueError, match="plugin_a_b_x belongs to the plugin a; choose another"):
        other.gauge("x", "Things.", ())
    one.close()
    other.gauge("x", "Things.", ())
    assert owners == {"plugin_a_b_x": other}


def test_one_with_too_many_series_is_stopped() -> None:
    failures: list[tuple[str, BaseException | None]] = []
    metrics = PluginMetrics("p", lambda why, error: failures.append((why, error)))
    gauge = metrics.gauge("things", "Things.", ("number",))
    for number in range(MAX_SERIES):
        gauge.labels(str(number)).set(1)
    assert sum(len(family.samples) for family in metrics.collect()) == MAX_SERIES
    gauge.labels("another").set(1)
    assert list(metrics.collect()) == []
    assert failures == [("the plugin has 10001 series of metrics; at most 10000 are allowed", None)]


class Broken(Collector):
    """Metrics that cannot be read."""

    def collect(self):  # type: ignore[no-untyped-def]
        """Raise."""
        raise OSError("disk")


def test_one_whose_metrics_cannot_be_read_is_stopped() -> None:
    failures: list[tuple[str, BaseException | None]] = []
    metrics = PluginMetrics("p", lambda why, error: failures.append((why, error)))
    metrics._registry._collector_to_names[Broken()] = []
    assert list(metrics.collect()) == []
    ((why, error),) = failures
    assert (why, str(error)) == ("crashed", "disk")


def test_a_label_that_cannot_be_encoded_stops_the_plugin() -> None:
    failures: list[str] = []
    metrics = PluginMetrics("p", lambda why, _: failures.append(why))
    metrics.gauge("things", "Things.", ("which",)).labels("\udcff").set(1)
    assert list(metrics.collect()) == []
    assert failures == ["crashed"]
