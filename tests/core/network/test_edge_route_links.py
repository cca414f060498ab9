"""Links to containers by way of edges: where they go, what they are told, and who is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from router.amqp.performatives import Coordinator, Detach, Error, Source, Transfer
from router.amqp.types import Symbol, UInt
from router.core.diagnosis.blocking import MEANINGS, Reason, Survey
from router.core.link_routes.route_outlets import BACK_OFF_S
from router.management.entities.link_routes import LinkRouteAddress
from router.management.explain_link_route import explain_link_route

from support.mesh import Mesh
from support.route_brokers import Broker, Guest, serve
from support.routed import flow, receiver, sender
from support.transcripts import On

GONE = Error(condition=Symbol("amqp:resource-deleted"))
NO_ROUTE = "qd:no-route-to-dest"
LOST = "qd:routed-link-lost"
STOLEN = "amqp:link:stolen"
LOCKED = "amqp:resource-locked"


def broker_at(mesh: Mesh, router: str, **fields: Any) -> Broker:
    """Connect a broker for all addresses below `q`."""
    return Broker(mesh[router], f"broker-{router}", serve(mesh[router], "q", **fields))


def network() -> Mesh:
    """Edges e and f of a, and g of c; b is between a and c."""
    mesh = Mesh("a", "b", "c", "e", "f", "g")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.uplink("e", "a")
    mesh.uplink("f", "a")
    mesh.uplink("g", "c")
    return mesh


def is_clean(mesh: Mesh) -> bool:
    """Whether no link is left between routers."""
    return not any(
        session.local_links
        for router in mesh.routers.values()
        for end in router.ends.values()
        for session in end.connection.local_sessions.values()
    ) and not any(len(router.forwarder.routed) for router in mesh.routers.values())


@pytest.mark.parametrize("at", ["a", "b", "c", "e", "f", "g"])
@pytest.mark.parametrize("client_at", ["a", "b", "c", "e", "f", "g"])
def test_a_client_anywhere_and_a_container_anywhere(client_at: str, at: str) -> None:
    mesh = network()
    broker = broker_at(mesh, at, add_prefix="ext/", del_prefix="q.")
    client = Guest(mesh[client_at], "client")
    properties = {Symbol("qd.cost"): "mine", Symbol("qd.link-route"): 5}
    heard = client.attach(sender("q.a", properties=properties), broker)
    assert heard.is_there
    assert heard.frames[0].target.address == "q.a"
    assert heard.frames[0].properties == properties
    (link,) = broker.links
    assert (link.attach.name, link.address) == ("s@client", "ext/a")
    assert link.attach.properties == properties
    broker >> On(link.channel, flow(credit=5))
    assert client.credit() == [5]
    client >> On(0, Transfer(0, 0, b"0", 0), b"x")
    broker.listen()
    assert len(link.received) == 1
    client >> Detach(0, closed=True)
    broker.listen()
    assert is_clean(mesh)


def test_routes_come_and_go_with_their_containers_and_edges() -> None:
    mesh = network()

    def known(router: str) -> bool:
        routes = mesh[router].forwarder.link_routes
        return routes.find("q.a", is_sender=True) is not None

    broker = broker_at(mesh, "g")
    assert [known(each) for each in "abcefg"] == [True] * 6
    broker.leave()
    # g has the route, though no container
    assert [known(each) for each in "abcefg"] == [False] * 5 + [True]
    broker = broker_at(mesh, "g")
    mesh.cut("g", "c")
    assert [known(each) for each in "abcefg"] == [False] * 5 + [True]
    mesh.uplink("g", "b")
    assert [known(each) for each in "abcefg"] == [True] * 6
    mesh.cut("a", "b")
    assert [known(each) for each in "abcefg"] == [False, True, True, False, False, True]


def test_what_an_edge_is_told_is_what_is_not_its_own() -> None:
    mesh = network()
    broker_at(mesh, "e")
    heard = {
        name: set(edges.routes.advertised_to(mesh[at].ends[name].connection))
        for name, at in (("e", "a"), ("f", "a"), ("g", "c"))
        if (edges := mesh[at].edges) is not None
    }
    assert heard["e"] == set()
    assert heard["f"] == heard["g"] == {"Cq", "Dq", "C$coordinator"}


def test_a_container_that_is_here_comes_first_then_those_of_edges() -> None:
    mesh = network()
    brokers = {router: broker_at(mesh, router) for router in "aeb"}
    went = []
    for number in range(3):
        client = Guest(mesh["a"], f"client-{number}")
        assert client.attach(sender(), *brokers.values()).is_there
        (to,) = (router for router, broker in brokers.items() if broker.links)
        went.append(to)
        brokers.pop(to).leave()
        assert client.conditions() == [LOST]
    assert went[0] == "a"
    assert set(went) == {"a", "e", "b"}


def test_an_edges_own_container_comes_first_and_then_those_beyond() -> None:
    mesh = network()
    brokers = {router: broker_at(mesh, router) for router in "eag"}
    for to in "eag":
        client = Guest(mesh["e"], f"client-{to}")
        assert client.attach(receiver(), *brokers.values()).is_there
        assert [name for name, broker in brokers.items() if broker.links] == [to]
        brokers.pop(to).leave()
        assert client.conditions() == [LOST]
    assert Guest(mesh["e"], "last").attach(receiver()).condition == NO_ROUTE


def test_a_link_never_comes_back_to_its_edge() -> None:
    mesh = network()
    broker = broker_at(mesh, "e")
    broker.refuses = GONE
    clients = [Guest(mesh["e"], name) for name in ("one", "two", "three")]
    assert clients[0].attach(sender(), broker).condition == "amqp:resource-deleted"
    other = broker_at(mesh, "f")
    broker.refuses = None
    # the edge's own container rests
    assert clients[1].attach(sender(), broker, other).is_there
    assert [len(each.links) for each in (broker, other)] == [0, 1]
    other.leave()
    assert clients[2].attach(sender(), broker).is_there
    assert len(broker.links) == 1


def test_an_edge_with_two_uplinks_is_no_way_through() -> None:
    mesh = Mesh("a", "b", "e")
    mesh["e"].be_edge(wanted=2)
    mesh.uplink("e", "a")
    mesh.uplink("e", "b")
    broker = broker_at(mesh, "a")
    # b and a know nothing of each other, and e tells neither of the other
    assert mesh["b"].forwarder.link_routes.find("q.a", is_sender=True) is None
    assert Guest(mesh["e"], "client").attach(sender(), broker).is_there


def test_several_uplinks_share_and_stand_in_for_each_other() -> None:
    mesh = Mesh("a", "b", "c", "e")
    mesh.join("a", "b")
    mesh.join("b", "c")
    mesh.join("a", "c")
    mesh["e"].be_edge(wanted=2)
    mesh.uplink("e", "a")
    mesh.uplink("e", "b")
    broker = broker_at(mesh, "c")
    clients = [Guest(mesh["e"], f"client-{number}") for number in range(4)]
    for client in clients:
        assert client.attach(receiver(), broker).is_there
    assert [len(mesh[name].forwarder.routed) for name in "abc"] == [2, 2, 4]
    mesh.cut("e", "a")
    lost = [client for client in clients if client.conditions() == [LOST]]
    assert len(lost) == 2
    for client in lost:
        client >> Detach(0, closed=True)
        assert client.attach(receiver(), broker).is_there
    assert [len(mesh[name].forwarder.routed) for name in "abc"] == [0, 4, 4]
    # a transaction is at one container, and what is of it goes the same way
    mesh.uplink("e", "a")
    for number in range(3):
        client = Guest(mesh["e"], f"transactional-{number}")
        assert client.attach(sender(target=Coordinator()), broker).is_there
        before = [len(mesh[name].forwarder.routed) for name in "ab"]
        assert client.attach(receiver(handle=1), broker).is_there
        after = [len(mesh[name].forwarder.routed) for name in "ab"]
        assert sorted(after[at] - before[at] for at in range(2)) == [0, 1]


def test_the_uplink_that_stands_by_takes_over_at_once() -> None:
    mesh = Mesh("a", "b", "e", "f")
    mesh.join("a", "b")
    for edge in "ef":
        mesh.uplink(edge, "a")
        mesh.uplink(edge, "b")
    broker = broker_at(mesh, "f")
    client = Guest(mesh["e"], "client")
    assert client.attach(receiver(), broker).is_there
    mesh.cut("e", "a")
    assert client.conditions() == [LOST]
    client >> Detach(0, closed=True)
    assert client.attach(receiver(), broker).is_there
    mesh.cut("f", "a")
    assert client.conditions() == [LOST]
    client >> Detach(0, closed=True)
    assert client.attach(receiver(), broker).is_there
    assert [len(mesh[name].forwarder.routed) for name in "ab"] == [0, 1]


def test_without_an_uplink_what_was_known_is_refused() -> None:
    mesh = network()
    broker = broker_at(mesh, "c")
    mesh.cut("e", "a")
    client = Guest(mesh["e"], "client")
    assert client.attach(sender()).condition == NO_ROUTE
    # what was never a route is an address as before
    assert Guest(mesh["e"], "other").attach(sender("other")).is_there
    mesh.uplink("e", "b")
    assert Guest(mesh["e"], "next").attach(sender(), broker).is_there
    broker.leave()
    # and the next interior has the last word
    assert Guest(mesh["e"], "another").attach(sender()).is_there


def test_an_interior_that_has_not_spoken_yet_changes_nothing() -> None:
    mesh = network()
    broker_at(mesh, "c")
    mesh.cut("e", "a")
    mesh.uplink("e", "b", features=())
    # one that does not know of them has spoken
    assert Guest(mesh["e"], "client").attach(sender()).is_there
    (event,) = [each for each in mesh["e"].events if type(each).__name__ == "LinkRoutesUnsupported"]
    assert event.router == "b"
    assert any(type(each).__name__ == "LinkRoutesUnsupported" for each in mesh["b"].events)


def test_another_is_asked_where_there_is_no_container_any_more() -> None:
    mesh = network()
    near, far = broker_at(mesh, "f"), broker_at(mesh, "g")
    # a does not hear that the container of f is gone
    mesh["f"].ends["a"].is_frozen = mesh["a"].ends["f"].is_frozen = True
    routes = mesh["f"].forwarder.link_routes
    client = Guest(mesh["e"], "client")
    client >> [receiver(), flow(credit=7)]
    for way in near.ways:
        routes.close(way, near.connection)
    mesh["f"].says.clear()
    mesh["f"].ends["a"].is_frozen = mesh["a"].ends["f"].is_frozen = False
    mesh.settle()
    far.listen()
    near.listen()
    assert [len(each.every) for each in (near, far)] == [0, 1]
    assert [type(each) for each in client.heard()].count(Detach) == 0


def test_an_edge_that_is_lost_while_its_container_is_asked() -> None:
    mesh = network()
    near, far = broker_at(mesh, "f"), broker_at(mesh, "g")
    near.is_slow = True
    client = Guest(mesh["b"], "client")
    client >> sender()
    # from b all are as far; whoever was asked, another answers
    for _ in range(3):
        near.listen()
        far.listen()
    if near.every:
        mesh.cut("f", "a")
        for _ in range(3):
            far.listen()
    assert len(far.links) == 1


def test_the_router_or_edge_that_is_waited_for_is_named() -> None:
    mesh = network()
    broker = broker_at(mesh, "g")
    client = Guest(mesh["e"], "client")
    assert client.attach(sender(), broker).is_there
    told = {}
    for name in "eabcg":
        (routed,) = mesh[name].forwarder.routed._links
        incoming, outgoing = routed.ends
        survey = Survey(mesh[name].forwarder)
        told[name] = survey.describe(incoming)
        assert survey.link(incoming) is Reason.NO_CREDIT
        assert survey.describe(outgoing) == told[name]
    assert told == {
        "e": "waits for credit from router a",
        "a": "waits for credit from router c, via b",
        "b": "waits for credit from router c",
        "c": "waits for credit from router g",
        "g": MEANINGS[Reason.NO_CREDIT],
    }
    broker >> On(broker.links[0].channel, flow(credit=5))
    for name in "eabcg":
        (routed,) = mesh[name].forwarder.routed._links
        assert Survey(mesh[name].forwarder).describe(routed.ends[0]) is None
    client.skip()
    assert client.attach(receiver(handle=1), broker).is_there
    (_, routed) = mesh["g"].forwarder.routed._links
    # the broker waits for a client somewhere behind c
    assert Survey(mesh["g"].forwarder).describe(routed.ends[0]) == "waits for credit from router c"


def test_what_explains_a_link_route_names_edges_and_routers() -> None:
    mesh = network()
    brokers = [broker_at(mesh, name) for name in "efg"]
    assert Guest(mesh["a"], "client").attach(sender(), *brokers).is_there
    told = {name: explained(mesh, name) for name in "aegb"}
    assert [
        (each["router"], each["isEdge"], each["cost"], each["links"])
        for each in told["a"]["routers"]
    ] == [("e", True, 1, 1), ("f", True, 1, 0), ("c", False, 2, 0)]
    assert (told["a"]["links"][0]["toRouter"], told["a"]["routerCount"]) == ("e", 3)
    assert [each["router"] for each in told["a"]["routers"] if each["chosen"]] == ["f"]
    assert [(each["router"], each["isEdge"]) for each in told["e"]["routers"]] == [("a", False)]
    assert [each["container"] for each in told["e"]["containers"]] == ["broker-e"]
    assert sorted(each["router"] for each in told["b"]["routers"]) == ["a", "c"]
    route = mesh["a"].forwarder.link_routes.find("q.a", is_sender=True)
    assert route is not None
    address = LinkRouteAddress(route)
    assert (address.containers, address.remote_routers) == (2, ["c"])
    at_edge = mesh["g"].forwarder.link_routes.find("q.a", is_sender=True)
    assert at_edge is not None
    address = LinkRouteAddress(at_edge)
    assert (address.containers, address.remote_routers) == (1, ["c"])


def explained(mesh: Mesh, name: str) -> dict[str, Any]:
    """Return how a router explains the route."""
    core = mesh[name].forwarder
    route = core.link_routes.find("q.a", is_sender=True)
    assert route is not None
    view: Any = SimpleNamespace(observed=SimpleNamespace(forwarder=core, turn=mesh[name].turn))
    told: dict[str, Any] = explain_link_route(view, route, "q.a")["linkRoute"]
    return told


def test_who_refused_rests_and_a_word_is_a_word() -> None:
    mesh = network()
    brokers = [broker_at(mesh, "f"), broker_at(mesh, "g")]
    brokers[0].refuses = GONE
    guests = [Guest(mesh["e"], name) for name in ("one", "two", "three")]
    assert guests[0].attach(sender(), *brokers).condition == "amqp:resource-deleted"
    brokers[0].refuses = None
    assert guests[1].attach(sender(), *brokers).is_there
    assert [len(each.links) for each in brokers] == [0, 1]
    for router in mesh.routers.values():
        router.turn.now += BACK_OFF_S
    assert guests[2].attach(sender(), *brokers).is_there
    assert [len(each.links) for each in brokers] == [1, 1]


@pytest.mark.parametrize(("user", "told"), [("bob", [STOLEN]), ("eve", [])])
def test_a_name_is_one_links_wherever_its_clients_are(user: str, told: list[str]) -> None:
    mesh = network()
    broker = broker_at(mesh, "f")
    first = Guest(mesh["e"], "client", user="bob")
    assert first.attach(receiver(), broker).is_there
    second = Guest(mesh["g"], "client", user=user)
    heard = second.attach(receiver(), broker)
    assert first.conditions() == told
    if told:
        assert heard.is_there
    else:
        assert heard.condition == LOCKED
    assert len(broker.links) == 1


def test_termini_that_may_not_outlive_their_links_at_the_containers_edge() -> None:
    mesh = network()
    broker = broker_at(mesh, "g")
    mesh["g"].forwarder.link_routes.allows_resumable = False
    source = Source(address="q.a", timeout=UInt(5))
    heard = Guest(mesh["e"], "client").attach(receiver(source=source), broker)
    assert heard.condition == "qd:link-expiration"


def test_a_link_of_an_edges_address_does_not_come_back_to_it() -> None:
    mesh = network()
    early = Guest(mesh["e"], "early")
    assert early.attach(receiver()).is_there
    # an address there is, and so it stays one, for which the edge attaches a link at its interior
    broker = broker_at(mesh, "e")
    mesh.cut("e", "a")
    mesh.uplink("e", "a")
    mesh.settle()
    assert broker.links == []
    assert mesh["a"].forwarder.link_routes.links == 0
    assert Guest(mesh["f"], "client").attach(receiver(), broker).is_there


def test_an_edge_speaks_for_its_own_clients_alone() -> None:
    mesh = Mesh("a")
    mesh["a"].serve_edges()
    rogue = Guest(mesh["a"], "e", role="edge")
    told: dict[Any, Any] = {
        Symbol("qd.link-route"): "Cq",
        Symbol("qd.destination"): "a",
        Symbol("qd.cost"): UInt(1),
        Symbol("qd.name"): "s",
        Symbol("qd.container"): "client",
        Symbol("qd.client"): "b#1",
    }
    heard = rogue.attach(sender(properties=told))
    assert heard.condition == "amqp:invalid-field"
    told[Symbol("qd.client")] = "e#1"
    assert rogue.attach(sender(handle=1, properties=told)).condition == "trioute:route-changed"
    broker = broker_at(mesh, "a")
    assert rogue.attach(sender(handle=2, properties=told), broker).is_there
    # nor is it on the way to anywhere
    told[Symbol("qd.destination")] = "b"
    assert rogue.attach(sender(handle=3, properties=told)).condition == "trioute:route-changed"
