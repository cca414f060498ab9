"""Connections from one simulated router's connector to another one's listener.

A lost connection is opened again, with the same back-off as by a real router's connector.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from random import Random

import attrs

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.engine.connection import Connection
from router.engine.settings import ConnectionSettings
from router.net.connectors import LASTING_CONNECTION_S, backoff_delays
from router.net.dialling import CONNECT_TIMEOUT_S
from router.net.endpoint_names import endpoint_name
from router.net.endpoints import connector_settings, listener_settings
from router.simulation.host import SimulatedRouter
from router.simulation.virtual_clock import EventScheduler
from router.simulation.wires import Distance, Wire, WireEnd

# When a system repeats its SYN, in seconds from the first one.
KNOCKS_S = (1.0, 3.0, 7.0)


class RouterConnection:
    """Connection from `dialler` to `acceptor`, which is opened again whenever it is lost."""

    def __init__(
        self,
        scheduler: EventScheduler,
        dialler: SimulatedRouter,
        acceptor: SimulatedRouter,
        connector: ConnectorSettings,
        listener: ListenerSettings,
        distance: Distance,
        chance: Random,
    ) -> None:
        self.scheduler = scheduler
        self.dialler = dialler
        self.acceptor = acceptor
        self.connector = connector
        self.listener = listener
        self.distance = distance
        self.chance = chance
        # whether the direction from the dialler is cut, and the one from the acceptor
        self.is_cut = [False, False]
        self.wire: Wire | None = None
        self.ends: tuple[WireEnd, WireEnd] | None = None
        self._attempt = object()
        self._waits: Iterator[float] = backoff_delays(chance.uniform)
        dialler.on_start.append(lambda _: self._begin())

    def is_up(self) -> bool:
        """Return whether both ends are open, and octets get through in both directions."""
        ends = self.ends
        return ends is not None and all(e.is_open and not e.is_over for e in ends) and self.is_clear

    @property
    def is_clear(self) -> bool:
        """Return whether octets get through in both directions."""
        return not any(self.is_cut)

    def _begin(self) -> None:
        """Begin to connect; called when the dialler has started."""
        self._waits = backoff_delays(self.chance.uniform)
        self._attempt = attempt = object()
        self.scheduler.after(0, lambda: self._try_connect(attempt, self.scheduler.now, 0))

    def _try_connect(self, attempt: object, began: float, knocks: int) -> None:
        """Connect if octets get through; otherwise try again later, as TCP repeats a SYN.

        `began` is the time of the first SYN, and `knocks` is how many of them got no answer so far.
        """
        if attempt is not self._attempt or not self.dialler.is_alive:
            return
        if self.is_clear:
            self.scheduler.after(2 * self.distance.delay_s, lambda: self._connect(attempt))
            return
        if knocks == len(KNOCKS_S):
            self.scheduler.at(began + CONNECT_TIMEOUT_S, lambda: self._retry(attempt))
        else:
            next_at = began + KNOCKS_S[knocks]
            self.scheduler.at(next_at, lambda: self._try_connect(attempt, began, knocks + 1))

    def _connect(self, attempt: object) -> None:
        if attempt is not self._attempt or not self.dialler.is_alive:
            return
        if not self.acceptor.is_alive:
            self._retry(attempt)
            return
        began = self.scheduler.now
        wire = Wire(self.scheduler, self.distance, self.chance)
        here, there = self._make_ends()
        wire.connect_ends(here, there)
        self.wire, self.ends = wire, (here, there)
        for way, is_cut in zip(wire.ways, self.is_cut, strict=True):
            way.is_cut = is_cut
        here.ended = lambda: self._lost(attempt, here, began)
        here.start()
        there.start()

    def _make_ends(self) -> tuple[WireEnd, WireEnd]:
        connector, listener = self.connector, self.listener
        dialler, acceptor = self.dialler, self.acceptor
        place = endpoint_name(acceptor.name, connector.port)
        dials = connector_settings(
            dialler.parts.container_id, connector, acceptor.name, dialler.hub.membership
        )
        accepts = listener_settings(acceptor.parts.container_id, listener, acceptor.hub.membership)
        ends = []
        for host, settings, name, is_client in (
            (dialler, dials, place, True),
            (acceptor, accepts, endpoint_name(dialler.name, connector.port), False),
        ):
            hub = host.hub
            connection = Connection(
                without_sasl(settings), hub.forwarder, hub.turn, name, is_client
            )
            direction = "out" if is_client else "in"
            counters = hub.add_counters(settings.endpoint, direction, settings.role)
            end = WireEnd(hub, connection, host, counters)
            host.enter(end)
            ends.append(end)
        return ends[0], ends[1]

    def _lost(self, attempt: object, end: WireEnd, began: float) -> None:
        if end.is_open and self.scheduler.now - began >= LASTING_CONNECTION_S:
            self._waits = backoff_delays(self.chance.uniform)
        self._retry(attempt)

    def _retry(self, attempt: object) -> None:
        if attempt is not self._attempt or not self.dialler.is_alive:
            return
        self._attempt = following = object()
        delay_s = next(self._waits)
        self.scheduler.after(delay_s, lambda: self._try_connect(following, self.scheduler.now, 0))

    def cut(self, *, towards_acceptor: bool = True, towards_dialler: bool = True) -> None:
        """Stop octets in one or both directions; neither end is notified."""
        self.is_cut[0] |= towards_acceptor
        self.is_cut[1] |= towards_dialler
        self._obey()

    def heal(self) -> None:
        """Let octets through again; octets that were held up arrive now."""
        self.is_cut = [False, False]
        self._obey()

    def move(self, distance: Distance) -> None:
        """Change the distance between the ends, except for octets under way."""
        self.distance = distance
        if self.wire is not None:
            for way in self.wire.ways:
                way.move(distance)

    def set_cost(self, cost: int) -> None:
        """Change the cost at both ends, as changes to the routers' configurations do.

        The connection is kept.
        """
        self.connector = attrs.evolve(self.connector, cost=cost)
        self.listener = attrs.evolve(self.listener, cost=cost)
        for host, endpoint in ((self.dialler, self.connector), (self.acceptor, self.listener)):
            network = host.control.network if host.is_alive else None
            if network is not None:
                is_connector = endpoint is self.connector
                host.turn(partial(network.change_costs, {(is_connector, endpoint.name): cost}))

    def reset(self) -> None:
        """Drop the connection, with the octets under way."""
        if self.wire is not None:
            self.wire.reset()

    def _obey(self) -> None:
        if self.wire is None:
            return
        for way, is_cut in zip(self.wire.ways, self.is_cut, strict=True):
            if is_cut:
                way.cut()
            elif way.is_cut:
                way.heal()


def without_sasl(settings: ConnectionSettings) -> ConnectionSettings:
    """Return the settings without SASL: peers do not authenticate in a simulation."""
    return attrs.evolve(settings, sasl_mechanisms=(), sasl_required=False)
