"""Links that are routed to containers at other routers: which of them, by which way, and if not.

That one link is as good over several routers as over one, `test_routed_links.py`,
`test_routed_detach.py` and `test_routed_property.py` show.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.amqp.performatives import (
    Coordinator,
    Detach,
    Error,
    Modified,
    Released,
    Source,
    Transfer,
)
from router.amqp.types import Symbol, UInt
from router.core.link_routes.route_outlets import BACK_OFF_S

from support.mesh import Mesh
from support.route_brokers import Broker, Guest, serve
from support.routed import flow, receiver, sender
from support.transcripts import On

GONE = Error(condition=Symbol("amqp:resource-deleted"))
NO_ROUTE = "qd:no-route-to-dest"
LOST = "qd:routed-link-lost"
STOLEN = "amqp:link:stolen"
LOCKED = "amqp:resource-locked"


def broker_at(mesh: Mesh, router: str, name: str | None = None, **fields: Any) -> Broker:
    """Connect a broker for all addresses below `q`."""
    rule = fields.pop("rule", {})
    return Broker(mesh[router], name or f"broker-{router}", serve(mesh[router], "q", **rule))


# Which container.


def test_the_way_there_and_what_the_container_hears() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c", rule={"add_prefix": "ext/", "del_prefix": "q."})
    client = Guest(mesh["a"], "client")
    properties = {Symbol("qd.cost"): "mine", Symbol("qd.link-route"): 5}
    heard = client.attach(sender("q.a", properties=properties), broker)
    assert heard.is_there
    # what the client calls it, and its own properties
    assert heard.frames[0].target.address == "q.a"
    assert heard.frames[0].properties == properties
    (link,) = broker.links
    assert (link.attach.name, link.address) == ("s@client", "ext/a")
    assert link.attach.properties == properties
    # between routers it has the name of no other link
    names = {
        link.name
        for router in mesh.routers.values()
        for end in router.ends.values()
        for session in end.connection.local_sessions.values()
        for link in session.local_links.values()
    }
    assert names == {"trioute.route.a.1", "trioute.route.b.1"}


def test_properties_that_there_are_none_of() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    assert Guest(mesh["a"], "client").attach(receiver(properties=None), broker).is_there
    assert broker.links[0].attach.properties is None


def test_links_of_clients_that_call_them_alike() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    for router in "abc":
        for name in ("one", "two"):
            client = Guest(mesh[router], f"{name}-{router}")
            assert client.attach(sender(), broker).is_there
            assert client.attach(receiver(handle=1), broker).is_there
    assert len({(link.attach.name, bool(link.attach.role)) for link in broker.links}) == 12


def test_a_container_that_is_here_comes_first_and_then_the_nearest() -> None:
    mesh = Mesh("a", "b", "c", "d")
    mesh.join("a", "b", 1)
    mesh.join("a", "c", 5)
    mesh.join("b", "d", 9)
    brokers = {router: broker_at(mesh, router) for router in "abcd"}
    went = []
    for number in range(4):
        client = Guest(mesh["a"], f"client-{number}")
        assert client.attach(sender(), *brokers.values()).is_there
        assert client.attach(receiver(handle=1), *brokers.values()).is_there
        (went_to,) = (router for router, broker in brokers.items() if broker.links)
        went.append(went_to)
        brokers.pop(went_to).leave()
        assert client.conditions() == [LOST, LOST]
    assert went == ["a", "b", "c", "d"]
    assert Guest(mesh["a"], "client").attach(sender()).condition == NO_ROUTE


def test_containers_that_are_as_near_take_turns() -> None:
    mesh = Mesh("a", "b", "c", "d")
    for router in "bcd":
        mesh.join("a", router)
    brokers = [broker_at(mesh, router) for router in "bcd"]
    clients = [Guest(mesh["a"], f"client-{number}") for number in range(9)]
    for client in clients:
        assert client.attach(receiver(), *brokers).is_there
    assert [len(broker.links) for broker in brokers] == [3, 3, 3]
    # whoever has the fewest links gets the next ones
    for client in clients[::3]:
        client >> Detach(0, closed=True)
    before = [len(broker.links) for broker in brokers]
    for number in range(3):
        assert Guest(mesh["a"], f"late-{number}").attach(receiver(), *brokers).is_there
    assert (sorted(before), [len(broker.links) for broker in brokers]) == ([0, 3, 3], [3, 3, 3])


def test_who_has_refused_a_link_is_asked_last_for_a_while() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b", 1)
    mesh.join("a", "c", 2)
    brokers = [broker_at(mesh, router) for router in "bc"]
    brokers[0].refuses = GONE
    first, second, third = (Guest(mesh["a"], name) for name in ("one", "two", "three"))
    # a container's word is a word
    assert first.attach(sender(), *brokers).condition == "amqp:resource-deleted"
    brokers[0].refuses = None
    assert second.attach(sender(), *brokers).is_there
    for router in mesh.routers.values():
        router.turn.now += BACK_OFF_S
    assert third.attach(sender(), *brokers).is_there
    assert [[link.attach.name for link in each.links] for each in brokers] == [
        ["s@three"],
        ["s@two"],
    ]


def test_a_container_that_attaches_a_link_itself_goes_to_another_one_first() -> None:
    mesh = Mesh.line("a", "b")
    brokers = [broker_at(mesh, router) for router in "ab"]
    own = Guest(mesh["a"], "broker-a", role="route-container")
    assert own.attach(sender(), *brokers).is_there
    assert [len(broker.links) for broker in brokers] == [0, 1]
    # where else it is, too, if there is nobody else
    again = Guest(mesh["a"], "broker-b", role="route-container")
    brokers.pop(0).leave()
    assert again.attach(sender(), *brokers).is_there


def test_a_link_that_containers_forward_here_again_does_not_go_round() -> None:
    mesh = Mesh.line("a", "b")
    broker = broker_at(mesh, "b")
    forwards = Guest(mesh["a"], "broker-b", role="route-container")
    link = attrs.evolve(sender(), name="l@client@b")
    assert forwards.attach(link, broker).condition == NO_ROUTE
    # what is no container may call its links as it likes
    assert Guest(mesh["a"], "client").attach(link, broker).is_there


def test_a_route_that_a_connection_asks_for_is_for_all_routers() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    assert Guest(mesh["a"], "one").attach(sender(), broker).is_there
    for way in broker.ways:
        mesh["c"].forwarder.link_routes.remove(way)
    mesh["c"].finish_turn()
    # it is no link's any more, and so an address as others are
    assert Guest(mesh["a"], "two").attach(sender()).is_there
    assert len(broker.links) == 1
    assert mesh["a"].forwarder.table.in_use("q.a") is not None


def test_a_route_without_containers_waits_for_those_of_others() -> None:
    mesh = Mesh.line("a", "b", "c")
    serve(mesh["a"], "q")
    client = Guest(mesh["a"], "client")
    assert client.attach(sender()).condition == NO_ROUTE
    broker = broker_at(mesh, "c")
    assert client.attach(sender(handle=1), broker).is_there
    broker.leave()
    assert client.conditions() == [LOST]
    assert Guest(mesh["a"], "other").attach(sender()).condition == NO_ROUTE


def test_termini_that_may_not_outlive_their_links_at_the_containers_router() -> None:
    mesh = Mesh.line("a", "b")
    broker = broker_at(mesh, "b")
    mesh["b"].forwarder.link_routes.allows_resumable = False
    source = Source(address="q.a", timeout=UInt(5))
    heard = Guest(mesh["a"], "client").attach(receiver(source=source), broker)
    assert heard.condition == "qd:link-expiration"


# What routers know of each other is old.


def test_where_no_container_is_any_more_another_router_is_asked() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b", 1)
    mesh.join("a", "c", 2)
    near, far = (broker_at(mesh, router) for router in "bc")
    mesh.is_told = False
    near.leave()
    client = Guest(mesh["a"], "client")
    client >> sender()
    # a receiver may say what it takes before it is answered
    client >> [receiver(handle=1), flow(handle=1, credit=7)]
    far.listen()
    assert [type(each) for each in client.heard()].count(Detach) == 0
    assert [link.attach.name for link in far.links] == ["s@client", "r@client"]
    far.leave()
    assert Guest(mesh["a"], "other").attach(sender()).condition == NO_ROUTE
    assert all(len(router.forwarder.routed) == 0 for router in mesh.routers.values())


def test_a_link_goes_on_only_where_it_gets_nearer() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    reach = {name: router.forwarder.reach for name, router in mesh.routers.items()}
    # b believes that the way leads back
    back = {"a": attrs.evolve(reach["b"].paths["a"]), "c": attrs.evolve(reach["a"].paths["c"])}
    back["c"] = attrs.evolve(back["c"], via="a", cost=9)
    reach["b"].set_paths(reach["b"].neighbours, back, lambda _: None)
    client = Guest(mesh["a"], "client")
    assert client.attach(sender(), broker).condition == NO_ROUTE
    # or that it is as long as from where it came
    even = {"a": back["a"], "c": attrs.evolve(reach["a"].paths["c"], via="c")}
    reach["b"].set_paths(reach["b"].neighbours, even, lambda _: None)
    assert client.attach(sender(handle=1), broker).condition == NO_ROUTE
    # nobody of whom there is no way
    reach["b"].set_paths(reach["b"].neighbours, {}, lambda _: None)
    assert client.attach(sender(handle=2), broker).condition == NO_ROUTE
    assert broker.links == []
    mesh.tell()
    assert client.attach(sender(handle=3), broker).is_there


def test_a_route_that_is_another_direction_or_none_there() -> None:
    mesh = Mesh.line("a", "b")
    broker = broker_at(mesh, "b")
    routes = mesh["a"].forwarder.link_routes
    wrong = routes.find("q.a", is_sender=False)
    assert wrong is not None
    wrong.direction = "in"
    assert Guest(mesh["a"], "client").attach(receiver(), broker).condition == NO_ROUTE


def test_what_is_told_wrong_of_a_link_is_that_links_error() -> None:
    mesh = Mesh("a")
    rogue = Guest(mesh["a"], "b", role="inter-router")
    heard = rogue.attach(sender(properties={Symbol("qd.link-route"): 5}))
    assert heard.condition == "amqp:invalid-field"
    # and its connection goes on
    again = rogue.attach(sender(handle=1, properties={Symbol("qd.link-route"): "Cq"}))
    assert again.condition == "amqp:invalid-field"


def test_a_client_is_no_router() -> None:
    mesh = Mesh.line("a", "b")
    broker = broker_at(mesh, "b")
    told = {Symbol("qd.link-route"): "Cq", Symbol("qd.destination"): "b"}
    assert Guest(mesh["a"], "client").attach(sender("other", properties=told), broker).is_there
    assert broker.links == []


# The network changes.


def test_what_is_lost_with_the_way() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    client = Guest(mesh["a"], "client")
    assert client.attach(sender(), broker).is_there
    (link,) = broker.links
    broker >> On(link.channel, flow(credit=5))
    assert client.credit() == [5]
    client >> On(0, Transfer(0, 0, b"0", 0), b"x")
    client >> On(0, Transfer(0, 1, b"1", 0, more=True), b"x")
    broker.listen()
    assert len(link.received) == 2
    mesh.cut("b", "c")
    heard = client.heard()
    assert [each.state for each in heard[:-1]] == [Modified(delivery_failed=True)] * len(heard[:-1])
    assert str(heard[-1].error.condition) == LOST
    assert broker.links == []
    assert link.detached is not None
    assert link.detached.error is not None
    assert str(link.detached.error.condition) == LOST
    assert Guest(mesh["a"], "other").attach(sender()).frames[0].target is not None


def test_what_had_not_left_is_released() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    client = Guest(mesh["a"], "client")
    client.attach(sender(), broker)
    broker >> On(broker.links[0].channel, flow(credit=5))
    client.skip()
    # the socket between b and c takes nothing
    mesh["b"].ends["c"].connection.outbox.congested = True
    client >> On(0, Transfer(0, 0, b"0", 0), b"x")
    mesh.cut("b", "c")
    assert client.states() == [Released()]


def test_a_link_finds_the_other_way() -> None:
    mesh = Mesh("a", "b", "c", "d")
    mesh.join("a", "b", 1)
    mesh.join("b", "d", 1)
    mesh.join("a", "c", 5)
    mesh.join("c", "d", 5)
    broker = broker_at(mesh, "d")
    client = Guest(mesh["a"], "client")
    assert client.attach(sender(), broker).is_there
    assert len(mesh["b"].forwarder.routed) == 1
    mesh.cut("b", "d")
    assert client.conditions() == [LOST]
    client >> Detach(0, closed=True)
    assert client.attach(sender(), broker).is_there
    assert [len(mesh[name].forwarder.routed) for name in "abcd"] == [1, 0, 1, 1]


def test_a_link_whose_way_is_lost_before_its_container_answers() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b", 1)
    mesh.join("a", "c", 2)
    near, far = (broker_at(mesh, router) for router in "bc")
    near.is_slow = True
    client = Guest(mesh["a"], "client")
    assert client.attach(sender(), near, far).frames == []
    mesh.cut("a", "b")
    far.listen()
    (answer,) = client.heard()
    assert answer.target is not None
    assert [len(each.links) for each in (near, far)] == [0, 1]
    # and where there is no other
    far.is_slow = True
    assert client.attach(receiver(handle=1), far).frames == []
    mesh.cut("a", "c")
    assert client.conditions() == [LOST, LOST]


# Names.


@pytest.mark.parametrize("slow", [False, True])
@pytest.mark.parametrize("make", [sender, receiver])
@pytest.mark.parametrize("first", ["a", "c"])
def test_a_link_attached_at_another_router_is_taken_from_where_it_was(
    make: Any, first: str, slow: bool
) -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    broker.is_slow = slow
    old, new = (Guest(mesh[name], "client") for name in (first, "b"))
    old.attach(make(), broker)
    broker.is_slow = False
    assert new.attach(make(), broker).is_there
    assert old.conditions() == [STOLEN]
    # the container does not hear of two links of one name at once
    before, after = broker.every
    assert before.attach.name == after.attach.name
    assert before.detached is not None
    assert (before.detached.closed, before.detached.error) == (False, None)
    assert after.detached is None
    # which is nothing that the container would be asked last for
    assert broker.links == [after]
    route = next(iter(mesh["a"].forwarder.link_routes.routes()))
    assert not any(outlet.is_backing_off(mesh["a"].turn.now) for outlet in route.far.values())


@pytest.mark.spec("2.6.1-2")
@pytest.mark.parametrize(
    ("stealing", "users", "second", "lost"),
    [
        ("same-user", ("ann", "ann"), None, [STOLEN]),
        ("same-user", ("ann", "bob"), LOCKED, []),
        ("same-user", ("ann", None), LOCKED, []),
        ("any", ("ann", "bob"), None, [STOLEN]),
        ("never", ("ann", "ann"), LOCKED, []),
        ("off", ("ann", "ann"), None, []),
    ],
)
def test_who_may_take_a_link_over(
    stealing: str, users: tuple[str | None, str | None], second: str | None, lost: list[str]
) -> None:
    mesh = Mesh.line("a", "b", "c", stealing=stealing)
    broker = broker_at(mesh, "c")
    old, new = (
        Guest(mesh[name], "client", user=user) for name, user in zip("ab", users, strict=True)
    )
    assert old.attach(sender(), broker).is_there
    heard = new.attach(sender(), broker)
    assert heard.is_there if second is None else heard.condition == second
    assert old.conditions() == lost
    assert sum(way.links for way in broker.ways) == (2 if stealing == "off" else 1)


@pytest.mark.spec("2.6.1-1")
def test_other_links_of_that_name_are_other_links() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    # an ordinary link where the container is, other clients, the other direction, and who says not
    # what it is called
    clients = [Guest(mesh["c"], "client"), Guest(mesh["a"], "else"), Guest(mesh["b"], "")]
    assert clients[0].attach(attrs.evolve(sender("own"), name="l"), broker).is_there
    link = attrs.evolve(sender(), name="l")
    for client in (*clients[1:], Guest(mesh["a"], "client"), Guest(mesh["a"], "")):
        clients.append(client)
        assert client.attach(link, broker).is_there
    last = Guest(mesh["b"], "client")
    assert last.attach(attrs.evolve(receiver(), name="l"), broker).is_there
    assert [client.conditions() for client in clients] == [[]] * len(clients)
    assert len(broker.links) == 5
    names = {(link.attach.name, link.attach.role) for link in broker.links}
    assert len(names) == 5


# Transactions.


def test_the_links_of_a_client_go_where_its_coordinator_is() -> None:
    mesh = Mesh("a", "b", "c")
    mesh.join("a", "b", 1)
    mesh.join("a", "c", 1)
    # two containers at each
    brokers = [broker_at(mesh, router, f"{router}-{number}") for router in "bc" for number in "12"]
    for number in range(6):
        client = Guest(mesh["a"], f"client-{number}")
        before = [len(broker.links) for broker in brokers]
        assert client.attach(sender(target=Coordinator()), *brokers).is_there
        for handle in (1, 2, 3):
            link = attrs.evolve(sender(handle=handle), name=f"l{handle}")
            assert client.attach(link, *brokers).is_there
        more = [len(broker.links) - count for broker, count in zip(brokers, before, strict=True)]
        assert sorted(more) == [0, 0, 0, 4]


def test_a_lost_way_rolls_a_transaction_back() -> None:
    mesh = Mesh.line("a", "b", "c")
    broker = broker_at(mesh, "c")
    client = Guest(mesh["a"], "client")
    assert client.attach(sender(target=Coordinator()), broker).is_there
    mesh.cut("b", "c")
    assert client.conditions() == ["amqp:transaction:rollback"]
