"""Link routes: the most specific one speaks, and its container with the fewest links is chosen."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.performatives import Attach, Coordinator, Source, Target
from router.amqp.redirects import Redirect
from router.amqp.types import Symbol
from router.core.addresses.redirects import Redirects
from router.core.link_routes.route_outlets import BACK_OFF_S, LinkRoute, LinkRouteRule
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.errors import AmqpError, Scope

from support.examples import examples
from support.in_memory import Client, Router

ASKED = Symbol("x-opt-qd.address")


class Routed(Router):
    """A router with link routes, whose peers' links are looked up and never answered."""

    def __init__(self, *rules: LinkRouteRule, redirects: Redirects | None = None) -> None:
        super().__init__(redirects=redirects)
        self.link_routes = self.forwarder.link_routes
        self.added = {rule.name: self.link_routes.add(rule) for rule in rules}

    def container(self, *ways: str, name: str | None = None) -> Client:
        """Connect a container that these link routes lead to."""
        client = self.client(container=name, role="route-container", endpoint="brokers")
        for way in ways:
            self.link_routes.open(self.added[way], client.connection)
        return client

    def sender(self, client: Client, address: str | None, **fields: Any) -> Link:
        """Attach a link that the client sends on."""
        target = fields.pop("target", Target(address=address))
        return self._link(client, IncomingLink, Attach("l", 0, False, target=target, **fields))

    def receiver(self, client: Client, address: str | None, **fields: Any) -> Link:
        """Attach a link that the client receives on."""
        source = fields.pop("source", Source(address=address))
        return self._link(client, OutgoingLink, Attach("l", 0, True, source=source, **fields))

    def coordinator(self, client: Client, asked: str | None = None) -> Link:
        """Attach a link to a transaction coordinator."""
        properties = None if asked is None else {ASKED: asked}
        return self.sender(client, None, target=Coordinator(), properties=properties)

    def _link(self, client: Client, kind: type[Link], attach: Attach) -> Link:
        link = kind(client.connection.local_sessions[0], "l", 0)
        link.remote_attach = attach
        return link

    def pattern(self, link: Link) -> str | None:
        """Return the pattern of a link's route, or None if it has none."""
        route = self.link_routes.route_of(link)
        return None if route is None else route.pattern

    def place(self, link: Link) -> tuple[Any, str | None]:
        """Where a link goes."""
        route = self.link_routes.route_of(link)
        assert route is not None
        placed = route.place(link)
        return placed.connection, placed.sent

    def to(self, link: Link) -> str:
        """Return the container-id of the container that a link leads to."""
        return str(self.place(link)[0].remote_open.container_id)


def both(pattern: str, **fields: Any) -> tuple[LinkRouteRule, LinkRouteRule]:
    """Link routes in both directions, named by their pattern."""
    return (
        LinkRouteRule(f"{pattern} in", "in", False, pattern, **fields),
        LinkRouteRule(f"{pattern} out", "out", False, pattern, **fields),
    )


@pytest.mark.parametrize(
    ("pattern", "address", "is_routed"),
    [
        ("#", "q", True),
        ("#", "amqp:/_topo/0/b/$management", False),
        ("*/#", "_edge/e/temp.x", False),
        ("_topo/0/b/#", "_topo/0/b/$management", True),
    ],
)
def test_a_name_that_says_where_it_is_is_no_containers(
    pattern: str, address: str, is_routed: bool
) -> None:
    router = Routed(*both(pattern))
    found = router.link_routes.find(address, is_sender=True)
    assert (found is not None) is is_routed


