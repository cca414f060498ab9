"""Readings of the metrics of a router without connections, and their samples by name."""

from __future__ import annotations

from router.core.addresses.table import AddressTable
from router.metrics.address_labels import AddressLabels
from router.metrics.catalogue import METRICS
from router.metrics.connection_labels import ConnectionLabels
from router.metrics.metric import Value
from router.metrics.reading import Reading, take_reading
from router.net.router_hub import RouterHub


def idle_hub(*addresses: str) -> RouterHub:
    """Return a router's hub without connections, with some addresses in use."""
    table = AddressTable([], "balanced", lambda _: "")
    for name in addresses:
        assert table.enter(name) is not None
    return RouterHub(table, 2**20, 65536)


def reading_of(hub: RouterHub, *, limit: int = 100) -> Reading:
    """Return a reading after 1.5 seconds, with labels up to `limit`."""
    labels = AddressLabels(hub.table, limit)
    return take_reading(hub, labels, ConnectionLabels(hub, limit), 1.5)


def samples(reading: Reading, name: str) -> dict[tuple[str, ...], Value]:
    """Return the samples of one metric by its labels' values."""
    (metric,) = (each for each in METRICS if each.name == name)
    found = list(metric.read(reading))
    by_labels = dict(found)
    assert len(by_labels) == len(found), f"{name} has labels that stand twice"
    return by_labels
