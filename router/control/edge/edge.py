"""Control plane of an edge router: its uplinks, and its messages to interior routers."""

from __future__ import annotations

from typing import Final

import attrs

from router.amqp.constants import Condition
from router.config.model import Configuration
from router.control.edge.messages import (
    Beat,
    ControlLinks,
    Message,
    Reached,
    Routes,
    UplinkUse,
    decode_message,
    encode_message,
    is_beat,
    read_message,
    watches,
)
from router.control.edge.proxies import Proxies
from router.control.edge.routes import EdgeLinkRoutes
from router.control.edge.uplinks import Uplinks
from router.control.network.steps import Steps
from router.core.forwarding.forward import Forwarder
from router.core.model.address import MESH, Address
from router.core.network.proxy_links import UplinkChanged
from router.engine.connection import Connection
from router.engine.failures import NetworkCondition
from router.errors import AmqpError

# Role of connectors to interior routers, and of the interior routers' listeners for them.
ROLE: Final = "edge"


@attrs.frozen
class UplinkPlan:
    """Uplink settings of an edge router.

    `order` has the names of the connectors in order of preference, and `wanted` is how many uplinks
    are active at a time. The edge sends a heartbeat every `heartbeat_s`. Each end closes the
    connection after `max_age_s` of silence.
    """

    order: tuple[str, ...] = ()
    wanted: int = 1
    heartbeat_s: float = 2.0
    max_age_s: float = 8.0


def configured_plan(configuration: Configuration) -> UplinkPlan:
    """Return the uplink settings in a configuration."""
    router = configuration.router
    return UplinkPlan(
        tuple(each.name for each in configuration.connectors if each.role == ROLE),
        router.active_uplinks,
        router.edge_heartbeat_seconds,
        router.edge_heartbeat_max_age_seconds,
    )


class _Heartbeat:
    """Heartbeat state of an uplink: when the last message came, and when a heartbeat is due."""

    def __init__(self, now: float) -> None:
        self.heard_at = now
        self.next_at = now
        self.number = 0


