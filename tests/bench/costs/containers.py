"""Costs of auto-links and link routes when their container connects or is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from bench.costs.world import WINDOW, Peer, World, measured
from router.amqp.framing import decode_frame_body, decode_frame_header, encode_frame
from router.amqp.performatives import Attach, Begin, Detach, End, Source, Target
from router.config.auto_links import AutoLinkSettings
from router.config.link_routes import LinkRouteSettings
from router.config.model import Configuration
from router.control.auto_links import AutoLinkRules

NAME: Final = "c"
# How long those that leave may take, and those that failed until they are tried again, in looks at
# the clocks.
CHECK_S: Final = 0.25
LEAVING_LOOKS: Final = 8
FAILED_LOOKS: Final = 16


class Container(Peer):
    """A container that answers what the router begins, attaches, detaches and ends."""

    def __init__(self, world: World, *, refuses: bool = False) -> None:
        self.refuses = refuses
        self._heard = b""
        super().__init__(world, NAME, role="route-container", endpoint=NAME, channel_max=65_535)
        self.ends = True

    def begin(self) -> int:
        """Begin nothing: the router does."""
        return 0

    def send(self) -> None:
        """Take all that there is to say, and remember it."""
        connection = self.connection
        connection.write_due()
        octets = bytes(connection.outbox.output.waiting())
        if octets:
            self._heard += octets
            connection.sent(len(octets))

    def talk(self) -> None:
        """Answer until there is nothing to answer."""
        while answers := list(self._answers()):
            self.say(answers)

    def _answers(self) -> Iterator[bytes]:
        heard, self._heard = self._heard, b""
        at = 8 if heard.startswith(b"AMQP") else 0
        while at < len(heard):
            header = decode_frame_header(heard[at : at + 8])
            frame = heard[at : at + header.size]
            at += header.size
            said, _ = decode_frame_body(frame, header.body_offset, header.size)
            for answer in self._answer(header.channel, said):
                yield encode_frame(header.channel, answer)

    def _answer(self, channel: int, said: Any) -> Iterator[Any]:
        if isinstance(said, Begin):
            windows: dict[str, Any] = {"incoming_window": WINDOW, "outgoing_window": WINDOW}
            yield Begin(remote_channel=channel, next_outgoing_id=0, **windows)
        elif isinstance(said, Attach):
            count = 0 if said.role else None
            source, target = said.source, said.target
            if self.refuses:
                source, target = (None, Target()) if said.role else (Source(), None)
            termini: dict[str, Any] = {"source": source, "target": target}
            yield Attach(said.name, 0, not said.role, initial_delivery_count=count, **termini)
            if self.refuses:
                yield Detach(0, closed=True)
        elif isinstance(said, Detach) and not self.refuses:
            yield Detach(0, closed=said.closed)
        elif isinstance(said, End):
            yield End()


def with_auto_links(count: int) -> World:
    """Create a router with `count` auto-links to one container, which is not connected."""
    made = (AutoLinkSettings(address=f"q{n}", direction="in", container_id=NAME)
            for n in range(count))  # fmt: skip
    return _begun(Configuration(auto_links=tuple(made)))


def with_link_routes(count: int) -> World:
    """Create a router with `count` link routes to one container, which is not connected."""
    made = (LinkRouteSettings(prefix=f"r{n}", direction="in", container_id=NAME)
            for n in range(count))  # fmt: skip
    return _begun(Configuration(link_routes=tuple(made)))


def _begun(configuration: Configuration) -> World:
    world = World(configuration)
    # what the start left to the first turn is no part of what is measured
    world.turn(lambda: None)
    world.rest()
    return world


def come(make: Callable[[int], World]) -> Callable[[int], list[float]]:
    """Measure the connection of the container, which answers nothing yet."""

    def run(count: int) -> list[float]:
        world = make(count)
        return measured(world, lambda: Container(world))

    return run


def go(make: Callable[[int], World]) -> Callable[[int], list[float]]:
    """Measure the loss of the container, which has answered nothing."""

    def run(count: int) -> list[float]:
        world = make(count)
        return measured(world, Container(world).lose)

    return run


def attach_all(count: int) -> list[float]:
    """Measure the connection of the container, which answers everything."""
    world = with_auto_links(count)
    return measured(world, lambda: Container(world).talk())


def lose_all(count: int) -> list[float]:
    """Measure the loss of a container to which `count` auto-links are attached."""
    world = with_auto_links(count)
    container = Container(world)
    container.talk()
    return measured(world, container.lose)


def refuse_all(count: int) -> list[float]:
    """Measure a container that refuses `count` auto-links for some seconds."""
    world = with_auto_links(count)

    def act() -> None:
        container = Container(world, refuses=True)
        container.talk()
        for _ in range(FAILED_LOOKS):
            world.wait(CHECK_S)
            container.talk()

    return measured(world, act)


def remove_all(count: int) -> list[float]:
    """So many auto-links are attached, and not configured any more."""
    world = with_auto_links(count)
    container = Container(world)
    container.talk()
    auto_links = world.parts.control.auto_links
    # a thread finds out what is different
    wanted, names = AutoLinkRules(), list(auto_links.rules)

    def act() -> None:
        world.turn(lambda: auto_links.change(wanted, names))
        for _ in range(LEAVING_LOOKS):
            world.rest()
            container.talk()
            world.wait(CHECK_S)

    turns = measured(world, act)
    if auto_links.leaving:
        raise AssertionError(f"{len(auto_links.leaving)} have not left")
    return turns


OPERATIONS: Final[dict[str, Callable[[int], list[float]]]] = {
    "container comes: n auto-links": come(with_auto_links),
    "container comes: n auto-links that it answers": attach_all,
    "container comes: n auto-links that it refuses": refuse_all,
    "container lost: n auto-links that wait for it": go(with_auto_links),
    "container lost: n auto-links": lose_all,
    "auto-links removed: n": remove_all,
    "container comes: n link routes": come(with_link_routes),
    "container lost: n link routes": go(with_link_routes),
}
