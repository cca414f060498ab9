"""Link routes follow the containers that come and go, and the connections that ask for them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from router.control.control import Control
from router.core.link_routes import Rule, Way

from support.examples import examples
from support.in_memory import Client, Router


class Controlled(Router):
    """A router whose control hears of all connections."""

    def __init__(self, *rules: Rule) -> None:
        super().__init__()
        self.control = Control(self.forwarder)
        self.routing = self.control.link_routes
        self.routing.configure(rules)

    def event_received(self, connection: Any, event: object) -> None:
        super().event_received(connection, event)
        self.control.event_received(connection, event)

    def container(self, name: str = "broker", endpoint: str = "brokers") -> Client:
        """A connection to a container."""
        return self.client(container=name, role="route-container", endpoint=endpoint)

    def way(self, name: str) -> Way:
        """A configured link route."""
        way = self.routing.configured(name)
        assert way is not None
        return way


def rule(name: str, container_id: str | None = None, connection: str | None = None) -> Rule:
    """A link route of the addresses below its name."""
    return Rule(name, "in", True, name, container_id, connection)


def test_a_route_is_active_while_a_container_is_there() -> None:
    router = Controlled(rule("a", "broker"), rule("b", None, "brokers"), rule("c"))
    assert not router.way("a").is_active
    first, second = router.container(), router.container("other")
    normal = router.client(container="broker", endpoint="brokers")
    assert list(router.way("a").lanes) == [first.connection]
    assert list(router.way("b").lanes) == [first.connection, second.connection]
    assert not router.way("c").is_active
    first.lose()
    normal.lose()
    assert not router.way("a").is_active
    assert list(router.way("b").lanes) == [second.connection]


def test_a_route_that_is_made_later_finds_the_containers_that_are_there() -> None:
    router = Controlled()
    broker = router.container()
    router.routing.configure([rule("a", "broker"), rule("b", None, "brokers"), rule("c", "x")])
    assert list(router.way("a").lanes) == list(router.way("b").lanes) == [broker.connection]
    assert not router.way("c").is_active
    kept = router.way("a")
    router.routing.configure([rule("a", "broker"), rule("b", "x")])
    assert router.way("a") is kept
    assert not router.way("b").is_active
    assert router.routing.configured("c") is None
    assert len(router.forwarder.link_routes) == 2


def test_what_a_connection_asks_for_goes_with_it() -> None:
    router = Controlled()
    client = router.client()
    scope = client.connection
    asked = [router.routing.ask(Rule(n, "in", False, n, scope=scope)) for n in "ab"]
    assert router.routing.scoped(scope) == {"a": asked[0], "b": asked[1]}
    assert list(asked[0].lanes) == [scope]
    assert list(router.routing.every_scoped()) == asked
    router.routing.withdraw(asked[0])
    assert router.routing.scoped(scope) == {"b": asked[1]}
    assert len(router.forwarder.link_routes) == 1
    client.lose()
    assert router.routing.scoped(scope) == {}
    assert len(router.forwarder.link_routes) == 0


def test_the_last_withdrawn_leaves_nothing_behind() -> None:
    router = Controlled()
    client = router.client()
    router.routing.withdraw(router.routing.ask(rule("a")._replace(scope=client.connection)))
    assert list(router.routing.every_scoped()) == []
    client.lose()


RULES = [rule("a", "x"), rule("a/b", "y"), rule("c", None, "east"), rule("d", "x"), rule("e")]


@given(st.lists(st.tuples(st.sampled_from("cdr"), st.integers(0, 63)), max_size=40))
@examples(100)
def test_containers_and_routes_may_come_and_go_in_any_order(steps: list[tuple[str, int]]) -> None:
    router = Controlled()
    there: list[Client] = []
    for what, number in steps:
        if what == "c":
            there.append(router.container("xyz"[number % 3], ("east", "west")[number % 2]))
        elif what == "d" and there:
            there.pop(number % len(there)).lose()
        elif what == "r":
            router.routing.configure(each for at, each in enumerate(RULES) if number >> at & 1)
    for each in RULES:
        way = router.routing.configured(each.name)
        if way is not None:
            found = router.control.containers.find(each.container_id, each.connection)
            assert set(way.lanes) == set(found if each.container_id or each.connection else ())
    router.routing.configure([])
    assert len(router.forwarder.link_routes) == 0
