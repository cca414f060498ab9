"""Requests over AMQP: every one is answered or refused, and the next one is answered too."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from router.amqp.encode import encode_value
from router.amqp.message import AmqpValue, Data, Message, Properties, decode_message, encode_message
from router.amqp.performatives import Accepted, Rejected
from router.client import LinkLost, connect
from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings, Configuration
from router.config.redirects import RedirectSettings
from router.config.router_settings import RouterSettings
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings
from router.management.agent import (
    encode_answer,
    node_names,
    request_of,
)
from router.management.find_entity import STEPS_PER_CHECKPOINT
from router.management.operations import answer
from router.management.requests import Answer, LongList, QueryRows
from router.management.unsettled_answers import MAX_ANSWERS, MAX_SMALL_ANSWERS

from support.loopback import Running, running_node
from support.management import ANSWERS, NODE, asked, request, status


def configured(**fields: Any) -> Configuration:
    """One listener, and what else is given."""
    settings = {"router": RouterSettings(id="solo"), "listeners": (ListenerSettings(port=0),)}
    return Configuration(**{**settings, **fields})


def url(running: Running) -> str:
    """Where the router is."""
    return f"amqp://127.0.0.1:{running.address[1]}"


@pytest.mark.spec("M1-2", "M1-3", "M3-1")
@pytest.mark.parametrize("name", node_names("solo"))
async def test_the_node_answers_under_each_of_its_names(name: str) -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(name)
        answered = await asked(connection, sender, request(operation="QUERY", entityType="router"))
        assert answered.properties is not None
        assert (answered.properties.to, answered.properties.correlation_id) == (ANSWERS, "mine")
        assert answered.application_properties == {"statusCode": 200, "statusDescription": "OK"}
        assert isinstance(answered.body[0], AmqpValue)
        body = answered.body[0].value
        assert body["results"][0][body["attributeNames"].index("id")] == "solo"


async def test_an_anonymous_sender_can_ask_too() -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(None)
        for name in node_names("solo"):
            message = Message(
                properties=Properties(to=name, reply_to=ANSWERS, correlation_id=b"7"),
                application_properties={"operation": "GET-TYPES"},
            )
            answered = await asked(connection, sender, message)
            assert answered.properties is not None
            assert answered.properties.correlation_id == b"7"


@pytest.mark.spec("M1-4", "M1-5")
async def test_what_is_no_request_is_rejected_and_the_next_is_answered() -> None:
    headless = Message(properties=Properties(to=NODE), body=(AmqpValue(None),))
    bad = [
        encode_message(headless),
        encode_message(Message(body=(AmqpValue("x"),))),
        # a map in the body that ends too soon, which only its reader can see
        encode_message(headless)[:-1] + b"\xc1\x03\x02\xa1\x05",
        encode_message(Message(body=(Data(bytes(100_000)),))),
    ]
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        for octets in bad:
            assert isinstance(await sender.send(octets), Rejected)
        for message, code in (
            (request(operation="nosuch"), 501),
            (request(), 400),
            (request(operation="READ", name="nosuch"), 404),
            (request(operation="GET-TYPES"), 200),
        ):
            assert status(await asked(connection, sender, message)) == code


async def test_a_body_that_is_no_value_counts_as_none() -> None:
    made = request_of(Message(body=(Data(b"x"),)))
    assert (made.properties, made.body) == ({}, None)


@pytest.mark.spec("M1-2")
async def test_the_correlation_id_comes_before_the_message_id() -> None:
    for properties, told in (
        (Properties(message_id="m", correlation_id="c"), "c"),
        (Properties(message_id="m"), "m"),
        (Properties(), None),
    ):
        encoded = await encode_answer(properties, Answer())
        assert encoded == await encode_answer(Properties(correlation_id=told), Answer())


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1000])
async def test_rows_are_encoded_as_what_they_are(count: int) -> None:
    rows = [None, *([number, f"row {number}"] for number in range(count))]
    asked = QueryRows(["number", "text"], iter(rows))
    message = decode_message(await encode_answer(Properties(), Answer(asked)))
    expected = {"attributeNames": ["number", "text"], "results": rows[1:]}
    assert message.body == (AmqpValue(expected),)


async def test_others_have_their_turn_between_many_rows() -> None:
    turns: list[None] = []
    seen: set[int] = set()

    def rows() -> Iterator[list[Any] | None]:
        for number in range(1000):
            seen.add(len(turns))
            yield [number]

    async def go_on() -> None:
        while True:
            turns.append(None)
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        await encode_answer(Properties(), Answer(QueryRows(["number"], rows())))
        nursery.cancel_scope.cancel()
    # each time both are ready either may be the first
    assert len(seen) >= 1000 // STEPS_PER_CHECKPOINT // 2


async def test_nobody_else_receives_requests_at_the_node() -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        for name in node_names("solo"):
            # it is a receiver of answers, with a node of its own
            await connection.open_receiver(name)
        node = running.node.table.in_use(NODE)
        assert node is not None
        [agent] = node.consumers
        assert agent.link.session.connection.settings.is_own


async def test_who_takes_no_answers_is_refused_and_others_are_answered() -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        # it is there, and gives no credit
        idle = await connection.open_receiver("idle", count=0)
        to_idle = Message(
            properties=Properties(reply_to="idle"),
            application_properties={"operation": "GET-TYPES"},
        )
        refused: object = None
        for _ in range(MAX_SMALL_ANSWERS + 1):
            refused = await sender.send(to_idle)
            if refused != Accepted():
                break
        assert isinstance(refused, Rejected)
        assert refused.error is not None
        assert refused.error.condition == "amqp:resource-limit-exceeded"
        assert status(await asked(connection, sender, request(operation="GET-TYPES"))) == 200
        # who goes lets the answers go
        await idle.aclose()
        while await sender.send(to_idle) != Accepted():
            pass


async def test_answers_that_nobody_waits_for_are_forgotten() -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        nowhere = Message(properties=Properties(reply_to="nobody"))
        for _ in range(3 * MAX_ANSWERS):
            assert await sender.send(nowhere) == Accepted()


async def test_a_mistake_of_ours_spoils_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(router: Any, made: Any) -> Answer:
        if made.properties.get("operation") == "break":
            raise ZeroDivisionError
        return await answer(router, made)

    monkeypatch.setattr("router.management.agent.answer", broken)
    with capture_logs() as logs:
        async with running_node(configured()) as running, connect(url(running)) as connection:
            sender = await connection.open_sender(NODE)
            assert status(await asked(connection, sender, request(operation="break"))) == 500
            assert status(await asked(connection, sender, request(operation="GET-TYPES"))) == 200
    assert [line["event"] for line in logs if line["log_level"] == "error"] == [
        "management request failed"
    ]


async def test_a_lost_connection_is_made_again() -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        own = running.node.hub.own_pump
        assert own is not None
        own.sock.shutdown(socket.SHUT_RDWR)
        hub = running.node.hub
        address = hub.table.in_use(NODE)
        assert address is not None
        await running.until(lambda: hub.own_pump is not own and address.consumers)
        assert status(await asked(connection, sender, request(operation="GET-TYPES"))) == 200
        assert running.node.hub.own_pump is not own


async def test_it_can_be_made_unavailable() -> None:
    closed = (AddressSettings(prefix=NODE, distribution="unavailable"),)
    async with running_node(configured(addresses=closed)) as running:
        assert running.node.hub.own_pump is None
        async with connect(url(running)) as connection:
            with pytest.raises(LinkLost, match="not-found"):
                await connection.open_sender(NODE)


async def test_redirects_and_the_default_distribution_are_not_of_it() -> None:
    elsewhere = RedirectSettings(pattern="#", to_network_host="example.com")
    settings = configured(
        redirects=(elsewhere,),
        router=RouterSettings(id="solo", default_distribution="unavailable"),
    )
    async with running_node(settings) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        nowhere = Message(properties=Properties(reply_to="nobody"))
        assert await sender.send(nowhere) == Accepted()


async def test_shutting_down_ends_it_in_order() -> None:
    with capture_logs() as logs:
        async with running_node(configured()) as running:
            running.stop.set()
            with trio.fail_after(5):
                await running.over.wait()
            assert running.node.hub.own_pump is None
    assert [line["event"] for line in logs if line["log_level"] != "info"] == []


async def test_a_long_list_is_encoded_as_what_it_is() -> None:
    for count in (0, 1, STEPS_PER_CHECKPOINT, 1000):
        items = [{"name": f"number {number}"} for number in range(count)]
        message = decode_message(await encode_answer(Properties(), Answer(LongList(iter(items)))))
        assert message.body == (AmqpValue(items),)


async def test_a_long_list_within_a_map_is_encoded_a_few_items_at_a_time() -> None:
    told: list[int] = []
    seen: list[int] = []

    def items() -> Iterator[dict[str, int]]:
        for number in range(4 * STEPS_PER_CHECKPOINT):
            told.append(number)
            yield {"number": number}

    async def look_on() -> None:
        while len(told) < 4 * STEPS_PER_CHECKPOINT:
            seen.append(len(told))
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look_on)
        body = {"count": 4 * STEPS_PER_CHECKPOINT, "items": LongList(items()), "last": None}
        message = decode_message(await encode_answer(Properties(), Answer(body)))
    whole = {**body, "items": [{"number": number} for number in range(4 * STEPS_PER_CHECKPOINT)]}
    assert message.body == (AmqpValue(whole),)
    # each time both are ready either may be the first: between two looks lie two steps at most
    steps = pairwise(seen)
    assert max(after - before for before, after in steps) <= 2 * STEPS_PER_CHECKPOINT


# Lists in lists, within the limit of values.
DEEP: Any = [[[[[[[[0]]]]]]]]


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "QUERY"])
async def test_bodies_that_are_hard_to_read_are_answered_and_the_next_is_too(
    operation: str,
) -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        before = running.node.configuration
        for body in (
            DEEP,
            {"attributeNames": ["x"] * 10_000},
            {"attributeNames": [f"x{n}" for n in range(10_000)]},
            {f"x{n}": n for n in range(10_000)},
            [{"type": "listener"}] * 2_500,
            {"name": "x" * 1_000_000, "port": "9" * 500_000},
        ):
            asking = request(body, operation=operation, type="listener", name="first")
            answered = await asked(connection, sender, asking)
            # a QUERY may ask for all there is of a type, and changes nothing either
            assert status(answered) in ((200,) if operation == "QUERY" else ()) + (400, 404)
        assert running.node.configuration is before
        assert status(await asked(connection, sender, request(operation="GET-TYPES"))) == 200


async def test_a_body_nested_deeper_than_values_may_be_is_rejected_and_the_next_answered() -> None:
    async with running_node(configured()) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)
        octets = encode_message(request(DEEP, operation="CREATE"))
        deeper = octets.replace(encode_value(DEEP), b"\xc0\x02\x01" * 5000 + b"\x40")
        assert isinstance(await sender.send(deeper), Rejected)
        assert status(await asked(connection, sender, request(operation="GET-TYPES"))) == 200


# Where answers go.


@asynccontextmanager
async def shared() -> AsyncIterator[tuple[str, str]]:
    """Run a router for tenants and others; yield the URLs of its two listeners."""
    listeners = (
        ListenerSettings(port=0, multi_tenant=True, management="trusted"),
        ListenerSettings(port=0, name="all"),
    )
    async with running_node(configured(listeners=listeners)) as running:
        one, other = (f"amqp://127.0.0.1:{port}" for _, port in running.addresses)
        yield one, other


async def test_a_tenants_answer_goes_to_the_tenants_address() -> None:
    async with shared() as (tenants, _), connect(tenants) as connection:
        sender = await connection.open_sender(NODE)
        answered = await asked(connection, sender, request(operation="GET-TYPES"))
        assert status(answered) == 200
        assert answered.properties is not None
        assert answered.properties.to == f"127.0.0.1/{ANSWERS}"


async def test_a_tenants_answer_goes_to_its_dynamic_node() -> None:
    async with shared() as (tenants, _), connect(tenants) as connection:
        receiver = await connection.open_receiver(None)
        message = Message(
            properties=Properties(reply_to=receiver.address),
            application_properties={"operation": "GET-TYPES"},
        )
        assert await (await connection.open_sender(NODE)).send(message) == Accepted()
        assert status((await receiver.receive()).message) == 200


async def test_no_answer_goes_to_another_tenant() -> None:
    async with (
        shared() as (tenants, others),
        connect(tenants) as connection,
        connect(others) as other,
    ):
        nodes = await other.open_receiver("b.com/q"), await other.open_receiver(ANSWERS)
        sender = await connection.open_sender(NODE)
        for text in ("b.com/q", "/b.com/q", "amqp://h/b.com/q"):
            message = Message(
                properties=Properties(reply_to=text),
                application_properties={"operation": "GET-TYPES"},
            )
            # it goes to 127.0.0.1/b.com/q, where nobody is
            assert await sender.send(message) == Accepted()
        # the agent has answered all of them before this one
        await asked(connection, sender, request(operation="GET-TYPES"))
        mine = await other.open_sender("b.com/q")
        mine.send_nowait(encode_message(Message(body=(AmqpValue("theirs"),))))
        body = (await nodes[0].receive()).message.body[0]
        assert isinstance(body, AmqpValue)
        assert body.value == "theirs"


async def test_no_answer_goes_where_a_policy_forbids_it() -> None:
    group = VhostGroupSettings(
        remote_hosts=("*",), sources=(ANSWERS,), targets=(NODE, "mine"), allow_dynamic_source=True
    )
    vhost = VhostSettings(hostname="127.0.0.1", allow_unknown_user=True, groups={"$default": group})
    policy = PolicySettings(enable_vhost_policy=True)
    configuration = configured(vhosts=(vhost,), policy=policy)
    async with running_node(configuration) as running, connect(url(running)) as connection:
        sender = await connection.open_sender(NODE)

        async def outcome(reply_to: str) -> object:
            message = Message(
                properties=Properties(reply_to=reply_to),
                application_properties={"operation": "GET-TYPES"},
            )
            return await sender.send(message)

        for text in ("secret", "amqp://h/secret", ANSWERS):
            refused = await outcome(text)
            assert isinstance(refused, Rejected)
            assert refused.error is not None
            assert refused.error.condition == "amqp:unauthorized-access"
        assert await outcome("mine") == Accepted()
        # where it receives, it may get answers
        assert status(await asked(connection, sender, request(operation="GET-TYPES"))) == 200
        dynamic = await connection.open_receiver(None)
        assert await outcome(str(dynamic.address)) == Accepted()
        assert status((await dynamic.receive()).message) == 200
