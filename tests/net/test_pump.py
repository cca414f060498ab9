"""A connection's life over real sockets: octets in, octets out, and an end that leaves nothing."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from router.amqp.constants import Condition
from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Flow,
    Modified,
    Open,
    Received,
    Transfer,
)
from router.core.links import attach
from router.engine import opening
from router.engine.losing import AT_ONCE
from router.net import pump
from router.net.endpoints import UNSENT_LIMIT_BYTES
from router.net.pump import Pump

from support.loopback import WIDE, Peer, Running, dialled, listening, running_node
from support.transcripts import On, attach_receiver, attach_sender, begin, message, wire

# Small buffers fill after a few messages.
SMALL = 4096
# So many links are attached in one turn, at most.
MOST_ATTACHED = 8
# What so many attaches leave of the work of a turn is the states of fewer than 2048 deliveries.
NEARLY_A_TURN = 7


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Keep logs off the terminal, which is slower than the router."""
    with capture_logs():
        yield


def window(received: int, frames: int, **fields: Any) -> Flow:
    """Tell how many frames came, and how many more may come."""
    return Flow(
        next_incoming_id=received,
        incoming_window=frames,
        next_outgoing_id=0,
        outgoing_window=WIDE,
        **fields,
    )


@pytest.mark.spec("0.2-1", "0.2-2", "0.2-14")
async def test_a_whole_life() -> None:
    with capture_logs() as logs:
        async with running_node() as running, dialled(running.address) as peer:
            opened = await peer.begin()
            assert opened.container_id == running.node.container_id
            await peer.attach_receiver("q", credit=1)
            await peer.attach_sender("q")
            await peer.transfer(0, b"hello")
            assert (await peer.message())[1] == b"hello"
            await peer.settle(None)
            await peer.hear_until(Disposition)
            await peer.say(Close())
            await peer.hear_until(Close)
            assert await peer.rest() == b""
            await running.until_empty()
    facts = [(line["event"], line["log_level"]) for line in logs if "peer" in line]
    assert facts[:3] == [
        ("connection accepted", "debug"),
        ("connection opened", "info"),
        ("link attached", "info"),
    ]
    assert facts[-1] == ("connection closed", "info")


# Where `tcpi_unacked` is in Linux's tcp_info: behind eight single octets and four numbers.
UNACKED = slice(24, 28)


async def exchanged(peer: Peer) -> None:
    """Have both kernels take the connection for one where an answer carries the acknowledgement."""
    for _ in range(20):
        await peer.say(
            Flow(1000, 0, 1000, next_incoming_id=0, echo=True),
        )
        await peer.hear_until(Flow)


def has_received(pump: Pump, octets: int) -> bool:
    return pump.connection.received_bytes >= octets


def unacknowledged(peer: Peer) -> int:
    """How many segments that a peer has sent its kernel has had no acknowledgement of."""
    found = peer.stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    return int.from_bytes(found[UNACKED], sys.byteorder)


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux can be told")
@pytest.mark.parametrize("what", ["frame", "delivery"])
async def test_who_sends_a_part_is_acknowledged_at_once(what: str) -> None:
    """One with Nagle's algorithm on sends the rest only then, and else 40 ms later."""
    async with (
        running_node() as running,
        dialled(running.address) as peer,
        dialled(running.address) as receiver,
    ):
        await receiver.begin()
        await receiver.attach_receiver("q", credit=100)
        await peer.begin()
        await peer.attach_sender("q")
        pump = await running.pump_of(peer)
        for number in range(10):
            await exchanged(peer)
            octets = wire(message(number, b"x" * 100, more=what == "delivery"))
            cut = 50 if what == "frame" else len(octets)
            came = pump.connection.received_bytes + cut
            await peer.say(octets[:cut])
            await running.until(functools.partial(has_received, pump, came))
            assert unacknowledged(peer) == 0
            await peer.say(octets[cut:] or wire(On(0, Transfer(0), b"")))
            await receiver.message()


