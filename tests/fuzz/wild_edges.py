"""Fuzz what interiors take from edges: an edge says whatever a script decides; nobody is disturbed.

Two interiors have an edge each that behaves well, with clients that send to each other. The wild
one is a third edge: it says what an edge may say and what it may not, and octets that are nothing.
"""

from __future__ import annotations

from router.control.edge import messages as m
from router.core.link_routes.link_routes import is_topological

from fuzz.choices import Choices
from support.edges import Offering, World

NAMES = ("in", "out", "x", "E", "W", "I")
PLACES = ("_edge/E/x", "_edge/W/x", "_topo/0/I/x", "_topo/0/J/x", "$management", "x" * 300)
# Keys of addresses and of link routes, and those that are neither.
ADDRESSES = (*(f"M0{name}" for name in (*NAMES, *PLACES)), "HE", "HW", "HF", "M9x", "MFx", "MCx")
ROUTES = ("Cx/#", "Dx/*", "Cx", "Dx", *(f"{letter}{place}" for letter in "CD" for place in PLACES))
WRONG = ("RI", "M", "H", "?x", "C", "C#", "H" * 300)
MOST_MESSAGES = 40
WILD = "W"
PATIENCE_S = 30


def edges(script: bytes) -> None:
    """Run a whole script, and check that nothing is left of the wild edge once it has gone."""
    choices = Choices(script)
    world = _world(choices.octet())
    flows = [world.sender("E", "in"), world.sender("I", "out"), world.sender("F", "far")]
    world.run(1)
    before = _held(world)
    world.edge(WILD, "I", edge_heartbeat_seconds=1)
    world.host(WILD).start()
    world.run(1)
    for _ in range(MOST_MESSAGES):
        if choices.over:
            break
        octets = said(choices)
        _say(world, octets)
        if choices.one_in(4):
            _check(world, flows, 1)
    _check(world, flows, 3)
    world.host(WILD).kill()
    world.run(PATIENCE_S)
    _check(world, flows, 3)
    assert _held(world) == before
    world.check()


def _world(seed: int) -> World:
    world = World(seed)
    for interior in "IJ":
        world.interior(interior)
    world.between("I", "J")
    world.edge("E", "I")
    world.edge("F", "J")
    world.receiver("I", "in")
    world.receiver("E", "out")
    world.receiver("E", "far")
    world.start()
    return world


def _say(world: World, octets: bytes) -> None:
    """Have the wild edge send this on its uplink, once it has one again."""
    host = world.host(WILD)
    edge = world.edge_at(WILD)
    world.network.run_until(lambda: bool(edge.proxies.reported_states), 10)

    def say() -> None:
        for connection in list(edge.proxies.reported_states):
            edge.port.send(connection, octets)

    host.turn(say)
    world.run(0.05)


def _check(world: World, flows: list[Offering], count: int) -> None:
    """Check that messages of the others go on, all of them, and no routers' names are routed."""
    for name in "IJ":
        known = world.host(name).forwarder.link_routes.routes()
        assert not [each.pattern for each in known if is_topological(each.pattern)]
    for flow in flows:
        before = flow.count()["accepted"]
        world.offer(flow, count, 0.2)
        assert flow.count() == {"accepted": before + count}, flow.outcomes


def _held(world: World) -> list[object]:
    """Return what the interiors hold because of edges, in all."""
    found: list[object] = []
    for name in "IJ":
        forwarder, mine = world.host(name).forwarder, world.edges_of(name)
        found += [len(mine.by_connection), sorted(mine.active), len(mine.watching.by_key)]
        found += [len(forwarder.network.edge_sides), len(list(mine.lines.every()))]
        found += [len(forwarder.table), sorted(forwarder.reach.own_interests)]
        found += [len(list(forwarder.link_routes.routes())), len(mine.routes.advertised)]
    return found


def said(choices: Choices) -> bytes:
    """Return the octets of a message, as a rule one that an edge may send."""
    octets = m.encode_message(_message(choices))
    if choices.wild():
        at = choices.below(len(octets))
        return octets[:at] + choices.octets(20) + octets[at + choices.below(9) :]
    return octets


def _message(choices: Choices) -> m.Message:
    kind = choices.below(8)
    if kind == 0:
        return m.UplinkUse(choices.one_in(2))
    if kind == 1:
        return m.Beat(choices.near(7), choices.mostly(8000, (0, 1, 2**32 - 1)))
    if kind == 2 and choices.wild():
        return m.Reached((m.InteriorAddress(choices.of(ADDRESSES), choices.one_in(2), 255),))
    likely, others = (ADDRESSES, ROUTES) if kind < 5 else (ROUTES, ADDRESSES)
    keys = [tuple(_key(choices, likely, others) for _ in range(choices.below(5))) for _ in "12"]
    return m.Watch(*keys) if kind < 5 else m.Routes(*keys)


def _key(choices: Choices, likely: tuple[str, ...], others: tuple[str, ...]) -> str:
    return choices.of(choices.of((others, WRONG)) if choices.wild() else likely)
