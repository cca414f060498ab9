"""Each listener and connector has its own numbers, also while nobody is connected by it."""

from __future__ import annotations

import attrs
import pytest

from support.readings import idle_exchange, reading_of, samples


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trioute_connections", 0),
        ("trioute_connections_opened_total", 3),
        ("trioute_connections_failed_total", 4),
        ("trioute_redirects_followed_total", 5),
    ],
)
def test_by_endpoint(name: str, value: int) -> None:
    exchange = idle_exchange()
    exchange.add_tally("amqp", "in", "normal")
    tally = exchange.add_tally("amqp", "out", "normal")
    tally.opened, tally.failed, tally.followed = 3, 4, 5
    assert samples(reading_of(exchange), name) == {
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
    reading = reading_of(idle_exchange())
    setattr(reading.incoming, field, 1)
    setattr(reading.outgoing, field, 2)
    assert samples(attrs.evolve(reading), name) == {("in",): 1, ("out",): 2}
