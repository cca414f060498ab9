"""Container in memory that the router attaches links to, and that does as it is told.

    router = ControlledRouter()
    container = Container(router)
    router.configure(plan("q"))
    [node] = container.attached("q")

By default it answers every begin, attach, detach and end at once. What it sends and receives is in
`Node` objects, one for each link.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import attrs

from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Symbol
from router.config.auto_links import AutoLinkSettings
from router.config.model import Configuration
from router.control.auto_links import AutoLinks
from router.control.control import ControlPlane
from router.core.links.auto_links import AutoLinkRule
from router.engine.connection import Connection
from router.engine.states import SessionState
from router.management.views import RouterView
from router.net.endpoints import configured_auto_links

from support.in_memory import Router
from support.transcripts import On, read_frame, server_settings, wire


class ControlledRouter(Router):
    """Router in memory, with the control of its links to containers."""

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.control = ControlPlane(self.forwarder)

    @property
    def auto_links(self) -> AutoLinks:
        """Return its auto-links."""
        return self.control.auto_links

    def event_received(self, connection: Connection, event: object) -> None:
        super().event_received(connection, event)
        self.control.event_received(connection, event)

    def configure(self, *plans: AutoLinkRule) -> None:
        """Want these auto-links and no others, in a turn of its own."""
        self.auto_links.configure(plans)
        self.finish_turn()

    def wait(self, seconds: float) -> None:
        """Let time pass, and look at the clocks as often as a router does."""
        end = self.turn.now + seconds
        while self.turn.now < end:
            step = min(0.25, end - self.turn.now)
            super().wait(step)
            self.control.tick(self.turn.now)
            self.finish_turn()


@attrs.define(eq=False)
class Node:
    """Link at the container; `sends` is the container's view. Each session has one link."""

    container: Container
    channel: int
    attach: Attach
    sends: bool
    credit: int = 0
    delivery_count: int = 0
    next_id: int = 0
    sent: dict[int, Any] = attrs.Factory(dict)
    received: list[tuple[int, bytes]] = attrs.Factory(list)
    flows: list[Flow] = attrs.Factory(list)
    detached: Any = None
    dispositions: list[Disposition] = attrs.Factory(list)

    def is_gone(self) -> bool:
        """Return whether it is detached, by either side, or its session has ended."""
        return self.detached is not None

    @property
    def address(self) -> str:
        """Return the address of the container's own node."""
        terminus = self.attach.source if self.sends else self.attach.target
        return str(terminus.address)  # type: ignore[union-attr]

    def say(self, *frames: Any) -> None:
        """Say something on the link's session."""
        self.container.say(*(On(self.channel, frame) for frame in frames))

    def grant(self, credit: int) -> None:
        """Let the router send so many."""
        self.credit = credit
        self._flow(2**20, handle=0, delivery_count=len(self.received), link_credit=credit)

    def grant_window(self, frames: int) -> None:
        """Let the router send so many frames on the session."""
        self._flow(frames)

    def _flow(self, frames: int, **fields: Any) -> None:
        # the router's transfers have one frame each
        windows: dict[str, Any] = {
            "next_incoming_id": len(self.received),
            "incoming_window": frames,
        }
        self.say(Flow(**windows, next_outgoing_id=0, outgoing_window=2**20, **fields))

    def send(self, payload: bytes, *, settled: bool = False) -> int:
        """Send a message, whether there is credit for it or not."""
        number = self.next_id
        self.next_id += 1
        self.delivery_count += 1
        if not settled:
            self.sent[number] = None
        transfer = Transfer(0, number, b"%d" % number, 1, settled=settled)
        self.container.say(On(self.channel, transfer, payload))
        return number

    def settle(self, number: int, state: Any = None) -> None:
        """Settle what was received."""
        self.say(Disposition(True, number, None, True, Accepted() if state is None else state))

    def detach(self, condition: str | None = None, *, closed: bool = True) -> None:
        """Detach the link."""
        error = None if condition is None else Error(Symbol(condition), "it is gone")
        self.detached = Detach(0, closed=closed, error=error)
        self.say(self.detached)

    def end(self, condition: str = "amqp:internal-error") -> None:
        """End the session."""
        self.detached = Detach(0)
        self.container.ending.add(self.channel)
        self.say(End(Error(Symbol(condition), "it broke")))


