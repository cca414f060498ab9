"""Router with a few badly behaved peers, and the invariants that hold whatever they do.

    play(script)

runs what the script's octets decide. It raises AssertionError, or whatever escaped from the data
plane, if an invariant is broken: no exception leaves the data plane; its output is a stream of
whole frames within the peer's frame size, on channels and handles that it has opened, with error
conditions of AMQP; nothing follows a close; the backlog stays within its limits, is counted right
and is empty once the last connection has gone.
"""

from __future__ import annotations

from typing import Any

from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    SaslInit,
    Transfer,
)
from router.amqp.types import Symbol
from router.core.model.address import Producer
from router.engine.connection import Connection
from router.engine.events import LinkAttachReceived, SaslInitReceived
from router.engine.serial import add, distance
from router.errors import AmqpError

from fuzz import grammar
from fuzz.choices import Choices
from support.in_memory import Router
from support.transcripts import On, read_frame, server_settings, wire

RULES = [(False, name, name) for name in ("balanced", "closest", "multicast", "unavailable")]
SETTINGS: dict[str, Any] = {
    "max_frame_size": 8192,
    "channel_max": 7,
    "handle_max": 15,
    "window_limit": 24,
    "link_capacity": 12,
    "held_limit_bytes": 128 * 1024,
    "sasl_mechanisms": ("ANONYMOUS",),
}
LIMIT_BYTES = 2 * 1024
# What every third peer may have waiting: its windows are the narrowest.
LITTLE_BYTES = 512
# One read brings no more than this.
READ_BYTES = 8192
# A multicast keeps a copy for each receiver without room.
MOST_COPIES = 16
MOST_PEERS = 8
# Every octet that comes in may go out to each receiver, in frames of its own where they are small;
# and a disposition of twenty octets may speak of every delivery that is unsettled.
OUTPUT_RATIO = 400

HANDSHAKES = (
    AMQP_HEADER,
    SASL_HEADER + wire(SaslInit(mechanism=Symbol("ANONYMOUS"))) + AMQP_HEADER,
    b"",
    b"AMQP\x00\x00\x09\x01",
    SASL_HEADER + wire(SaslInit(mechanism=Symbol("PLAIN"), initial_response=b"\0a\0b")),
)


class FuzzRouter(Router):
    """Router without sockets whose limits are soon reached."""

    def __init__(self) -> None:
        super().__init__(RULES, limit_bytes=LIMIT_BYTES)
        # no longer than needed, so that the sanitizer sees who reads behind it
        self.buffer = memoryview(bytearray(b"\xff" * (READ_BYTES + SETTINGS["max_frame_size"])))
        self.asking: list[Connection] = []

    def event_received(self, connection: Connection, event: object) -> None:
        """Note who waits for an answer to SASL; have batches of every third sender split."""
        if isinstance(event, SaslInitReceived):
            self.asking.append(connection)
        if isinstance(event, LinkAttachReceived) and isinstance(event.link.owner, Producer):
            link = event.link
            link.owner.splits_batches = link.terminus is None and link.handle % 3 == 0

    def finish_turn(self) -> None:
        """End the turn and check that the backlog is within its limit."""
        super().finish_turn()
        assert self.forwarder.backlog.held_bytes <= LIMIT_BYTES

    def answer(self, accepted: bool) -> None:
        """Let those in that asked, or do not."""
        asking, self.asking = self.asking, []
        for connection in asking:
            connection.sasl_outcome(accepted, "user" if accepted else None)
        self.finish_turn()


