"""Check that resident memory stays within what a router charges to peers that make it hoard.

    python tests/fuzz/hoard.py [--seconds 60] [--seed N] [--steps N]

The peers send all performatives, with values of all types in all places, in any order, and hardly
ever detach, settle or read. At any time resident memory has grown by at most `PART` times what is
charged (and a constant). Once all peers are gone nothing is charged, and the memory is free again.

Runs of `--steps` steps follow each other until the seconds are over. The last run is cut short:
its current step ends, and the peers are closed. That takes a few seconds, and ten times that with
the sanitizers. 200 steps are made in any case before memory is first measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import attrs

from router.amqp.batches import BATCH_FORMAT
from router.amqp.constants import TerminusExpiryPolicy
from router.amqp.framing import AMQP_HEADER, encode_frame
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
    Modified,
    Open,
    Received,
    Rejected,
    Released,
    Source,
    Target,
    Transfer,
)
from router.amqp.transactions import Coordinator, TransactionalState
from router.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Long,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)
from router.core.model.address import Producer
from router.core.model.memory_by_kind import held_in_all
from router.engine.connection import Connection
from router.engine.link import IncomingLink, Link, OutgoingLink
from router.errors import AmqpError
from router.net.memory import give_back

from fuzz.choices import Choices
from fuzz.grammar import junk, spoil
from support.in_memory import Router
from support.memory import MIB, resident_bytes
from support.transcripts import server_settings

# A charge is an upper bound of what is resident for it.
PART = 1.0
# What the process takes for other reasons: the frames that are made here, free lists, arenas.
CONSTANT_BYTES = 4 * MIB
# What may be left of what the router had before, once all peers have gone.
LEFT = 0.2
LEFT_BYTES = 8 * MIB
# What the sanitizers keep of what was freed says nothing of the router.
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
PEERS = 12
CHECKED_EVERY = 250
STEPS = 20_000
# How often it is said how far a run is.
SAY_EVERY_S = 5.0
# Limits that a run can reach.
MESSAGES_BYTES = 16 * MIB
STATE_BYTES = 192 * MIB
# What so many hold of the router's limit that come one after another, and what is refused and not
# answered yet (docs/decisions/0079).
MOST_LIMITS = 1.25 * (1 + sum(1 / number for number in range(3, PEERS + 1)))
LONGEST_FRAME = 60_000
RULES = [(False, name, name) for name in ("balanced", "closest", "multicast", "unavailable")]
ADDRESSES = ("balanced", "multicast", "closest", "unavailable", "other", "é" * 50)


class HoardRouter(Router):
    """Router without sockets that records no events."""

    def __init__(self) -> None:
        super().__init__(RULES, limit_bytes=MESSAGES_BYTES)
        self.turn.ledger.limit(MESSAGES_BYTES, STATE_BYTES, STATE_BYTES // 2)

    def event_received(self, connection: Connection, event: object) -> None:
        """Ignore the event."""


class Hoarder:
    """Peer that finds its place in the protocol by looking at the router's end of it."""

    def __init__(self, router: HoardRouter, random: Random, number: int) -> None:
        self.router = router
        self.random = random
        self.name = f"hoarder-{number}"
        self.reads = random.random() < 0.7
        self.handle = 0
        self.connection = Connection(
            server_settings(sasl_mechanisms=(), max_frame_size=65536),
            router.forwarder, router.turn, self.name, False,
        )  # fmt: skip
        self.connection.owner = self
        self.give(AMQP_HEADER + self._frame(0, self._open()) + self._frame(0, self._begin()))

    # As an owner of the connection.

    def carry(self) -> None:
        """Take what the router says, unless this peer does not read."""
        self.connection.write_due()
        if self.reads:
            self.connection.sent(self.connection.outbox.output.size())

    def give(self, octets: bytes) -> None:
        """Have the router read this."""
        for at in range(0, len(octets), 200_000):
            buffer = self.router.buffer
            kept = self.connection.prepare(buffer)
            part = octets[at : at + 200_000]
            buffer[kept : kept + len(part)] = part
            self.connection.receive(buffer, kept + len(part))
            while self.connection.is_behind:
                self.connection.resume()
        self.router.finish_turn()

    def leave(self) -> None:
        """Lose the socket, and release the connection as its pump does."""
        self.connection.end_of_input()
        self.router.finish_turn()
        # as its pump does
        self.connection.owner = None
        self.connection.failing = None
        self.connection.outbox.connection = None

    # What it says.

    def step(self) -> None:
        """Say something, as a rule where it belongs."""
        random = self.random
        roll = random.random()
        if roll < 0.005:
            script = Choices(random.randbytes(64))
            self.give(spoil(script, self._frame(0, self._attach())))
        elif roll < 0.01:
            self.give(junk(Choices(random.randbytes(64))))
        elif roll < 0.015:
            odd: Any = random.choice(
                [self._open(), Close(), End(error=self._error()), self._begin()]
            )
            self.give(self._frame(random.randrange(4), odd))
        elif roll < 0.03:
            self.give(self._frame(random.randrange(1, 200), self._begin()))
        elif roll < 0.05:
            closes = random.random() < 0.3
            self.give(self._frame(0, Detach(random.randrange(self.handle + 1), closes)))
        elif roll < 0.45:
            self.give(self._frame(0, self._attach()))
        elif roll < 0.6:
            self.give(self._frame(0, self._flow()))
        elif roll < 0.65:
            self.give(self._frame(0, self._disposition()))
        else:
            self._send()

    def _frame(self, channel: int, performative: Any, payload: bytes = b"") -> bytes:
        frame = encode_frame(channel, performative, payload)
        if len(frame) > LONGEST_FRAME:
            slim = {
                name: None for name in ("properties", "unsettled") if hasattr(performative, name)
            }
            frame = encode_frame(channel, attrs.evolve(performative, **slim), payload)
        return frame if len(frame) <= LONGEST_FRAME else b""

    def _open(self) -> Open:
        return Open(self.name, hostname=self._text(), properties=self._map(Symbol))

    def _begin(self) -> Begin:
        return Begin(
            next_outgoing_id=0, incoming_window=2**20, outgoing_window=2**20,
            properties=self._map(Symbol),
        )  # fmt: skip

    def _attach(self) -> Attach:
        random = self.random
        handle = self.handle
        self.handle += 1
        if random.random() < 0.05:
            handle = random.randrange(65536)
        address = random.choice(ADDRESSES) if random.random() < 0.5 else self._text()
        fields: dict[str, Any] = {
            "address": address,
            "expiry_policy": random.choice(list(TerminusExpiryPolicy)),
            "timeout": random.choice([0, 0, 0, 5, 60]),
            "dynamic_node_properties": self._map(Symbol),
            "capabilities": self._symbols(),
        }
        if random.random() < 0.2:
            fields |= {"address": None, "dynamic": True}
        source = Source(
            **fields, filter=self._map(Symbol), default_outcome=random.choice([None, Accepted()]),
            outcomes=self._symbols(),
        )  # fmt: skip
        target: Any = Target(**fields) if random.random() < 0.97 else Coordinator()
        receives = random.random() < 0.6
        return Attach(
            self._text() + str(handle), handle, receives,
            source=source, target=target,
            unsettled=self._unsettled(), incomplete_unsettled=random.random() < 0.2,
            initial_delivery_count=None if receives else 0,
            offered_capabilities=self._symbols(), desired_capabilities=self._symbols(),
            properties=self._map(Symbol),
        )  # fmt: skip

    def _disposition(self) -> Disposition:
        random = self.random
        is_receiver = random.random() < 0.5
        first, count = random.randrange(50), random.randrange(50)
        session = self.connection.sessions.find(0)
        if not is_receiver and session is not None and random.random() < 0.5:
            # of all that waits of what it has sent
            first, count = max(0, session.expected_delivery_id - 1000), 1000
            state = Described(ULong(2**40), b"z" * random.randrange(60_000))
            return Disposition(is_receiver, first, first + count, state=state)
        settled = random.random() < 0.5
        return Disposition(is_receiver, first, first + count, settled, self._state())

    def _links(self, kind: type[Link]) -> list[Any]:
        session = self.connection.sessions.find(0)
        if session is None:
            return []
        links = list(session.local_links.values())[-40:]
        return [each for each in links if isinstance(each, kind) and each.is_attached()]

    def _flow(self) -> Flow:
        links = self._links(OutgoingLink)
        fields: dict[str, Any] = {}
        if links:
            link = self.random.choice(links)
            fields = {
                "handle": link.remote_handle,
                "delivery_count": link.delivery_count,
                "link_credit": self.random.choice([0, 1, 10, 1000, 2**20]),
                "drain": self.random.random() < 0.1,
            }
        return Flow(
            next_incoming_id=0, incoming_window=2**31 - 1, next_outgoing_id=0,
            outgoing_window=2**20, properties=self._map(Symbol), **fields,
        )  # fmt: skip

    def _send(self) -> None:
        ready = [link for link in self._links(IncomingLink) if link.credit and not link.current]
        session = self.connection.sessions.find(0)
        if not ready or session is None or session.window.size < 2:
            self.give(self._frame(0, self._attach()))
            return
        link = self.random.choice(ready)
        number = max(session.expected_delivery_id, 0)
        size = int(10 ** self.random.uniform(0, 4.5))
        body = b"\0\x53\x75\xb0" + size.to_bytes(4, "big") + b"x" * size
        its_format = 0
        if self.random.random() < 0.05:
            # small messages, which are split if the handle is even; with thousands of them, what is
            # freed again at once would count as resident
            its_format = BATCH_FORMAT
            body = b"\0\x53\x75\xa0\x04\0\x53\x77\x40" * min(300, 1 + size // 9)
            if isinstance(link.owner, Producer):
                link.owner.splits_batches = link.terminus is None and link.remote_handle % 2 == 0
        tag = self.random.randbytes(self.random.randrange(1, 33))
        transfer = Transfer(
            link.remote_handle, number, tag, its_format,
            settled=self.random.random() < 0.2, more=self.random.random() < 0.1,
            state=self._state() if self.random.random() < 0.3 else None,
            resume=self.random.random() < 0.02, aborted=self.random.random() < 0.02,
        )  # fmt: skip
        self.give(self._frame(0, transfer, body))

    # Values.

    def _text(self) -> str:
        length = int(10 ** self.random.uniform(0, 2 if self.random.random() < 0.95 else 4))
        return self.random.choice("abcé☃") * length

    def _symbols(self) -> tuple[Symbol, ...]:
        if self.random.random() < 0.7:
            return ()
        return tuple(Symbol(f"s{n}") for n in range(self.random.randrange(200)))

    def _error(self) -> Error:
        return Error(condition=Symbol("amqp:internal-error"), info=self._map(Symbol))

    def _state(self) -> Any:
        states = (
            Accepted(), None, Released(), Modified(delivery_failed=True),
            Modified(message_annotations=self._map(Symbol)), Rejected(error=self._error()),
            Received(1, 5), TransactionalState(txn_id=b"t"),
            Described(ULong(2**40), self._value(2)),
            Described(ULong(2**40), b"z" * int(10 ** self.random.uniform(0, 4.7))),
        )  # fmt: skip
        return self.random.choice(states)

    def _unsettled(self) -> dict[bytes, Any] | None:
        if self.random.random() < 0.8:
            return None
        count = int(10 ** self.random.uniform(0, 3.5))
        return {n.to_bytes(4, "big"): self.random.choice([None, Accepted()]) for n in range(count)}

    def _map(self, key: type) -> dict[Any, Any] | None:
        if self.random.random() < 0.7:
            return None
        if self.random.random() < 0.1:
            # what takes most for its octets
            few: Any = self.random.choice([[], {}, Symbol(""), "", b"", None, True, UInt(0)])
            return {key("x"): [few] * self.random.randrange(20_000)}
        return {key(f"key-{n}"): self._value(3) for n in range(self.random.randrange(20))}

    def _value(self, depth: int) -> Any:
        random = self.random
        kinds = 27 if depth else 23
        match random.randrange(kinds):
            case 23:
                return [self._value(depth - 1) for _ in range(random.randrange(30))]
            case 24:
                return {Symbol(f"k{n}"): self._value(depth - 1) for n in range(random.randrange(9))}
            case 25:
                return Described(Symbol("x:y"), self._value(depth - 1))
            case 26:
                return Map((([1], self._value(depth - 1)),))
            case number:
                return (
                    None, True, False, UByte(1), Byte(-1), UShort(2), Short(-2), UInt(3), Int(-3),
                    ULong(4), Long(-4), Float(0.5), 0.25, Char("x"), Timestamp(5), uuid.UUID(int=6),
                    b"z" * random.randrange(300), self._text(), Symbol("q" * random.randrange(250)),
                    Array([UInt(n) for n in range(random.randrange(50))], UInt),
                    Decimal32(b"abcd"), Decimal64(b"abcdefgh"), Decimal128(b"abcdefghijklmnop"),
                )[number]  # fmt: skip


class Hoard:
    """Run that compares resident with charged memory, from a fresh router on."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.router = HoardRouter()
        self.peers: list[Hoarder] = []
        self.came = 0
        # whatever is imported or cached once is not the peers'
        self._warm_up()
        self.fresh = self._resident()
        self.most_charged = 0
        self.steps = 0
        # how much more than at first was resident at that time, and in the end
        self.grown_then = 0
        self.left = 0

    def _warm_up(self) -> None:
        for _ in range(200):
            self.step()
        self.empty()

    def _resident(self) -> int:
        return resident_bytes(os.getpid())

    def charged(self) -> int:
        """Return how many bytes the router charges to its peers."""
        connections = [peer.connection for peer in self.peers]
        return sum(held_in_all(self.router.forwarder, connections).values())

    def step(self) -> None:
        """Have one peer say something."""
        if len(self.peers) < PEERS:
            self.came += 1
            self.peers.append(Hoarder(self.router, self.random, self.came))
        peer = self.random.choice(self.peers)
        peer.step()
        if peer.connection.finished:
            peer.leave()
            self.peers.remove(peer)

    def check(self) -> None:
        """Compare resident memory with what is charged."""
        charged = self.charged()
        grown = self._resident() - self.fresh
        if charged > self.most_charged:
            self.most_charged, self.grown_then = charged, grown
        assert SANITIZED or grown <= PART * charged + CONSTANT_BYTES, (
            f"{grown / MIB:.1f} MiB more than at first are resident, {charged / MIB:.1f} charged"
        )
        ledger = self.router.turn.ledger
        assert ledger.total == sum(ledger.by_kind.values())
        assert min(ledger.by_kind.values()) >= 0
        assert ledger.total <= MOST_LIMITS * ledger.limit_bytes

    def empty(self) -> None:
        """Let all peers leave and what they left behind expire."""
        for peer in self.peers:
            peer.leave()
        self.peers.clear()
        for _ in range(3):
            self.router.wait(61)
        assert self.charged() == 0, held_in_all(self.router.forwarder, [])
        give_back()

    def run(self, steps: int, goes_on: Callable[[], bool] = lambda: True) -> None:
        """Have the peers hoard for `steps` steps or while `goes_on`, then check and empty."""
        while self.steps < steps and goes_on():
            self.step()
            self.steps += 1
            if self.steps % CHECKED_EVERY == 0:
                self.check()
        self.check()
        self.empty()
        self.left = left = self._resident() - self.fresh
        if not SANITIZED:
            assert left <= LEFT * self.fresh + LEFT_BYTES, f"{left / MIB:.1f} MiB are left"


class Progress:
    """Progress report of a run that goes on until its time is over."""

    def __init__(self, hoard: Hoard, ends_at: float) -> None:
        self._hoard = hoard
        self._ends_at = ends_at
        self._said_at = time.monotonic()

    def goes_on(self) -> bool:
        """Return whether there is time left, and say how far the run is where that is due."""
        now = time.monotonic()
        if now - self._said_at >= SAY_EVERY_S:
            self._said_at = now
            hoard = self._hoard
            print(
                f"{hoard.steps} steps, {len(hoard.peers)} peers, {hoard.charged() / MIB:.1f} MiB "
                "charged",
                flush=True,
            )
        return now < self._ends_at


def main() -> None:
    """Run until the time is over, or without any for one run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.0, help="0 for one run of all its steps")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--steps", type=int, default=STEPS, help="the most steps of a run")
    chosen = parser.parse_args()
    ends_at = time.monotonic() + chosen.seconds if chosen.seconds else float("inf")
    seed = int(time.time()) if chosen.seed is None else chosen.seed
    while True:
        print(f"seed {seed}", flush=True)
        hoard = Hoard(seed)
        try:
            hoard.run(chosen.steps, Progress(hoard, ends_at).goes_on)
        except (AssertionError, AmqpError):
            print(f"after {hoard.steps} steps", end=" ")
            print(held_in_all(hoard.router.forwarder, [p.connection for p in hoard.peers]))
            raise
        print(
            f"{hoard.steps} steps; fresh {hoard.fresh / MIB:.1f} MiB; "
            f"charged at most {hoard.most_charged / MIB:.1f}, "
            f"then {hoard.grown_then / MIB:.1f} MiB more than at first resident; "
            f"left {hoard.left / MIB:+.1f} MiB",
            flush=True,
        )
        if not chosen.seconds or time.monotonic() >= ends_at:
            return
        seed += 1


if __name__ == "__main__":
    main()
