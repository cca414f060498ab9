"""Following deliveries: what is told is what the peers did, in order, with the links' ids."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from router.amqp.batches import BATCH_FORMAT
from router.amqp.constants import Descriptor
from router.amqp.encode import encode_value
from router.amqp.message import AmqpValue, Data, Message, Properties, encode_message
from router.amqp.performatives import Accepted, Close, Detach, Disposition, Released, Transfer
from router.amqp.types import Described, UInt, ULong
from router.client import Receiver
from router.client.management import ManagementClient, RequestRefused
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.engine.account import Account, Ledger
from router.management.delivery_trace import MAX_FOLLOWED, DeliveryFilter, DeliveryTracer
from router.management.running_traces import Trace

from support.loopback import Peer, Running, dialled, running_node
from support.tracing import asking, lines
from support.transcripts import On

CONFIGURATION = Configuration(
    listeners=(ListenerSettings(port=0),),
    addresses=(AddressSettings(prefix="many", distribution="multicast"),),
)


async def follow(management: ManagementClient, receiver: Receiver, **asked: Any) -> int:
    """Begin to follow deliveries; returns how many are here."""
    begun = await management.request("TRACE", None, {"to": receiver.address, "delivery": asked})
    return int(begun["deliveries"])


@asynccontextmanager
async def attached(credit: int = 10) -> AsyncIterator[tuple[Running, Peer, Peer]]:
    """Run a router with a peer that sends to `q`, and one that receives from it."""
    async with (
        running_node() as running,
        dialled(running.address) as sender,
        dialled(running.address) as target,
    ):
        await sender.begin()
        await target.begin()
        await target.attach_receiver("q", credit=credit)
        await sender.attach_sender("q")
        yield running, sender, target


async def told(receiver: Receiver, count: int) -> list[tuple[str, str | None]]:
    """Return the next trace events, at least `count`, each with its link."""
    return [(line["event"], line.get("link")) for line in await lines(receiver, count)]


async def accept(peer: Peer, number: int = 0) -> None:
    """Accept a delivery."""
    await peer.say(Disposition(role=True, first=number, settled=True, state=Accepted()))


async def test_a_delivery_is_followed_from_its_sender_to_the_outcome() -> None:
    async with attached() as (running, sender, target), asking(running) as (management, receiver):
        assert await follow(management, receiver, address="q") == 0
        message = Message(properties=Properties(message_id="m1"), body=(AmqpValue("x"),))
        await sender.transfer(0, encode_message(message))
        await target.hear_until(Transfer)
        await accept(target)
        await sender.hear_until(Disposition)
        first, out, outcome, last = await lines(receiver, 4)
        ids = {"event": "came in", "connection": "1", "link": "1.0.0", "deliveryId": 0}
        facts = {"tag": '"0"', "address": "q", "messageId": "m1", "settled": False}
        assert first.items() >= {**ids, **facts, "delivery": 1}.items()
        assert (out["event"], out["link"], out["settled"]) == ("went out", "2.0.0", False)
        assert (outcome["event"], outcome["link"], outcome["state"]) == (
            "outcome",
            "2.0.0",
            "accepted",
        )
        assert (last["event"], last["link"], last["state"]) == ("told", "1.0.0", "accepted")
        assert last["last"] is True
        assert 0 <= out["afterMs"] <= outcome["afterMs"] <= last["afterMs"]


async def test_where_it_waits_is_told_before_and_after_the_trace_begins() -> None:
    async with attached() as (running, sender, target), asking(running) as (management, receiver):
        # its window is closed: whatever its credit, nothing goes there
        await target.allow(0)
        (session,) = (await running.pump_of(target)).connection.local_sessions.values()
        await running.until(lambda: session.remote_incoming_window == 0)
        other = await management.open_receiver(credit=10)
        await follow(management, other, address="q")
        await sender.transfer(0)
        assert await told(other, 2) == [("came in", "1.0.0"), ("waits", None)]
        assert await follow(management, receiver, address="q") == 1
        here, waits = await lines(receiver, 2)
        assert (here["event"], here["deliveryId"]) == ("is here", 0)
        assert (waits["event"], waits["address"]) == ("waits", "q")
        assert waits["reason"] == "none of 1 receivers can take it"
        await target.allow(10)
        await target.hear_until(Transfer)
        assert await told(receiver, 1) == [("went out", "2.0.0")]
        late = await management.open_receiver(credit=10)
        assert await follow(management, late, link="1.0.0", deliveryId=0) == 1
        assert await told(late, 2) == [("is here", "1.0.0"), ("is out", "2.0.0")]
        await target.say(Disposition(role=True, first=0, settled=True, state=Released()))
        assert await told(late, 2) == [("outcome", "2.0.0"), ("told", "1.0.0")]


async def test_each_copy_of_a_multicast_is_told() -> None:
    async with (
        running_node(CONFIGURATION) as running,
        dialled(running.address) as sender,
        dialled(running.address) as one,
        dialled(running.address) as other,
        asking(running) as (management, receiver),
    ):
        for peer in (sender, one, other):
            await peer.begin()
        for peer in (one, other):
            await peer.attach_receiver("many/x", credit=10)
        await sender.attach_sender("many/x")
        await follow(management, receiver, address="many/x")
        await sender.transfer(0)
        for peer in (one, other):
            await peer.hear_until(Transfer)
            await accept(peer)
        found = await told(receiver, 6)
        assert found[0] == ("came in", "1.0.0")
        assert found.count(("went out", "2.0.0")) == found.count(("went out", "3.0.0")) == 1
        assert found.count(("outcome", "2.0.0")) == found.count(("outcome", "3.0.0")) == 1
        assert found[-1] == ("told", "1.0.0")


async def test_copies_of_the_messages_of_a_batch_are_told_of_the_batch() -> None:
    async with (
        running_node(CONFIGURATION) as running,
        dialled(running.address) as sender,
        dialled(running.address) as target,
        asking(running) as (management, receiver),
    ):
        await sender.begin()
        await target.begin()
        await target.attach_receiver("many/x", credit=10)
        await sender.attach_sender("many/x")
        (session,) = (await running.pump_of(sender)).connection.local_sessions.values()
        session.local_links[0].owner.splits_batches = True
        await follow(management, receiver, address="many/x")
        await sender.transfer(0)
        await target.hear_until(Transfer)
        batch = encode_message(Message(body=(Data(encode_message(Message(body=(Data(b"m"),)))),)))
        await sender.transfer(1, batch, message_format=BATCH_FORMAT)
        await target.hear_until(Transfer)
        found = await lines(receiver, 4)
        assert [(each["event"], each["delivery"]) for each in found] == [
            ("came in", 1),
            ("went out", 1),
            ("came in", 2),
            ("went out", 2),
        ]
        late = await management.open_receiver(credit=10)
        assert await follow(management, late, link="1.0.0", deliveryId=1) == 1
        assert await told(late, 2) == [("is here", "1.0.0"), ("is out", "2.0.0")]


async def test_what_is_settled_from_the_begin_is_known_by_its_content() -> None:
    async with attached() as (running, sender, _target), asking(running) as (management, receiver):
        await follow(management, receiver, address="q")
        for number in range(2):
            message = Message(body=(AmqpValue(f"number {number}"),))
            await sender.transfer(number, encode_message(message), settled=True)
        found = await lines(receiver, 4)
        for number in (1, 2):
            came, out = (line for line in found if line["delivery"] == number)
            assert (came["event"], came["settled"]) == ("came in", True)
            assert (out["event"], out["by"], out["last"]) == ("went out", "content", True)


async def test_a_message_of_several_frames_is_told_when_it_is_whole() -> None:
    async with attached() as (running, sender, target), asking(running) as (management, receiver):
        await follow(management, receiver, address="q")
        whole = encode_message(Message(body=(AmqpValue("x" * 200),)))
        await sender.transfer(0, whole[:100], more=True)
        await sender.say(On(0, Transfer(0, more=True), whole[100:150]))
        await sender.say(On(0, Transfer(0), whole[150:]))
        await target.hear_until(Transfer)
        found = await lines(receiver, 3)
        assert sorted(line["event"] for line in found) == ["came in", "is whole", "went out"]
        (last,) = (line for line in found if line["event"] == "is whole")
        assert last["bytes"] == len(whole)
        # and the next one is a delivery of its own
        await sender.transfer(1)
        assert ("came in", "1.0.0") in await told(receiver, 2)


async def test_others_are_not_told_of() -> None:
    async with attached() as (running, sender, _target), asking(running) as (management, receiver):
        await follow(management, receiver, address="q", messageId="wanted")
        await follow(management, receiver, tag="31")
        for number, name in enumerate(("a", "b", "wanted")):
            message = Message(properties=Properties(message_id=name), body=(AmqpValue(1),))
            await sender.transfer(number, encode_message(message))
        found: list[dict[str, Any]] = []
        while sum(line["event"] == "went out" for line in found) < 2:
            found += await lines(receiver, 1)
        assert {(line["deliveryId"], line.get("messageId")) for line in found} == {
            (1, "b"),
            (1, None),
            (2, "wanted"),
            (2, None),
        }


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({}, "must be a map with one or more"),
        ("q", "must be a map with one or more"),
        ({"queue": "q"}, "delivery has an unknown key: 'queue'"),
        ({"address": ""}, "address must be text of 1 to"),
        ({"deliveryId": "first"}, "deliveryId must be an integer of at least 0"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(asked: Any, why: str) -> None:
    async with running_node() as running, asking(running) as (management, receiver):
        with pytest.raises(RequestRefused, match=why):
            await management.request("TRACE", None, {"to": receiver.address, "delivery": asked})


async def test_what_is_remembered_is_bounded() -> None:
    async with attached(2 * MAX_FOLLOWED) as (running, sender, _target):
        trace = Trace(1, "nowhere", None, Account(Ledger()))
        hub = running.node.hub
        deliveries = DeliveryTracer(trace, DeliveryFilter(address="q"), hub, lambda _: False)
        hub.tracer.add_listener(lambda _: True, deliveries.on_frame, deliveries.on_processed)
        for number in range(MAX_FOLLOWED + 50):
            await sender.transfer(number, settled=False)
        await running.until(lambda: deliveries.followed_total == MAX_FOLLOWED + 50)
        assert deliveries.followed == MAX_FOLLOWED


@pytest.mark.parametrize("field", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("wrong", [2**32, 2**64 - 1, -1, True, "x", [1], None])
async def test_frames_that_are_wrong_are_left_to_the_engine(field: int, wrong: Any) -> None:
    async with attached() as (running, sender, target):
        trace = Trace(1, "nowhere", None, Account(Ledger()))
        hub = running.node.hub
        deliveries = DeliveryTracer(trace, DeliveryFilter(address="q"), hub, lambda _: False)
        hub.tracer.add_listener(lambda _: True, deliveries.on_frame, deliveries.on_processed)
        fields: list[Any] = [UInt(0), UInt(0), b"t", UInt(0), False]
        value = wrong if not isinstance(wrong, int) or wrong is True else _integer(wrong)
        fields[field] = value
        body = encode_value(Described(ULong(Descriptor.TRANSFER), fields)) + b"\0Sw@"
        frame = (len(body) + 8).to_bytes(4, "big") + b"\2\0\0\0" + body
        with capture_logs() as logs:
            pump = await running.pump_of(sender)
            came = pump.connection.frames_received
            await sender.stream.send_all(frame)
            await running.until(
                lambda: pump.connection.frames_received > came or pump not in running.pumps
            )
            await target.say(Disposition(role=True, first=7, last=3, settled=True))
            await target.say(Close())
            await target.hear_until(Close)
        assert not [line for line in logs if line["event"] == "connection failed"]


def _integer(number: int) -> Any:
    return ULong(number) if number >= 0 else number


async def test_a_sender_that_is_gone_is_told_of() -> None:
    async with (
        running_node() as running,
        dialled(running.address) as target,
        asking(running) as (management, receiver),
    ):
        await target.begin()
        await target.attach_receiver("q", credit=10)
        async with dialled(running.address) as sender:
            await sender.begin()
            await sender.attach_sender("q")
            await follow(management, receiver, address="q")
            await sender.transfer(0)
            await target.hear_until(Transfer)
        found = await lines(receiver, 3)
        assert [line["event"] for line in found] == ["came in", "went out", "has no sender"]
        assert found[-1]["last"] is True


async def test_a_delivery_begun_by_a_link_that_is_lost_hides_no_other() -> None:
    async with attached() as (running, sender, _target), asking(running) as (management, receiver):
        await follow(management, receiver, address="q")
        await sender.transfer(0, more=True)
        await sender.say(Detach(0, closed=True))
        await sender.hear_until(Detach)
        await sender.attach_sender("q")
        await sender.transfer(1)
        found: list[tuple[str, str | None]] = []
        while found.count(("came in", "1.0.0")) < 2:
            found += await told(receiver, 1)
