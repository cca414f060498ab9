"""Asking `$management`: of a real router, and of nodes that answer late, wrongly or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from router.amqp.message import AmqpValue, Message, Properties
from router.amqp.types import Int, Long
from router.client import (
    ClientConnection,
    LinkLost,
    ManagementClient,
    NoResponse,
    Receiver,
    RequestRefused,
    Sender,
    connect,
    connect_management,
    open_management,
)
from router.client.management import PAGE, Table
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.router_settings import RouterSettings

from support.loopback import running_node

SOLO = Configuration(router=RouterSettings(id="solo"), listeners=(ListenerSettings(port=0),))
FAKE = "fake/management"

Behave = Callable[[Receiver, Sender], Awaitable[None]]


def answer(to: Message, body: Any = None, status: Any = 200, **properties: Any) -> Message:
    """Return the answer to a request."""
    assert to.properties is not None
    return Message(
        properties=Properties(
            to=to.properties.reply_to,
            correlation_id=properties.pop("correlation_id", to.properties.correlation_id),
        ),
        application_properties={"statusCode": status, **properties},
        body=(AmqpValue(body),),
    )


async def take(requests: Receiver) -> Message:
    """Receive the next request and accept it."""
    received = await requests.receive()
    received.accept()
    return received.message


@asynccontextmanager
async def asking() -> AsyncIterator[tuple[ManagementClient, ClientConnection]]:
    """Run a router and yield its management client."""
    async with running_node(SOLO) as running:
        url = f"amqp://127.0.0.1:{running.address[1]}"
        async with connect_management(url) as management, connect(url) as connection:
            yield management, connection


@asynccontextmanager
async def asking_one_that(behave: Behave) -> AsyncIterator[ManagementClient]:
    """Serve a node behind a router with `behave`, and yield its management client."""
    async with running_node(SOLO) as running:
        url = f"amqp://127.0.0.1:{running.address[1]}"
        async with connect(url) as theirs, connect(url) as ours, trio.open_nursery() as nursery:
            requests = await theirs.open_receiver(FAKE)
            nursery.start_soon(behave, requests, await theirs.open_sender(None))
            yield await open_management(ours, node=FAKE, timeout_s=5)
            nursery.cancel_scope.cancel()


async def test_a_query_is_a_table() -> None:
    async with asking() as (management, _):
        table = await management.query("router", ["name", "id", "linkRouteCount"])
        assert table.names == ("name", "id", "linkRouteCount")
        assert table.rows == (("router/solo", "solo", 0),)
        assert table.entities() == [{"name": "router/solo", "id": "solo", "linkRouteCount": 0}]


async def test_what_has_no_value_is_no_part_of_an_entity() -> None:
    assert Table(("a", "b"), ((1, None),)).entities() == [{"a": 1}]


async def test_one_entity_is_read() -> None:
    async with asking() as (management, _):
        router = await management.read("router", name="router/solo")
        assert router["id"] == "solo"
        assert (await management.read(identity="router/solo"))["name"] == "router/solo"


async def test_many_are_asked_for_in_pages() -> None:
    async with asking() as (management, connection):
        wanted = {f"page/{number}" for number in range(PAGE + 20)}
        for address in wanted:
            await connection.open_receiver(address, credit=1)
        pages = [page async for page in management.query_pages("router.address", ["name"])]
        assert [len(page.rows) == PAGE for page in pages] == [True, False]
        found = {row[0].removeprefix("M0") for page in pages for row in page.rows}
        assert wanted <= found
        every = await management.query("router.address", ["name"])
        some = await management.query("router.address", ["name"], offset=3, count=PAGE + 2)
        assert some.rows == every.rows[3 : PAGE + 5]
        assert len((await management.query("router.address", count=0)).rows) == 0


async def test_the_node_says_no_and_the_next_request_is_answered() -> None:
    async with asking() as (management, _):
        with pytest.raises(RequestRefused, match="404 ") as refused:
            await management.read("router", name="router/nosuch")
        assert refused.value.status == 404
        with pytest.raises(RequestRefused) as refused:
            await management.request("FLY")
        assert refused.value.status == 501
        assert await management.request("GET-MGMT-NODES") == []


async def test_changes_name_their_entity() -> None:
    asked = []

    async def behave(requests: Receiver, answers: Sender) -> None:
        for body in ({"name": "a"}, {"name": "a", "x": 2}, None):
            request = await take(requests)
            asked.append((request.application_properties, request.body[0].value))  # type: ignore[union-attr]
            await answers.send(answer(request, body, 201))

    async with asking_one_that(behave) as management:
        assert await management.create("listener", {"x": 1}, name="a") == {"name": "a"}
        assert (await management.update("listener", {"x": 2}, identity="i"))["x"] == 2
        await management.delete("listener", name="a")
    assert asked == [
        ({"operation": "CREATE", "type": "listener", "name": "a"}, {"x": 1}),
        ({"operation": "UPDATE", "type": "listener", "identity": "i"}, {"x": 2}),
        ({"operation": "DELETE", "type": "listener", "name": "a"}, {}),
    ]


async def test_whole_numbers_are_sent_as_other_tools_do() -> None:
    asked: list[Any] = []

    async def behave(requests: Receiver, answers: Sender) -> None:
        request = await take(requests)
        asked.extend((request.application_properties or {}).values())
        await answers.send(answer(request))

    async with asking_one_that(behave) as management:
        await management.request("GET-LOG", {"limit": 5, "wide": 2**40, "deep": True, "no": None})
    assert [(type(value), value) for value in asked] == [
        (str, "GET-LOG"), (Int, 5), (Long, 2**40), (bool, True),
    ]  # fmt: skip


async def test_an_answer_to_another_request_is_passed_over() -> None:
    async def behave(requests: Receiver, answers: Sender) -> None:
        request = await take(requests)
        await answers.send(answer(request, "late", correlation_id="0"))
        await answers.send(answer(request, "mine"))

    async with asking_one_that(behave) as management:
        assert await management.request("ANY") == "mine"


async def test_no_answer_in_time_and_the_connection_goes_on() -> None:
    async def behave(requests: Receiver, answers: Sender) -> None:
        late = await take(requests)
        request = await take(requests)
        await answers.send(answer(late, "late"))
        await answers.send(answer(request, "mine"))

    async with asking_one_that(behave) as management:
        with pytest.raises(NoResponse, match=r"fake/management did not answer within 0\.05 s"):
            await management.request("ANY", timeout_s=0.05)
        assert await management.request("ANY") == "mine"


@pytest.mark.parametrize("word", ["reject", "release"])
async def test_a_request_that_is_not_taken(word: str) -> None:
    async def behave(requests: Receiver, answers: Sender) -> None:
        async for received in requests:
            if word == "reject":
                received.reject("amqp:not-allowed", "not today")
            else:
                received.release()

    told = "amqp:not-allowed: not today" if word == "reject" else "released"
    async with asking_one_that(behave) as management:
        with pytest.raises(NoResponse, match=f"did not accept the request: {told}"):
            await management.request("ANY")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (None, "lacks attributeNames or results"),
        ({"attributeNames": "a", "results": []}, "lacks attributeNames or results"),
        ({"attributeNames": ["a"], "results": 5}, "lacks attributeNames or results"),
        ({"attributeNames": ["a"], "results": [[1], [1, 2]]}, "a row whose length differs"),
        ({"attributeNames": ["a"], "results": ["x"]}, "a row whose length differs"),
    ],
)
async def test_an_answer_to_a_query_that_is_no_table(body: Any, told: str) -> None:
    async def behave(requests: Receiver, answers: Sender) -> None:
        await answers.send(answer(await take(requests), body))

    async with asking_one_that(behave) as management:
        with pytest.raises(NoResponse, match=told):
            await management.query("router")


@pytest.mark.parametrize("status", [None, "200", True])
async def test_an_answer_without_a_status(status: Any) -> None:
    async def behave(requests: Receiver, answers: Sender) -> None:
        await answers.send(answer(await take(requests), {}, status))

    async with asking_one_that(behave) as management:
        with pytest.raises(NoResponse, match="no integer statusCode"):
            await management.request("ANY")


async def test_a_node_that_is_not_there() -> None:
    async with running_node(SOLO) as running:
        url = f"amqp://127.0.0.1:{running.address[1]}/nobody/here"
        async with connect_management(url, timeout_s=0.05) as management:
            # the URL's address is the node; nobody gives credit there
            with pytest.raises(NoResponse, match="nobody/here did not answer"):
                await management.request("ANY")


async def test_a_router_without_management() -> None:
    configuration = Configuration(
        router=RouterSettings(default_distribution="unavailable"),
        listeners=(ListenerSettings(port=0),),
    )
    async with running_node(configuration) as running:
        url = f"amqp://127.0.0.1:{running.address[1]}"
        with pytest.raises(LinkLost, match="amqp:not-found"):
            async with connect_management(url, node="else/where"):
                raise AssertionError("unreachable")