@pytest.mark.skipif(not hasattr(socket, "TCP_QUICKACK"), reason="Linux can be told")
@pytest.mark.parametrize("what", ["empty", "flow", "outcome"])
async def test_who_is_not_answered_is_acknowledged_at_once(what: str) -> None:
    """One with Nagle's algorithm on sends its next frame only then: credit behind an outcome."""
    async with (
        running_node() as running,
        dialled(running.address) as peer,
        dialled(running.address) as sender,
    ):
        await peer.begin()
        await peer.attach_receiver("q", credit=1)
        await sender.begin()
        await sender.attach_sender("q")
        pump = await running.pump_of(peer)
        for number in range(10):
            await exchanged(peer)
            if what == "outcome":
                await peer.say(window(number, WIDE, handle=1, delivery_count=number, link_credit=1))
                await sender.transfer(number, b"x")
                await peer.message()
                said: Any = Disposition(True, number, settled=True, state=Accepted())
            else:
                said = window(0, WIDE) if what == "flow" else b"\0\0\0\x08\2\0\0\0"
            octets = said if what == "empty" else wire(said)
            came = pump.connection.received_bytes + len(octets)
            await peer.say(octets)
            await running.until(functools.partial(has_received, pump, came))
            assert unacknowledged(peer) == 0


@pytest.mark.spec("2.4.5-5")
async def test_the_kernel_looks_after_a_peer_that_went_without_a_word() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        (pump,) = running.node.hub.pumps.values()
        assert pump.sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)


async def test_frames_may_come_octet_by_octet() -> None:
    said = wire([AMQP_HEADER, Open("slow"), begin(), attach_receiver(1, "q"), Close()])
    async with running_node() as running, dialled(running.address) as peer:
        one = await running.pump_of(peer)
        for at in range(len(said)):
            await peer.say(said[at : at + 1])
            await running.until(lambda: not _unread(one.sock))
        assert await peer.octets(8) == AMQP_HEADER
        for kind in (Open, Begin, Attach, Close):
            await peer.hear(kind)


def _unread(sock: socket.socket) -> bytes:
    """Peek at what the router has not read yet: one octet, or none."""
    if sock.fileno() < 0:
        return b""
    try:
        return sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return b""


async def test_partial_frames_of_several_peers_do_not_mix() -> None:
    async with running_node() as running:
        async with dialled(running.address) as one, dialled(running.address) as other:
            said = wire([AMQP_HEADER, Open("one"), begin()])
            await one.say(said[:20])
            await other.begin()
            await one.say(said[20:])
            assert await one.octets(8) == AMQP_HEADER
            await one.hear(Open)
            await one.hear(Begin)
        await running.until_empty()


async def _stuck_receiver(running: Running, peer: Peer, sender: Peer) -> Pump:
    """Send to a peer that does not read until its connection is congested; its pump."""
    await peer.begin()
    found = await running.pump_of(peer)
    found.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
    await peer.attach_receiver("q", credit=1000)
    await sender.begin()
    await sender.attach_sender("q")
    other = await running.pump_of(sender)
    number = 0
    while not found.connection.outbox.congested:
        await sender.transfer(number, bytes(60_000), settled=True)
        number += 1
        await running.until(lambda: not _unread(other.sock))
    for _ in range(3):
        await sender.transfer(number, bytes(60_000), settled=True)
        number += 1
    found.log.debug("sent", count=number)
    found.sent_by_test = number  # type: ignore[attr-defined]
    return found


async def test_a_full_socket_is_waited_for_and_congestion_ends() -> None:
    async with (
        running_node() as running,
        dialled(running.address, receive_buffer_bytes=SMALL) as peer,
        dialled(running.address) as sender,
    ):
        stuck = await _stuck_receiver(running, peer, sender)
        await running.until(lambda: running.node.hub.forwarder.backlog.held_bytes)
        for _ in range(stuck.sent_by_test):  # type: ignore[attr-defined]
            _, payload = await peer.message()
            assert len(payload) == 60_000
        assert not stuck.connection.outbox.congested
        assert stuck.connection.outbox.output.size() == 0
        assert running.node.hub.forwarder.backlog.held_bytes == 0


async def test_a_reset_in_the_middle_of_a_send_ends_that_connection_alone() -> None:
    async with (
        running_node() as running,
        dialled(running.address, receive_buffer_bytes=SMALL) as peer,
        dialled(running.address) as sender,
    ):
        await _stuck_receiver(running, peer, sender)
        peer.reset()
        await running.until(lambda: len(running.pumps) == 1)
        await sender.say(Close())
        await sender.hear_until(Close)


