"""Management agent: a client of its own router that receives requests and sends answers.

To the router, the agent is a peer like any other, so the usual credit, limits and settlement apply.
Requests are answered one after the other. A request that fails does not affect the next one.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from typing import Final

import attrs
import structlog
import trio

from router.amqp.constants import Condition, Descriptor
from router.amqp.encode import begin_compound, encode_value_into, end_list, end_map
from router.amqp.message import AmqpValue, Header, Message, Properties, encode_message
from router.amqp.types import Int
from router.client import ClientError, ReceivedMessage, Sender
from router.client.connection import connect_over
from router.core.addresses.management_access import CHANGE, NONE
from router.core.routers.names import MANAGEMENT_NODE
from router.errors import AmqpError
from router.management import azure
from router.management.access import (
    MAX_CHANGE_BYTES,
    MAX_READ_BYTES,
    UNKNOWN_REQUESTER,
    Requester,
    check,
    is_read_only,
    reply_address,
    requester_of,
    rights_of,
)
from router.management.find_entity import STEPS_PER_CHECKPOINT
from router.management.operations import answer
from router.management.requests import (
    BAD_REQUEST,
    SERVER_ERROR,
    Answer,
    AnswerMap,
    LongList,
    QueryRows,
    Refused,
    Request,
)
from router.management.unsettled_answers import UnsettledAnswers
from router.management.views import RouterView

log = structlog.get_logger("router.management")

# Credit for requests, and so the maximum number in transit to the agent.
REQUEST_CREDIT: Final = 50
# Time within which the requester must take an answer.
ANSWER_TTL_MS: Final = 10_000
# Delay before connecting again after the connection was lost.
RECONNECT_DELAY_S: Final = 1.0
# Application properties that some of Azure's clients send as binary instead of string.
BINARY_TEXTS: Final = ("operation", "type", "name", "partition")
# First octets of an amqp-value section (section 3.2.8).
AMQP_VALUE: Final = bytes((0x00, 0x53, Descriptor.AMQP_VALUE))


def node_names(router_id: str) -> tuple[str, ...]:
    """Return all addresses of a router's management node, the main one first."""
    return (
        MANAGEMENT_NODE,
        f"_local/{MANAGEMENT_NODE}",
        f"_topo/0/{router_id}/{MANAGEMENT_NODE}",
        f"_edge/{router_id}/{MANAGEMENT_NODE}",
    )


