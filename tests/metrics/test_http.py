"""HTTP over loopback to a real router: what it answers, and what bad clients cannot do to it."""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import attrs
import pytest
import trio
from proton import Message
from structlog.testing import capture_logs

from router.config.listeners import ListenerSettings
from router.config.model import AddressSettings
from router.metrics import http as http_module
from router.metrics.http import App, Health, HttpListener
from router.metrics.readiness import Readiness
from router.net import hub as hub_module
from router.net.arrivals import accept_fairly
from router.net.low_priority import LowPriorityTurns

from support.blocking_proton import Peer, send, threaded
from support.routers import StartRouter
from support.scraping import HTTP, PATIENCE_S, RunningNode, ask, request, running_node

WEBSOCKET = {
    "connection": "upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[trio.SocketStream]:
    """Open a connection that is closed at the end of the block."""
    async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
        yield stream


async def test_health_and_readiness() -> None:
    async with running_node() as running:
        for path in ("/healthz", "/readyz"):
            response = await running.request(path)
            assert (response.status, response.text) == (200, "OK\n")
            assert response.headers["content-type"] == "text/plain; charset=utf-8"
            assert "server" not in response.headers


async def test_readiness_says_what_is_lacking() -> None:
    async with running_node() as running:
        readiness = running.node.readiness
        readiness.lacks("listener a", "a is not bound")
        readiness.lacks("listener b", "b is not bound")
        response = await running.request("/readyz")
        assert (response.status, response.text) == (503, "a is not bound\nb is not bound\n")
        as_json = {"accept": "application/json"}
        response = await running.request("/readyz", headers=as_json)
        assert (response.status, response.headers["content-type"]) == (503, "application/json")
        assert json.loads(response.body) == {
            "ready": False,
            "reasons": ["a is not bound", "b is not bound"],
        }
        assert (await running.scrape())("trioute_ready") == 0
        readiness.has("listener a")
        readiness.has("listener b")
        response = await running.request("/readyz", headers=as_json)
        assert (response.status, json.loads(response.body)["reasons"]) == (200, [])
        assert (await running.scrape())("trioute_ready") == 1


async def test_a_router_whose_management_is_lost_is_not_ready_until_it_is_back() -> None:
    async with running_node() as running:
        own = running.node.hub.own_pump
        assert own is not None
        own.connection.close()
        running.node.hub.finish_turn()
        response = await running.request("/readyz")
        assert (response.status, response.text) == (503, "$management has no agent\n")
        with trio.fail_after(PATIENCE_S):
            while (await running.request("/readyz")).status != 200:
                pass


async def test_management_that_nobody_wants_is_not_waited_for() -> None:
    unavailable = AddressSettings(prefix="$management", distribution="unavailable")
    async with running_node(addresses=(unavailable,)) as running:
        assert (await running.request("/readyz")).status == 200


@pytest.mark.parametrize("path", ["/", "/metrics/", "/Metrics", "/metrics%00", "//", "/healthz/x"])
async def test_other_paths_are_not_found(path: str) -> None:
    async with running_node() as running:
        assert (await running.request(path)).status == 404


async def test_the_query_is_of_no_interest() -> None:
    async with running_node() as running:
        assert (await running.request("/healthz?x=1")).text == "OK\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize("path", ["/metrics", "/readyz"])
async def test_other_methods_are_not_allowed(method: str, path: str) -> None:
    async with running_node() as running:
        response = await running.request(path, method)
    assert response.status == 405
    assert response.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/metrics", "/healthz", "/nowhere"])
async def test_head_is_get_without_the_body(path: str) -> None:
    async with running_node() as running:
        head = await running.request(path, "HEAD")
        get = await running.request(path)
    assert head.status == get.status
    assert head.body == b""
    assert int(head.headers["content-length"]) > 0
    assert head.headers.keys() == get.headers.keys()


async def test_openmetrics_is_given_on_request() -> None:
    async with running_node() as running:
        response = await running.request(
            "/metrics", headers={"accept": "application/openmetrics-text"}
        )
    assert response.headers["content-type"].startswith(
        "application/openmetrics-text; version=1.0.0"
    )
    assert response.body.endswith(b"# EOF\n")


@pytest.mark.parametrize(
    ("listener", "statuses"),
    [
        (attrs.evolve(HTTP, metrics=False), (404, 200, 200)),
        (attrs.evolve(HTTP, healthz=False), (200, 404, 404)),
    ],
    ids=["no-metrics", "no-healthz"],
)
async def test_a_listener_serves_what_it_is_told(
    listener: ListenerSettings, statuses: tuple[int, ...]
) -> None:
    async with running_node(http=listener) as running:
        paths = ("/metrics", "/healthz", "/readyz")
        assert tuple([(await running.request(p)).status for p in paths]) == statuses


async def test_a_connection_is_for_one_request() -> None:
    async with running_node() as running, connected(running.http_port) as stream:
        assert (await ask(stream, "/healthz")).headers["connection"] == "close"
        assert await drained(stream) == b""


async def test_readiness_ends_first_and_http_last() -> None:
    async with running_node() as running, connected(running.amqp_port) as peer:
        # a peer that never closes its side keeps the router waiting for it for a while
        await running.scrape_until(lambda s: s(CONNECTIONS, **AMQP) == 1)
        running.stop.set()
        assert await peer.receive_some(1) == b""
        response = await running.request("/readyz")
        assert (response.status, response.text) == (503, "the router is shutting down\n")
        assert (await running.request("/healthz")).status == 200
        assert (await running.request("/metrics")).status == 200
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", running.http_port)


CONNECTIONS = "trioute_connections"
AMQP = {"endpoint": "amqp", "direction": "in", "role": "normal"}


async def test_a_router_whose_clock_stands_still_is_not_healthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub_module, "STUCK_S", -1.0)
    async with running_node() as running:
        response = await running.request("/healthz")
    assert response.status == 503
    assert re.fullmatch(r"timers not checked for \d+\.\d s: [a-z ]+\n", response.text)


