"""HTTP server of a router: metrics for scrapers, health and readiness for orchestrators.

Hypercorn speaks HTTP on each connection, once the head of a request has arrived. This module limits
what one bad client can cost: connections, one request on each, octets and time. A failure on a
connection ends only that connection (docs/decisions/0020-http-by-connection.md). Probes do not wait
for scrapes, and incomplete requests keep nobody out (docs/decisions/0083-room-for-probes.md).
"""

from __future__ import annotations

import json
import resource
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import attrs
import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.logging import Logger
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from router.fairness import counted_host
from router.metrics.admission import Admission, Admitted
from router.metrics.answers import (
    BUSY,
    READ_TIMEOUT_S,
    UNFINISHED,
    Answer,
    Headers,
    OctetStream,
    say_at_once,
    text_answer,
)
from router.metrics.exposition import Exposition
from router.metrics.other_protocols import (
    TlsReader,
    peer_name,
    protocol_answer,
    protocol_objection,
)
from router.metrics.readiness import Readiness
from router.metrics.request_heads import (
    MAX_HEAD_BYTES,
    Incoming,
    IncompleteReason,
    PendingHeads,
    RequestHead,
    RequestKind,
)

log = structlog.get_logger("router.http")

# Maximum number of connections that have sent a part of a request's head, and of requests of each
# kind that wait for a place. If the process may have only few descriptors, each maximum is this
# number of descriptors divided by CROWD_PART.
MAX_WAITING: Final = 1024
CROWD_PART: Final = 16
# Limits for probes, for other requests, and for requests that may change the protocol: how many are
# admitted at a time, and for how many of them the answer is made at a time. Only one answer to the
# other requests is made at a time, so that the event loop soon returns to probes.
PROBES: Final = (64, 16)
REQUESTS: Final = (64, 1)
OTHERS: Final = (8, 8)
# Minimum time between two warnings that requests are refused.
WARN_EVERY_S: Final = 10.0
# Maximum time for a connection to send a request's head, or to be idle before the next one.
IDLE_S: Final = 5.0
# Maximum number of octets read after a request's head: no request here needs a body, and in HTTP/2
# few octets can cause much work.
BEHIND_BYTES: Final = 4096
# Maximum time to make an answer.
ANSWER_TIMEOUT_S: Final = 10.0
# A connection serves one request, so nothing on it can last longer than this.
LIFE_S: Final = IDLE_S + ANSWER_TIMEOUT_S + READ_TIMEOUT_S
# How long a connection stays open that was answered before its whole request had arrived; at most
# one in LINGERING_PART of the connections that may wait can stay.
LINGER_S: Final = 1.0
LINGERING_PART: Final = 2
# Maximum time for answers in progress when the listener stops.
GRACE_S: Final = 1.0

_JSON: Final = "application/json"
_METHODS: Final = ("GET", "HEAD")

Handler = Callable[[trio.SocketStream], Awaitable[object]]
Room = Callable[[], Awaitable[int]]
# Function that accepts connections until cancelled. It serves each one in the nursery as soon as
# there is room, and then closes it. At most the given number of connections wait for room; others
# are sent the given octets.
Accept = Callable[[Handler, trio.Nursery, Room, int, bytes], Awaitable[None]]


class WebSockets(Protocol):
    """Interface of the server to which requests for a WebSocket are passed."""

    def take_over(
        self, stream: trio.SocketStream, octets: OctetStream, head: bytes, behind: bytes
    ) -> None:
        """Serve the connection from now on; `octets` is `stream`, or TLS on it."""


class ListenerTls(Protocol):
    """Interface of the TLS of a listener."""

    def stream(self, stream: trio.SocketStream) -> trio.SSLStream[trio.SocketStream]:
        """Return TLS on a new connection."""

    def reason_of(self, error: ssl.SSLError) -> str:
        """Return why TLS has failed, for operators."""


@attrs.frozen
class Health:
    """Access to a router's health checks; `round_trip` returns what is wrong, or None."""

    round_trip: Callable[[], Awaitable[str | None]]
    readiness: Readiness


