"""Receiving: whole messages, credit that follows them, outcomes, drains, and lost links."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from router.amqp.constants import SenderSettleMode
from router.amqp.message import Data, Message, encode_message
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Error,
    Flow,
    Modified,
    Rejected,
    Released,
    Source,
    Transfer,
)
from router.client import LinkLost, ReceivedMessage, Receiver, connect
from router.errors import AmqpError

from support.scripted_server import Script, ServerPeer, serving
from support.transcripts import On, message


def payload(number: int) -> bytes:
    """Encode a message that contains its number."""
    return encode_message(Message(body=(Data(b"%d" % number),)))


def numbered(number: int, **fields: Any) -> On:
    """Return a transfer of the message with this number, which is its delivery-id too."""
    return message(number, payload(number), **fields)


async def attached(peer: ServerPeer, **fields: Any) -> tuple[Attach, Flow]:
    """Answer the client's receiver; returns its attach and its first flow."""
    attach = await peer.attached(initial_delivery_count=0, **fields)
    return attach, await peer.hear(Flow)


@asynccontextmanager
async def receiving(script: Script, **options: Any) -> AsyncIterator[Receiver]:
    """Yield an open receiver from a scripted server."""

    async def whole(peer: ServerPeer) -> None:
        await peer.open()
        await script(peer)

    async with serving(whole) as url, connect(url) as connection:
        yield await connection.open_receiver("q", **options)


def say(received: ReceivedMessage, word: str) -> None:
    """Settle a message."""
    match word:
        case "accept":
            received.accept()
        case "reject":
            received.reject()
        case "reject why":
            received.reject("amqp:decode-error", "bad")
        case "release":
            received.release()
        case "modify":
            received.modify()
        case "modify more":
            received.modify(delivery_failed=True, undeliverable_here=True)


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("accept", Accepted()),
        ("reject", Rejected()),
        ("reject why", Rejected(Error("amqp:decode-error", "bad"))),
        ("release", Released()),
        ("modify", Modified()),
        ("modify more", Modified(delivery_failed=True, undeliverable_here=True)),
    ],
)
async def test_each_outcome_is_said_once(word: str, state: Any) -> None:
    said: list[Disposition] = []
    done = trio.Event()

    async def script(peer: ServerPeer) -> None:
        attach, flow = await attached(peer)
        assert attach.source is not None
        assert attach.source.address == "q"
        assert (flow.link_credit, flow.delivery_count, flow.drain) == (5, 0, False)
        await peer.say(numbered(0))
        said.append(await peer.hear(Disposition))
        done.set()

    async with receiving(script, credit=5) as receiver:
        received = await receiver.receive()
        assert received.message.body == (Data(b"0"),)
        assert [received.is_settled] == [False]
        say(received, word)
        assert received.is_settled
        # a second word is not said
        received.accept()
        await done.wait()
    assert said == [Disposition(True, 0, 0, settled=True, state=state)]


async def test_iteration_ends_with_the_count_and_asks_for_no_more() -> None:
    flows: list[Flow] = []

    async def script(peer: ServerPeer) -> None:
        _, flow = await attached(peer)
        flows.append(flow)
        await peer.say(numbered(0), numbered(1))
        flows.append(await peer.hear_until(Flow))
        await peer.say(numbered(2))

    taken = []
    async with receiving(script, credit=2, count=3) as receiver:
        async for received in receiver:
            received.accept()
            taken.append(received.message.body)
        assert taken == [(Data(b"%d" % number),) for number in range(3)]
        with pytest.raises(trio.EndOfChannel):
            await receiver.receive()
        assert receiver.credit == 0
    assert [flow.link_credit for flow in flows] == [2, 1]


async def test_credit_waits_for_settlements() -> None:
    quiet = trio.Event()
    granted: list[int | None] = []
    done = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.say(numbered(0), numbered(1))
        await peer.hear(Disposition)
        assert quiet.is_set()
        granted.append((await peer.hear(Flow)).link_credit)
        done.set()

    async with receiving(script, credit=2) as receiver:
        first = await receiver.receive()
        await receiver.receive()
        await wait_all_tasks_blocked()
        assert receiver.credit == 0
        quiet.set()
        first.accept()
        await done.wait()
    assert granted == [1]


async def test_presettled_messages_need_no_word() -> None:
    done = trio.Event()

    async def script(peer: ServerPeer) -> None:
        attach, _ = await attached(peer)
        assert attach.snd_settle_mode == SenderSettleMode.SETTLED
        await peer.say(*[numbered(number, settled=True) for number in range(4)])
        # no disposition before it
        assert (await peer.hear(Flow)).link_credit
        done.set()

    async with receiving(script, credit=4, presettled=True) as receiver:
        for _ in range(4):
            received = await receiver.receive()
            assert received.is_settled
            received.accept()
        await done.wait()


async def test_a_message_in_many_frames() -> None:
    whole = encode_message(Message(body=(Data(bytes(range(250))),)))

    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        parts = [whole[at : at + 40] for at in range(0, len(whole), 40)]
        last = len(parts) - 1
        await peer.say(
            *[message(0, part, more=at < last, message_format=0) for at, part in enumerate(parts)]
        )

    async with receiving(script) as receiver:
        received = await receiver.receive()
        assert received.payload == whole
        assert received.frames == 7
        assert receiver.session.window.held_frames == 0


async def test_an_aborted_message_never_was() -> None:
    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.say(message(0, b"half", more=True), On(0, Transfer(0, aborted=True), b""))
        await peer.say(numbered(1))

    async with receiving(script, credit=1) as receiver:
        # with a credit of one the second message needs the first one's back
        assert (await receiver.receive()).payload == payload(1)
        assert receiver.arrived == 1


