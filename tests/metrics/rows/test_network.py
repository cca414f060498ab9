"""The metrics of the network of routers."""

from __future__ import annotations

import attrs

from router.metrics.network import NetworkReading

from support.readings import idle_hub, reading_of, samples


def test_each_has_its_number() -> None:
    of = NetworkReading(
        connections=1,
        neighbours=2,
        routers=3,
        addresses=4,
        is_synced=False,
        messages={("in", "HELLO"): 5},
        octets={("out", "HELLO"): 6},
        changes=7,
        changed_s=8.0,
        conflicts=9,
        refused=10,
        round_trips_s={("b",): 0.25},
    )
    reading = attrs.evolve(reading_of(idle_hub()), network=of)
    names = {
        "trioute_network_connections": 1,
        "trioute_network_neighbours": 2,
        "trioute_network_routers": 3,
        "trioute_network_addresses": 4,
        "trioute_network_synced": 0,
        "trioute_network_changes_total": 7,
        "trioute_network_changed_seconds": 8,
        "trioute_network_conflicts_total": 9,
        "trioute_network_refused_total": 10,
    }
    for name, value in names.items():
        assert samples(reading, name) == {(): value}
    trips = samples(reading, "trioute_network_round_trip_seconds")
    assert trips == {("b",): 0.25}
    messages = samples(reading, "trioute_network_control_messages_total")
    assert messages == {("in", "HELLO"): 5}
    octets = samples(reading, "trioute_network_control_bytes_total")
    assert octets == {("out", "HELLO"): 6}


def test_a_router_alone_has_not_changed_since_it_started() -> None:
    reading = reading_of(idle_hub())
    found = samples(reading, "trioute_network_changed_seconds")
    assert found == {(): reading.uptime_s}
