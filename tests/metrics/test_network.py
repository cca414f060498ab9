"""The network is read as it is."""

from __future__ import annotations

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.core.routers.routing_state import Interest
from router.metrics.network import NO_MESSAGES, NetworkReading, read_network
from router.simulation.network import Network


def test_a_router_alone() -> None:
    reading = read_network(None)
    assert reading == NetworkReading()
    assert reading.is_synced
    assert set(reading.messages.values()) == {0}


def test_what_is_read_of_a_network() -> None:
    network = Network(1)
    for name in "ABC":
        network.add(name, Configuration(router=RouterSettings(mode="interior")))
    for one, other in ("AB", "BC"):
        network.join(
            one,
            other,
            connector=ConnectorSettings(role="inter-router"),
            listener=ListenerSettings(role="inter-router"),
        )
    network.start()
    network.run(2)
    host = network.hosts["C"]
    host.turn(lambda: host.reach.set_own_interest("M0q", Interest(1)))
    network.run(1)
    reading = read_network(network.hosts["A"].control.network)
    assert (reading.connections, reading.neighbours, reading.routers) == (1, 1, 2)
    assert reading.addresses == 1
    assert reading.is_synced
    assert reading.messages["in", "MAU"] == 1
    assert reading.messages["out", "HELLO"] >= 3
    assert reading.octets["out", "HELLO"] > reading.messages["out", "HELLO"]
    assert set(NO_MESSAGES) <= set(reading.messages)
    assert reading.changed_s is not None
    assert 0 < reading.changed_s < 3
    assert reading.changes >= 1
    assert (reading.conflicts, reading.refused) == (0, 0)
