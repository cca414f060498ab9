"""Simulated router, made of the same parts as a real one, without sockets."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import attrs

from router.config.model import Configuration
from router.net.hub import READ_BYTES
from router.net.router_hub import RouterHub
from router.net.shutdown import close_connections_now
from router.parts import Parts
from router.simulation.wires import WireEnd

if TYPE_CHECKING:
    from router.control.control import ControlPlane
    from router.core.forwarding.forward import Forwarder
    from router.core.routers.routing_state import RoutingState
    from router.simulation.virtual_clock import EventScheduler

# Time for the output of the last turn of a router that stops in order.
FAREWELL_S = 1.0
LARGEST_FRAME_BYTES = 2**20
TOKEN_BITS = 120


def shared_buffer() -> memoryview:
    """Return a read buffer for all hubs, which never read at the same time."""
    return memoryview(bytearray(READ_BYTES + LARGEST_FRAME_BYTES))


class SimulatedRouter:
    """Router that can be killed, started again, or paused.

    Each start begins a new life, with new `parts`. The functions in `on_start` are called with the
    router at the start of each life, before anything else happens.
    """

    def __init__(
        self,
        name: str,
        configuration: Configuration,
        scheduler: EventScheduler,
        seed: str,
        buffer: memoryview,
    ) -> None:
        router = attrs.evolve(configuration.router, id=name)
        self.name = name
        self.configuration = attrs.evolve(configuration, router=router)
        self.scheduler = scheduler
        self.chance = Random(f"{seed}/{name}")
        self._buffer = buffer
        self._parts: Parts | None = None
        self.is_paused = False
        # whether its life is about to end
        self.is_leaving = False
        # number of starts
        self.lives = 0
        self.ends: list[WireEnd] = []
        self.on_start: list[Callable[[SimulatedRouter], None]] = []
        self._life = object()

    @property
    def is_alive(self) -> bool:
        """Return whether the router's process exists."""
        return self._parts is not None

    @property
    def runs(self) -> bool:
        """Return whether the router's process exists and is not paused."""
        return self._parts is not None and not self.is_paused

    @property
    def parts(self) -> Parts:
        """Return the parts of the router, which must be alive."""
        assert self._parts is not None, f"{self.name} is not alive"
        return self._parts

    @property
    def hub(self) -> RouterHub:
        """Return the hub of the router's connections."""
        return self.parts.hub

    @property
    def forwarder(self) -> Forwarder:
        """Return the core of the router."""
        return self.hub.forwarder

    @property
    def reach(self) -> RoutingState:
        """Return the router's view of the network: paths, and routers with receivers."""
        return self.forwarder.reach

    @property
    def control(self) -> ControlPlane:
        """Return the router's control plane."""
        return self.parts.control

    def start(self) -> None:
        """Start a new life, unless the router is alive; no state of an earlier life is left."""
        if self.is_alive:
            return
        self.lives += 1
        self.is_paused = self.is_leaving = False
        self._parts = parts = self._make_parts()
        parts.hub.buffer = self._buffer
        parts.hub.wake = self._work_left  # type: ignore[method-assign]
        self._life = life = object()
        for callback in self.on_start:
            callback(self)
        # routers that start at the same time should not check their timers at the same time
        first = self.chance.uniform(0, parts.hub.until_next_check_s())
        self.scheduler.after(first, lambda: self._check_timers(life))

    def _make_parts(self) -> Parts:
        return Parts(
            self.configuration,
            lambda: f"{self.chance.getrandbits(TOKEN_BITS):x}",
            self.scheduler.clock,
            self.scheduler.clock,
        )

    def _check_timers(self, life: object) -> None:
        if life is not self._life or self.is_paused:
            return
        hub = self.hub
        hub.check_timers()
        self.scheduler.after(hub.until_next_check_s(), lambda: self._check_timers(life))

    def _work_left(self) -> None:
        self.scheduler.after(0, self._do_deferred_work)

    def _do_deferred_work(self) -> None:
        """Do one step of deferred work.

        A time limit for more steps would never be reached, because the virtual clock stands still.
        """
        if self.runs and self.hub.has_work():
            self.hub.do_deferred_work(0)

    def enter(self, end: WireEnd) -> None:
        """Add an end of a connection to the current life."""
        self.ends = [each for each in self.ends if not each.is_over]
        self.ends.append(end)

    def turn(self, act: Callable[[], object]) -> None:
        """Call `act` in a turn of its own."""
        self.hub.begin_turn()
        act()
        self.hub.finish_turn()

    def kill(self) -> None:
        """End this life like `kill -9`: no close is sent, but peers notice the lost connections."""
        if self._parts is None:
            return
        self._life = object()
        self.is_paused = False
        ends, self.ends = self.ends, []
        for end in ends:
            end.vanish()
        self._parts = None

    def stop(self, why: str = "the router is shutting down") -> None:
        """End this life gracefully, with a close on each connection."""
        self.is_leaving = True
        close_connections_now(self.hub, why)
        life = self._life
        self.scheduler.after(FAREWELL_S, lambda: self.kill() if life is self._life else None)

    def pause(self) -> None:
        """Pause the router like SIGSTOP: connections stay open, and nothing is read."""
        self.is_paused = True

    def resume(self) -> None:
        """Resume after a pause, and read octets that have arrived meanwhile."""
        if not self.is_alive or not self.is_paused:
            return
        self.is_paused = False
        for end in list(self.ends):
            end.work()
        if self.is_alive:
            self._life = life = object()
            self._check_timers(life)