# Bad clients.


async def amqp_works(running: RunningNode) -> None:
    """Check that a message goes through the router, and that metrics are served."""
    async with Peer(running.amqp_port) as peer:
        receiver = await peer.receiver("orders")
        sender = await peer.sender("orders", settled=True)
        await send(sender, Message(body="x"))
        assert (await threaded(receiver.receive, timeout=PATIENCE_S)).body == "x"
    assert (await running.scrape())("trioute_deliveries_ingress_total") >= 1


async def drained(stream: trio.SocketStream) -> bytes:
    """All that comes until the server closes."""
    data = bytearray()
    with trio.fail_after(PATIENCE_S):
        try:
            async for chunk in stream:
                data += chunk
        except trio.BrokenResourceError:
            pass
    return bytes(data)


@pytest.fixture
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the server wait for a fraction of a second only, whatever it waits for."""
    for name in ("IDLE_S", "ANSWER_TIMEOUT_S", "READ_TIMEOUT_S", "GRACE_S", "LIFE_S"):
        monkeypatch.setattr(http_module, name, 0.3)


GARBAGE = {
    "noise": bytes(range(256)) * 10,
    "amqp": b"AMQP\x00\x01\x00\x00",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "no-host": b"GET /metrics HTTP/1.1\r\n\r\n",
    "long-header": b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 100_000,
    "long-target": b"GET /" + b"y" * 100_000,
    "no-version": b"GET /metrics\r\n\r\n",
    "bad-length": b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
    "long-body": b"POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 9999999\r\n\r\n"
    + bytes(9999),
    "many-chunks": b"POST /metrics HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"1\r\nx\r\n" * 1000,
    "continue": b"POST /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n",
    "accept": b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\naccept: "
    b"application/openmetrics-text;version=\xff.;escaping=\xfe\r\n\r\n",
    "h2-noise": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(range(256)),
    "h2-preface": b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
    "h2c-bad": b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\n"
    b"upgrade: h2c\r\nhttp2-settings: !!!!\r\n\r\n",
    "h2c-short": b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\n"
    b"upgrade: h2c\r\nhttp2-settings: AAE\r\n\r\n",
    "h2c-empty": b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
    "websocket-bad": b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n"
    b"upgrade: websocket\r\n\r\n" + bytes(range(256)),
    "pipelined": b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n" * 200,
    "nothing": b"",
    "half": b"GET /met",
}


@pytest.mark.parametrize("octets", GARBAGE.values(), ids=GARBAGE.keys())
async def test_bad_requests_end_their_connection_alone(octets: bytes, impatience: None) -> None:
    async with running_node() as running:
        async with await trio.open_tcp_stream("127.0.0.1", running.http_port) as stream:
            with trio.move_on_after(PATIENCE_S):
                try:
                    await stream.send_all(octets)
                except trio.BrokenResourceError:
                    pass
            # the server is done with it, though this side never closes
            await drained(stream)
        await amqp_works(running)


async def test_a_websocket_is_refused(impatience: None) -> None:
    async with running_node() as running, connected(running.http_port) as stream:
        assert (await ask(stream, "/metrics", headers=WEBSOCKET)).status == 403
        await drained(stream)


async def test_a_client_that_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "READ_TIMEOUT_S", 0.3)
    monkeypatch.setattr(http_module, "REQUESTS", (1, 1))
    async with running_node(address_label_limit=1000) as running:
        for number in range(1000):
            running.node.table.enter(f"{number:0100}")
        with trio.socket.socket() as sock:
            # so little room on this side that the answer cannot be got rid of
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await sock.connect(("127.0.0.1", running.http_port))
            await sock.send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            await trio.lowlevel.wait_readable(sock)
            assert (await running.request("/healthz")).status == 200
            # the next one waits for the place, and gets it when that client is dropped
            assert (await running.request("/metrics")).status == 200
        await amqp_works(running)


async def test_idle_connections_do_not_delay_a_shutdown() -> None:
    async with running_node() as running:
        streams = [await trio.open_tcp_stream("127.0.0.1", running.http_port) for _ in range(5)]
        await streams[0].send_all(b"GET /hea")
        await running.scrape()
        running.stop.set()
        with trio.fail_after(http_module.IDLE_S):
            for stream in streams:
                assert await drained(stream) == b""
                await stream.aclose()


SCRAPE = b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n"
PROBE = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


# Another address of this machine than the one that connections come from as a rule.
OTHER_HOST = "127.0.0.2"


@asynccontextmanager
async def many_connected(
    port: int, count: int, host: str = "127.0.0.1"
) -> AsyncIterator[list[trio.SocketStream]]:
    """So many connections from a host, which are closed at the end of the block."""
    streams = [
        await trio.open_tcp_stream("127.0.0.1", port, local_address=host) for _ in range(count)
    ]
    try:
        yield streams
    finally:
        for stream in streams:
            await trio.aclose_forcefully(stream)


def status_of(response: bytes) -> int:
    """Return the status of a response; fail if there is none."""
    assert response.startswith(b"HTTP/1.1 "), response[:1000]
    return int(response[9:12])


async def test_half_requests_keep_no_probe_out() -> None:
    async with running_node() as running, many_connected(running.http_port, 64) as halves:
        for stream in halves:
            await stream.send_all(b"GET /met")
        for path in ("/healthz", "/readyz", "/metrics") * 10:
            assert (await running.request(path)).status == 200
        # and none of them had to go for it
        await halves[0].send_all(b"rics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert status_of(await drained(halves[0])) == 200


async def test_the_oldest_half_request_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_module, "MAX_WAITING", 3)
    async with running_node() as running, many_connected(running.http_port, 3) as halves:
        for stream in halves:
            await stream.send_all(b"GET /met")
        assert (await running.request("/healthz")).status == 200
        evicted = await drained(halves[0])
        assert status_of(evicted) == 503
        assert b"\r\nretry-after: 1\r\n" in evicted
        await halves[1].send_all(b"rics HTTP/1.1\r\nhost: x\r\n\r\n")
        assert status_of(await drained(halves[1])) == 200


async def test_few_descriptors_are_for_http(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = 80
    kept = allowed // http_module.CROWD_PART
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, most))
    async with running_node() as running, many_connected(running.http_port, allowed) as halves:
        for stream in halves:
            await stream.send_all(b"GET /met")
        assert (await running.request("/healthz")).status == 200
        answers = [await drained(stream) for stream in halves[:-kept]]
        assert {status_of(answer) for answer in answers} == {503}
        # the others have their places
        for stream in halves[-kept + 1 :]:
            await stream.send_all(b"rics HTTP/1.1\r\nhost: x\r\n\r\n")
            assert status_of(await drained(stream)) == 200


async def test_a_request_that_does_not_come_in_time_is_told_so(impatience: None) -> None:
    async with running_node() as running, connected(running.http_port) as stream:
        await stream.send_all(b"GET /met")
        assert status_of(await drained(stream)) == 408


def say_at_once(stream: trio.SocketStream, octets: bytes) -> None:
    """Send something short while the router, in the same loop, does nothing."""
    assert os.write(stream.socket.fileno(), octets) == len(octets)


async def test_scrapes_are_refused_clearly_where_too_many_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_module, "MAX_WAITING", 5)
    monkeypatch.setattr(http_module, "REQUESTS", (1, 1))
    async with running_node() as running, many_connected(running.http_port, 100) as streams:
        for stream in streams:
            say_at_once(stream, SCRAPE)
        answers = [await drained(stream) for stream in streams]
        refused = [answer for answer in answers if status_of(answer) == 503]
        assert all(b"\r\nretry-after: 1\r\n" in answer for answer in refused)
        assert {200, 503} == {status_of(answer) for answer in answers}
        assert (await running.request("/metrics")).status == 200


async def test_a_probe_is_answered_before_the_scrapes_that_came_first() -> None:
    order: list[bytes] = []

    async def note(stream: trio.SocketStream) -> None:
        order.append(await drained(stream))

    async with running_node() as running, many_connected(running.http_port, 300) as streams:
        *scrapers, prober = streams
        for stream in scrapers:
            say_at_once(stream, SCRAPE)
        say_at_once(prober, PROBE)
        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(note, stream)
        assert [status_of(answer) for answer in order] == [200] * len(streams)
        at = next(n for n, answer in enumerate(order) if answer.endswith(b"OK\n"))
        # those whose answers were under way when it came
        assert at < len(streams) // 2
        # they had their texts together
        assert running.node.exposition.begun < len(streams) // 10


@pytest.mark.parametrize(("said", "kind"), [(PROBE, "PROBES"), (SCRAPE, "REQUESTS")])
async def test_requests_of_one_host_keep_no_other_out(
    monkeypatch: pytest.MonkeyPatch, said: bytes, kind: str
) -> None:
    monkeypatch.setattr(http_module, "MAX_WAITING", 5)
    monkeypatch.setattr(http_module, kind, (1, 1))
    async with (
        running_node() as running,
        many_connected(running.http_port, 50) as many,
        many_connected(running.http_port, 2, OTHER_HOST) as few,
    ):
        for stream in (*many, *few):
            say_at_once(stream, said)
        assert [status_of(await drained(stream)) for stream in few] == [200, 200]
        assert {status_of(await drained(stream)) for stream in many} == {200, 503}


async def test_a_host_that_does_not_read_leaves_places_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_module, "READ_TIMEOUT_S", PATIENCE_S)
    monkeypatch.setattr(http_module, "REQUESTS", (4, 1))
    async with running_node(address_label_limit=1000) as running, AsyncExitStack() as stack:
        for number in range(1000):
            running.node.table.enter(f"{number:0100}")
        socks = [stack.enter_context(trio.socket.socket()) for _ in range(4)]
        for sock in socks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await sock.connect(("127.0.0.1", running.http_port))
            await sock.send(SCRAPE)
        # two are being answered, and the others wait
        for sock in socks[:2]:
            await trio.lowlevel.wait_readable(sock)
        async with many_connected(running.http_port, 1, OTHER_HOST) as (other,):
            await other.send_all(SCRAPE)
            assert status_of(await drained(other)) == 200


UPGRADE = (
    b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade, http2-settings\r\n"
    b"upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n"
)


async def test_one_host_does_not_have_all_places_of_other_protocols(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_module, "OTHERS", (2, 2))
    async with (
        running_node() as running,
        many_connected(running.http_port, 2) as halves,
        many_connected(running.http_port, 1, OTHER_HOST) as (other,),
    ):
        for stream in halves:
            await stream.send_all(H2_PREFACE)
        # of those the second is refused
        assert status_of(await drained(halves[1])) == 503
        await other.send_all(UPGRADE)
        assert status_of(bytes(await other.receive_some(12))) == 101


H2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
H2_SETTINGS = bytes(3) + b"\x04\0" + bytes(4)
H2_ACKNOWLEDGED = bytes(3) + b"\x04\x01" + bytes(4)


async def test_only_so_much_is_looked_at_behind_a_head(impatience: None) -> None:
    many = 20_000
    async with running_node() as running, connected(running.http_port) as stream:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_as_far_as_read, stream, H2_PREFACE + H2_SETTINGS * many)
            answered = (await drained(stream)).count(H2_ACKNOWLEDGED)
        assert 0 < answered <= http_module.BEHIND_BYTES // len(H2_SETTINGS) < many
        await amqp_works(running)


async def send_as_far_as_read(stream: trio.SocketStream, octets: bytes) -> None:
    """Send octets until the server is done with the connection."""
    try:
        await stream.send_all(octets)
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


@pytest.mark.parametrize(
    "body",
    [
        b"content-length: 8000\r\n\r\n" + bytes(8000),
        b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2000 + b"0\r\n\r\n",
    ],
    ids=["whole", "chunked"],
)
async def test_a_request_with_a_long_body_is_answered(body: bytes) -> None:
    async with running_node() as running, connected(running.http_port) as stream:
        await stream.send_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\n" + body)
        assert status_of(await drained(stream)) == 200


BROKEN_BODY = b"transfer-encoding: chunked\r\n\r\nzz\r\n"


@pytest.mark.parametrize(
    ("behind", "statuses"),
    [
        (b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n" + SCRAPE, {405}),
        (b"content-length: 5\r\n\r\nhello" + SCRAPE, {405}),
        (BROKEN_BODY, {405}),
        # Hypercorn finds the mistake, or has answered before
        (b"connection: upgrade\r\nupgrade: x\r\n" + BROKEN_BODY, {400, 405}),
    ],
    ids=["chunked", "length", "broken", "broken upgrade"],
)
async def test_what_follows_a_head_is_no_failure(
    capsys: pytest.CaptureFixture[str], behind: bytes, statuses: set[int]
) -> None:
    async with running_node() as running:
        for _ in range(30):
            async with connected(running.http_port) as stream:
                await stream.send_all(b"POST /healthz HTTP/1.1\r\nhost: x\r\n" + behind)
                assert status_of(await drained(stream)) in statuses
    logged = capsys.readouterr().out
    assert "HTTP request failed" not in logged
    assert "connection failed" not in logged


async def test_a_head_of_very_many_lines_is_refused() -> None:
    async with running_node() as running, connected(running.http_port) as stream:
        await stream.send_all(PROBE[:-2] + b"a: b\r\n" * 1000 + b"\r\n")
        assert status_of(await drained(stream)) == 431


async def test_a_failure_of_the_application_is_answered_and_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def fails() -> str | None:
        raise LookupError("as it may happen")

    sockets = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = sockets[0].socket.getsockname()[1]
    accept = partial(accept_fairly, "http", sockets, LowPriorityTurns(trio.current_time))
    ready = Readiness()
    ready.has("router")
    listener = HttpListener("http", accept, App(None, Health(fails, ready)))
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listener.serve, stop)
        assert (await request(port, "/healthz")).status == 500
        assert (await request(port, "/readyz")).status == 200
        stop.set()
    assert "LookupError: as it may happen" in capsys.readouterr().out


# As a process.

CONFIGURATION = """\
[[listener]]
port = 0