class EdgeRouter:
    """Control plane parts that only an edge router has; `me` is the router's id."""

    def __init__(self, forwarder: Forwarder, me: str, port: ControlLinks) -> None:
        self.forwarder = forwarder
        self.me = me
        self.port = port
        self.uplinks = Uplinks()
        self.proxies = Proxies(forwarder, me, self._watch)
        self.routes = EdgeLinkRoutes(forwarder, self._tell)
        self.plan = UplinkPlan()
        self._connections: dict[int, Connection] = {}
        # uplinks that opened in this turn, and the routers they lead to
        self._fresh: dict[Connection, str] = {}
        # the last reported state of each uplink
        self._told: dict[int, UplinkChanged] = {}
        self._pulses: dict[Connection, _Heartbeat] = {}
        # number of uplinks that were closed because the interior was silent
        self.silent = 0

    def configure(self, plan: UplinkPlan) -> None:
        """Apply these uplink settings."""
        self.plan = plan
        self.uplinks.configure(plan.order, plan.wanted, self.forwarder.turn.now)
        self._act()

    # Uplinks open and end.

    def connection_came(
        self, connection: Connection, router: str, features: frozenset[str]
    ) -> None:
        """Add an open uplink with a usable control link; `router` is the interior's id.

        The uplink cannot become active before the end of the turn: an interior that refuses this
        router sends a close right after its open.
        """
        self.forwarder.network.edge_sides[connection] = MESH
        self._connections[connection.number] = connection
        self._pulses[connection] = _Heartbeat(self.forwarder.turn.now)
        self._fresh[connection] = router
        self.routes.came(connection, router, features)
        self._note()

    def connection_left(self, connection: Connection) -> None:
        """Remove an uplink that has ended."""
        if self._pulses.pop(connection, None) is None:
            return
        self._fresh.pop(connection, None)
        del self._connections[connection.number]
        self._told.pop(connection.number, None)
        self.forwarder.network.edge_sides.pop(connection, None)
        self.proxies.connection_lost(connection)
        self.routes.left(connection)
        self.uplinks.left(connection.number, self.forwarder.turn.now)
        self._act()

    def _act(self) -> None:
        """Apply and report the changes to the set of active uplinks."""
        changes = self.uplinks.take()
        for number, is_active in changes:
            if number in self._connections:
                self._tell(self._connections[number], UplinkUse(is_active))
        for number, uplink in self.uplinks.links.items():
            news = UplinkChanged(uplink.connector, uplink.router, uplink.is_active, uplink.reason)
            if self._told.get(number) != news:
                self._told[number] = news
                self.forwarder.observer.event_received(self._connections[number], news)
        active = [self._connections[each.connection] for each in self.uplinks.active()]
        if changes or active != list(self.proxies.reported_states):
            self.proxies.use(active)
            self.routes.use(active)
            self._note()

    def heard(self, connection: Connection) -> None:
        """Note that an interior has sent a message, which is still to be processed."""
        pulse = self._pulses.get(connection)
        if pulse is not None:
            pulse.heard_at = self.forwarder.turn.now

    def rests(self, connection: Connection) -> None:
        """Note that an interior rests, and cannot send heartbeats."""
        self.heard(connection)

    def take_heartbeat(self, connection: Connection, octets: bytes) -> bool:
        """Return whether a message is a heartbeat, which `heard` has noted already."""
        return is_beat(octets) and isinstance(decode_message(octets), Beat)

    def receive(self, connection: Connection, octets: bytes) -> Steps[None]:
        """Handle a control message from an interior; raise `AmqpError` if it is invalid."""
        if connection not in self._pulses:
            return
        message = yield from read_message(octets)
        match message:
            case Reached():
                self.proxies.reached(connection, message)
                self._note()
                yield len(message.places)
            case Routes():
                yield from self.routes.receive(connection, message)
            case Beat() | None:
                pass
            case _:
                kind = type(message).__name__
                reason = f"an interior router must not send an edge the message {kind}"
                raise AmqpError(Condition.NOT_ALLOWED, reason)

    def _tell(self, connection: Connection, message: Message) -> None:
        self.port.send(connection, encode_message(message))

    def _watch(self, connection: Connection, changes: list[tuple[str, bool]]) -> None:
        for message in watches(changes):
            self._tell(connection, message)

    # Addresses.

    def address_changed(self, address: Address) -> None:
        """Note that a link was added to or removed from an address."""
        self.proxies.address_changed(address)
        self._note()

    def open_route(self, address: Address, side: int) -> bool:
        """Try to open a path to the interior for a message to an address without a consumer.

        Return whether the address now has a consumer that the message can wait for. `side` is where
        the message came from; a message from an interior (`MESH`) is not sent back to interiors.
        """
        return side != MESH and self.proxies.open_route(address)

    def is_known(self, name: str) -> bool:
        """Return whether an address of this name may have a consumer beyond the uplinks."""
        return self.proxies.may_be_beyond(name)

    def is_unreachable(self, name: str) -> bool:
        """Return whether a name is an address at another router that no interior can reach."""
        return self.proxies.is_nowhere(name)

    def uplink_state(self, connection: Connection) -> tuple[bool | None, str | None]:
        """Return whether an uplink is active, and why; (None, None) for any other connection."""
        if connection not in self._pulses:
            return None, None
        uplink = self.uplinks.links.get(connection.number)
        return (None, None) if uplink is None else (uplink.is_active, uplink.reason)

    def takes(self, connection: Connection, text: str, *, is_sender: bool) -> bool:
        """Return whether a peer may attach a link to the address `text`.

        An interior may attach senders only, and only to an address of this router or to an address
        that this router receives on the same connection.
        """
        if connection not in self._pulses:
            return True
        return is_sender and (
            self.proxies.is_here(text) or self.proxies.receives_over(connection, text)
        )

    def _note(self) -> None:
        self.forwarder.network.note_edges()

    def finish(self) -> None:
        """Process the changes of this turn. Call this at the end of the turn."""
        if self._fresh:
            fresh, self._fresh = self._fresh, {}
            now = self.forwarder.turn.now
            for connection, router in fresh.items():
                endpoint = connection.settings.endpoint
                self.uplinks.came(connection.number, endpoint, router, now)
            self._act()
        self.proxies.finish()
        self.routes.finish()

    # The clock.

    def tick(self, now: float) -> None:
        """Close silent uplinks, send heartbeats, and do all other work that is due."""
        for connection, pulse in list(self._pulses.items()):
            age_s = now - pulse.heard_at
            if age_s >= self.plan.max_age_s:
                self.silent += 1
                reason = f"the interior router has been silent for {age_s:.1f} s"
                error = AmqpError(NetworkCondition.SILENT, reason)
                self.port.fail(connection, error)
            elif pulse.next_at <= now:
                pulse.number += 1
                pulse.next_at = now + self.plan.heartbeat_s
                self._tell(connection, Beat(pulse.number, int(self.plan.max_age_s * 1000)))
        self.uplinks.tick(now)
        self._act()
        self.proxies.tick(now)