async def test_a_connection_whose_messages_wait_is_read_on() -> None:
    async with (
        running_node(listening(connection_buffer_bytes=65536)) as running,
        dialled(running.address) as peer,
        dialled(running.address) as sender,
    ):
        await peer.begin()
        # Of the first message the receiver's window lets the router send a part.
        await peer.attach_receiver("q", credit=100)
        await peer.say(window(0, 1))
        await sender.begin()
        await sender.attach_sender("q")
        held = (await running.pump_of(sender)).connection
        for number in range(3):
            await sender.transfer(number, bytes(50_000), settled=True)
        await running.until(lambda: held.held_back)
        await sender.say(Close())
        await sender.hear_until(Close)
        await peer.message()
        await peer.say(window(1, WIDE))
        await peer.message()
        await peer.message()


async def test_much_work_for_one_does_not_keep_the_others_waiting() -> None:
    many = 1000
    async with (
        running_node() as running,
        dialled(running.address) as busy,
        dialled(running.address) as sender,
        dialled(running.address) as receiver,
    ):
        await busy.begin()
        await busy.attach_receiver("q", credit=many)
        found = (await running.pump_of(busy)).connection
        for peer in (sender, receiver):
            await peer.begin()
        await receiver.attach_receiver("other", credit=many)
        await sender.attach_sender("q")
        await sender.attach_sender("other", handle=1)
        transfers = [message(n, b"x") for n in range(many)]
        for at in range(0, many, 50):
            await sender.say(wire(transfers[at : at + 50]))
            for _ in range(50):
                await busy.message()
        # of all of them, again and again, in one read
        news = wire(Disposition(True, 0, many - 1, False, Received(0, 0)))
        await busy.say(news * 500)
        await running.until(lambda: found.is_behind)
        before = len(found.kept)
        assert before > 400 * len(news)
        for number in range(many, many + 3):
            await sender.say(message(number, b"in between", handle=1))
            assert (await receiver.message())[1] == b"in between"
        # the work went on, and had not come far
        assert before / 2 < len(found.kept) < before
        await busy.say(Close())
        await busy.hear_until(Close)


def attached_links(running: Running) -> int:
    """How many links there are on all connections."""
    sessions = (s for p in running.pumps for s in p.connection.local_sessions.values())
    return sum(len(session.local_links) for session in sessions)


async def test_of_many_with_much_work_one_at_a_time_does_a_part_of_it(unlogged: None) -> None:
    links = wire([attach_receiver(number, "q") for number in range(200)])
    async with running_node() as running, contextlib.AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(dialled(running.address)) for _ in range(10)]
        for peer in peers:
            await peer.begin()
        for peer in peers:
            await peer.say(links)
        await running.until(lambda: all(each.connection.is_behind for each in running.pumps))
        counts = [attached_links(running)]
        while any(each.connection.is_behind for each in running.pumps):
            # so long anybody else waits who has something to say
            await trio.lowlevel.checkpoint()
            counts.append(attached_links(running))
        # whom the loop serves before and after the same turn of this task may be two of them
        steps = [later - earlier for earlier, later in itertools.pairwise(counts)]
        assert max(steps) <= 2 * MOST_ATTACHED
        assert counts[-1] == 200 * len(peers)


# What is answered without being read.


async def ask_for_ever(peer: Peer) -> None:
    """Attach and detach links, and never read an answer."""
    links = wire([attach_receiver(1, "q" * 200), Detach(1, closed=True)]) * 500
    while True:
        await peer.say(links)


async def test_a_peer_that_never_reads_is_not_read_either(unlogged: None) -> None:
    async with (
        running_node() as running,
        dialled(running.address, receive_buffer_bytes=SMALL) as peer,
    ):
        await peer.begin()
        deaf = await running.pump_of(peer)
        deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        output = deaf.connection.outbox.output
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_for_ever, peer)
            await running.until(lambda: output.size() > UNSENT_LIMIT_BYTES)
            # what it goes on to say fills the sockets, and nothing else
            await trio.testing.wait_all_tasks_blocked(0.1)
            assert output.size() < 2 * UNSENT_LIMIT_BYTES
            assert _unread(deaf.sock)
            nursery.cancel_scope.cancel()
        # once it reads, it is read again to the end
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.rest)
            await running.until(lambda: output.size() == 0 and not _unread(deaf.sock))
            nursery.cancel_scope.cancel()