def test_the_most_specific_route_of_the_direction_speaks() -> None:
    router = Routed(
        LinkRouteRule("a", "in", True, "orders."),
        LinkRouteRule("b", "in", False, "orders/*/urgent"),
        LinkRouteRule("c", "out", False, "orders/eu"),
    )
    client = router.client()
    for address, pattern in {
        "orders": "orders/#",
        "orders.eu": "orders/#",
        "/orders/": "orders/#",
        "amqp://127.0.0.1:5672/orders/eu/urgent": "orders/*/urgent",
        "orders.eu.urgent.x": "orders/#",
        "ordersx": None,
        "bills": None,
        "": None,
    }.items():
        assert router.pattern(router.sender(client, address)) == pattern, address
    assert router.pattern(router.receiver(client, "orders/eu")) == "orders/eu"
    assert router.pattern(router.receiver(client, "orders")) is None


def test_termini_without_an_address_have_no_route() -> None:
    router = Routed(*both("#"))
    client = router.client()
    assert router.pattern(router.sender(client, None)) is None
    assert router.pattern(router.sender(client, None, target=None)) is None
    assert router.pattern(router.receiver(client, None, source=None)) is None
    assert router.pattern(router.receiver(client, None, source=Source(dynamic=True))) is None
    assert router.pattern(router.coordinator(client)) == "#"


def test_a_dynamic_node_can_be_asked_for_at_a_container() -> None:
    router = Routed(
        LinkRouteRule("a", "out", True, "replies"), LinkRouteRule("b", "in", True, "requests")
    )
    broker, client = router.container("a", "b", name="broker"), router.client()
    source = Source(dynamic=True, dynamic_node_properties={ASKED: "replies/x"})
    assert router.place(router.receiver(client, None, source=source)) == (broker.connection, None)
    target = Target(dynamic=True, dynamic_node_properties={ASKED: "requests"})
    assert router.place(router.sender(client, None, target=target)) == (broker.connection, None)
    elsewhere = Source(dynamic=True, dynamic_node_properties={ASKED: "requests"})
    with pytest.raises(AmqpError, match="qd:no-route-to-dest") as caught:
        router.pattern(router.receiver(client, None, source=elsewhere))
    assert caught.value.scope is Scope.LINK
    strange = Source(dynamic=True, dynamic_node_properties={ASKED: 5})
    assert router.pattern(router.receiver(client, None, source=strange)) is None


def test_a_node_that_is_here_is_routed_only_where_a_route_names_it() -> None:
    router = Routed(*both("#"))
    router.table.add_own_node("$management")
    client = router.client()
    receiver = client.receiver(None, source=Source(dynamic=True))
    assert receiver.attach is not None
    assert receiver.attach.source is not None
    dynamic = receiver.attach.source.address
    assert router.pattern(router.sender(client, "$management")) is None
    assert router.pattern(router.sender(client, dynamic)) is None
    assert router.pattern(router.sender(client, "$cbs")) == "#"
    router.link_routes.add(LinkRouteRule("own", "in", False, "$management"))
    assert router.pattern(router.sender(client, "$management")) == "$management"


def test_an_address_that_is_redirected_is_not_forwarded() -> None:
    redirects = Redirects()
    place = Redirect("elsewhere", "elsewhere", 5672, None)
    redirects.add_addresses(True, "orders/old", place, senders=True, receivers=False)
    router = Routed(*both("orders/#"), redirects=redirects)
    client = router.client()
    assert router.pattern(router.sender(client, "orders/old/x")) is None
    assert router.pattern(router.sender(client, "orders/new")) == "orders/#"
    assert router.pattern(router.receiver(client, "orders/old/x")) == "orders/#"


def test_the_routers_own_links_are_never_forwarded() -> None:
    router = Routed(*both("#"))
    own = router.client(is_own=True)
    assert router.pattern(router.sender(own, "q")) is None