class Container:
    """Container with one connection, on which the router has begun no session yet."""

    def __init__(
        self,
        router: Router,
        container_id: str = "broker",
        endpoint: str = "to-broker",
        *,
        channel_max: int = 65535,
        opens: bool = True,
        **settings: Any,
    ) -> None:
        self.router = router
        # what it does not do: begin, attach, detach, end
        self.silent: set[str] = set()
        # nodes that it has no links to, and why
        self.refuses: dict[str, str] = {}
        # what the error of these refusals says beside
        self.info: dict[Symbol, Any] | None = None
        # what it answers a link to one of its nodes with, beside the termini
        self.answers: dict[str, dict[str, Any]] = {}
        self.nodes: list[Node] = []
        # the channels of the router's sessions, and of those that we are ending
        self.begun: list[int] = []
        self.ending: set[int] = set()
        self.attaches: list[Attach] = []
        self._unread = b""
        self.connection = Connection(
            server_settings(
                **{
                    "sasl_mechanisms": (),
                    "role": "route-container",
                    "endpoint": endpoint,
                    **settings,
                }
            ),
            router.forwarder,
            router.turn,
            "container",
            False,
        )
        self.connection.owner = self
        self.connection.user = None
        self._open = Open(container_id, channel_max=channel_max)
        if opens:
            self.say(AMQP_HEADER, self._open)

    def open(self) -> None:
        """Connect, where that was put off."""
        self.say(AMQP_HEADER, self._open)

    def say(self, *things: Any) -> None:
        """Have the router read this, and end its turn."""
        octets = b"".join(wire(thing) for thing in things)
        buffer = self.router.buffer
        kept = self.connection.prepare(buffer)
        end = kept + len(octets)
        buffer[kept:end] = octets
        self.connection.receive(buffer, end)
        self.router.finish_turn()
        while self.connection.is_behind:
            self.connection.resume()
            self.router.finish_turn()

    def close(self) -> None:
        """Close the connection."""
        self.say(Close())
        self.lose()

    def lose(self) -> None:
        """Lose the socket."""
        self.connection.end_of_input()
        self.router.finish_turn()

    def catch_up(self) -> None:
        """Send the begins and ends that were held back."""
        for channel, session in list(self.connection.local_sessions.items()):
            if session.state == SessionState.BEGIN_SENT:
                self.say(On(channel, _begun(channel)))
            elif session.state in (SessionState.END_SENT, SessionState.DISCARDING):
                self.say(On(channel, End()))

    def attached(self, address: str | None = None) -> list[Node]:
        """Return the links that are attached."""
        return [
            each for each in self.nodes if each.detached is None and address in (None, each.address)
        ]

    def carry(self) -> None:
        """Take the router's output, and answer it."""
        self.connection.write_due()
        waiting = bytes(self.connection.outbox.output.waiting())
        self._unread += waiting
        if waiting:
            self.connection.sent(len(waiting))
        answers: list[Any] = []
        while len(self._unread) >= 8:
            size = 8
            if not self._unread.startswith(b"AMQP"):
                size = int.from_bytes(self._unread[:4], "big")
                if len(self._unread) < size:
                    break
                frame = read_frame(self._unread[:size])
                channel = int.from_bytes(self._unread[6:8], "big")
                self._hear(channel, frame.performative, frame.payload or b"", answers)
            self._unread = self._unread[size:]
        if answers and not self.connection.finished:
            octets = b"".join(wire(each) for each in answers)
            buffer = self.router.buffer
            kept = self.connection.prepare(buffer)
            buffer[kept : kept + len(octets)] = octets
            self.connection.receive(buffer, kept + len(octets))
            while self.connection.is_behind:
                self.connection.resume()

    def _hear(self, channel: int, said: Any, payload: bytes, answers: list[Any]) -> None:
        match said:
            case Begin():
                self.begun.append(channel)
                if "begin" not in self.silent:
                    answers.append(On(channel, _begun(channel)))
            case Attach():
                self._attach_heard(channel, said, answers)
            case Detach():
                node = self._node(channel)
                answers_it = node is None or node.detached is None
                if node is not None and node.detached is None:
                    node.detached = said
                if answers_it and node is not None and "detach" not in self.silent:
                    answers.append(On(channel, Detach(0, closed=said.closed)))
            case End():
                self.begun.remove(channel)
                for node in self.nodes:
                    if node.channel == channel and node.detached is None:
                        node.detached = Detach(0)
                if channel in self.ending:
                    self.ending.remove(channel)
                elif "end" not in self.silent:
                    answers.append(On(channel, End()))
            case Flow(handle=0):
                node = self._node(channel)
                if node is not None:
                    node.flows.append(said)
                    if node.sends:
                        node.credit = said.link_credit or 0
            case Transfer():
                node = self._node(channel)
                assert node is not None
                node.received.append((said.delivery_id or 0, payload))
            case Disposition():
                node = self._node(channel)
                if node is not None:
                    node.dispositions.append(said)
                    for number in range(said.first, (said.last or said.first) + 1):
                        if number in node.sent and said.role:
                            node.sent[number] = said.state

    def _attach_heard(self, channel: int, said: Attach, answers: list[Any]) -> None:
        self.attaches.append(said)
        if "attach" in self.silent:
            return
        sends = bool(said.role)
        terminus = said.source if sends else said.target
        reason = self.refuses.get(str(terminus.address))  # type: ignore[union-attr]
        if reason == "end":
            self.ending.add(channel)
            answers.append(On(channel, End(Error(Symbol("amqp:not-found"), "no such queue"))))
            return
        count = 0 if sends else None
        if reason is not None:
            source = None if sends else Source()
            target = Target() if sends else None
            error = Error(Symbol(reason), "no such queue", self.info)
            answer = Attach(said.name, 0, not sends, source=source, target=target,
                            initial_delivery_count=count)  # fmt: skip
            answers += [On(channel, answer), On(channel, Detach(0, closed=True, error=error))]
            return
        fields: dict[str, Any] = {"source": said.source, "target": said.target}
        fields.update(self.answers.get(str(terminus.address), {}))  # type: ignore[union-attr]
        answers.append(
            On(channel, Attach(said.name, 0, not sends, initial_delivery_count=count, **fields))
        )
        self.nodes.append(Node(self, channel, said, sends))

    def _node(self, channel: int) -> Node | None:
        return next((each for each in reversed(self.nodes) if each.channel == channel), None)


def _begun(channel: int) -> Begin:
    return Begin(
        remote_channel=channel,
        next_outgoing_id=0,
        incoming_window=2**20,
        outgoing_window=2**20,
    )


def plan(address: str = "q", *, receives: bool = False, **fields: Any) -> AutoLinkRule:
    """Return an auto-link rule for the container `broker`."""
    where = {} if "connection" in fields else {"container_id": "broker"}
    name = fields.pop("name", f"{'in' if receives else 'out'} {address}")
    node = fields.pop("external_address", address)
    return AutoLinkRule(name, address, receives, node, **{**where, **fields})


def view_of(router: ControlledRouter, *auto_links: AutoLinkSettings) -> RouterView:
    """Return the router as management sees it, with these auto-links configured."""
    router.configure(*configured_auto_links(auto_links))
    observed: Any = SimpleNamespace(
        table=router.table,
        forwarder=router.forwarder,
        auto_links=router.auto_links,
        turn=router.turn,
        pumps={},
        own_pump=None,
        connection_counters=[],
    )
    return RouterView("router", "host", Configuration(auto_links=auto_links), observed, 0.0)