async def test_a_peer_that_never_reads_is_given_up(
    unlogged: None, one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    async with (
        running_node(listening(idle_timeout_seconds=8)) as running,
        dialled(running.address, receive_buffer_bytes=SMALL) as peer,
    ):
        await peer.begin()
        deaf = await running.pump_of(peer)
        deaf.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SMALL)
        output = deaf.connection.outbox.output
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_for_ever, peer)
            await running.until(lambda: output.size() > UNSENT_LIMIT_BYTES)
            nursery.cancel_scope.cancel()
        started = trio.current_time()
        await running.until_empty()
        assert trio.current_time() - started < 8 + 2 * pump.LINGER_S + 1


# The end.


@pytest.mark.spec("2.4.3-3")
async def test_a_close_with_an_error_is_heard_by_a_peer_that_goes_on_sending() -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        # no frame, and much behind it
        await peer.say(b"\0\0\0\1" + bytes(200_000))
        close = await peer.hear_until(Close)
        assert close.error is not None
        assert close.error.condition == Condition.FRAMING_ERROR
        await peer.say(bytes(200_000))
        assert await peer.rest() == b""
        await peer.stream.aclose()
        await running.until_empty()


@pytest.mark.parametrize("sends", [False, True])
@pytest.mark.spec("2.4.3-4")
async def test_a_peer_that_does_not_close_is_left_after_a_while(
    one_clock: None, autojump_clock: trio.testing.MockClock, sends: bool
) -> None:
    async with running_node() as running, dialled(running.address) as peer:
        await peer.begin()
        await peer.say(b"\0\0\0\1abcd")
        await peer.hear_until(Close)
        started = trio.current_time()
        if sends:
            await peer.say(bytes(200_000))
        await running.until_empty()
        assert trio.current_time() - started <= pump.LINGER_S + 1


