"""Link routes follow the containers that come and go, and the connections that ask for them."""

from __future__ import annotations

from typing import Any

import attrs
from hypothesis import given, strategies as st

from router.amqp.performatives import Attach, Begin, Close, Detach, End, Error
from router.amqp.types import Symbol
from router.control.control import ControlPlane
from router.core.link_routes.route_outlets import LinkRoute, LinkRouteRule
from router.engine.deferred import CHANGES_AT_ONCE

from support.examples import examples
from support.in_memory import Client, Router
from support.routed import Peer, sender
from support.transcripts import On, begin
from support.turns import most_in_a_turn


class Controlled(Router):
    """A router whose control hears of all connections."""

    def __init__(self, *rules: LinkRouteRule) -> None:
        super().__init__()
        self.control = ControlPlane(self.forwarder)
        self.routing = self.control.link_routes
        self.routing.configure(rules)

    def event_received(self, connection: Any, event: object) -> None:
        super().event_received(connection, event)
        self.control.event_received(connection, event)

    def container(self, name: str = "broker", endpoint: str = "brokers") -> Client:
        """Connect a container."""
        return self.client(container=name, role="route-container", endpoint=endpoint)

    def way(self, name: str) -> LinkRoute:
        """Return a configured link route."""
        way = self.routing.configured(name)
        assert way is not None
        return way


def rule(
    name: str, container_id: str | None = None, connection: str | None = None
) -> LinkRouteRule:
    """Return a rule for a link route of the addresses below its name."""
    return LinkRouteRule(name, "in", True, name, container_id, connection)


def test_a_route_is_active_while_a_container_is_there() -> None:
    router = Controlled(rule("a", "broker"), rule("b", None, "brokers"), rule("c"))
    assert not router.way("a").is_active
    first, second = router.container(), router.container("other")
    normal = router.client(container="broker", endpoint="brokers")
    assert list(router.way("a").outlets) == [first.connection]
    assert list(router.way("b").outlets) == [first.connection, second.connection]
    assert not router.way("c").is_active
    first.lose()
    normal.lose()
    assert not router.way("a").is_active
    assert list(router.way("b").outlets) == [second.connection]


def test_a_route_that_is_made_later_finds_the_containers_that_are_there() -> None:
    router = Controlled()
    broker = router.container()
    router.routing.configure([rule("a", "broker"), rule("b", None, "brokers"), rule("c", "x")])
    assert list(router.way("a").outlets) == list(router.way("b").outlets) == [broker.connection]
    assert not router.way("c").is_active
    kept = router.way("a")
    router.routing.configure([rule("a", "broker"), rule("b", "x")])
    assert router.way("a") is kept
    assert not router.way("b").is_active
    assert router.routing.configured("c") is None
    assert len(router.forwarder.link_routes) == 2


def test_very_many_routes_hear_of_a_container_over_several_turns() -> None:
    count = 10 * CHANGES_AT_ONCE
    router = Controlled(*(rule(f"r{number}", "broker") for number in range(count)))
    containers: list[Client] = []

    def active() -> int:
        return sum(router.way(f"r{number}").is_active for number in range(count))

    came = most_in_a_turn(router, active, lambda: containers.append(router.container()))
    assert came <= CHANGES_AT_ONCE
    assert active() == count
    assert most_in_a_turn(router, active, containers[0].lose) <= CHANGES_AT_ONCE
    assert active() == 0


def test_a_container_that_goes_at_once_is_forgotten_by_all_its_routes() -> None:
    count = 10 * CHANGES_AT_ONCE
    router = Controlled(*(rule(f"r{number}", "broker") for number in range(count)))
    finish_turn = router.finish_turn
    router.finish_turn = router.end_turn  # type: ignore[method-assign]
    container = router.container()
    container.connection.end_of_input()
    finish_turn()
    assert not any(router.way(f"r{number}").is_active for number in range(count))


def test_what_a_connection_asks_for_goes_with_it() -> None:
    router = Controlled()
    client = router.client()
    scope = client.connection
    rules = [LinkRouteRule(name, "in", False, name, scope=scope) for name in "ab"]
    asked = [router.routing.add_requested(each) for each in rules]
    assert router.routing.requested_by(scope) == {"a": asked[0], "b": asked[1]}
    assert list(asked[0].outlets) == [scope]
    assert list(router.routing.all_requested()) == asked
    router.routing.remove_requested(asked[0])
    assert router.routing.requested_by(scope) == {"b": asked[1]}
    assert len(router.forwarder.link_routes) == 1
    client.lose()
    assert router.routing.requested_by(scope) == {}
    assert len(router.forwarder.link_routes) == 0


