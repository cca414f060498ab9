"""Each listener and connector has its own numbers, also while nobody is connected by it."""

from __future__ import annotations

import attrs
import pytest

from router.metrics.metric import Value

from support import audit
from support.in_memory import Router
from support.readings import idle_hub, reading_of, samples


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trioute_connections", 0),
        ("trioute_connections_opened_total", 3),
        ("trioute_connections_failed_total", 4),
        ("trioute_redirects_followed_total", 5),
        ("trioute_connections_unauthenticated_total", 6),
    ],
)
def test_by_endpoint(name: str, value: int) -> None:
    hub = idle_hub()
    hub.add_counters("amqp", "in", "normal")
    counters = hub.add_counters("amqp", "out", "normal")
    counters.opened, counters.failed, counters.followed, counters.unauthenticated = 3, 4, 5, 6
    assert samples(reading_of(hub), name) == {
        ("amqp", "in", "normal"): 0,
        ("amqp", "out", "normal"): value,
    }


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("trioute_links", "attached"),
        ("trioute_links_blocked", "blocked"),
        ("trioute_deliveries_unsettled", "unsettled"),
    ],
)
def test_by_direction(name: str, field: str) -> None:
    reading = reading_of(idle_hub())
    setattr(reading.incoming, field, 1)
    setattr(reading.outgoing, field, 2)
    assert samples(attrs.evolve(reading), name) == {("in",): 1, ("out",): 2}


def test_links_are_held_up_for_reasons() -> None:
    router = Router()
    sender = router.client().sender("q")
    assert held_up(router) == {("in", "no_consumer"): 1}
    receiver = router.client().receiver("q")
    assert held_up(router) == {("in", "no_credit"): 1, ("out", "no_credit"): 1}
    receiver.grant(5)
    assert held_up(router) == {}
    receiver.client.open_window(0)
    assert held_up(router) == {("out", "window_closed"): 1}
    assert sender.credit


def held_up(router: Router) -> dict[tuple[str, ...], Value]:
    """How many links are held up, where any are."""
    found = samples(audit.reading_of(router), "trioute_links_held_up")
    return {labels: value for labels, value in found.items() if value}
