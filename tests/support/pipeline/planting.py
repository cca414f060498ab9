"""Incidents with known causes, which were planted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs
import pyarrow.compute as pc

from router.amqp.redirects import Redirect
from router.simulation.router_connections import RouterConnection
from router.simulation.running import without_log

from support.pipeline.clients import Taker
from support.pipeline.scenes import Scene, Stream, Tables


@attrs.frozen
class Planted:
    """Cause of a kind; `subject` is the router, line, container, link or address at fault."""

    kind: str
    subject: str


@attrs.frozen
class Incident:
    """Causes planted in a scene, and the records of its routers."""

    seed: int
    planted: tuple[Planted, ...]
    tables: Tables


@attrs.define
class Free:
    """Streams and lines without a fault yet, so that two causes do not overlap."""

    scene: Scene
    streams: list[Stream]
    lines: list[tuple[str, str]]

    def stream(self, *, is_alone: bool = False) -> Stream:
        """Take a stream; with `is_alone`, one that has a single receiver if there is one."""
        wanted = [each for each in self.streams if len(each.takers) == 1] if is_alone else []
        found = self.scene.chance.choice(wanted or self.streams)
        self.streams.remove(found)
        return found

    def line(self) -> tuple[RouterConnection, str]:
        """Take a line that is used; return its connection and its name."""
        found = self.scene.chance.choice(self.lines)
        self.lines.remove(found)
        return self.scene.network.connections[found], "-".join(sorted(found))

    def router(self) -> str:
        """Take a router that messages pass, with its lines; return its name."""
        names = sorted({name for line in self.lines for name in line})
        found = self.scene.chance.choice(names)
        self.lines = [line for line in self.lines if found not in line]
        return found


def _nothing(free: Free) -> str:
    return ""


def _slow_router(free: Free) -> str:
    scene, name = free.scene, free.router()
    host, scheduler = scene.network.hosts[name], scene.network.scheduler
    pause_s, every_s = scene.chance.uniform(0.1, 0.18), 0.2

    def again() -> None:
        host.pause()
        scheduler.after(pause_s, host.resume)
        scheduler.after(every_s, again)

    again()
    return name


def _slow_line(free: Free) -> str:
    # TCP retransmits what is lost, so a bad line is one with a long delay
    connection, name = free.line()
    distance, chance = connection.distance, free.scene.chance
    if chance.random() < 0.5:
        more_s = chance.uniform(0.02, 0.1)
        connection.move(attrs.evolve(distance, delay_s=distance.delay_s + more_s))
    else:
        connection.move(attrs.evolve(distance, jitter_s=chance.uniform(0.05, 0.25)))
    return name


def _flapping_line(free: Free) -> str:
    connection, name = free.line()
    scheduler, chance = free.scene.network.scheduler, free.scene.chance

    def again() -> None:
        connection.reset()
        scheduler.after(chance.uniform(1, 2), again)

    again()
    return name


def _taker(free: Free) -> Taker:
    return free.stream(is_alone=free.scene.chance.random() < 0.7).takers[0]


def _slow_receiver(free: Free) -> str:
    taker = _taker(free)
    taker.service_s = free.scene.chance.uniform(0.1, 0.3)
    return taker.name


def _stuck_receiver(free: Free) -> str:
    taker = _taker(free)
    taker.is_stuck = True
    return taker.name


def _expiring(free: Free) -> str:
    scene = free.scene
    stream = free.stream(is_alone=True)
    taker = stream.takers[0]
    taker.is_stuck = scene.chance.random() < 0.6
    taker.service_s = 1.0
    return taker.name


def _steal_war(free: Free) -> str:
    taker = free.stream().takers[0]
    rival = Taker(
        free.scene.network,
        taker.name,
        taker.router,
        taker.address,
        taker.service_s,
        taker.credit,
        key=f"rival of {taker.name}",
    )
    rival.container.start()
    return f"{taker.name}-link"


def _redirect_loop(free: Free) -> str:
    scene, stream = free.scene, free.stream()
    here = stream.talker.router
    there = scene.chance.choice([name for name in scene.routers if name != here])
    for router, target in ((here, there), (there, here)):
        redirects = scene.network.hosts[router].parts.table.redirects
        to = Redirect(hostname=target, network_host=target)
        redirects.add_addresses(False, stream.talker.address, to, senders=True, receivers=False)
    stream.talker.container.lose()
    return stream.talker.address


def _wrong_cost(free: Free) -> str:
    connection, name = free.line()
    connection.set_cost(free.scene.chance.choice((20, 50, 100)))
    return name


def _hot_address(free: Free) -> str:
    stream = free.stream(is_alone=True)
    stream.talker.rate *= free.scene.chance.uniform(5, 7)
    return stream.talker.address


def _clock_skew(free: Free) -> str:
    scene = free.scene
    name = scene.chance.choice(sorted({name for line in scene.used_lines for name in line}))
    sign = scene.chance.choice((-1, 1))
    scene.records.set_clock(name, sign * scene.chance.uniform(0.02, 1.5))
    return name


KINDS: Final[dict[str, Callable[[Free], str]]] = {
    "nothing": _nothing,
    "slow-router": _slow_router,
    "slow-line": _slow_line,
    "flapping-line": _flapping_line,
    "slow-receiver": _slow_receiver,
    "stuck-receiver": _stuck_receiver,
    "expiring": _expiring,
    "steal-war": _steal_war,
    "redirect-loop": _redirect_loop,
    "wrong-cost": _wrong_cost,
    "hot-address": _hot_address,
    "clock-skew": _clock_skew,
}
"""Kinds of causes. Each function plants one, and returns its subject."""


def kinds_of(seed: int) -> tuple[str, ...]:
    """Return the kinds to plant: each kind in turn, with a second one in every fourth incident."""
    names = list(KINDS)
    first = names[seed % len(names)]
    second = names[(seed * 7 + seed // len(names)) % len(names)]
    apart = second not in (first, "nothing") and first != "nothing"
    return (first, second) if seed % 4 == 3 and apart else (first,)


def _prepare(scene: Scene, kinds: tuple[str, ...]) -> None:
    """Configure clients as some kinds need them, from before the fault."""
    for stream in scene.streams:
        if "expiring" in kinds:
            stream.talker.be_anonymous()
            stream.talker.set_ttl(800)
        for taker in stream.takers:
            if "hot-address" in kinds:
                taker.service_s = 0.035


def _as_recorded(planted: Planted, scene: Scene, tables: Tables) -> Planted:
    """Return a cause as the records show it.

    A receiver is `expiring` if messages for its address have expired, and otherwise stuck or slow.
    """
    if planted.kind not in ("expiring", "stuck-receiver"):
        return planted
    takers = (taker for stream in scene.streams for taker in stream.takers)
    taker = next(each for each in takers if each.name == planted.subject)
    rows = tables["deliveries"]
    is_expired = pc.and_(
        pc.equal(rows.column("address"), taker.address),
        pc.fill_null(pc.equal(rows.column("reason"), "trioute:expired"), False),
    )
    if pc.any(is_expired).as_py():
        return Planted("expiring", taker.name)
    return Planted("stuck-receiver" if taker.is_stuck else "slow-receiver", taker.name)


def plant(seed: int, kinds: tuple[str, ...] | None = None) -> Incident:
    """Simulate an incident, of given kinds or of those for its seed."""
    wanted = kinds_of(seed) if kinds is None else kinds
    with without_log():
        is_ring = True if "wrong-cost" in wanted else None
        scene = Scene(seed, is_ring=is_ring)
        _prepare(scene, wanted)
        scene.begin()
        free = Free(scene, list(scene.streams), list(scene.used_lines))
        planted = []
        for kind in wanted:
            if free.lines:
                subject = KINDS[kind](free)
                if subject:
                    planted.append(Planted(kind, subject))
        tables = scene.finish()
    recorded = tuple(_as_recorded(each, scene, tables) for each in planted)
    return Incident(seed, recorded, tables)