async def test_octets_that_nobody_takes_close_the_window() -> None:
    size, count = 16_000, 2000
    sent = 0

    async def script(peer: ServerPeer) -> None:
        nonlocal sent
        limit = (await peer.open()).incoming_window
        await attached(peer)
        while sent < count:
            more = range(sent, min(limit, count))
            sent += len(more)
            await peer.say(*[message(number, bytes(size)) for number in more])
            if sent == count:
                # the client may close before it owes another window
                return
            flow = await peer.hear(Flow)
            limit = (flow.next_incoming_id or 0) + flow.incoming_window

    async with serving(script) as url, connect(url) as connection:
        # credit bounds messages, not octets
        receiver = await connection.open_receiver("q", credit=count)
        await wait_all_tasks_blocked(0.2)
        assert 0 < receiver.waiting * size < 17_000_000
        for _ in range(count):
            await receiver.receive()
    assert sent == count


async def test_a_drain_takes_what_is_there() -> None:
    async def script(peer: ServerPeer) -> None:
        _, flow = await attached(peer)
        assert (flow.link_credit, flow.drain) == (2, True)
        # all of the credit is used: there may be more
        await peer.say(numbered(0), numbered(1))
        flow = await peer.hear_until(Flow)
        assert flow.drain
        assert flow.delivery_count == 2
        await peer.say(numbered(2))
        flow = await peer.hear_until(Flow)
        assert flow.delivery_count == 3
        await peer.grant(0, sent=3 + (flow.link_credit or 0), drain=True)

    async with receiving(script, credit=2, drain=True) as receiver:
        taken = []
        async for received in receiver:
            received.accept()
            taken.append(received.payload)
        assert taken == [payload(number) for number in range(3)]


async def test_a_drain_where_nothing_is() -> None:
    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.grant(0, sent=100, drain=True)

    async with receiving(script, drain=True) as receiver:
        with pytest.raises(trio.EndOfChannel):
            await receiver.receive()


async def test_closing_releases_what_nobody_took() -> None:
    said: list[Any] = []

    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.say(*[numbered(number) for number in range(3)])
        said.extend([await peer.hear(Disposition), await peer.hear(Disposition)])
        said.extend([await peer.hear_until(Detach), await peer.hear_until(Close)])
        await peer.say(Close())
        await peer.stream.aclose()

    async with receiving(script) as receiver:
        (await receiver.receive()).accept()
    assert said == [
        Disposition(True, 0, 0, settled=True, state=Accepted()),
        Disposition(True, 1, 2, settled=True, state=Released()),
        Detach(0, closed=True),
        Close(),
    ]


async def test_a_lost_link_keeps_what_was_settled() -> None:
    taken = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.say(numbered(0), numbered(1, settled=True), numbered(2))
        await taken.wait()
        await peer.say(Detach(0, closed=True, error=Error("amqp:link:stolen")))

    async with receiving(script) as receiver:
        first = await receiver.receive()
        taken.set()
        while not receiver.is_over:
            await receiver.wait_for_change()
        # the others of the unsettled are their sender's again
        assert (await receiver.receive()).payload == payload(1)
        with pytest.raises(LinkLost) as lost:
            await receiver.receive()
        assert str(lost.value) == "amqp:link:stolen"
        with pytest.raises(LinkLost):
            first.accept()


async def test_a_sender_that_settles_meanwhile_needs_no_word() -> None:
    settled = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.say(numbered(0), Disposition(False, 0, settled=True), numbered(1))
        assert (await peer.hear(Disposition)).first == 1
        settled.set()

    async with receiving(script) as receiver:
        first, second = await receiver.receive(), await receiver.receive()
        assert first.is_settled
        first.accept()
        second.accept()
        await settled.wait()


async def test_what_is_no_message_is_found_out_when_it_is_read() -> None:
    async def script(peer: ServerPeer) -> None:
        await attached(peer)
        await peer.say(message(0, b"no message"))

    async with receiving(script) as receiver:
        received = await receiver.receive()
        assert received.payload == b"no message"
        with pytest.raises(AmqpError):
            received.message  # noqa: B018
        received.reject()


async def test_nothing_waits() -> None:
    async def script(peer: ServerPeer) -> None:
        await attached(peer)

    async with receiving(script) as receiver:
        assert receiver.waiting == 0
        with pytest.raises(trio.WouldBlock):
            receiver.receive_nowait()


async def test_a_selector_is_asked_for_and_applied() -> None:
    asked: list[Any] = []

    async def script(peer: ServerPeer) -> None:
        attach, _ = await attached(peer)
        asked.append(attach.source.filter if attach.source else None)
        await peer.hear_until(Close)
        await peer.say(Close())

    async with receiving(script, selector="colour = 'red'") as receiver:
        assert not receiver.lacks_filter
    (filters,) = asked
    described = filters.get("apache.org:selector-filter:string")
    assert described.descriptor == "apache.org:selector-filter:string"
    assert described.value == "colour = 'red'"


async def test_a_selector_that_the_peer_does_not_apply_is_a_failure_and_gets_no_credit() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.attached(initial_delivery_count=0, source=Source(address="q"))
        # nothing in between
        await peer.hear(Detach)
        await peer.say(Detach(handle=0, closed=True))
        await peer.hear(Close)
        await peer.say(Close())

    async with serving(script) as url, connect(url) as connection:
        with pytest.raises(LinkLost, match="the peer does not apply selectors"):
            await connection.open_receiver("q", selector="colour = 'red'")
