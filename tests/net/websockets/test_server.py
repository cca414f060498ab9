"""AMQP over WebSockets, with clients that send octets as nobody else does."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trio
from wsproto.events import (
    AcceptConnection,
    CloseConnection,
    Ping,
    RejectConnection,
    Request,
    TextMessage,
)

from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import (
    Attach,
    Begin,
    Flow,
    Open,
    SaslInit,
    Source,
    Target,
    Transfer,
)
from router.amqp.types import Symbol
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.users import hash_password
from router.core.addresses import management_access
from router.net.websockets import server as server_module

from support.certificates import Authority
from support.loopback import running_node
from support.scraping import request
from support.web_sockets import OPENING, RawWebSocket, dialled, opened

PEER_OPEN = b"\x00\x53\x10"
CLOSE = b"\x00\x53\x18"


def serving(**fields: Any) -> Configuration:
    """Return a configuration with one listener for WebSockets."""
    return Configuration(
        listeners=(ListenerSettings(port=0, http=True, websockets=True, **fields),)
    )


@pytest.mark.spec("W2.3-1", "W2.4-2")
async def test_octets_may_be_split_and_joined_in_any_way() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        for number in range(len(OPENING)):
            await peer.send(OPENING[number : number + 1])
            await peer.send(b"")
        await peer.hear(PEER_OPEN)
        assert peer.messages[0] == AMQP_HEADER
        assert [pump.connection.name for pump in running.pumps] == [name_of(peer)]


def name_of(peer: RawWebSocket) -> str:
    assert isinstance(peer.stream, trio.SocketStream)
    host, port = peer.stream.socket.getsockname()[:2]
    return f"{host}:{port}"


async def test_a_message_may_have_very_many_fragments() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        for number in range(len(OPENING)):
            await peer.send(OPENING[number : number + 1], message_finished=False)
            for _ in range(50):
                await peer.send(b"", message_finished=False)
        # the message is not finished, and never will be
        await peer.hear(PEER_OPEN)


@pytest.mark.spec("W2.4-2")
async def test_a_frame_may_be_in_many_messages_and_a_message_may_be_larger_than_a_frame() -> None:
    attach = Attach(name="l", handle=0, role=True, source=Source(address="q"))
    back = Attach(
        name="m", handle=1, role=False, target=Target(address="q"), initial_delivery_count=0
    )
    body = b"\x00\x53\x75\xb0\x00\x03\x00\x00" + b"z" * 0x30000
    message = OPENING + encode_frame(
        0,
        Begin(next_outgoing_id=0, incoming_window=1000, outgoing_window=1000),
    )
    for performative in (attach, Flow(
        incoming_window=1000, next_outgoing_id=0, outgoing_window=1000, handle=0,
        delivery_count=0, link_credit=10,
    ), back):  # fmt: skip
        message += encode_frame(0, performative)
    async with running_node(serving()) as running, opened(running.address) as peer:
        await peer.send(message)
        # credit for the sender: the flow after its attach
        await peer.until(lambda: peer.heard.count(b"\x00\x53\x12") >= 2)
        await peer.until(lambda: peer.heard.count(b"\x00\x53\x13") >= 1)
        frames = b""
        for at in range(0, len(body), 30_000):
            more = at + 30_000 < len(body)
            transfer = Transfer(
                handle=1, delivery_id=0, delivery_tag=b"t", message_format=0, more=more
            )
            frames += encode_frame(0, transfer, body[at : at + 30_000])
        # one message of WebSocket, in pieces that no frame of AMQP fits
        for at in range(0, len(frames), 7_001):
            await peer.send(frames[at : at + 7_001], message_finished=at + 7_001 >= len(frames))
        await peer.until(lambda: peer.heard.count(b"z" * 1000) >= 0x30000 // 1100)
        await running.until(lambda: running.pumps)


@pytest.mark.spec("W2.1-2")
@pytest.mark.parametrize(
    ("proposed", "chosen"),
    [
        (["amqp"], "amqp"),
        (["x", "AmqpWsb10", "amqp"], "AmqpWsb10"),
        (["binary", "AMQP"], "AMQP"),
        (["binary"], "binary"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else value,
)
async def test_subprotocols(proposed: list[str], chosen: str) -> None:
    async with running_node(serving()) as running, dialled(running.address) as peer:
        await peer.ask("/$servicebus/websocket?a=b", *proposed)
        assert isinstance(peer.answer, AcceptConnection)
        assert peer.answer.subprotocol == chosen
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)


@pytest.mark.spec("W2.1-3")
@pytest.mark.parametrize("proposed", [[], ["mqtt", "amqp2"]], ids=["none", "others"])
async def test_another_subprotocol_is_refused(proposed: list[str]) -> None:
    async with running_node(serving()) as running, dialled(running.address) as peer:
        await peer.ask("/", *proposed)
        assert isinstance(peer.answer, RejectConnection)
        assert peer.answer.status_code == 400
        assert b"amqp (or AMQPWSB10, or binary) in Sec-WebSocket-Protocol" in peer.refusal
        await peer.until_ended()


async def test_no_extension_is_negotiated() -> None:
    async with running_node(serving()) as running, dialled(running.address) as peer:
        offered = [(b"Sec-WebSocket-Extensions", b"permessage-deflate; client_max_window_bits")]
        # this client would refuse an extension that it did not ask for by itself
        await peer.ask("/", "amqp", extra_headers=offered)
        assert isinstance(peer.answer, AcceptConnection)
        assert peer.answer.extensions == []
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)


async def test_a_compressed_message_is_a_protocol_error() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        # the bit RSV1, and a mask of zeros
        await peer.stream.send_all(b"\xc2\x81\x00\x00\x00\x00x")
        assert await peer.until_closed() == 1002
        await running.until_empty()


@pytest.mark.spec("W2.4-1")
async def test_text_is_refused() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        await peer.say(TextMessage("x"))
        assert await peer.until_closed() == 1003
        await peer.until_ended()
        await running.until_empty()


async def test_a_frame_without_a_mask_is_a_protocol_error() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        await peer.stream.send_all(b"\x82\x01x")
        assert await peer.until_closed() == 1002
        await running.until_empty()


async def test_pings_are_answered() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        for payload in (b"", b"x" * 125):
            await peer.say(Ping(payload))
            await peer.until(lambda payload=payload: payload in peer.pongs)


@pytest.mark.spec("W4-1")
async def test_the_server_closes_after_the_close_of_amqp() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        await peer.send(OPENING + encode_frame(0, Open(container_id="twice")))
        await peer.hear(CLOSE)
        assert await peer.until_closed() == 1000
        await peer.until_ended()
        await running.until_empty()


@pytest.mark.spec("W4-2")
@pytest.mark.parametrize("in_order", [True, False])
async def test_a_web_socket_that_ends_ends_its_connection(in_order: bool) -> None:
    async with running_node(serving()) as running:
        async with opened(running.address) as peer:
            await peer.send(OPENING)
            await peer.hear(PEER_OPEN)
            if in_order:
                await peer.say(CloseConnection(1000))
                assert await peer.until_closed() == 1000
                await peer.until_ended()
        await running.until_empty()


ORIGINS = {
    "none": ([], (), True),
    "same": (["http://h:1"], (), True),
    "same, with TLS before the proxy": (["https://H:1"], (), True),
    "other host": (["http://x:1"], (), False),
    "other port": (["http://h:2"], (), False),
    "file": (["null"], (), False),
    "two": (["http://h:1", "http://x"], (), False),
    "named": (["http://x"], ("http://y", "HTTP://X"), True),
    "not named": (["http://x"], ("http://x:8080", "https://x"), False),
    "all": (["http://x"], ("*",), True),
    "named file": (["null"], ("null",), True),
}


@pytest.mark.parametrize(("origins", "allowed", "is_let_in"), ORIGINS.values(), ids=ORIGINS)
async def test_pages_of_other_servers_are_refused(
    origins: list[str], allowed: tuple[str, ...], is_let_in: bool
) -> None:
    configuration = serving(allowed_origins=allowed)
    headers = [(b"Origin", each.encode()) for each in origins]
    async with running_node(configuration) as running, dialled(running.address) as peer:
        await peer.ask("/", "amqp", host="h:1", extra_headers=headers)
        if is_let_in:
            assert isinstance(peer.answer, AcceptConnection)
            return
        assert isinstance(peer.answer, RejectConnection)
        assert peer.answer.status_code == 403
        assert b"Origin" in peer.refusal


@pytest.mark.parametrize("origin", [None, "http://h"])
async def test_a_page_is_not_trusted_for_being_on_this_host(origin: str | None) -> None:
    headers = [] if origin is None else [(b"Origin", origin.encode())]
    async with (
        running_node(serving()) as running,
        opened(running.address, extra_headers=headers) as peer,
    ):
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        (pump,) = running.pumps
        right = management_access.of_connection(pump.connection)
        assert right == ("change" if origin is None else "read")


async def test_http_is_served_on_the_same_port() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        for path in ("/metrics", "/healthz", "/readyz"):
            assert (await request(running.address[1], path)).status == 200
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)


async def test_a_port_may_serve_nothing_but_web_sockets() -> None:
    async with (
        running_node(serving(metrics=False, healthz=False)) as running,
        opened(running.address),
    ):
        assert (await request(running.address[1], "/metrics")).status == 404


BAD_REQUESTS = {
    "POST": (b"POST / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    "no key": (
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\n\r\n"
    ),
    "old version": (
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ),
    "no text": (
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Protocol: \xff\xfe\r\n\r\n"
    ),
    "two hosts": (
        b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    ),
    "control": b"GET / HTTP/1.1\r\nHost: \x01\r\nUpgrade: websocket\r\n\r\n",
}


@pytest.mark.parametrize("octets", BAD_REQUESTS.values(), ids=BAD_REQUESTS)
async def test_a_bad_request_disturbs_nobody(octets: bytes) -> None:
    async with running_node(serving()) as running:
        async with await trio.open_tcp_stream(*running.address) as stream:
            await stream.send_all(octets)
            found = b""
            while more := await stream.receive_some(65536):
                found += more
            assert found.startswith(b"HTTP/1.1 4") or not found
        async with opened(running.address) as peer:
            await peer.send(OPENING)
            await peer.hear(PEER_OPEN)


async def test_a_client_that_never_opens_is_let_go() -> None:
    configuration = serving(initial_handshake_timeout_seconds=0.5)
    async with running_node(configuration) as running, opened(running.address) as peer:
        await peer.send(AMQP_HEADER)
        await peer.until_closed()
        assert PEER_OPEN not in peer.heard
        await peer.until_ended()
        await running.until_empty()


async def test_what_is_sent_before_the_answer_is_not_lost() -> None:
    async with running_node(serving()) as running, dialled(running.address) as peer:
        early = b"\x82\x88\x00\x00\x00\x00" + AMQP_HEADER
        head = (
            b"GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Protocol: amqp\r\n\r\n"
        )
        await peer.stream.send_all(head + early)
        found = b""
        while AMQP_HEADER not in found:
            found += await peer.stream.receive_some()
        assert found.startswith(b"HTTP/1.1 101")


async def test_a_client_that_does_not_read_waits_for_nothing_but_itself() -> None:
    async with running_node(serving(idle_timeout_seconds=2)) as running:
        with trio.socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await sock.connect(running.address)
            peer = RawWebSocket(trio.SocketStream(sock))
            await peer.ask("/", "amqp")
            await peer.send(OPENING)
            await peer.hear(PEER_OPEN)
            # an answer to each ping, until there is no room for more: then nothing is read either
            ping = peer.state.send(Ping(b"x" * 125)) * 1000
            with trio.move_on_after(30) as waiting:
                while running.pumps:
                    with trio.move_on_after(0.5):
                        await peer.stream.send_all(ping)
                    async with opened(running.address) as other:
                        await other.send(OPENING)
                        await other.hear(PEER_OPEN)
                        if len(running.pumps) == 1:
                            break
            assert not waiting.cancelled_caught


@pytest.mark.parametrize(("password", "code"), [("right", 0), ("wrong", 1)])
async def test_users_log_in_as_on_tcp(tmp_path: Path, password: str, code: int) -> None:
    users = tmp_path / "users"
    users.write_text(f"u:{hash_password('right')}\n", encoding="utf-8")
    configuration = serving(
        sasl_mechanisms=("PLAIN", "ANONYMOUS"), users_file=users, authenticate_peer=True
    )
    async with running_node(configuration) as running, opened(running.address) as peer:
        init = SaslInit(Symbol("PLAIN"), initial_response=f"\0u\0{password}".encode())
        await peer.send(SASL_HEADER + encode_frame(0, init, frame_type=1))
        await peer.hear(b"\x00\x53\x44")
        assert bytes([0x50, code]) in peer.heard[peer.heard.index(b"\x00\x53\x44") :]
        if code == 0:
            await peer.send(OPENING)
            await peer.hear(PEER_OPEN)
            assert [pump.connection.user for pump in running.pumps] == ["u"]


async def test_sasl_cannot_be_left_out() -> None:
    configuration = serving(sasl_mechanisms=("ANONYMOUS",), authenticate_peer=True)
    async with running_node(configuration) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.until_closed()
        assert PEER_OPEN not in peer.heard


@pytest.mark.spec("W5-1")
async def test_certificates_of_clients(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    configuration = Configuration(
        ssl_profiles=(authority.profile(uid_format="n"),),
        listeners=(
            ListenerSettings(
                port=0, http=True, websockets=True, ssl_profile="tls",
                sasl_mechanisms=("EXTERNAL",), authenticate_peer=True,
            ),
        ),
    )  # fmt: skip
    context = ssl.create_default_context(cafile=str(authority.ca_file))
    context.load_cert_chain(authority.issue("localhost", common_name="client"))
    async with (
        running_node(configuration) as running,
        dialled(running.address, context) as peer,
    ):
        await peer.ask("/", "amqp")
        init = encode_frame(0, SaslInit(Symbol("EXTERNAL")), frame_type=1)
        await peer.send(SASL_HEADER + init + OPENING)
        await peer.hear(PEER_OPEN)
        (pump,) = running.pumps
        assert (pump.connection.user, pump.connection.is_encrypted) == ("client", True)
        assert pump.security is not None
        assert pump.security.version == "TLSv1.3"


async def test_connections_stay_when_the_listener_ends() -> None:
    async with running_node(serving()) as running, opened(running.address) as peer:
        await peer.send(OPENING)
        await peer.hear(PEER_OPEN)
        running.node.endpoints.close_http()
        await peer.say(Ping(b"x"))
        await peer.until(lambda: peer.pongs)
        running.stop.set()
        await peer.hear(CLOSE)
        assert await peer.until_closed() == 1000


async def test_a_failure_of_ours_ends_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_node(serving()) as running:
        with monkeypatch.context() as broken:
            broken.setattr(server_module, "choose", lambda _: 1 / 0)
            async with dialled(running.address) as peer:
                await peer.say(Request(host="h", target="/", subprotocols=["amqp"]))
                await peer.until_ended()
        async with opened(running.address) as peer:
            await peer.send(OPENING)
            await peer.hear(PEER_OPEN)