@pytest.mark.parametrize(
    ("rule", "asked", "sent"),
    [
        ({}, "orders", "orders"),
        ({}, "amqp://host:1/orders/", "orders/"),
        ({}, "/queue/orders", "/queue/orders"),
        ({"add_prefix": "bar."}, "orders", "bar.orders"),
        ({"del_prefix": "orders."}, "orders.x", "x"),
        ({"del_prefix": "orders."}, "orders.", "orders."),
        ({"del_prefix": "orders.", "add_prefix": "y/"}, "orders.x", "y/x"),
        ({"del_prefix": "other."}, "orders", "orders"),
    ],
)
def test_the_address_at_the_container(rule: dict[str, str], asked: str, sent: str) -> None:
    router = Routed(LinkRouteRule("a", "in", False, "#", **rule))
    router.container("a")
    link = router.sender(router.client(), asked)
    assert router.place(link)[1] == sent
    assert router.link_routes.peer_address(link, sent) == asked


def test_what_the_container_answers_is_told_as_the_peer_would_call_it() -> None:
    router = Routed(LinkRouteRule("a", "in", False, "#", add_prefix="bar.", del_prefix="eu."))
    router.container("a")
    link = router.sender(router.client(), "eu.orders")
    assert router.place(link)[1] == "bar.orders"
    told = router.link_routes.peer_address
    assert told(link, "bar.other") == "eu.other"
    assert told(link, "other") == "eu.other"
    assert told(link, None) is None
    router.link_routes.left(link)
    assert told(link, "bar.other") == "bar.other"


def test_without_a_container_there_is_no_route_to_the_destination() -> None:
    router = Routed(*both("orders"))
    client = router.client()
    broker = router.container("orders in")
    link = router.sender(client, "orders")
    with pytest.raises(AmqpError, match="No route to the destination node") as caught:
        router.place(router.receiver(client, "orders"))
    assert caught.value.scope is Scope.LINK
    assert caught.value.condition == "qd:no-route-to-dest"
    assert caught.value.info == {Symbol("address"): "orders"}
    assert router.to(link) == broker.container
    router.link_routes.close(router.added["orders in"], broker.connection)
    with pytest.raises(AmqpError, match="qd:no-route-to-dest"):
        router.place(router.sender(client, "orders"))


def test_containers_take_links_in_turn_and_the_fewest_first() -> None:
    router = Routed(LinkRouteRule("a", "in", True, "q"), LinkRouteRule("b", "in", True, "q"))
    router.container("a", name="one")
    router.container("b", name="two")
    client = router.client()
    links = [router.sender(client, "q") for _ in range(4)]
    assert [router.to(link) for link in links] == ["one", "two", "one", "two"]
    assert [way.links for way in router.link_routes.each_link_route()] == [2, 2]
    router.link_routes.left(links[1])
    router.link_routes.left(links[3])
    assert [router.to(router.sender(client, "q")) for _ in range(3)] == ["two", "two", "one"]


def test_a_connection_that_is_closing_takes_no_link() -> None:
    router = Routed(*both("q"))
    one = router.container("q in", name="one")
    router.container("q in", name="two")
    one.connection.close()
    client = router.client()
    assert [router.to(router.sender(client, "q")) for _ in range(3)] == ["two"] * 3


def test_a_container_that_refused_is_asked_last_for_a_while() -> None:
    router = Routed(*both("q"))
    one = router.container("q in", name="one")
    router.container("q in", name="two")
    client = router.client()
    link = router.sender(client, "q")
    assert router.to(link) == "one"
    router.link_routes.refused(link, "amqp:resource-limit-exceeded", "full")
    router.link_routes.left(link)
    assert [router.to(router.sender(client, "q")) for _ in range(3)] == ["two"] * 3
    way: LinkRoute = router.added["q in"]
    assert (way.placed, way.refused, way.links) == (4, 1, 3)
    assert way.last_refusal == "amqp:resource-limit-exceeded: full"
    router.wait(BACK_OFF_S)
    assert router.to(router.sender(client, "q")) == "one"
    assert way.outlets[one.connection].links == 1