class Heard:
    """Frames that one peer has heard of the router; checks that they are sound and consistent."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.unread = b""
        self.sasl = False
        self.closed = False
        # by the router's channels: its handles and whether it is the receiver, its delivery-ids
        self.links: dict[int, dict[int, bool]] = {}
        self.number: dict[int, int] = {}
        # delivery-ids of what it sent on its first channel, of what it was told of, and its credit
        self.received: list[int] = []
        self.next_incoming_id = 0
        # by the router's handle on its first channel, the peer's; by the peer's, what it may send
        self.handles: dict[int, int] = {}
        self.credit: dict[int, int] = {}
        self.counts: dict[int, int] = {}
        self.octets = 0

    def take(self, octets: bytes) -> None:
        """Read what the router said."""
        self.octets += len(octets)
        self.unread += octets
        while len(self.unread) >= 8:
            if self.unread.startswith(b"AMQP"):
                self.unread = self.unread[8:]
                continue
            size = int.from_bytes(self.unread[:4], "big")
            if len(self.unread) < size:
                return
            octets, self.unread = self.unread[:size], self.unread[size:]
            self._frame(octets)

    def _frame(self, octets: bytes) -> None:
        assert not self.closed, "a frame behind a close"
        remote = self.connection.remote_open
        if remote is not None:
            assert len(octets) <= max(512, remote.max_frame_size), (
                f"a frame of {len(octets)} octets"
            )
        frame = read_frame(octets)
        if frame.frame_type == 1 or frame.performative is None:
            return
        assert isinstance(frame.performative, Transfer) or not frame.payload
        self._said(frame.channel, frame.performative)

    def _said(self, channel: int, said: Any) -> None:
        error = getattr(said, "error", None)
        if error is not None:
            condition = str(error.condition)
            assert condition.startswith("amqp:"), condition
            assert condition != "amqp:internal-error", error
        if isinstance(said, Open):
            return
        if isinstance(said, Close):
            self.closed = True
            return
        if isinstance(said, Begin):
            assert channel not in self.links, "a channel begun twice"
            self.links[channel] = {}
            self.number.pop(channel, None)
            return
        links = self.links[channel]
        if isinstance(said, Attach):
            assert said.handle not in links, "a handle attached twice"
            links[said.handle] = bool(said.role)
            self.handles[said.handle] = _handle_of(said.name)
        elif isinstance(said, Detach):
            del links[said.handle]
        elif isinstance(said, End):
            del self.links[channel]
        elif isinstance(said, Transfer):
            assert links[said.handle] is False, "a transfer on a link that the router receives on"
            self.next_incoming_id = add(self.next_incoming_id, 1)
            if said.delivery_id is not None:
                expected = self.number.get(channel, said.delivery_id)
                assert said.delivery_id == expected, f"{said.delivery_id} where {expected} follows"
                self.number[channel] = add(said.delivery_id, 1)
                self.received.append(said.delivery_id)
                handle = self.handles[said.handle]
                self.counts[handle] = self.counts.get(handle, 0) + 1
        elif isinstance(said, Flow):
            assert said.handle is None or said.handle in links
            if said.handle is not None and said.delivery_count is not None:
                limit = said.delivery_count + (said.link_credit or 0)
                self.credit[self.handles[said.handle]] = limit & 0xFFFFFFFF
        else:
            assert isinstance(said, Disposition), f"the router said {said}"
            last = said.first if said.last is None else said.last
            assert distance(said.first, last) >= 0


def _handle_of(name: str) -> int:
    """Return the peer's handle that a link's name contains, -1 if the name was spoiled."""
    number = name.removeprefix("link-")
    return int(number) if number.isascii() and number.isdecimal() else -1


class Peer:
    """Connection with the octets that go into it; it may read only some of the output."""

    def __init__(self, router: FuzzRouter, choices: Choices, number: int = 0) -> None:
        self.router = router
        self.choices = choices
        settings = dict(SETTINGS)
        if number % 3 == 2:
            settings["held_limit_bytes"] = LITTLE_BYTES
        settings["honours_annotations"] = number % 4 in (1, 2)
        settings["shows_annotations"] = number % 4 in (2, 3)
        self.connection = Connection(
            server_settings(**settings), router.forwarder, router.turn, "peer", False
        )
        self.connection.owner = self
        self.heard = Heard(self.connection)
        self.over = False
        self.reads = True
        # octets that were said and not read yet, and how much was read of all
        self.said = b""
        self.given = 0
        self.next_number = 0
        self.next_outgoing_id = 0
        self.handle = 0
        # handles, and of each sender how many deliveries it began and which one is under way
        self.senders: list[int] = []
        self.receivers: list[int] = []
        self.begun: dict[int, int] = {}
        self.under_way: dict[int, int] = {}

    # What the router asks of whoever owns a connection.

    def carry(self) -> None:
        """Take some of what there is to be said, as a socket does."""
        self.connection.write_due()
        output = self.connection.outbox.output
        while self.reads and not self.over and output.begin != output.end:
            waiting = output.waiting()
            count = len(waiting)
            if self.choices.one_in(8):
                count = 1 + self.choices.below(count)
            self.heard.take(bytes(waiting[:count]))
            waiting.release()
            self.connection.sent(count)

    def read_again(self) -> None:
        """Do nothing: the next step that gives octets resumes reading."""

    # What goes in.

    def say(self, *things: Any) -> None:
        """Say something; now and then it is spoiled first."""
        for thing in things:
            octets = wire(thing)
            if self.choices.wild():
                octets = grammar.spoil(self.choices, octets)
            self.said += octets

    def greet(self) -> None:
        """Say what usually opens a connection."""
        choices = self.choices
        way = choices.octet()
        if way == 255:
            self.said += choices.octets(40)
            return
        self.said += HANDSHAKES[0 if way < 220 else way % len(HANDSHAKES)]
        opened, begun = grammar.opening(choices), grammar.begin(choices)
        self.next_outgoing_id = begun.next_outgoing_id
        self.next_number = begun.next_outgoing_id
        self.said += wire(opened) + wire(begun)
        for _ in range(choices.below(4)):
            self.attach(receives=choices.one_in(2))

    def give(self, most: int) -> None:
        """Have the router read up to so many octets, and leave the turn open."""
        connection = self.connection
        if self.reads_nothing():
            return
        if connection.is_behind:
            # nothing is read before the rest of what was
            connection.resume()
            return
        octets, self.said = self.said[:most], self.said[most:]
        self.given += len(octets)
        buffer = self.router.buffer
        kept = connection.prepare(buffer)
        end = kept + len(octets)
        buffer[kept:end] = octets
        connection.receive(buffer, end)
        # whoever keeps a view of what was read will see this
        buffer[:end] = b"\xff" * end
        assert len(connection.kept) <= max(SETTINGS["max_frame_size"], end), "too much is kept"

    def give_all(self) -> None:
        """Have the router read all that was said, read by read."""
        while self.said:
            before = len(self.said)
            self.give(READ_BYTES)
            self.router.finish_turn()
            is_behind = self.connection.is_behind and not self.reads_nothing()
            if len(self.said) == before and not is_behind:
                return

    def reads_nothing(self) -> bool:
        """Return whether the router reads no more from this peer, or not before an answer."""
        return self.over or self.connection.finished or self.connection.paused

    def step(self) -> None:
        """Say the next thing."""
        choices = self.choices
        what = choices.below(16)
        receives = choices.one_in(2)
        links = self.receivers if receives else self.senders
        if what == 0 and len(self.senders) + len(self.receivers) < 12:
            self.attach(receives=receives)
        elif what < 8 and self.senders:
            self.send()
        elif what < 10:
            if receives:
                known = self.heard.received[-20:] or [0]
                first = choices.of(known)
                last = known[-1] if choices.one_in(2) else first
            else:
                first = last = add(self.next_number, -1 - choices.below(4))
            self.say(grammar.disposition(choices, first, last, receives=receives))
        elif what < 13:
            self.say(self._flow(choices.of(links) if links and not choices.one_in(5) else None))
        elif what == 13 and links and choices.one_in(2):
            handle = choices.of(links)
            self.say(Detach(handle, closed=choices.one_in(3)))
            if not choices.one_in(4):
                links.remove(handle)
                if choices.one_in(2):
                    self.attach(receives=receives, handle=handle)
        elif what == 14:
            self.say(wire(On(choices.below(8), None)))
        elif choices.wild():
            self.say(choices.of((grammar.rare, grammar.junk))(choices))
        elif choices.wild():
            # what was said last is said again, or the two last things change places
            self.said = self.said[len(self.said) // 2 :] + self.said[: len(self.said) // 2]

    def attach(self, *, receives: bool, handle: int | None = None) -> None:
        """Attach a link, maybe one that was detached, and let it receive."""
        if handle is None:
            handle = self.handle
            self.handle += 1
        self.begun.pop(handle, None)
        self.heard.counts.pop(handle, None)
        self.under_way.pop(handle, None)
        (self.receivers if receives else self.senders).append(handle)
        self.say(grammar.attach(self.choices, handle, receives=receives))
        if receives:
            self.say(self._flow(handle))

    def send(self) -> None:
        """Send a frame where there is credit for it, as a rule."""
        choices = self.choices
        handle = choices.of(self.senders)
        for each in self.senders:
            if each in self.under_way or self._credit(each) > 0:
                handle = each
                break
        else:
            if not choices.wild():
                return
        number = self.under_way.pop(handle, None)
        first = number is None or choices.wild()
        if number is None:
            number = self.next_number
            self.next_number = add(number, 1)
            self.begun[handle] = self.begun.get(handle, 0) + 1
        more = choices.one_in(3)
        sent = grammar.transfer(choices, handle, number, first=first, more=more)
        if more and not sent.performative.aborted:
            self.under_way[handle] = number
        self.next_outgoing_id = add(self.next_outgoing_id, 1)
        self.say(sent)

    def _credit(self, handle: int) -> int:
        return self.heard.credit.get(handle, 0) - self.begun.get(handle, 0)

    def _flow(self, handle: int | None) -> Any:
        choices = self.choices
        session = {
            "next_incoming_id": self.heard.next_incoming_id,
            "incoming_window": choices.of((1000, 1000, 1000, 1, 0)),
            "next_outgoing_id": self.next_outgoing_id,
            "outgoing_window": 1000,
        }
        if handle is None:
            return grammar.flow(choices, session, None)
        link = {
            "handle": handle,
            "delivery_count": self.heard.counts.get(handle, 0),
            "link_credit": choices.of((1, 5, 10, 100, 0)),
        }
        return grammar.flow(choices, session, link)

    def lose(self) -> None:
        """Lose the socket."""
        self.over = True
        self.connection.end_of_input()
        self.router.finish_turn()


class Play:
    """Run of one script."""

    def __init__(self, script: bytes) -> None:
        self.choices = Choices(script)
        self.router = FuzzRouter()
        self.peers: list[Peer] = []
        self.gone = 0
        for _ in range(3):
            self.enter()

    def enter(self) -> None:
        """Add a peer."""
        if self.gone + len(self.peers) >= MOST_PEERS:
            return
        peer = Peer(self.router, self.choices, self.gone + len(self.peers))
        peer.greet()
        self.peers.append(peer)

    def run(self) -> None:
        """Do what the script says, and check the invariants."""
        while not self.choices.over:
            self.step()
            self.check()
        self.finish()

    def step(self) -> None:
        """Have one peer do something."""
        choices = self.choices
        if not self.peers:
            self.enter()
            if not self.peers:
                choices.octets(65535)
                return
        peer = choices.of(self.peers)
        what = choices.octet()
        if what < 150:
            for _ in range(1 + what % 3):
                peer.step()
            if what % 4:
                peer.give_all()
        elif what < 190:
            peer.give(choices.of((1, 7, 8, 30, 200, READ_BYTES)))
            if what % 4:
                self.router.finish_turn()
        elif what < 205:
            peer.reads = not peer.reads
            if peer.reads:
                peer.carry()
                self.router.finish_turn()
        elif what < 225:
            self.router.answer(what % 8 != 0)
        elif what < 240:
            self.router.wait(choices.of((0.0, 0.05, 0.2, 1.0, 9.0)))
            for each in self.peers:
                each.connection.tick()
            self.router.finish_turn()
        elif what < 252:
            self.enter()
        elif what < 253:
            peer.connection.close(None if what % 2 else AmqpError("amqp:connection:forced", "bye"))
            self.router.finish_turn()
        else:
            self.leave(peer)

    def leave(self, peer: Peer) -> None:
        """Remove a peer for good and check that its sessions have gone."""
        peer.lose()
        self.peers.remove(peer)
        self.gone += 1
        left = peer.connection
        assert not left.local_sessions
        assert not left.sessions_due

    def check(self) -> None:
        """Check the invariants that hold at any time."""
        backlog = self.router.forwarder.backlog
        most = READ_BYTES * MOST_COPIES
        intake = self.router.forwarder.intake
        assert 0 <= intake.held_bytes <= intake.limit_bytes
        assert 0 <= backlog.held_bytes <= LIMIT_BYTES + most * len(self.peers)
        ledger = self.router.turn.ledger
        assert ledger.total == sum(ledger.by_kind.values())
        assert min(ledger.by_kind.values()) >= 0
        given = said = 0
        for peer in self.peers:
            connection = peer.connection
            assert connection.held_bytes >= 0
            if connection.held_bytes > connection.settings.held_limit_bytes:
                assert connection.held_back
            given += peer.given
            said += peer.heard.octets + connection.outbox.output.size()
            for session in connection.local_sessions.values():
                assert session.window.held_frames >= 0
        assert said <= OUTPUT_RATIO * (given + 1000), f"{given} octets made {said}"

    def finish(self) -> None:
        """Let all peers read and leave, and check that nothing stays behind."""
        self.router.answer(True)
        for peer in self.peers:
            peer.reads = True
            peer.carry()
        self.router.finish_turn()
        for peer in list(self.peers):
            assert not peer.heard.unread, "half a frame was said"
            self.leave(peer)
            self.check()
        forwarder = self.router.forwarder
        # what may be resumed is remembered for so long
        self.router.wait(60)
        assert len(forwarder.suspended) == 0
        assert forwarder.suspended.next_expiry == 0
        assert forwarder.dying_nodes == {}
        assert len(forwarder.link_names) == 0
        assert forwarder.redelivery.kept_bytes == 0
        assert forwarder.backlog.held_bytes == 0
        assert forwarder.intake.held_bytes == 0
        assert forwarder.credit.due == []
        assert len(forwarder.node_accounts) == 0
        assert self.router.turn.ledger.total == 0
        assert set(self.router.turn.ledger.by_kind.values()) == {0}
        assert self.router.turn.touched == []
        assert len(self.router.table) == 0
        nowhere = self.router.table.unused
        assert not nowhere.waiting
        assert not nowhere.producers


def play(script: bytes) -> Play:
    """Run a script; raise AssertionError, or what escaped from the data plane."""
    run = Play(script)
    run.run()
    return run
