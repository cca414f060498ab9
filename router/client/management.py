"""Client for a router's `$management` node, which sends one request at a time.

    async with connect_management("amqp://127.0.0.1") as management:
        table = await management.query("router.link", ["linkName", "linkDir"])
        router = await management.read("router", name="router/A")

Type names are sent as they are given; a Trioute router accepts them with and without Dispatch's
prefix. If there is no response in time, NoResponse is raised. The connection can still be used
then: a late response is skipped.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs
import trio

from router.amqp.message import AmqpValue, Message, Properties
from router.amqp.performatives import Accepted, Rejected
from router.amqp.types import Int
from router.client.connection import ClientConnection, connect
from router.client.failures import ClientError, describe_peer_error
from router.client.receiver import Receiver
from router.client.sender import Sender, SentMessage
from router.client.url import Url, parse_url
from router.errors import AmqpError, TriouteError

MANAGEMENT_NODE: Final = "$management"
TIMEOUT_S: Final = 5.0
# Entities per request: a response stays well under a mebibyte.
PAGE: Final = 500

Attributes = dict[str, Any]
"""Attributes of an entity by name, with the values that the router sends."""
Row = tuple[Any, ...]


class NoResponse(ClientError):
    """Failure to get a response: no valid one came in time, or the request was not accepted."""


class RequestRefused(TriouteError):
    """Refusal of a request by the management node.

    `status` is the statusCode of the response: 400, 403, 404, 500 or 501.
    """

    def __init__(self, status: int, description: str) -> None:
        super().__init__(status, description)
        self.status = status
        self.description = description

    def __str__(self) -> str:
        return f"{self.status} {self.description}".rstrip()


@attrs.frozen
class Table:
    """Result of a query: the names of the attributes, and a row of values for each entity.

    If the router has no values for a requested attribute, the attribute is missing from `names`.
    """

    names: tuple[str, ...]
    rows: tuple[Row, ...]

    def entities(self) -> list[Attributes]:
        """Return a map for each row, without attributes that have no value."""
        return [
            {name: value for name, value in zip(self.names, row, strict=True) if value is not None}
            for row in self.rows
        ]


@asynccontextmanager
async def connect_management(
    url: Url | str, *, node: str | None = None, timeout_s: float = TIMEOUT_S
) -> AsyncIterator[ManagementClient]:
    """Connect to the management node of a router, and close the connection when the block ends.

    By default, `node` is the URL's address or, if the URL has none, `$management`. `timeout_s`
    limits the time to connect, and then the time of each request. Raises ConnectFailed if
    connecting fails, LinkLost if the node does not exist, NoResponse if the router does not answer
    the attach, or ValueError if `url` is a text that is not a URL.
    """
    where = parse_url(url) if isinstance(url, str) else url
    async with connect(where, timeout_s=timeout_s) as connection:
        yield await open_management(
            connection, node=node or where.address or MANAGEMENT_NODE, timeout_s=timeout_s
        )


async def open_management(
    connection: ClientConnection, *, node: str = MANAGEMENT_NODE, timeout_s: float = TIMEOUT_S
) -> ManagementClient:
    """Attach to a management node over an open connection.

    Raises LinkLost if the node does not exist, or NoResponse if the router does not answer in time.
    """
    with trio.move_on_after(timeout_s):
        replies = await connection.open_receiver(None)
        sender = await connection.open_sender(node)
        return ManagementClient(connection, node, sender, replies, timeout_s)
    raise NoResponse("", f"{node}: the router did not answer the attach within {timeout_s:g} s")


class ManagementClient:
    """Client for one management node, created by `connect_management` or `open_management`.

    Every method that sends a request raises RequestRefused if the node refuses the request,
    NoResponse if the node does not respond, and LinkLost or ConnectionLost if the link or the
    connection has ended.
    """

    def __init__(
        self,
        connection: ClientConnection,
        node: str,
        sender: Sender,
        replies: Receiver,
        timeout_s: float,
    ) -> None:
        self.node = node
        self.timeout_s = timeout_s
        self._connection = connection
        self._sender = sender
        self._replies = replies
        self._one_at_a_time = trio.Lock()
        self._asked = 0

    async def open_receiver(self, *, credit: int) -> Receiver:
        """Open another receiver on the same connection, with a dynamic node as its source.

        The receiver is for messages that an operation sends in addition to its response. Raises
        LinkLost if the peer refuses the link, or ConnectionLost if the connection has ended.
        """
        return await self._connection.open_receiver(None, credit=credit)

    async def request(
        self,
        operation: str,
        properties: Mapping[str, object] | None = None,
        body: object = None,
        *,
        timeout_s: float | None = None,
    ) -> Any:
        """Request a management operation, and return the body of the response.

        `properties` become application properties. Those with the value None are omitted, and whole
        numbers of 32 bits are sent as an AMQP int, as other tools do.
        """
        async with self._one_at_a_time:
            self._asked += 1
            asked = {"operation": operation, **_sendable(properties or {})}
            message = Message(
                properties=Properties(
                    to=self.node,
                    reply_to=self._replies.address,
                    message_id=f"{self._asked}",
                    correlation_id=f"{self._asked}",
                ),
                application_properties=asked,
                body=(AmqpValue({} if body is None else body),),
            )
            answer = await self._answer(message, self.timeout_s if timeout_s is None else timeout_s)
        return _body(answer)

    async def _answer(self, message: Message, timeout_s: float) -> Message:
        """Send a request and wait for its response."""
        refused: list[str] = []

        def told(sending: SentMessage) -> None:
            if not isinstance(sending.outcome, Accepted | None):
                refused.append(_why(sending.outcome))
                scope.cancel()

        with trio.move_on_after(timeout_s) as scope:
            self._sender.on_settled = told
            try:
                await self._sender.wait_for_room()
                self._sender.send_nowait(message)
                return await self._matching(message)
            finally:
                self._sender.on_settled = None
        if refused:
            raise NoResponse("", f"{self.node} did not accept the request: {refused[0]}")
        raise NoResponse("", f"{self.node} did not answer within {timeout_s:g} s")

    async def _matching(self, request: Message) -> Message:
        """Wait for the response to `request`; skip late responses to earlier requests."""
        assert request.properties is not None
        while True:
            received = await self._replies.receive()
            received.accept()
            try:
                answer = received.message
            except AmqpError as error:
                raise NoResponse(
                    error.condition, f"the response is not a valid message: {error}"
                ) from None
            told = answer.properties
            if told is not None and told.correlation_id == request.properties.correlation_id:
                return answer

    # Operations that every management node has.

    async def query(
        self,
        entity_type: str | None = None,
        names: Sequence[str] = (),
        *,
        offset: int = 0,
        count: int | None = None,
    ) -> Table:
        """Query the entities of a type, or of all types if `entity_type` is None.

        The result begins with entity number `offset`, counted from 0, and has at most `count`
        entities; None is no limit. The query is made in pages, so entities that are created or
        deleted meanwhile may be missing or occur twice.
        """
        told: tuple[str, ...] = ()
        rows: list[Row] = []
        async for page in self.query_pages(entity_type, names, offset=offset, count=count):
            told = page.names
            rows.extend(page.rows)
        return Table(told, tuple(rows))

    async def query_pages(
        self,
        entity_type: str | None = None,
        names: Sequence[str] = (),
        *,
        offset: int = 0,
        count: int | None = None,
    ) -> AsyncIterator[Table]:
        """Yield the result of a `query` page by page; each page is requested when it is needed."""
        left = count
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            asked = {"entityType": entity_type, "offset": offset, "count": size}
            page = _table(await self.request("QUERY", asked, {"attributeNames": list(names)}))
            yield page
            if len(page.rows) < size:
                return
            offset += size
            left = None if left is None else left - size

    async def read(
        self,
        entity_type: str | None = None,
        *,
        name: str | None = None,
        identity: str | None = None,
    ) -> Attributes:
        """Return the attributes of one entity."""
        return _map(await self.request("READ", _one(entity_type, name, identity)))

    async def create(
        self, entity_type: str | None, attributes: Mapping[str, object], *, name: str | None = None
    ) -> Attributes:
        """Create an entity and return its attributes."""
        return _map(await self.request("CREATE", _one(entity_type, name), dict(attributes)))

    async def update(
        self,
        entity_type: str | None,
        attributes: Mapping[str, object],
        *,
        name: str | None = None,
        identity: str | None = None,
    ) -> Attributes:
        """Change an entity and return its attributes."""
        return _map(
            await self.request("UPDATE", _one(entity_type, name, identity), dict(attributes))
        )

    async def delete(
        self,
        entity_type: str | None = None,
        *,
        name: str | None = None,
        identity: str | None = None,
    ) -> None:
        """Delete an entity."""
        await self.request("DELETE", _one(entity_type, name, identity))


def _one(
    entity_type: str | None, name: str | None = None, identity: str | None = None
) -> dict[str, str | None]:
    return {"type": entity_type, "name": name, "identity": identity}


def _sendable(properties: Mapping[str, object]) -> dict[str, object]:
    return {
        name: Int(value) if type(value) is int and -(2**31) <= value < 2**31 else value
        for name, value in properties.items()
        if value is not None
    }


def _body(answer: Message) -> Any:
    """Return the body of a response.

    Raises RequestRefused if the statusCode is that of a refusal, and NoResponse if it is missing.
    """
    properties = answer.application_properties or {}
    status = properties.get("statusCode")
    if isinstance(status, bool) or not isinstance(status, int):
        raise NoResponse("", "the response has no integer statusCode")
    if not 200 <= status < 300:
        raise RequestRefused(int(status), str(properties.get("statusDescription") or ""))
    section = answer.body[0] if answer.body else None
    return section.value if isinstance(section, AmqpValue) else None


def _map(body: object) -> Attributes:
    return body if isinstance(body, dict) else {}


def _table(body: object) -> Table:
    """Return the table in a response to QUERY; raise NoResponse if there is no valid table."""
    names, rows = (_map(body).get(name) for name in ("attributeNames", "results"))
    if not isinstance(names, list) or not isinstance(rows, list):
        raise NoResponse("", "the response to a QUERY lacks attributeNames or results")
    if any(not isinstance(row, list) or len(row) != len(names) for row in rows):
        raise NoResponse(
            "", "the response to a QUERY has a row whose length differs from attributeNames"
        )
    return Table(tuple(map(str, names)), tuple(map(tuple, rows)))


def _why(outcome: object) -> str:
    """Return a text for an outcome other than accepted: its error or, without one, its name."""
    if isinstance(outcome, Rejected) and outcome.error is not None:
        return f"{outcome.error.condition}: {describe_peer_error(outcome.error)}"
    return type(outcome).__name__.lower()