[[listener]]
port = 0
name = "http"
http = true
"""


def test_a_process_says_where_and_serves_there(start_router: StartRouter) -> None:
    router = start_router(CONFIGURATION)
    connection = http.client.HTTPConnection(*router.http_addresses[0], timeout=PATIENCE_S)
    connection.request("GET", "/metrics")
    assert b"trioute_build_info{" in connection.getresponse().read()
    # with its connection still open
    assert router.stop(signal.SIGTERM) == 0
    connection.close()
    assert "hypercorn" not in router.log_text().lower()
    assert "Running on" not in router.log_text()


class FailingServer:
    """Server of a library that fails when it is cancelled."""

    def __init__(self, *_: object) -> None:
        pass

    async def run(self) -> None:
        """Run until cancelled; then one task fails, and another one ends in order."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                raise RuntimeError("a task of the library has failed") from None


async def test_a_failure_while_the_router_stops_fails_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_module, "TCPServer", FailingServer)

    async def accept(*_: object) -> None:
        await trio.sleep_forever()

    listener = HttpListener("http", accept, App(None, None))
    with trio.move_on_after(0) as stopping, capture_logs() as logs:
        await listener._speak(None, 0)
    assert stopping.cancelled_caught
    assert [line["event"] for line in logs] == ["connection failed"]
