"""The HTTP side of a router: metrics for scrapers, health and readiness for who keeps it running.

Hypercorn speaks HTTP on each connection; what one bad client may cost is seen to here: so many
connections, one request on each, so many octets, so much time; and what goes wrong on a connection
ends that one alone (docs/decisions/0020-http-by-connection.md).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import attrs
import structlog
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.logging import Logger
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState

from router.metrics.exposition import Exposition
from router.metrics.readiness import Readiness

log = structlog.get_logger("router.http")

# Nobody needs more: a scraper and a prober or two, each with one connection.
MAX_CONNECTIONS: Final = 64
MAX_HEADER_BYTES: Final = 16 * 1024
# How long a connection may take to send a request's header, or be idle before the next one.
IDLE_S: Final = 5.0
# How long an answer may take, from the request until it is made, and then until it is taken.
ANSWER_S: Final = 10.0
TAKE_S: Final = 5.0
# A connection serves one request, so nothing on it can last longer than this.
LIFE_S: Final = IDLE_S + ANSWER_S + TAKE_S
# How long answers that are under way have at the end.
GRACE_S: Final = 1.0

_TEXT: Final = "text/plain; charset=utf-8"
_JSON: Final = "application/json"
_METHODS: Final = ("GET", "HEAD")

Headers = list[tuple[bytes, bytes]]
# Accepts connections until cancelled; each is served in the nursery, and closed after.
Accept = Callable[[Callable[[trio.SocketStream], Awaitable[object]], trio.Nursery], Awaitable[None]]


@attrs.frozen
class Answer:
    """What a request gets."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = attrs.Factory(dict)

    def http_headers(self) -> Headers:
        """All headers, as ASGI has them."""
        headers = {
            "content-type": self.content_type,
            "content-length": str(len(self.body)),
            "cache-control": "no-store",
            **self.headers,
        }
        return [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]


def _said(status: int, text: str, **headers: str) -> Answer:
    return Answer(status, _TEXT, f"{text}\n".encode(), headers)


@attrs.frozen
class Health:
    """How a router is asked how it is: `round_trip` answers with what is wrong, or None."""

    round_trip: Callable[[], Awaitable[str | None]]
    readiness: Readiness


class App:
    """An ASGI application with the routes of one listener."""

    def __init__(self, exposition: Exposition | None, health: Health | None) -> None:
        self.routes: dict[str, Callable[[Headers], Awaitable[Answer]]] = {}
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
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Answer one request; a body, if it has one, is let go by."""
        if scope["type"] != "http":
            await send({"type": "websocket.close"})
            return
        with trio.move_on_after(ANSWER_S):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_discard, receive)
                answer = await self.answer(scope["method"], scope["path"], scope["headers"])
                headers = answer.http_headers()
                if scope["http_version"].startswith("1"):
                    headers.append((b"connection", b"close"))
                start = {"status": answer.status, "headers": headers}
                await send({"type": "http.response.start", **start})
                await send({"type": "http.response.body", "body": answer.body})
                nursery.cancel_scope.cancel()

    async def answer(self, method: str, path: str, headers: Headers) -> Answer:
        """What a request gets; for HEAD it is what GET gets, and Hypercorn leaves out the body."""
        route = self.routes.get(path)
        if route is None:
            return _said(404, "not found")
        if method not in _METHODS:
            return _said(405, "method not allowed", allow=", ".join(_METHODS))
        return await route(headers)

    async def _metrics(self, headers: Headers) -> Answer:
        content_type, body = await self.exposition.render(_accepted(headers))
        return Answer(200, content_type, body)

    async def _healthz(self, _: Headers) -> Answer:
        wrong = await self.health.round_trip()
        return _said(200, "OK") if wrong is None else _said(503, wrong)

    async def _readyz(self, headers: Headers) -> Answer:
        reasons = self.health.readiness.reasons()
        status = 503 if reasons else 200
        if _JSON in _accepted(headers):
            body = json.dumps({"ready": not reasons, "reasons": reasons}).encode()
            return Answer(status, _JSON, body)
        return _said(status, "\n".join(reasons) or "OK")


def _accepted(headers: Headers) -> str:
    """What the Accept headers say."""
    accept = b",".join(value for name, value in headers if name.lower() == b"accept")
    return accept.decode("latin-1")


async def _discard(receive: Callable[[], Awaitable[Any]]) -> None:
    """Take what comes of a request, without which Hypercorn would wait for it to be taken."""
    while True:
        await receive()


class HttpListener:
    """A bound listener that serves an application to whoever `accept` lets in."""

    def __init__(self, name: str, accept: Accept, app: App) -> None:
        self._accept = accept
        self.log = log.bind(listener=name)
        self._app = ASGIWrapper(app)
        self._config = _hypercorn_config()
        self._context = WorkerContext(None)
        self._connections = 0
        self._is_full = False

    async def serve(self, stop: trio.Event) -> None:
        """Serve until `stop` is set; then let answers under way be finished, and close."""
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                accepting.start_soon(self._accept, self._serve_one, connections)
                await stop.wait()
                accepting.cancel_scope.cancel()
            # has connections without a request closed, and the others after their answer
            await self._context.terminated.set()
            connections.cancel_scope.deadline = trio.current_time() + GRACE_S

    async def _serve_one(self, stream: trio.SocketStream) -> None:
        """Serve one connection, which is closed after."""
        if self._connections >= MAX_CONNECTIONS:
            if not self._is_full:
                self.log.warning("connections refused", limit=MAX_CONNECTIONS)
            self._is_full = True
            return
        self._connections += 1
        # Hypercorn annotates one kind of stream, and uses of any kind what is there below.
        impatient: Any = _ImpatientStream(stream)
        state = ConnectionState({})
        try:
            with trio.move_on_after(LIFE_S):
                await TCPServer(self._app, self._config, self._context, state, impatient).run()
        except ExceptionGroup as failures:
            # Whatever a client makes Hypercorn's tasks fail with leaves their nursery as a group.
            self.log.warning("connection failed", reason=repr(failures))
        finally:
            self._connections -= 1
            self._is_full = False


class _ImpatientStream:
    """What Hypercorn uses of a stream, with a limit to how long a client may take to read.

    Hypercorn shields its sends from being cancelled, so nothing else could end one.
    """

    def __init__(self, stream: trio.SocketStream) -> None:
        self.socket = stream.socket
        self.receive_some = stream.receive_some
        self.send_eof = stream.send_eof
        self.aclose = stream.aclose
        self._stream = stream

    async def send_all(self, data: bytes) -> None:
        with trio.move_on_after(TAKE_S) as waiting:
            await self._stream.send_all(data)
        if waiting.cancelled_caught:
            await trio.aclose_forcefully(self._stream)
            raise trio.BrokenResourceError("the client does not read")


class _Log(Logger):
    """Hypercorn's log, of which only failures of the application are kept."""

    async def exception(self, message: str, *args: Any, **kwargs: Any) -> None:
        """Log the exception being handled."""
        log.error("request failed", reason=message, exc_info=sys.exception())


def _hypercorn_config() -> Config:
    config = Config()
    config.logger_class = _Log
    config.errorlog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = MAX_HEADER_BYTES
    config.h2_max_concurrent_streams = 1
    config.keep_alive_timeout = IDLE_S
    config.websocket_max_message_size = MAX_HEADER_BYTES
    return config