class App:
    """ASGI application that serves the paths of one listener."""

    def __init__(self, exposition: Exposition | None, health: Health | None) -> None:
        self.routes: dict[str, Callable[[Headers, int], Awaitable[Answer]]] = {}
        if exposition is not None:
            self.exposition = exposition
            self.routes["/metrics"] = self._metrics
        if health is not None:
            self.health = health
            self.routes["/healthz"] = self._healthz
            self.routes["/readyz"] = self._readyz

    async def __call__(
        self,
        scope: Mapping[str, Any],
        receive: Callable[[], Awaitable[object]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer one request; a request body is discarded."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        with trio.move_on_after(ANSWER_TIMEOUT_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_discard, receive)
                # an HTTP/2 connection may have further requests, each with its own ticket
                is_single = scope["http_version"].startswith("1")
                ticket = scope["state"]["ticket"] if is_single else self.ticket()
                answer = await self.answer(scope["method"], scope["path"], scope["headers"], ticket)
                headers = answer.http_headers()
                if is_single:
                    headers.append((b"connection", b"close"))
                start = {"status": answer.status, "headers": headers}
                await send({"type": "http.response.start", **start})
                await send({"type": "http.response.body", "body": answer.body})
                nursery.cancel_scope.cancel()

    def ticket(self) -> int:
        """Return the ticket of a request that has just arrived (see `Exposition.render`)."""
        return self.exposition.begun if "/metrics" in self.routes else 0

    async def answer(self, method: str, path: str, headers: Headers, ticket: int) -> Answer:
        """Answer a request; HEAD is answered like GET, and Hypercorn omits the body."""
        route = self.routes.get(path)
        if route is None:
            return text_answer(404, "not found")
        if method not in _METHODS:
            return text_answer(405, "method not allowed", allow=", ".join(_METHODS))
        return await route(headers, ticket)

    async def _metrics(self, headers: Headers, ticket: int) -> Answer:
        content_type, body = await self.exposition.render(_accepted(headers), ticket)
        return Answer(200, content_type, body)

    async def _healthz(self, _: Headers, __: int) -> Answer:
        wrong = await self.health.round_trip()
        return text_answer(200, "OK") if wrong is None else text_answer(503, wrong)

    async def _readyz(self, headers: Headers, _: int) -> Answer:
        reasons = self.health.readiness.reasons()
        status = 503 if reasons else 200
        if _JSON in _accepted(headers):
            body = json.dumps({"ready": not reasons, "reasons": reasons}).encode()
            return Answer(status, _JSON, body)
        return text_answer(status, "\n".join(reasons) or "OK")


def _accepted(headers: Headers) -> str:
    """Return the combined value of the Accept headers."""
    accept = b",".join(value for name, value in headers if name.lower() == b"accept")
    return accept.decode("latin-1")


async def _discard(receive: Callable[[], Awaitable[object]]) -> None:
    """Read and discard the rest of a request; otherwise Hypercorn waits until somebody reads it."""
    while True:
        await receive()


class HttpListener:
    """Bound listener that serves an application on the connections from `accept`."""

    def __init__(
        self,
        name: str,
        accept: Accept,
        app: App,
        tls: ListenerTls | None = None,
        web_sockets: WebSockets | None = None,
    ) -> None:
        self._accept = accept
        self._web_sockets = web_sockets
        # replaced when its files change
        self.tls = tls
        self.log = log.bind(listener=name)
        self._app = app
        self._wrapped = ASGIWrapper(app)
        self._config = _hypercorn_config()
        self._context = WorkerContext(None)
        self._crowd = crowd = _crowd()
        self._lingering = 0
        self._half_requests = PendingHeads(crowd)
        self._admissions = {
            RequestKind.PROBE: Admission(*PROBES, crowd),
            RequestKind.PLAIN: Admission(*REQUESTS, crowd),
            RequestKind.OTHER: Admission(*OTHERS, 0),
        }
        self._warned_at = float("-inf")

    async def serve(self, stop: trio.Event) -> None:
        """Serve until `stop` is set; then finish the answers in progress, and close."""
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                room = self._half_requests.room
                accepting.start_soon(
                    self._accept, self._serve_one, connections, room, self._crowd,
                    BUSY.http_octets(is_head=False),
                )  # fmt: skip
                await stop.wait()
                accepting.cancel_scope.cancel()
            # close connections without a request immediately, and the others after their answer
            self._half_requests.close()
            await self._context.terminated.set()
            connections.cancel_scope.deadline = trio.current_time() + GRACE_S

    async def _serve_one(self, stream: trio.SocketStream) -> None:
        """Serve one connection; the caller closes it."""
        try:
            host, port = stream.socket.getpeername()[:2]
            counted = counted_host(host)
        except OSError:
            # the client reset the connection before it was served
            return
        octets: OctetStream = stream
        reader: Incoming = stream
        tls = self.tls
        if tls is not None:
            octets = secured = tls.stream(stream)
            reader = TlsReader(secured)
        head = await self._half_requests.read(reader, IDLE_S, counted)
        if isinstance(reader, TlsReader) and reader.error is not None and tls is not None:
            self._log_refused(host, port, f"TLS failed: {tls.reason_of(reader.error)}")
            await reader.refuse(reader.error)
            await self._linger(stream)
            return
        if isinstance(head, IncompleteReason):
            if head in UNFINISHED:
                await say_at_once(octets, UNFINISHED[head])
                await self._linger(stream)
            return
        objection = protocol_objection(head.octets, tls is not None, self._web_sockets is not None)
        if objection is not None:
            self._log_refused(host, port, objection)
            await say_at_once(octets, protocol_answer(objection))
            await self._linger(stream)
            return
        if head.is_web_socket and self._web_sockets is not None:
            self._web_sockets.take_over(stream, octets, head.octets, head.behind)
            return
        ticket = self._app.ticket()
        admitted = await self._admissions[head.kind].enter(counted)
        if admitted is None:
            self._warn(head.kind)
            await say_at_once(octets, BUSY, head.is_head)
            return
        try:
            if head.kind is not RequestKind.PROBE:
                await self._half_requests.quiet()
            await self._speak(_ImpatientStream(stream, octets, head, admitted), ticket)
        finally:
            admitted.leave()

    async def _speak(self, impatient: Any, ticket: int) -> None:
        """Serve a connection with Hypercorn.

        Hypercorn's type annotation requires a certain type of stream, but Hypercorn uses only the
        methods that `_ImpatientStream` has.
        """
        state = ConnectionState({"ticket": ticket})
        try:
            with trio.move_on_after(LIFE_S):
                await TCPServer(self._wrapped, self._config, self._context, state, impatient).run()
        except* Exception as failures:  # noqa: BLE001 - a library may raise anything
            # Any failure that a client causes in Hypercorn's tasks leaves their nursery as a group,
            # with `trio.Cancelled` in it if the router stops at the same time.
            self.log.warning("connection failed", reason=repr(failures))

    async def _linger(self, stream: trio.SocketStream) -> None:
        """Wait until the client closes the connection, for a limited time.

        If a part of the client's request is still in transit, closing first would cause a reset,
        and the answer would be lost.
        """
        if self._lingering >= self._crowd // LINGERING_PART:
            return
        self._lingering += 1
        try:
            with trio.move_on_after(LINGER_S):
                await stream.send_eof()
                while await stream.receive_some(MAX_HEAD_BYTES):
                    pass
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self._lingering -= 1

    def _log_refused(self, host: str, port: int, why: str) -> None:
        self.log.warning("connection refused", peer=peer_name(host, port), reason=why)

    def _warn(self, kind: RequestKind) -> None:
        """Log that requests are refused, at most once in `WARN_EVERY_S`."""
        now = trio.current_time()
        if now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            self.log.warning("too many HTTP requests at once", kind=kind.value)


def _crowd() -> int:
    """Return the maximum number of incomplete requests, and of waiting requests of one kind.

    The limit is a share of the descriptors that the process may have, most of which are for AMQP.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return MAX_WAITING
    return max(1, min(MAX_WAITING, allowed // CROWD_PART))


class _ImpatientStream:
    """Stream for Hypercorn that first returns the request's head, which has already been read.

    The stream limits how much is read after the head, and how long a client may take to read the
    answer. Hypercorn shields its sends from cancellation, so nothing else can end a slow send.
    """

    def __init__(
        self,
        stream: trio.SocketStream,
        octets: OctetStream,
        head: RequestHead,
        admitted: Admitted,
    ) -> None:
        self.socket = stream.socket
        self._send_eof = stream.send_eof
        # the stream itself, or TLS on it
        self._stream = octets
        self._head = head.octets
        # no answer needs a body, and Hypercorn may stumble over what follows the head
        may_change_protocol = head.kind is RequestKind.OTHER
        self._behind = head.behind if may_change_protocol else b""
        self._left = BEHIND_BYTES if may_change_protocol else 0
        # Hypercorn may send the end while the application sends its answer
        self._sending = trio.Lock()
        self._closed = trio.Event()
        self._admitted = admitted

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        head, self._head = self._head, b""
        if head:
            return head
        if not self._left:
            # wait: the answer is sent nevertheless
            await self._closed.wait()
            raise trio.ClosedResourceError
        received: bytes | bytearray
        received, self._behind = self._behind, b""
        if not received:
            received = await self._stream.receive_some(min(self._left, max_bytes))
        self._left = max(0, self._left - len(received))
        return received

    async def send_eof(self) -> None:
        async with self._sending:
            await self._send_eof()

    async def aclose(self) -> None:
        self._closed.set()
        await self._stream.aclose()

    async def send_all(self, data: bytes) -> None:
        self._admitted.answer_made()
        with trio.move_on_after(READ_TIMEOUT_S) as waiting:
            async with self._sending:
                await self._stream.send_all(data)
        if waiting.cancelled_caught:
            self._closed.set()
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError("the client did not read the answer in time")


class _Log(Logger):
    """Log for Hypercorn that keeps only failures of the application."""

    async def exception(self, message: str, *args: object, **kwargs: object) -> None:
        """Log the exception being handled."""
        log.error("HTTP request failed", reason=message, exc_info=sys.exception())


def _hypercorn_config() -> Config:
    config = Config()
    config.logger_class = _Log
    config.errorlog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = MAX_HEAD_BYTES
    config.h2_max_concurrent_streams = 1
    config.keep_alive_timeout = IDLE_S
    config.websocket_max_message_size = MAX_HEAD_BYTES
    return config