class Agent:
    """Client that answers the requests to the `$management` node of one router."""

    def __init__(
        self, router: RouterView, dial: Callable[[], socket.socket], container_id: str
    ) -> None:
        self.router = router
        self._dial = dial
        self._container_id = container_id
        self._unsettled_answers = UnsettledAnswers(ANSWER_TTL_MS / 1000)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Answer requests until cancelled; connect again if the connection is lost.

        Reports `task_status.started()` once requests can be received.
        """
        while True:
            try:
                await self._serve(task_status.started)
            except ClientError as lost:
                log.error("the management connection was lost", reason=str(lost))
            task_status = trio.TASK_STATUS_IGNORED
            await trio.sleep(RECONNECT_DELAY_S)

    async def _serve(self, started: Callable[[], None]) -> None:
        self._unsettled_answers.clear()
        async with connect_over(self._dial(), self._container_id) as connection:
            sender = await connection.open_sender(None)
            sender.on_settled = self._unsettled_answers.forget
            requests = await connection.open_receiver(
                MANAGEMENT_NODE, credit=REQUEST_CREDIT, max_message_size=MAX_CHANGE_BYTES
            )
            self.router.running_traces.connection = connection
            started()
            try:
                async for received in requests:
                    await self._serve_one(received, sender)
                    # making an answer may have taken a while: let other tasks run
                    await trio.lowlevel.checkpoint()
            finally:
                self.router.running_traces.connection = None

    async def _serve_one(self, received: ReceivedMessage, sender: Sender) -> None:
        """Answer one request, or reject it if it is not allowed or has no reply-to."""
        if received.message_format:
            # the router cannot annotate such a message, so its sender is unknown
            received.reject(Condition.NOT_ALLOWED, "a request must have message-format 0")
            return
        requester = requester_of(received.payload)
        if len(received.payload) > MAX_READ_BYTES and self._rights(requester) != CHANGE:
            reason = f"a request of over {MAX_READ_BYTES} octets needs the right to change things"
            received.reject(Condition.MESSAGE_SIZE_EXCEEDED, reason)
            return
        try:
            if len(received.payload) > MAX_READ_BYTES:
                # decoding takes a while: do it in a thread
                await trio.to_thread.run_sync(lambda: received.message)
            message = received.message
        except AmqpError as error:
            received.reject(str(error.condition), error.description)
            return
        asked = None if message.properties is None else message.properties.reply_to
        try:
            reply_to = self._reply_to(asked or "", requester)
        except AmqpError as refused:
            received.reject(str(refused.condition), refused.description)
            return
        if not self._unsettled_answers.may_send(reply_to, trio.current_time()):
            reason = "too many answers to this reply-to are unsettled"
            received.reject(Condition.RESOURCE_LIMIT_EXCEEDED, reason)
            return
        received.accept()
        payload = await self._answered(message, requester, reply_to)
        await sender.wait_for_room()
        now = trio.current_time()
        self._unsettled_answers.add(sender.send_nowait(payload), reply_to, len(payload), now)

    def _reply_to(self, text: str, requester: Requester) -> str:
        """Return the address of the answer to a request with this reply-to.

        That is a receiver of the same connection whose source is the management node, if the
        reply-to names one (`router.core.addresses.reply_nodes`). Raises AmqpError if the requester
        may not have answers sent there.
        """
        observed = self.router.observed
        number = requester.connection
        pump = None if number is None else observed.pumps.get(number)
        node = None if pump is None else observed.forwarder.reply_nodes.find(pump.connection, text)
        if node:
            return str(node)
        if not text:
            raise AmqpError(Condition.INVALID_FIELD, "a request needs a reply-to")
        return reply_address(observed.forwarder.table, observed.pumps, requester, text)

    def _rights(self, requester: Requester) -> str:
        return rights_of(self.router.observed.pumps, requester)

    async def _answered(self, message: Message, requester: Requester, reply_to: str) -> memoryview:
        """Return the encoded answer to a request. If an exception is raised, the status is 500."""
        given = message.properties or Properties()
        properties = attrs.evolve(given, reply_to=reply_to)
        # the reply-to of Azure's clients names a receiver, not an address
        for_azure = reply_to != given.reply_to
        request = request_of(message, requester)
        try:
            answered = await self._allowed(request)
            payload = await encode_answer(properties, answered, for_azure=for_azure)
        # log any error: it must not affect the next request
        except Exception as defect:
            log.exception("management request failed", connection=requester.connection)
            answered = Answer({}, SERVER_ERROR, f"the router failed: {type(defect).__name__}")
            payload = await encode_answer(properties, answered)
        if answered.status >= BAD_REQUEST:
            log.info(
                "management request refused",
                status=answered.status,
                reason=answered.description,
                connection=requester.connection,
            )
        return payload

    async def _allowed(self, request: Request) -> Answer:
        """Perform a request if its sender has the right to it; return the answer or a refusal."""
        log.debug("management request", connection=request.connection, **request.subject)
        try:
            claims = azure.claims_of(self.router, request)
            if claims is not None:
                azure.check_claims(claims, request)
            answered = azure.answer(self.router, request)
            if answered is not None and self._rights(requester_in(request)) != NONE:
                return answered
            requester = requester_in(request)
            check(self.router.observed.pumps, requester, request.operation)
        except Refused as refused:
            return Answer({}, refused.status, refused.description)
        if not is_read_only(request.operation):
            # for audits; the log lines of the connection identify the peer
            log.info("management change", connection=request.connection, **request.subject)
        return await answer(self.router, request)


def requester_in(request: Request) -> Requester:
    """Return the sender of a request."""
    return Requester(request.connection, request.may_change)


def request_of(message: Message, requester: Requester = UNKNOWN_REQUESTER) -> Request:
    """Return the request in a message. A body that is not an amqp-value is read as None."""
    body = message.body[0] if message.body else None
    value = body.value if isinstance(body, AmqpValue) else None
    properties = dict(message.application_properties or {})
    for name in BINARY_TEXTS:
        text = properties.get(name)
        if isinstance(text, bytes):
            properties[name] = text.decode("utf-8", "replace")
    return Request(properties, value, requester.connection, requester.may_change)


async def encode_answer(
    asked: Properties, answered: Answer, *, for_azure: bool = False
) -> memoryview:
    """Encode the answer to a request; `asked` has the properties of the request's message.

    With `for_azure`, the status is also given under the names that some of Azure's clients expect.

    Many rows are encoded a few at a time, and other tasks run in between.
    """
    correlation_id = asked.message_id if asked.correlation_id is None else asked.correlation_id
    status: dict[str, object] = {
        "statusCode": Int(answered.status),
        "statusDescription": answered.description,
    }
    if for_azure:
        status |= {
            "status-code": Int(answered.status),
            "status-description": answered.description,
        }
    head = Message(
        header=Header(ttl=ANSWER_TTL_MS),
        properties=Properties(to=asked.reply_to, correlation_id=correlation_id),
        application_properties=status,
    )
    encoded = bytearray(encode_message(head) + AMQP_VALUE)
    await _encode_body(encoded, answered.body)
    # the answer may be very long: avoid a copy
    return memoryview(encoded)


async def _encode_body(into: bytearray, body: object) -> None:
    if isinstance(body, QueryRows):
        await _encode_rows(into, body)
    elif isinstance(body, LongList):
        await _encode_items(into, body.items)
    elif isinstance(body, dict) and any(isinstance(each, LongList) for each in body.values()):
        await _encode_map(into, body)
    else:
        encode_value_into(into, body)


async def _encode_map(into: bytearray, body: AnswerMap) -> None:
    """Encode a map that has long lists among its values."""
    at = begin_compound(into)
    for name, value in body.items():
        encode_value_into(into, name)
        await _encode_body(into, value)
    end_map(into, at, 2 * len(body))


async def _encode_items(into: bytearray, items: Iterable[object]) -> None:
    """Encode the items that are not None, as a list."""
    at = begin_compound(into)
    count = 0
    for step, item in enumerate(items, 1):
        if item is not None:
            encode_value_into(into, item)
            count += 1
        if step % STEPS_PER_CHECKPOINT == 0:
            await trio.lowlevel.checkpoint()
    end_list(into, at, count)


async def _encode_rows(into: bytearray, asked: QueryRows) -> None:
    at = begin_compound(into)
    encode_value_into(into, "attributeNames")
    encode_value_into(into, asked.names)
    encode_value_into(into, "results")
    await _encode_items(into, asked.rows)
    end_map(into, at, 4)
