"""A router is ready once it knows its network, or has waited long enough for it."""

from __future__ import annotations

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.control.network.adjacency import Neighbours
from router.control.network.first_sync import PATIENCE_S, FirstSync
from router.simulation.network import Network


class Starting:
    """A router A that is to connect to B."""

    def __init__(self) -> None:
        self.network = Network(1)
        settings = Configuration(router=RouterSettings(mode="interior"))
        for name in "AB":
            self.network.add(name, settings)
        self.network.join(
            "A",
            "B",
            connector=ConnectorSettings(role="inter-router"),
            listener=ListenerSettings(role="inter-router"),
        )
        self.unreached = ["to-b"]
        host = self.network.hosts["A"]
        host.start()
        adjacency = host.control.network
        assert adjacency is not None
        self.adjacency: Neighbours = adjacency
        self.sync = FirstSync(adjacency, lambda: self.unreached, self.adjacency.now)


def test_connectors_are_waited_for_and_then_what_their_peers_know() -> None:
    starting = Starting()
    assert starting.sync.missing_reason() == "the connector to-b has not reached its router yet"
    starting.network.hosts["B"].start()
    network = starting.network
    assert network.run_until(lambda: bool(starting.adjacency.peerings))
    starting.unreached.clear()
    assert (
        starting.sync.missing_reason()
        == "the neighbours have not sent all routes and addresses yet"
    )
    network.run(2)
    assert starting.sync.missing_reason() is None
    assert set(network.hosts["A"].reach.paths) == {"B"}


def test_what_comes_later_is_no_start_any_more() -> None:
    starting = Starting()
    starting.unreached.clear()
    assert starting.sync.missing_reason() is None
    starting.unreached.append("another")
    assert starting.sync.missing_reason() is None


def test_patience_has_an_end() -> None:
    starting = Starting()
    starting.network.run(PATIENCE_S - 1)
    assert starting.sync.missing_reason() is not None
    starting.network.run(2)
    assert starting.sync.missing_reason() is None