def test_the_last_withdrawn_leaves_nothing_behind() -> None:
    router = Controlled()
    client = router.client()
    router.routing.remove_requested(
        router.routing.add_requested(rule("a")._replace(scope=client.connection))
    )
    assert list(router.routing.all_requested()) == []
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
            assert set(way.outlets) == set(found if each.container_id or each.connection else ())
    router.routing.configure([])
    assert len(router.forwarder.link_routes) == 0


class Container(Peer):
    """A container that answers what it hears, or refuses it."""

    def __init__(self, router: Controlled, name: str) -> None:
        super().__init__(router, name, role="route-container", endpoint="brokers")
        self.attached: list[tuple[int, int]] = []
        self.is_lost = False

    def hear(self, *, refuses: bool) -> None:
        """Answer all that has been said."""
        while heard := self.frames():
            for each in heard:
                self._answer(each.channel, each.performative, refuses=refuses)

    def _answer(self, channel: int, said: Any, *, refuses: bool) -> None:
        if isinstance(said, Begin):
            self >> On(channel, begin(remote_channel=channel))
        elif isinstance(said, Attach):
            count = 0 if said.role else None
            answer = attrs.evolve(said, role=not said.role, initial_delivery_count=count)
            if refuses:
                self >> On(channel, attrs.evolve(answer, target=None))
                self >> On(channel, Detach(said.handle, closed=True, error=REFUSED))
            else:
                self >> On(channel, answer)
                self.attached.append((channel, said.handle))
        elif isinstance(said, Detach):
            if (channel, said.handle) in self.attached:
                self.attached.remove((channel, said.handle))
                self >> On(channel, Detach(said.handle, closed=True))
        elif isinstance(said, End):
            self >> On(channel, End())

    def lose(self) -> None:
        """Lose the socket."""
        self.is_lost = True
        self.connection.end_of_input()
        work_off(self.router)


def work_off(router: Router) -> None:
    """End the turn, and do what was put off to later ones."""
    router.forwarder.finish_turn()
    while router.turn.deferred.step():
        router.forwarder.finish_turn()


REFUSED = Error(condition=Symbol("amqp:not-found"))


@given(st.lists(st.tuples(st.sampled_from("caaahhhrdxlt"), st.integers(0, 7)), max_size=60))
@examples(60)
def test_nothing_is_left_of_links_however_containers_come_answer_refuse_and_go(
    steps: list[tuple[str, int]],
) -> None:
    router = Controlled(rule("q", None, "brokers"))
    containers: list[Container] = []
    clients: list[Peer] = []
    open_handles: dict[int, set[int]] = {}
    # by client and the router's handle: its own, which is the link's name as well
    names: dict[tuple[int, int], int] = {}
    routes = router.forwarder.link_routes
    for count, (what, number) in enumerate(steps):
        there = [each for each in containers if not each.is_lost]
        if what == "c" and len(there) < 4:
            containers.append(Container(router, f"c{number % 3}"))
        elif what == "a":
            if len(clients) < 3:
                clients.append(Peer(router, f"client{count}"))
                clients[-1] >> begin()
                open_handles[len(clients) - 1] = set()
            at = number % len(clients)
            clients[at] >> attrs.evolve(sender("q/a", count), name=str(count))
            open_handles[at].add(count)
        elif what in "hr" and there:
            there[number % len(there)].hear(refuses=what == "r")
        elif what == "d" and clients:
            at = number % len(clients)
            if open_handles[at]:
                clients[at] >> Detach(open_handles[at].pop(), closed=True)
        elif what == "x" and there:
            container = there[number % len(there)]
            if container.attached:
                channel, handle = container.attached.pop()
                container >> On(channel, Detach(handle, closed=True, error=REFUSED))
        elif what == "l" and there:
            there[number % len(there)].lose()
        elif what == "t":
            router.turn.now += number
        for at, client in enumerate(clients):
            for each in client.frames():
                said = each.performative
                assert not isinstance(said, Close)
                if isinstance(said, Attach):
                    names[at, said.handle] = int(said.name)
                elif isinstance(said, Detach):
                    handle = names.pop((at, said.handle))
                    if handle in open_handles[at]:
                        open_handles[at].remove(handle)
                        client >> Detach(handle, closed=True)
        way = router.way("q")
        assert way.links <= routes.links
        live = [each.connection for each in containers if not each.is_lost]
        assert set(way.outlets) == set(live)
    for container in containers:
        if not container.is_lost:
            container.lose()
    assert routes.links == 0
    assert len(router.table.routed) == 0
    assert len(router.forwarder.routed) == 0
    assert not router.way("q").is_active
    for client in clients:
        client.connection.end_of_input()
    work_off(router)
    assert len(router.forwarder.link_names) == 0
    assert routes._links_of == {}