async def test_a_peer_that_reads_nothing_does_not_hold_up_its_end(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    async with (
        running_node() as running,
        dialled(running.address, receive_buffer_bytes=SMALL) as peer,
        dialled(running.address) as sender,
    ):
        await _stuck_receiver(running, peer, sender)
        started = trio.current_time()
        await peer.say(b"\0\0\0\1abcd")
        await running.until(lambda: len(running.pumps) == 1)
        assert trio.current_time() - started <= 2 * pump.LINGER_S + 1


@pytest.mark.parametrize(
    "said",
    [b"", AMQP_HEADER[:3], AMQP_HEADER, AMQP_HEADER + encode_frame(0, Open("x"))[:-1]],
    ids=["nothing", "half a header", "a header", "half an open"],
)
async def test_a_peer_that_never_opens_is_left(
    one_clock: None, autojump_clock: trio.testing.MockClock, said: bytes
) -> None:
    async with (
        running_node(listening(initial_handshake_timeout_seconds=3)) as running,
        dialled(running.address) as peer,
    ):
        started = trio.current_time()
        await peer.say(said)
        await peer.rest()
        assert 3 <= trio.current_time() - started < 4
        await peer.stream.aclose()
        await running.until_empty()


@pytest.mark.spec("2.4.5-2", "2.4.5-3", "G1.1-3")
async def test_a_peer_that_falls_silent_is_told_so(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    async with (
        running_node(listening(idle_timeout_seconds=8)) as running,
        dialled(running.address) as peer,
    ):
        opened = await peer.begin()
        assert opened.idle_time_out == 4000
        close = await peer.hear_until(Close)
        assert close.error is not None
        assert close.error.condition == Condition.RESOURCE_LIMIT_EXCEEDED


async def test_a_peer_that_asks_for_heartbeats_gets_them(
    one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    async with (
        running_node(listening(idle_timeout_seconds=0)) as running,
        dialled(running.address) as peer,
    ):
        await peer.begin(idle_time_out=1000)
        for _ in range(3):
            before = trio.current_time()
            assert await peer.octets(8) == encode_frame(0)
            assert 0.25 <= trio.current_time() - before <= 0.75


# Defects of our own.


class Defect(Exception):
    """What no handler should ever raise."""


async def test_a_defect_in_handling_ends_one_connection_and_is_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = attach.attach_received

    def defective(forwarder: Any, connection: Any, link: Any) -> None:
        if link.name == "sender-7":
            raise Defect("here")
        plain(forwarder, connection, link)

    monkeypatch.setattr(attach, "attach_received", defective)
    with capture_logs() as logs:
        async with (
            running_node() as running,
            dialled(running.address) as good,
            dialled(running.address) as bad,
        ):
            await good.begin()
            await bad.begin()
            await bad.say(attach_sender(7, "q"))
            await running.until(lambda: len(running.pumps) == 1)
            await good.attach_receiver("q", credit=1)
            await good.attach_sender("q")
            await good.transfer(0, b"x")
            await good.message()
    (failed,) = (line for line in logs if line["event"] == "connection failed")
    assert failed["log_level"] == "error"
    assert failed["exc_info"]
    assert failed["peer"].startswith("127.0.0.1:")


async def test_a_defect_in_sending_ends_the_connection_at_fault_and_not_whose_turn_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with capture_logs() as logs:
        async with (
            running_node() as running,
            dialled(running.address) as bad,
            dialled(running.address) as good,
        ):
            await bad.begin()
            await bad.attach_receiver("q", credit=10)
            at_fault = await running.pump_of(bad)
            await good.begin()
            await good.attach_receiver("other", credit=10)
            await good.attach_sender("q")

            def defective() -> bool:
                raise Defect("sending")

            monkeypatch.setattr(at_fault, "_try_send", defective)
            await good.transfer(0, b"x")
            told = await good.hear_until(Disposition)
            assert type(told.state).__name__ == "Modified"
            await running.until(lambda: len(running.pumps) == 1)
    (failed,) = (line for line in logs if line["event"] == "connection failed")
    assert failed["connection"] == at_fault.number


async def test_a_defect_at_the_clock_ends_the_connection_at_fault(
    monkeypatch: pytest.MonkeyPatch, one_clock: None, autojump_clock: trio.testing.MockClock
) -> None:
    plain = opening.tick

    def defective(connection: Any) -> None:
        if connection.user == "marked":
            raise Defect("ticking")
        plain(connection)

    monkeypatch.setattr(opening, "tick", defective)
    with capture_logs() as logs:
        async with (
            running_node() as running,
            dialled(running.address) as bad,
            dialled(running.address) as good,
        ):
            await bad.begin()
            (await running.pump_of(bad)).connection.user = "marked"
            await good.begin()
            await running.until(lambda: len(running.pumps) == 1)
            await good.attach_receiver("q")
    assert [line["event"] for line in logs].count("connection failed") == 1


# Nothing is left behind.


@pytest.mark.parametrize("said", [b"", AMQP_HEADER, AMQP_HEADER + encode_frame(0, Open("x"))])
async def test_cancelling_leaves_no_socket_and_no_pump(said: bytes) -> None:
    async with (
        trio.open_nursery() as nursery,
        running_node() as running,
        dialled(running.address) as peer,
    ):
        await peer.say(said)
        one = await running.pump_of(peer)
        await running.until(lambda: not _unread(one.sock))
        nursery.cancel_scope.cancel()
        await trio.lowlevel.checkpoint_if_cancelled()
    assert running.pumps == []
    assert one.sock.fileno() == -1


async def test_cancelling_a_writer_and_a_lingerer_leaves_nothing() -> None:
    async with (
        running_node() as running,
        dialled(running.address, receive_buffer_bytes=SMALL) as peer,
        dialled(running.address) as sender,
        dialled(running.address) as closed,
    ):
        writer = await _stuck_receiver(running, peer, sender)
        await closed.begin()
        await closed.say(b"\0\0\0\1abcd")
        await closed.hear_until(Close)
        pumps = running.pumps
        assert writer in pumps
        # the block ends, and the router is cancelled as it stands
    assert [each.sock.fileno() for each in pumps] == [-1] * 3


def _count(kind: str) -> int:
    """How many objects of a class the collector knows of."""
    return sum(type(each).__name__ == kind for each in gc.get_objects())


@pytest.mark.slow
async def test_hundreds_of_connections_leave_nothing_behind(unlogged: None) -> None:
    kinds = ("Connection", "Session", "Pump", "Outbox", "IncomingLink", "OutgoingLink")
    async with running_node() as running:
        async with dialled(running.address) as first:
            await first.begin()
        await running.until_empty()
        # the task of the last one ends a round later
        await trio.testing.wait_all_tasks_blocked()
        gc.collect()
        before = {kind: _count(kind) for kind in kinds}
        gc.disable()
        try:
            for number in range(500):
                async with dialled(running.address) as peer:
                    await peer.begin()
                    await peer.attach_receiver("q", credit=1)
                    await peer.attach_sender("q")
                    if number % 2:
                        await peer.transfer(0, b"x")
                        await peer.message()
                        await peer.say(Close())
                        await peer.hear_until(Close)
            await running.until_empty()
            await trio.testing.wait_all_tasks_blocked()
            assert running.node.hub.turn.touched == []
            # most memory goes without the collector
            assert _count("Connection") - before["Connection"] < 100
        finally:
            gc.enable()
        gc.collect()
        assert {kind: _count(kind) for kind in kinds} == before


async def test_a_connection_with_many_links_is_lost_while_others_go_on(unlogged: None) -> None:
    count = 4 * AT_ONCE
    async with (
        running_node() as running,
        dialled(running.address) as crowd,
        dialled(running.address) as other,
    ):
        await crowd.begin()
        for number in range(count):
            await crowd.attach_receiver(f"q{number}", handle=number)
        pump = await running.pump_of(crowd)
        table = running.node.table
        assert all(table.in_use(f"q{number}") for number in range(count))
        await other.begin()
        with capture_logs() as logs:
            crowd.reset()
            await running.until(lambda: table.in_use("q0") is None)
            assert table.in_use(f"q{count - 1}") is not None
            await other.attach_receiver("here", credit=1)
            await other.attach_sender("here")
            await other.transfer(0, b"hello")
            assert (await other.message())[1] == b"hello"
            await running.until(lambda: table.in_use(f"q{count - 1}") is None)
            # that is said in the step after the last link's
            await running.until(lambda: "connection closed" in [line["event"] for line in logs])
    closed = [line for line in logs if line["event"] == "connection closed"]
    assert pump.number in [line["connection"] for line in closed]
    # nothing keeps what the connection was made of
    assert pump.connection.owner is not pump


async def test_a_connection_that_is_lost_within_a_disposition_drops_the_rest(
    unlogged: None,
) -> None:
    many = 600
    before = _count("RestOfRange")
    async with (
        running_node() as running,
        dialled(running.address) as busy,
        dialled(running.address) as sender,
    ):
        await busy.begin()
        await busy.attach_receiver("q", credit=many + 1)
        await sender.begin()
        await sender.attach_sender("q")
        pump = await running.pump_of(busy)
        transfers = [message(n, b"x") for n in range(many)]
        for at in range(0, many, 50):
            await sender.say(wire(transfers[at : at + 50]))
            for _ in range(50):
                await busy.message()
        # the last of the dispositions is more than what is left of the turn
        attaches = [attach_receiver(handle) for handle in range(2, 2 + NEARLY_A_TURN)]
        news = Disposition(True, 0, many - 1, False, Received(0, 0))
        taken = Disposition(True, 0, many - 1, True, Accepted())
        async with running.node.hub.long_turns:
            # nobody goes on with what takes long
            await busy.say(*attaches, news, news, news, taken)
            await running.until(lambda: pump.connection.unfinished)
            busy.reset()
            # it is noticed as something is sent
            await sender.say(message(many, b"x"))
            await running.until(lambda: pump not in running.pumps)
        told = {Accepted: 0, Modified: 0}
        while sum(told.values()) < many:
            heard = await sender.hear_until(Disposition)
            if not heard.settled:
                continue
            last = heard.first if heard.last is None else heard.last
            told[type(heard.state)] += last + 1 - heard.first
        assert 0 < told[Accepted] < many
        # nothing keeps what was left to do
        assert _count("RestOfRange") == before