def test_so_is_one_that_ended_a_link_with_an_error() -> None:
    router = Routed(*both("q"))
    router.container("q in", name="one")
    router.container("q in", name="two")
    client = router.client()
    link = router.sender(client, "q")
    assert router.to(link) == "one"
    router.link_routes.ended(link, "amqp:resource-deleted")
    router.link_routes.left(link)
    assert [router.to(router.sender(client, "q")) for _ in range(2)] == ["two"] * 2
    way: LinkRoute = router.added["q in"]
    assert (way.refused, way.last_refusal) == (0, "amqp:resource-deleted")
    router.link_routes.ended(link, "amqp:not-found")
    assert way.last_refusal == "amqp:resource-deleted"


def test_where_all_have_refused_one_of_them_is_asked_all_the_same() -> None:
    router = Routed(*both("q"))
    router.container("q in", name="one")
    router.container("q in", name="two")
    client = router.client()
    asked = []
    for _ in range(4):
        link = router.sender(client, "q")
        asked.append(router.to(link))
        router.link_routes.refused(link, "amqp:not-found")
        router.link_routes.left(link)
    assert asked == ["one", "two", "one", "two"]


def test_a_container_gets_its_own_link_back_only_where_there_is_no_other() -> None:
    router = Routed(*both("q"))
    broker = router.container("q in", name="broker")
    again = router.container("q in", name="broker")
    for container in (broker, again):
        assert router.to(router.sender(container, "q")) == "broker"
    router.container("q in", name="other")
    links = [router.sender(broker, "q") for _ in range(5)]
    assert {router.to(link) for link in links} == {"other"}
    for link in links:
        router.link_routes.left(link)
    namesake = router.client(container="broker")
    assert {router.to(router.sender(namesake, "q")) for _ in range(3)} == {"other", "broker"}


def test_a_link_that_comes_round_is_refused() -> None:
    router = Routed(*both("q"))
    broker = router.container("q in", name="broker")
    here = broker.connection.settings.container_id
    client = router.client()
    for peer, name, is_refused in [
        (broker, f"l@client@{here}", True),
        (broker, f"l@{here}@client", True),
        (broker, f"{here}@client", False),
        (broker, "l@client", False),
        (client, f"l@{here}", False),
    ]:
        link = router.sender(peer, "q")
        link.name = name
        if is_refused:
            with pytest.raises(AmqpError, match="qd:no-route-to-dest"):
                router.place(link)
        else:
            assert router.to(link) == "broker"


def test_a_deleted_route_ends_no_link() -> None:
    router = Routed(*both("q/#"), *both("q/*"))
    router.container("q/# in", name="all")
    router.container("q/* in", name="one")
    client = router.client()
    link = router.sender(client, "q/x")
    assert router.to(link) == "one"
    router.link_routes.remove(router.added["q/* in"])
    assert router.link_routes.placed(link) is not None
    assert router.to(router.sender(client, "q/x")) == "all"
    router.link_routes.left(link)
    router.link_routes.left(link)
    assert router.link_routes.placed(link) is None
    assert len(router.link_routes) == 3


def test_the_coordinator_is_chosen_by_what_its_client_is_known_by() -> None:
    names = ["$coordinator", "$coordinator/billing", "$coordinator/eu.example"]
    router = Routed(*(LinkRouteRule(name, "in", True, name) for name in names))
    for name in names:
        router.container(name, name=name)
    client = router.client(endpoint="west")
    at_listener = router.client(endpoint="billing")
    assert router.to(router.coordinator(client)) == names[0]
    assert router.to(router.coordinator(client, "billing")) == names[1]
    assert router.to(router.coordinator(client, "other")) == names[0]
    assert router.to(router.coordinator(at_listener)) == names[1]
    assert router.to(router.coordinator(at_listener, "eu.example")) == names[2]
    client.connection.user = "billing"
    assert router.to(router.coordinator(client)) == names[1]


