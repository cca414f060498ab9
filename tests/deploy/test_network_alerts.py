"""Alerts of networks, with a real Prometheus that scrapes a network of real routers.

The alerts fire when one router is killed and another one has its id.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.configuring import entity
from support.prometheus import PATIENCE_S, RULES, Prometheus, hasty, running_prometheus
from support.router_lines import EDGES, edge, interior
from support.routers import RouterProcess, running_router

pytestmark = pytest.mark.interop

# Longer than it takes until a router that is refused tries again, and a scrape sees it.
WINDOW = "15s"
HTTP = entity("listener", name="http", host="127.0.0.1", port=0, http=True)

Start = Callable[[str, str], RouterProcess]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start routers, each in a folder of its own."""
    with ExitStack() as stack:
        yield lambda folder, configuration: stack.enter_context(
            running_router(tmp_path / folder, configuration)
        )


def until(prometheus: Prometheus, *alerts: str) -> None:
    """Wait until each of these has fired."""
    missed = set(alerts)
    deadline = time.monotonic() + PATIENCE_S
    while missed:
        assert time.monotonic() < deadline, f"{missed} of {alerts}"
        missed -= prometheus.firing()


def until_seen(prometheus: Prometheus, expression: str) -> None:
    """Wait until an expression has a value."""
    deadline = time.monotonic() + PATIENCE_S
    while not prometheus.query(expression):
        assert time.monotonic() < deadline, expression


def test_alerts_of_networks_fire(start: Start, tmp_path: Path) -> None:
    a = start("a", interior("a", more=EDGES + HTTP))
    b = start("b", interior("b", a, more=HTTP))
    e = start("e", edge("e", a, more=HTTP))
    targets = [f"{host}:{port}" for each in (a, b, e) for host, port in each.http_addresses]
    at_a, at_b, at_e = (f'instance="{target}"' for target in targets)
    folder = tmp_path / "prometheus"
    folder.mkdir()
    rules = hasty(RULES.read_text(encoding="utf-8"), WINDOW)
    with running_prometheus(folder, targets, rules) as prometheus:
        for each in (at_a, at_b):
            until_seen(prometheus, f"trioute_network_neighbours{{{each}}} == 1")
            # from here on it can increase
            until_seen(prometheus, f"trioute_network_conflicts_total{{{each}}} == 0")
        until_seen(prometheus, f'trioute_edge_uplinks{{state="active", {at_e}}} == 1')
        assert not {name for name in prometheus.firing() if name.endswith(("Lost", "Id", "Uplink"))}

        start("other", interior("b", b))
        until(prometheus, "TriouteNetworkDuplicateId", "TriouteNetworkRefused")

        b.stop(signal.SIGKILL)
        until(prometheus, "TriouteNetworkNeighbourLost", "TriouteNetworkRouterLost")
        until(prometheus, "TriouteNetworkFlapping")

        a.stop(signal.SIGKILL)
        until(prometheus, "TriouteEdgeWithoutUplink")
