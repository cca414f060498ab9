"""Connecting, closing, and every way in which a connection does not come about or is lost."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER
from router.amqp.message import AmqpValue, Message
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    End,
    Error,
    Flow,
    Open,
)
from router.client import ConnectFailed, ConnectionLost, LinkLost, Receiver, Url, connect
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.ssl_profiles import SslProfileSettings
from router.config.users import hash_password
from router.engine.losing import AT_ONCE
from router.net.tls.contexts import client_context

from support.certificates import Authority
from support.loopback import running_node
from support.routers import RouterProcess, StartRouter
from support.scripted_server import PATIENCE_S, ServerPeer, serving

WITH_PASSWORDS = """\
[[listener]]
port = 0
authenticatePeer = true
saslMechanisms = ["PLAIN"]
usersFile = "{users}"
"""

HELLO = Message(body=(AmqpValue("hello"),))


async def test_a_message_through_a_router(router_process: RouterProcess) -> None:
    async with connect(router_process.url()) as connection:
        receiver = await connection.open_receiver("client/through")
        sender = await connection.open_sender("client/through")
        async with trio.open_nursery() as nursery:

            async def take_one() -> None:
                async for received in receiver:
                    assert received.message == HELLO
                    received.accept()
                    return

            nursery.start_soon(take_one)
            assert await sender.send(HELLO) == Accepted()


@pytest.mark.parametrize(("shows_certificate", "user"), [(True, "ada"), (False, "anonymous")])
async def test_tls_logs_in_by_a_certificate_where_there_is_one(
    tmp_path: Path, shows_certificate: bool, user: str
) -> None:
    authority = Authority(tmp_path)
    listener = ListenerSettings(
        port=0,
        ssl_profile="tls",
        sasl_mechanisms=("ANONYMOUS", "EXTERNAL"),
        client_certificate="optional",
    )
    profile = authority.profile(uid_format="n")
    configuration = Configuration(ssl_profiles=(profile,), listeners=(listener,))
    certificate = authority.issue("ada@example.org", common_name="ada")
    trust = SslProfileSettings(
        ca_cert_file=authority.ca_file, cert_file=certificate if shows_certificate else None
    )
    async with running_node(configuration) as running:
        host, port = running.address
        url = Url(
            host,
            port,
            is_encrypted=True,
            tls=client_context(trust, verify_hostname=True),
            shows_certificate=shows_certificate,
        )
        async with connect(url):
            [pump] = running.pumps
            assert (pump.connection.user, pump.connection.is_encrypted) == (user, True)


async def test_a_server_with_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    listener = ListenerSettings(port=0, ssl_profile="tls")
    configuration = Configuration(ssl_profiles=(authority.profile(),), listeners=(listener,))
    async with running_node(configuration) as running:
        host, port = running.address
        # without a context, the system's authorities count
        with pytest.raises(ConnectFailed, match="certificate"):
            async with connect(f"amqps://{host}:{port}"):
                raise AssertionError
        await running.until_empty()


async def test_the_router_sees_an_orderly_end(start_router: StartRouter) -> None:
    router = start_router()
    async with connect(router.url(), container_id="orderly") as connection:
        await connection.open_receiver("q")
    router.stop()
    lines = [line for line in router.log_text().splitlines() if "closed" in line]
    assert "link detached" in lines[0]
    assert "closed=True" in lines[0]
    assert "connection closed" in lines[1]
    assert "warning" not in lines[1]


async def test_what_the_block_raises_comes_out_as_it_is(router_process: RouterProcess) -> None:
    with pytest.raises(ValueError, match="mine"):
        async with connect(router_process.url()):
            raise ValueError("mine")


async def test_a_cancelled_block_closes_in_order() -> None:
    heard: list[Close] = []

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        heard.append(await peer.hear(Close))
        await peer.say(Close())
        await peer.stream.aclose()

    async with serving(script) as url:
        with trio.CancelScope() as scope:
            async with connect(url):
                scope.cancel()
                await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert heard == [Close()]


async def test_a_peer_that_never_answers_a_close_is_left(mock_clock: MockClock) -> None:
    mock_clock.autojump_threshold = 0.05

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.hear(Close)
        await trio.sleep_forever()

    async with serving(script) as url, connect(url):
        pass


async def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(ConnectFailed) as failed:
            async with connect(Url("127.0.0.1", port)):
                pass
    assert str(failed.value) == f"cannot connect to 127.0.0.1:{port}: Connection refused"


async def test_a_host_that_is_not_there() -> None:
    with pytest.raises(ConnectFailed) as failed:
        async with connect("there.is.no.such.host.invalid"):
            pass
    assert "there.is.no.such.host.invalid:5672: " in str(failed.value)


async def test_a_peer_that_never_opens(mock_clock: MockClock) -> None:
    mock_clock.autojump_threshold = 0.05

    async def script(peer: ServerPeer) -> None:
        await trio.sleep_forever()

    async with serving(script) as url:
        with pytest.raises(ConnectFailed) as failed:
            async with connect(url, timeout_s=7):
                pass
    assert str(failed.value) == "the peer did not open the connection within 7 s"


async def test_a_peer_that_speaks_something_else() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with serving(script) as url:
        with pytest.raises(ConnectFailed):
            async with connect(url):
                pass


async def test_a_peer_that_closes_before_it_opens() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.octets(8)
        await peer.stream.aclose()

    async with serving(script) as url:
        with pytest.raises(ConnectFailed) as failed:
            async with connect(url):
                pass
    assert failed.value.description == "the socket was closed"


async def test_an_open_that_is_a_refusal() -> None:
    async def script(peer: ServerPeer) -> None:
        await peer.authenticate("ANONYMOUS")
        assert await peer.octets(8) == AMQP_HEADER
        await peer.hear(Open)
        await peer.say(AMQP_HEADER, Open("server"), Close(Error("amqp:not-allowed", "full")))
        await peer.hear_until(Close)

    async with serving(script) as url:
        with pytest.raises(ConnectFailed) as failed:
            async with connect(url):
                pass
    assert str(failed.value) == "amqp:not-allowed: full"


@pytest.mark.parametrize(
    ("user", "comes_in"),
    [("ada:secret", True), ("ada:wrong", False), ("eve:secret", False), ("", False)],
)
async def test_passwords(
    start_router: StartRouter, tmp_path: Path, user: str, comes_in: bool
) -> None:
    users = tmp_path / "users"
    users.write_text(f"ada:{hash_password('secret')}\n", encoding="utf-8")
    router = start_router(WITH_PASSWORDS.format(users=users))
    if comes_in:
        async with connect(router.url(user=user)) as connection:
            await connection.open_receiver("q")
        return
    with pytest.raises(ConnectFailed) as failed:
        async with connect(router.url(user=user)):
            pass
    assert failed.value.condition == "amqp:unauthorized-access"


async def test_a_password_is_never_exchanged_for_anonymity() -> None:
    async def script(peer: ServerPeer) -> None:
        # no init comes
        with pytest.raises(EOFError):
            await peer.authenticate("ANONYMOUS")

    async with serving(script) as url:
        with pytest.raises(ConnectFailed) as failed:
            async with connect(url.replace("//", "//ada:secret@")):
                pass
    assert failed.value.condition == "amqp:unauthorized-access"


async def test_why_we_are_not_let_in() -> None:
    async def script(peer: ServerPeer) -> None:
        with contextlib.suppress(EOFError):
            await peer.authenticate("PLAIN", "SCRAM-SHA-1", code=SaslCode.AUTH)

    async with serving(script) as url:
        for user, reason in (
            ("", "the server offers SASL PLAIN SCRAM-SHA-1; this side can use ANONYMOUS"),
            ("ada:wrong@", "the server refuses user ada (SASL outcome 1)"),
        ):
            with pytest.raises(ConnectFailed) as failed:
                async with connect(url.replace("//", f"//{user}")):
                    pass
            assert failed.value.description == reason


@pytest.mark.spec("5.3.3.2-2")
async def test_what_plain_says() -> None:
    inits = []

    async def script(peer: ServerPeer) -> None:
        inits.append(await peer.authenticate("ANONYMOUS", "PLAIN", code=SaslCode.AUTH))

    async with serving(script) as url:
        with pytest.raises(ConnectFailed):
            async with connect(url.replace("//", "//ada:secret@")):
                pass
    assert inits[0].mechanism == "PLAIN"
    assert inits[0].initial_response == b"\0ada\0secret"


async def test_a_connection_that_is_lost_loses_its_links() -> None:
    linked = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.attached()
        await peer.attached(handle=1)
        await linked.wait()
        await peer.say(Close(Error("amqp:connection:forced", "maintenance")))
        await peer.hear_until(Close)

    async with serving(script) as url, connect(url) as connection:
        sender = await connection.open_sender("q")
        receiver = await connection.open_receiver("q")
        linked.set()
        for wait in (sender.wait_for_room, receiver.receive):
            with pytest.raises(ConnectionLost) as lost:
                await wait()
            assert str(lost.value) == "amqp:connection:forced: maintenance"
        with pytest.raises(ConnectionLost):
            await connection.open_sender("q")


async def test_a_socket_that_is_lost() -> None:
    linked = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.attached()
        await linked.wait()
        await peer.stream.aclose()

    async with serving(script) as url, connect(url) as connection:
        receiver = await connection.open_receiver("q")
        linked.set()
        with pytest.raises(ConnectionLost) as lost:
            await receiver.receive()
        assert lost.value.description == "the socket was closed"


async def test_a_socket_that_is_lost_with_many_links() -> None:
    """Each link hears of it, however many there are."""
    many = AT_ONCE + 6
    linked = trio.Event()
    lost: list[ConnectionLost] = []

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        for handle in range(many):
            await peer.attached(handle=handle)
            await peer.hear(Flow)
        await linked.wait()
        await peer.stream.aclose()

    async def wait_for_one(receiver: Receiver) -> None:
        with pytest.raises(ConnectionLost) as told:
            await receiver.receive()
        lost.append(told.value)

    async with serving(script) as url, connect(url) as connection:
        receivers = [await connection.open_receiver("q") for _ in range(many)]
        linked.set()
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for receiver in receivers:
                    nursery.start_soon(wait_for_one, receiver)
    assert [each.description for each in lost] == ["the socket was closed"] * many


async def test_a_session_that_the_peer_ends_is_the_end() -> None:
    linked = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.attached()
        await linked.wait()
        await peer.say(End(Error("amqp:internal-error", "oops")))
        await peer.hear_until(Close)
        await peer.say(Close())

    async with serving(script) as url, connect(url) as connection:
        receiver = await connection.open_receiver("q")
        linked.set()
        with pytest.raises(ConnectionLost) as lost:
            await receiver.receive()
        assert str(lost.value) == "amqp:internal-error: oops"


async def test_a_peer_that_attaches_is_refused() -> None:
    refusals: list[Detach] = []
    done = trio.Event()

    async def script(peer: ServerPeer) -> None:
        await peer.open()
        await peer.say(Attach("theirs", 5, False, initial_delivery_count=0))
        await peer.hear(Attach)
        refusals.append(await peer.hear(Detach))
        done.set()

    async with serving(script) as url, connect(url):
        await done.wait()
    assert refusals[0].error is not None
    assert refusals[0].error.condition == "amqp:not-allowed"


async def test_an_address_that_the_router_does_not_serve(router_process: RouterProcess) -> None:
    async with connect(router_process.url()) as connection:
        with pytest.raises(LinkLost) as lost:
            await connection.open_sender("unavailable/x")
        assert lost.value.condition == "amqp:not-found"
        # one link's refusal is not the others'
        await connection.open_receiver("client/others")