def test_without_a_route_for_it_there_is_no_coordinator() -> None:
    router = Routed(*both("orders"))
    assert router.pattern(router.coordinator(router.client())) is None


def test_a_transactions_links_go_to_its_coordinator() -> None:
    router = Routed(LinkRouteRule("tx", "in", True, "$coordinator"), *both("q"))
    one = router.container("tx", "q in", "q out", name="one")
    router.container("tx", "q in", "q out", name="two")
    others = [router.client() for _ in range(3)]
    client = router.client()
    coordinator = router.coordinator(client)
    assert router.to(coordinator) == "one"
    assert {router.to(router.sender(client, "q")) for _ in range(5)} == {"one"}
    assert {router.to(router.receiver(client, "q")) for _ in range(5)} == {"one"}
    assert [router.to(router.sender(other, "q")) for other in others] == ["two"] * 3
    # the other way round: the coordinator is sought where the links are
    assert [router.to(router.coordinator(other)) for other in others] == ["two"] * 3
    router.link_routes.left(coordinator)
    router.link_routes.close(router.added["q in"], one.connection)
    assert router.to(router.sender(client, "q")) == "two"


NAMES = st.lists(st.sampled_from(["a", "b", "*", "#"]), min_size=1, max_size=3).map("/".join)


@given(
    patterns=st.lists(st.tuples(NAMES, st.sampled_from(["in", "out"])), max_size=8),
    steps=st.lists(st.integers(0, 7), max_size=8),
    names=st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), max_size=4),
)
@examples(100)
def test_routes_that_came_and_went_leave_nothing_behind(
    patterns: list[tuple[str, str]], steps: list[int], names: list[list[str]]
) -> None:
    every = [
        LinkRouteRule(str(n), way, False, pattern) for n, (pattern, way) in enumerate(patterns)
    ]
    router, there = Routed(), dict[int, LinkRoute]()
    for step in [*range(len(every)), *steps]:
        if step >= len(every):
            continue
        if step in there:
            router.link_routes.remove(there.pop(step))
        else:
            there[step] = router.link_routes.add(every[step])
    fresh = Routed(*(every[step] for step in there))
    assert len(router.link_routes) == len(there)
    for text in map("/".join, names):
        for is_sender in (True, False):
            found = [each.link_routes.find(text, is_sender=is_sender) for each in (router, fresh)]
            one, other = (
                {way.rule for way in route.link_routes} if route else set() for route in found
            )
            assert one == other


@given(st.lists(st.tuples(st.sampled_from("+-xr"), st.integers(0, 5)), max_size=60))
@examples(150)
def test_links_are_spread_evenly_however_containers_come_and_go(
    steps: list[tuple[str, int]],
) -> None:
    router = Routed(*both("q"))
    way = router.added["q in"]
    containers = [router.container(name=f"c{n}") for n in range(3)]
    client = router.client()
    links: list[Any] = []
    refused_at: dict[Any, float] = {}
    for what, which in steps:
        connection = containers[which % 3].connection
        if what == "+":
            router.link_routes.open(way, connection)
        elif what == "-":
            router.link_routes.close(way, connection)
            refused_at.pop(connection, None)
        elif what == "x" and links:
            router.link_routes.left(links.pop(which % len(links)))
        else:
            link = router.sender(client, "q")
            try:
                chosen = router.place(link)[0]
            except AmqpError:
                assert not way.outlets
                continue
            outlet = way.outlets[chosen]
            rested = [each for each in way.outlets.values() if each.connection not in refused_at]
            if rested:
                assert chosen not in refused_at
                assert outlet.links - 1 == min(each.links - (each is outlet) for each in rested)
            if which == 5:
                router.link_routes.refused(link, "amqp:not-found")
                router.link_routes.left(link)
                refused_at[chosen] = router.turn.now
            else:
                links.append(link)
    for link in links:
        assert router.link_routes.placed(link) is not None
        router.link_routes.left(link)
    assert way.links == 0
