"""Costs of many addresses, link routes or messages at an edge router, or at its interior router.

The router at the other end is a peer that says only what it is told to; what comes by its control
link is passed on as if it had come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal

import attrs

from bench.costs.world import (
    FRAMES_AT_ONCE,
    AtMost,
    Operation,
    Peer,
    World,
    attaches,
    detaches,
    in_one_session,
    measured,
    transfers,
)
from router.amqp.encode import encode_value
from router.amqp.types import Described, ULong
from router.config.model import AddressSettings, Configuration
from router.config.router_settings import RouterSettings
from router.control.edge.advertised_routes import MAX_FROM_EDGE
from router.control.edge.edge import EdgeRouter
from router.control.edge.edges import Edges
from router.control.edge.messages import (
    InteriorAddress,
    Message,
    Routes,
    UplinkUse,
    encode_message,
    reached,
    routes,
    watches,
)
from router.control.edge.routes import FEATURE
from router.control.network.steps import do_all
from router.core.link_routes.route_outlets import UplinkOutlet
from router.core.routers.membership import INSTANCE
from router.core.routers.routing_state import Path

FEATURES: Final = frozenset((FEATURE,))
MOST_CHANNELS: Final = 65_535
# So many links lead to an edge at most, or up: each has a session of its own.
MOST_LINES: Final = 30_000
TOGGLES: Final = 10
MUCH: Final = 10**6
HELD_S: Final = 10.0
CHECK_S: Final = 0.25
IDLE_S: Final = 30.0
HELD: Final = AddressSettings(
    pattern="#", hold_seconds=HELD_S, hold_messages=MUCH, hold_bytes=1 << 30
)
PROPERTIES: Final = ULong(0x73)
VALUE: Final = ULong(0x77)


class Side:
    """A router of one of these two kinds, and its connections to the other one."""

    def __init__(self, mode: Literal["interior", "edge"], *rules: AddressSettings) -> None:
        router = RouterSettings(mode=mode, id="me")
        self.world = World(Configuration(router=router, addresses=rules))
        control = self.world.parts.control
        part = control.edge if mode == "edge" else control.edges
        assert part is not None
        self.part: EdgeRouter | Edges = part

    def connect(self, name: str, *, is_used: bool = True) -> Any:
        """Open a connection to a router of the other kind; an edge uses it at once if `is_used`."""
        connection = self.connection(name)
        self.come(connection, name)
        if is_used and isinstance(self.part, Edges):
            self.say(connection, [UplinkUse(True)])
        return connection

    def connection(self, name: str) -> Any:
        """Open a connection that has no control link yet."""
        peer = self.world.peer(name, channel_max=MOST_CHANNELS)
        peer.ends = True
        connection: Any = peer.connection
        connection.channel_max = MOST_CHANNELS
        connection.settings = attrs.evolve(connection.settings, role="edge")
        connection.is_client = isinstance(self.part, EdgeRouter)
        connection.remote_open = attrs.evolve(connection.remote_open, properties={INSTANCE: 1})
        return connection

    def come(self, connection: Any, name: str) -> None:
        """Report that the control link of a connection is attached."""
        self.act(lambda: self.part.connection_came(connection, name, FEATURES))

    def leave(self, connection: Any) -> None:
        """Report that a connection is closed."""
        self.act(lambda: self.part.connection_left(connection))

    def say(self, connection: Any, messages: Iterable[Message]) -> None:
        """Receive control messages, each in a turn of its own."""
        for message in messages:
            octets = encode_message(message)

            def hear(octets: bytes = octets) -> None:
                self.part.heard(connection)
                do_all(self.part.receive(connection, octets))

            self.act(hear)

    def act(self, act: Callable[[], object]) -> None:
        """Run `act` in a turn, and everything that follows from it."""
        self.world.turn(act)
        self.world.rest()


def _keys(count: int, start: str) -> Iterator[tuple[str, bool]]:
    return ((f"{start}{number}", True) for number in range(count))


def _with_edge(*messages: Message) -> tuple[Side, Any]:
    side = Side("interior")
    connection = side.connect("edge")
    side.say(connection, messages)
    return side, connection


# An interior router.


def watch(count: int) -> list[float]:
    """Measure an edge that watches `count` addresses."""
    side, edge = _with_edge()
    messages = list(watches(_keys(count, "M0q")))
    return measured(side.world, lambda: side.say(edge, messages))


def lose_watching(count: int) -> list[float]:
    """Measure the loss of an edge that watches `count` addresses."""
    side, edge = _with_edge(*watches(_keys(count, "M0q")))
    return measured(side.world, lambda: side.leave(edge))


def change_ways(count: int) -> list[float]:
    """Measure a change of paths where an edge watches `count` addresses of other routers."""
    side, _ = _with_edge(*watches(_keys(count, "M0_topo/0/r/")))
    neighbour = side.world.peer("b").connection
    reach = side.world.forwarder.reach

    def change() -> None:
        reach.set_paths({"b": neighbour}, {"r": Path("b", 1)}, lambda _: None)

    return measured(side.world, lambda: side.act(change))


def tell_routes(count: int) -> list[float]:
    """Measure an edge that has containers for `count` link routes."""
    side, edge = _with_edge()
    messages = list(routes(_keys(count, "Cr")))
    return measured(side.world, lambda: side.say(edge, messages))


def lose_routes(count: int) -> list[float]:
    """Measure the loss of an edge that has containers for `count` link routes."""
    side, edge = _with_edge(*routes(_keys(count, "Cr")))
    return measured(side.world, lambda: side.leave(edge))


def toggle_routes(count: int) -> list[float]:
    """Measure an edge with `count` link routes that changes its use of the uplink in one turn.

    It stops and starts to use the uplink, `TOGGLES` changes in all.
    """
    side, edge = _with_edge(*routes(_keys(count, "Cr")))
    messages = [encode_message(UplinkUse(bool(number & 1))) for number in range(TOGGLES)]

    def toggle() -> None:
        for octets in messages:
            do_all(side.part.receive(edge, octets))

    return measured(side.world, lambda: side.act(toggle))


def hear_of_routes(count: int) -> list[float]:
    """Measure the arrival of an edge that learns `count` link routes of another edge."""
    side, _ = _with_edge(*routes(_keys(count, "Cr")))
    other = side.connection("other")
    return measured(side.world, lambda: side.come(other, "other"))


def hear_of_routes_first(count: int) -> list[float]:
    """Measure the arrival of the first edge, which learns `count` link routes of other routers."""
    side = Side("interior")
    routing = side.world.forwarder.link_routes
    place = side.world.peer("b").connection
    for number in range(count):
        routing.open_far("in", f"r{number}/#", UplinkOutlet("b", place))
    edge = side.connection("edge")
    return measured(side.world, lambda: side.come(edge, "edge"))


def _sent_to_edge(count: int) -> tuple[Side, Any, Peer]:
    side, edge = _with_edge()
    sender = side.world.peer()
    sender.say(attaches(count, lambda number: f"_edge/edge/q{number}", receives=False))
    return side, edge, sender


def stop_sending_to_edge(count: int) -> list[float]:
    """Measure the end of `count` addresses at an edge that became idle."""
    side, _, sender = _sent_to_edge(count)
    sender.say(detaches(count))

    def wait() -> None:
        side.world.wait(IDLE_S)
        side.world.wait(1.0)

    return measured(side.world, wait)


def leave_uplink(count: int) -> list[float]:
    """Measure an edge that stops to use an uplink with `count` links to the edge."""
    side, edge, _ = _sent_to_edge(count)
    return measured(side.world, lambda: side.say(edge, [UplinkUse(False)]))


def move(count: int) -> list[float]:
    """Measure an edge that stops to use its uplink while `count` other addresses are in use."""
    side, edge = _with_edge()
    for number in range(count):
        side.world.forwarder.table.enter(f"in-use/{number}")
    return measured(side.world, lambda: side.say(edge, [UplinkUse(False)]))


# An edge router.


def _edge_with(count: int, *, receives: bool) -> tuple[Side, Any, Peer]:
    side = Side("edge")
    uplink = side.connect("interior")
    peer = side.world.peer()
    peer.say(attaches(count, lambda number: f"q{number}", receives=receives))
    return side, uplink, peer


def lose_uplink(*, receives: bool) -> Operation:
    """Measure the loss of the only uplink with `count` addresses in use."""

    def lose(count: int) -> list[float]:
        side, uplink, _ = _edge_with(count, receives=receives)
        return measured(side.world, lambda: side.leave(uplink))

    return lose


def come_uplink(*, receives: bool) -> Operation:
    """Measure the arrival of another uplink after the only one was lost."""

    def come(count: int) -> list[float]:
        side, uplink, _ = _edge_with(count, receives=receives)
        side.leave(uplink)
        other = side.connection("other")
        return measured(side.world, lambda: side.come(other, "other"))

    return come


def _reached(count: int) -> list[Message]:
    return list(reached(InteriorAddress(f"M0q{number}", True, 1) for number in range(count)))


def reach(count: int) -> list[float]:
    """Measure `count` addresses that begin to have consumers beyond the uplink."""
    side, uplink, _ = _edge_with(count, receives=False)
    return measured(side.world, lambda: side.say(uplink, _reached(count)))


def stop_sending_up(*, leads_up: bool) -> Operation:
    """Measure the end of `count` idle addresses, with links up to the interior or without."""

    def stop(count: int) -> list[float]:
        side, uplink, sender = _edge_with(count, receives=False)
        if leads_up:
            side.say(uplink, _reached(count))
        sender.say(detaches(count))

        def wait() -> None:
            side.world.wait(IDLE_S)
            side.world.wait(1.0)

        return measured(side.world, wait)

    return stop


def _holding(count: int, addresses: int = 1) -> Side:
    """Create an edge that holds `count` messages at `addresses` addresses."""
    side = Side("edge", HELD)
    for first in range(0, count, FRAMES_AT_ONCE):
        sender = side.world.peer()
        sender.say(attaches(1, lambda _: None, receives=False))
        (session,) = sender.connection.local_sessions.values()
        (link,) = session.local_links.values()
        link.credit = MUCH
        for number in range(first, min(count, first + FRAMES_AT_ONCE)):
            properties = encode_value(Described(PROPERTIES, [None, None, f"q{number % addresses}"]))
            message = properties + encode_value(Described(VALUE, "x"))
            sender.transfer(transfers(1, first=number - first, message=message))
    waiting = sum(address.waiting.count for address in _edge(side).proxies.holding.holds)
    assert waiting == count, f"{waiting} messages are held"
    return side


def _edge(side: Side) -> EdgeRouter:
    assert isinstance(side.part, EdgeRouter)
    return side.part


def look_at_held(count: int) -> list[float]:
    """Measure a look at the clocks while `count` messages are held at an address."""
    side = _holding(count)
    return measured(side.world, lambda: side.world.wait(CHECK_S))


def look_at_holds(count: int) -> list[float]:
    """Measure a look at the clocks while a message is held at each of `count` addresses."""
    side = _holding(count, count)
    return measured(side.world, lambda: side.world.wait(CHECK_S))


def release_held(count: int) -> list[float]:
    """Measure the release of `count` messages held for too long at an address."""
    side = _holding(count)
    return measured(side.world, lambda: side.world.wait(HELD_S + 1))


def release_holds(count: int) -> list[float]:
    """Measure the release of messages held for too long, one at each of `count` addresses."""
    side = _holding(count, count)
    return measured(side.world, lambda: side.world.wait(HELD_S + 1))


def hold_too_much(count: int) -> list[float]:
    """Measure a look at `count` held messages, of which all but a few exceed the bounds."""
    side = _holding(count)
    holding = _edge(side).proxies.holding
    for hold in holding.holds.values():
        hold.bounds = attrs.evolve(hold.bounds, messages=10)
        hold.seen = -1
    return measured(side.world, lambda: side.world.wait(CHECK_S))


def send_held_up(count: int) -> list[float]:
    """Measure the arrival of an uplink while `count` messages are held at an address."""
    side = _holding(count)
    uplink = side.connection("interior")
    return measured(side.world, lambda: side.come(uplink, "interior"))


def send_holds_up(count: int) -> list[float]:
    """Measure the arrival of an uplink while each of `count` addresses holds a message."""
    side = _holding(count, count)
    uplink = side.connection("interior")
    return measured(side.world, lambda: side.come(uplink, "interior"))


def hear_routes(count: int) -> list[float]:
    """Measure an interior router that announces `count` link routes."""
    side = Side("edge")
    uplink = side.connect("interior")
    messages = list(routes(_keys(count, "Cr")))
    return measured(side.world, lambda: side.say(uplink, messages))


def lose_routes_beyond(count: int) -> list[float]:
    """Measure the loss of an uplink with `count` link routes to one that has none."""
    side = Side("edge")
    uplink = side.connect("interior")
    side.say(uplink, routes(_keys(count, "Cr")))
    other = side.connection("other")

    def lose() -> None:
        side.leave(uplink)
        side.come(other, "other")
        side.say(other, [Routes()])

    return measured(side.world, lose)


def _at_most(most: int, operation: Operation) -> AtMost:
    return AtMost(most, operation)


OPERATIONS: Final[dict[str, Operation]] = {
    "interior: n addresses watched": watch,
    "interior: edge lost that watches n addresses": lose_watching,
    "interior: ways change to n addresses watched": change_ways,
    "interior: n link routes told": _at_most(MAX_FROM_EDGE, tell_routes),
    "interior: edge lost with n link routes": _at_most(MAX_FROM_EDGE, lose_routes),
    "interior: use changed ten times by an edge with n link routes": _at_most(
        MAX_FROM_EDGE, toggle_routes
    ),
    "interior: edge comes, n link routes of another": _at_most(MAX_FROM_EDGE, hear_of_routes),
    "interior: first edge comes, n link routes": hear_of_routes_first,
    "interior: n addresses at an edge idle": _at_most(MOST_LINES, stop_sending_to_edge),
    "interior: uplink left with n links to the edge": _at_most(MOST_LINES, leave_uplink),
    "interior: uplink left with n addresses in use": move,
    "edge: uplink lost, n addresses sent to": in_one_session(lose_uplink(receives=False)),
    "edge: uplink lost, n addresses received from": _at_most(
        MOST_LINES, lose_uplink(receives=True)
    ),
    "edge: uplink comes, n addresses sent to": in_one_session(come_uplink(receives=False)),
    "edge: uplink comes, n addresses received from": _at_most(
        MOST_LINES, come_uplink(receives=True)
    ),
    "edge: n addresses reached": _at_most(MOST_LINES, reach),
    "edge: n addresses idle": in_one_session(stop_sending_up(leads_up=False)),
    "edge: n addresses idle with links up": _at_most(MOST_LINES, stop_sending_up(leads_up=True)),
    "edge: clocks looked at, n messages held": look_at_held,
    "edge: clocks looked at, n holds": look_at_holds,
    "edge: n messages held for too long": release_held,
    "edge: n holds of a message for too long": release_holds,
    "edge: n messages held, nearly all too much": hold_too_much,
    "edge: uplink comes, n messages held": send_held_up,
    "edge: uplink comes, n holds": send_holds_up,
    "edge: n link routes heard": hear_routes,
    "edge: uplink lost with n link routes": lose_routes_beyond,
}
