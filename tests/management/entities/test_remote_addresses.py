"""Addresses that other routers have told of are told beside those in use here."""

from __future__ import annotations

from typing import Any

from router.config.model import Configuration
from router.config.router_settings import RouterSettings
from router.core.model.address import BALANCED, CLOSEST, ROUTED
from router.core.routers.routing_state import Interest
from router.management.entities.address import ADDRESS
from router.management.entities.remote_addresses import remote_addresses
from router.management.entities.router import ROUTER
from router.management.entity_types import ENTITY_TYPES
from router.management.views import RouterView
from router.simulation.links import ReceiverPlan
from router.simulation.network import Network

from support.edges import World


def told(network: Network) -> dict[str, dict[str, Any]]:
    """Return the addresses that router A reports, by their keys."""
    host = network.hosts["A"]
    view = RouterView("A", "host", host.configuration, host.hub, 0.0, control=host.control)
    entity_type, source = ENTITY_TYPES[ADDRESS.long_name]
    found = {}
    for entity in filter(None, source(view)):
        values: dict[str, Any] = {each.name: each.read(entity) for each in entity_type.attributes}
        found[values["key"]] = values
    return found


def test_who_else_receives_from_an_address() -> None:
    network = Network(1)
    network.add("A", Configuration(router=RouterSettings(mode="interior")))
    network.container("client", "A").add_receiver(ReceiverPlan("here", lambda *_: None, 1))
    network.start()
    network.run(1)
    host = network.hosts["A"]

    def learn() -> None:
        for router, key, treatment in (
            ("B", "M0there", CLOSEST),
            ("C", "M0there", BALANCED),
            ("C", "M0here", BALANCED),
            ("B", "M1here", BALANCED),
            ("B", "Cq", ROUTED),
            ("B", "HE", BALANCED),
        ):
            host.reach.set_interest(router, key, Interest(treatment))

    host.turn(learn)
    found = told(network)
    assert {
        key: (each["subscriberCount"], each["remoteCount"], each["remoteHostRouters"])
        for key, each in found.items()
    } == {
        "M0here": (1, 1, ["C"]),
        "M0there": (0, 2, ["B", "C"]),
        "M1here": (0, 1, ["B"]),
        "Cq": (0, 1, ["B"]),
    }
    assert found["M0there"]["distribution"] == "closest"
    assert found["Cq"]["distribution"] == "linkBalanced"
    assert found["M0there"]["deliveriesIngress"] == 0


def test_what_goes_on_to_other_routers_is_told_from_what_comes_in() -> None:
    world = World()
    for name in "abc":
        world.interior(name)
    world.between("a", "b")
    world.between("b", "c")
    world.receiver("c", "q")
    sending = world.sender("a", "q")
    world.start()
    world.offer(sending, 5)
    columns = ("deliveriesIngress", "deliveriesEgress", "deliveriesTransit")
    found = {}
    for name in "abc":
        host = world.host(name)
        view = RouterView(name, "host", host.configuration, host.hub, 0.0)
        (address,) = (
            {each.name: each.read(entity) for each in ADDRESS.attributes}
            for entity in (*view.addresses(), *remote_addresses(view))
            if entity is not None and entity.key == "M0q"
        )
        router = {each.name: each.read(view) for each in ROUTER.attributes if each.name in columns}
        found[name] = [address[each] for each in columns], [router[each] for each in columns]
    # nobody uses the address at the router between
    assert found == {
        "a": ([5, 0, 5], [5, 0, 5]),
        "b": ([0, 0, 5], [0, 0, 5]),
        "c": ([0, 5, 0], [0, 5, 0]),
    }
