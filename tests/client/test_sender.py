"""Senders: outcomes of every kind, credit, windows, drains, and what a lost link leaves behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from router.amqp.constants import ReceiverSettleMode, SenderSettleMode
from router.amqp.message import AmqpValue, Data, Message, decode_message, encode_message
from router.amqp.performatives import (
    Accepted,
    Attach,
    Detach,
    Disposition,
    Error,
    Flow,
    Modified,
    Received,
    Rejected,
    Released,
    Target,
)
from router.amqp.types import Symbol
from router.client import LinkLost, Sender, SentMessage, connect
from router.client.sender import Outcome

from support.scripted_server import Script, ServerPeer, serving

HELLO = Message(body=(AmqpValue("hello"),))

OUTCOMES = [
    Accepted(),
    Released(),
    Rejected(),
    Rejected(Error("amqp:decode-error", "bad", {Symbol("at"): 3})),
    Modified(),
    Modified(delivery_failed=True, undeliverable_here=True, message_annotations={Symbol("a"): 1}),
]


@asynccontextmanager
async def sending(script: Script, **options: Any) -> AsyncIterator[Sender]:
    """Yield an open sender to a scripted server."""

    async def whole(peer: ServerPeer) -> None:
        await peer.open()
        await script(peer)

    async with serving(whole) as url, connect(url) as connection:
        yield await connection.open_sender("q", **options)


@pytest.mark.parametrize("outcome", OUTCOMES)
async def test_an_outcome_is_the_receivers(outcome: Outcome) -> None:
    async def script(peer: ServerPeer) -> None:
        remote = await peer.attached(credit=1)
        assert remote.target == Target(address="q")
        assert remote.snd_settle_mode == SenderSettleMode.UNSETTLED
        transfer, payload = await peer.message()
        assert not transfer.settled
        assert decode_message(payload) == HELLO
        await peer.settle(outcome)

    async with sending(script) as sender:
        assert await sender.send(HELLO) == outcome
        assert sender.unsettled == 0


async def test_a_receiver_that_settles_second_is_answered() -> None:
    error = Rejected(Error("amqp:not-allowed", "no"))

    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=2, rcv_settle_mode=ReceiverSettleMode.SECOND)
        for number, state in enumerate([Accepted(), error]):
            await peer.message()
            # on its way, and no outcome yet
            await peer.settle(Received(0, 0), number, settled=False)
            await peer.settle(state, number, settled=False)
            settled = await peer.hear(Disposition)
            assert settled == Disposition(False, number, number, settled=True, state=state)

    async with sending(script) as sender:
        assert await sender.send(HELLO) == Accepted()
        assert await sender.send(HELLO) == error


async def test_a_settlement_without_a_word() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=1)
        await peer.message()
        await peer.settle(None)

    async with sending(script) as sender:
        assert await sender.send(HELLO) is None


@pytest.mark.parametrize("answered", [SenderSettleMode.SETTLED, SenderSettleMode.MIXED])
async def test_presettled_messages_have_no_outcome(answered: SenderSettleMode) -> None:
    async def script(peer: ServerPeer) -> None:
        remote = await peer.attached(credit=2, snd_settle_mode=answered)
        assert remote.snd_settle_mode == SenderSettleMode.SETTLED
        for _ in range(2):
            transfer, _ = await peer.message()
            assert transfer.settled
        await peer.say(Detach(0, closed=True))

    async with sending(script, presettled=True) as sender:
        assert await sender.send(HELLO) is None
        assert sender.send_nowait(HELLO).is_settled
        await sender.wait_until_settled()
        while not sender.is_over:
            await sender.wait_for_change()
        assert sender.lost == 0


async def test_a_link_that_ends_when_all_is_settled_has_lost_nothing() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=1)
        await peer.message()
        await peer.settle(Accepted(), 0)
        await peer.say(Detach(0, closed=True))

    async with sending(script) as sender:
        await sender.wait_for_room()
        sender.send_nowait(HELLO)
        while not sender.is_over:
            await sender.wait_for_change()
        await sender.wait_until_settled()


@pytest.mark.parametrize("presettled", [False, True])
async def test_a_link_that_ends_before_that_may_have_lost_something(presettled: bool) -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=1)
        await peer.message()
        await peer.say(Detach(0, closed=True))

    async with sending(script, presettled=presettled) as sender:
        await sender.wait_for_room()
        sender.send_nowait(HELLO)
        while not sender.is_over:
            await sender.wait_for_change()
        with pytest.raises(LinkLost, match="the peer detached the link"):
            await sender.wait_until_settled()


async def test_a_batch_is_settled_by_one_disposition() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=100)
        for _ in range(100):
            await peer.message()
        await peer.settle(Accepted(), 0, 98)
        await peer.settle(Released(), 99)

    told: list[SentMessage] = []
    async with sending(script) as sender:
        sender.on_settled = told.append
        await sender.wait_for_room()
        sent = [sender.send_nowait(HELLO) for _ in range(100)]
        assert sender.credit == 0
        assert not sender.has_room()
        with pytest.raises(trio.WouldBlock):
            sender.send_nowait(HELLO)
        assert sender.unsettled == 100
        await sender.wait_until_settled()
        assert told == sent
        assert [each.outcome for each in sent] == [Accepted()] * 99 + [Released()]
        assert await sent[0].wait() == Accepted()


async def test_a_window_bounds_what_is_unsettled() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=100)
        for number in range(4):
            await peer.message()
            if number % 2:
                await peer.settle(Accepted(), number - 1, number)

    async with sending(script, window=2) as sender:
        for _ in range(4):
            await sender.wait_for_room()
            sender.send_nowait(HELLO)
            assert sender.unsettled <= 2
        await sender.wait_until_settled()


async def test_many_tasks_send_at_once() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=5)
        for number in range(50):
            await peer.message()
            await peer.settle(Accepted(), number)
            if number % 5 == 4:
                await peer.grant(5, sent=number + 1, frames=number + 1)

    async with sending(script) as sender, trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(sender.send, HELLO)


async def test_a_large_message_goes_through_small_windows() -> None:
    large = Message(body=(Data(bytes(range(256)) * 20),))
    windows = 3

    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=2)
        payload = b""
        more = True
        frames = 0
        while more:
            transfer, part = await peer.message()
            payload += part
            more = transfer.more
            frames += 1
            if frames % windows == 0:
                await peer.grant(2, frames=frames, incoming_window=windows)
        assert decode_message(payload) == large
        transfer, part = await peer.message()
        assert decode_message(part) == HELLO
        await peer.settle(Accepted(), 0, 1)

    async def whole(peer: ServerPeer) -> None:
        await peer.open(max_frame_size=512, incoming_window=windows)
        await script(peer)

    async with serving(whole) as url, connect(url) as connection:
        sender = await connection.open_sender("q")
        # what is granted on attach says that the window is wide: wait for the begin's alone
        sender.session.remote_incoming_window = windows
        await sender.wait_for_room()
        sender.session.remote_incoming_window = windows
        octets = bytearray(encode_message(large))
        first = sender.send_nowait(octets)
        # the octets are the caller's again, though not all of them have left
        octets[:] = bytes(len(octets))
        assert not sender.has_room()
        await sender.send(HELLO)
        assert first.outcome == Accepted()


async def test_a_full_socket_holds_sending_back() -> None:
    count = 200
    large = Message(body=(Data(bytes(50_000)),))
    read = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=count)
        await read.wait()
        octets = 0
        for number in range(count):
            transfer, payload = await peer.message()
            octets += len(payload)
            assert not transfer.more
            await peer.settle(Accepted(), number)
        assert octets > count * 50_000

    async with sending(script) as sender:
        await sender.wait_for_room()
        sent = 0
        while sender.has_room():
            sender.send_nowait(large)
            sent += 1
        # there is credit for more, but no more than so much waits in memory
        assert sent < 20
        read.set()
        while sent < count:
            await sender.wait_for_room()
            sender.send_nowait(large)
            sent += 1
        await sender.wait_until_settled()


async def test_a_drain_takes_back_what_nobody_uses() -> None:
    drained: list[Flow] = []
    done = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.attached()
        await peer.grant(10, drain=True)
        drained.append(await peer.hear(Flow))
        done.set()

    async with sending(script) as sender:
        await done.wait()
        assert sender.credit == 0
    assert (drained[0].delivery_count, drained[0].link_credit, drained[0].drain) == (10, 0, True)


async def test_who_waits_for_credit_sends_before_a_drain_takes_it() -> None:
    waiting = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.attached()
        await waiting.wait()
        await peer.grant(10, drain=True)
        await peer.message()
        await peer.message()
        flow = await peer.hear(Flow)
        assert (flow.delivery_count, flow.link_credit) == (10, 0)
        await peer.settle(Accepted(), 0, 1)

    async with sending(script) as sender, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(sender.send, HELLO)
        await wait_all_tasks_blocked()
        waiting.set()


async def test_a_lost_link_loses_outcomes() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.attached(credit=3)
        for _ in range(3):
            await peer.message()
        await peer.settle(Accepted(), 1)
        await peer.say(Detach(0, closed=True, error=Error("amqp:resource-deleted", "gone")))

    async with sending(script) as sender:
        await sender.wait_for_room()
        sent = [sender.send_nowait(HELLO) for _ in range(3)]
        with pytest.raises(LinkLost):
            await sent[0].wait()
        assert await sent[1].wait() == Accepted()
        with pytest.raises(LinkLost):
            await sent[2].wait()
        assert sender.lost == 2
        assert sender.unsettled == 0
        for wait in (sender.wait_for_room, sender.wait_until_settled):
            with pytest.raises(LinkLost) as lost:
                await wait()
            assert str(lost.value) == "amqp:resource-deleted: gone"
        with pytest.raises(LinkLost):
            sender.send_nowait(HELLO)


async def test_the_anonymous_relay_has_no_address() -> None:
    attaches: list[Attach] = []

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        attaches.append(await peer.attached())

    async with serving(script) as url, connect(url) as connection:
        await connection.open_sender(None)
    assert attaches[0].target == Target()
