"""Connections with TLS between routers in one process: who they are, and where they lead."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
import trio
from structlog.testing import capture_logs

from router.amqp.framing import AMQP_HEADER, encode_frame
from router.amqp.performatives import Close, Transfer
from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.redirects import RedirectSettings
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.channel import CONGESTED_BYTES, TLS_HEADER

from support.certificates import Authority
from support.key_updates import NOT_REQUESTED, REQUESTED, KeyUpdater
from support.loopback import Peer, Running, dialled, running_node
from support.scripted_server import ServerPeer
from support.transcripts import message
from support.web_sockets import OPENING


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return an authority."""
    return Authority(tmp_path)


def serving(profile: SslProfileSettings, **fields: object) -> Configuration:
    """Return a configuration with one listener that has this profile."""
    listener = ListenerSettings(port=0, ssl_profile=profile.name, **fields)  # type: ignore[arg-type]
    return Configuration(ssl_profiles=(profile,), listeners=(listener,))


def connecting(running: Running, profile: SslProfileSettings, **fields: object) -> Configuration:
    """Return a configuration with a connector to a running router."""
    host, port = running.address
    connector = ConnectorSettings(
        **{"host": host, "port": port, "ssl_profile": profile.name, **fields}  # type: ignore[arg-type]
    )
    return Configuration(ssl_profiles=(profile,), connectors=(connector,))


async def test_a_router_is_known_by_its_certificate(authority: Authority) -> None:
    server = authority.profile(uid_format="n")
    issued = authority.issue("b@example.org", common_name="router b")
    client = authority.profile("client", cert_file=issued)
    configuration = serving(server, sasl_mechanisms=("EXTERNAL",), authenticate_peer=True)
    async with running_node(configuration) as a, running_node(connecting(a, client)) as b:
        await a.until(lambda: a.pumps and a.pumps[0].connection.is_open())
        [pump] = a.pumps
        assert (pump.connection.user, pump.connection.mechanism) == ("router b", "EXTERNAL")
        assert pump.security is not None
        assert pump.security.version == "TLSv1.3"
        await b.until(lambda: b.pumps and b.pumps[0].connection.is_open())


async def test_without_a_certificate_a_router_is_anonymous(authority: Authority) -> None:
    trusting = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    configuration = serving(
        authority.profile(),
        sasl_mechanisms=("EXTERNAL", "ANONYMOUS"),
        client_certificate="optional",
    )
    async with running_node(configuration) as a, running_node(connecting(a, trusting)):
        await a.until(lambda: a.pumps and a.pumps[0].connection.is_open())
        assert a.pumps[0].connection.user == "anonymous"


async def test_a_connector_may_ask_for_tls_by_the_header(authority: Authority) -> None:
    profile = authority.profile()
    async with (
        running_node(serving(profile, require_ssl=False)) as a,
        running_node(connecting(a, profile, ssl_upgrade=True)),
    ):
        await a.until(lambda: a.pumps and a.pumps[0].connection.is_open())
        assert a.pumps[0].connection.is_encrypted


@pytest.mark.spec("5.3.3.2-4")
async def test_a_connector_names_the_same_host_in_sasl_as_in_tls(authority: Authority) -> None:
    names: list[object] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("localhost"))
    context.sni_callback = lambda _, name, __: names.append(name)
    profile = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    connector = ConnectorSettings(
        host="localhost", port=listener.socket.getsockname()[1], ssl_profile="client"
    )
    configuration = Configuration(ssl_profiles=(profile,), connectors=(connector,))
    async with listener, running_node(configuration), await listener.accept() as stream:
        secured = trio.SSLStream(stream, context, server_side=True)
        peer = ServerPeer(cast(trio.SocketStream, secured))
        with trio.fail_after(10):
            init = await peer.authenticate("ANONYMOUS")
        assert [init.hostname] == names == ["localhost"]
        await trio.aclose_forcefully(secured)


@pytest.mark.spec("G1.1-1")
async def test_both_beginnings_are_served_on_one_port(authority: Authority) -> None:
    context = ssl.create_default_context()
    authority.ca.configure_trust(context)
    async with running_node(serving(authority.profile(), require_ssl=False)) as running:
        async with dialled(running.address) as peer:
            await peer.begin()
        stream = await trio.open_tcp_stream(*running.address)
        await stream.send_all(TLS_HEADER)
        assert await stream.receive_some() == TLS_HEADER
        secured = trio.SSLStream(stream, context, server_hostname="localhost")
        await secured.send_all(AMQP_HEADER)
        assert await secured.receive_some() == AMQP_HEADER
        await trio.aclose_forcefully(secured)


async def test_a_handshake_may_come_octet_by_octet(authority: Authority) -> None:
    context = ssl.create_default_context()
    authority.ca.configure_trust(context)
    async with running_node(serving(authority.profile(), require_ssl=False)) as running:
        stream = await trio.open_tcp_stream(*running.address)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        with trio.fail_after(10):
            for octet in TLS_HEADER:
                await stream.send_all(bytes((octet,)))
            assert await stream.receive_some() == TLS_HEADER
            is_over = False
            while not is_over:
                try:
                    tls.do_handshake()
                    is_over = True
                    tls.write(AMQP_HEADER)
                except ssl.SSLWantReadError:
                    pass
                for octet in outgoing.read():
                    await stream.send_all(bytes((octet,)))
                if not is_over:
                    incoming.write(await stream.receive_some())
            received = b""
            while not received:
                try:
                    received = tls.read()
                except ssl.SSLWantReadError:
                    incoming.write(await stream.receive_some())
            assert received == AMQP_HEADER
        await trio.aclose_forcefully(stream)


async def test_a_peer_without_tls_is_refused_with_one_line(authority: Authority) -> None:
    with capture_logs() as logs:
        async with running_node(serving(authority.profile())) as running:
            async with dialled(running.address) as peer:
                await peer.say(AMQP_HEADER)
                assert await peer.rest() == TLS_HEADER
            await running.until_empty()
    [line] = (each for each in logs if each["log_level"] == "warning")
    assert "TLS is required here" in line["description"]


async def test_a_peer_with_tls_is_refused_without_it() -> None:
    with capture_logs() as logs:
        async with running_node() as running:
            stream = await trio.open_tcp_stream(*running.address)
            secured = trio.SSLStream(
                stream, ssl.create_default_context(), server_hostname="localhost"
            )
            with pytest.raises(trio.BrokenResourceError):
                await secured.do_handshake()
            await trio.aclose_forcefully(secured)
            await running.until_empty()
    [line] = (each for each in logs if each["log_level"] == "warning")
    assert "it is TLS, which this port does not serve" in line["description"]


@pytest.mark.spec("2.8.16-2")
async def test_a_redirect_leads_to_the_host_that_it_names(authority: Authority) -> None:
    """The certificate must be for the redirect's host name, not for the network host."""
    there = authority.profile(cert_file=authority.issue("b.example"))
    client = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    async with running_node(serving(there)) as b:
        redirect = RedirectSettings(
            hostname="127.0.0.1",
            to_hostname="b.example",
            to_network_host=b.address[0],
            to_port=b.address[1],
        )
        configuration = serving(authority.profile())
        here = Configuration(
            ssl_profiles=configuration.ssl_profiles,
            listeners=configuration.listeners,
            redirects=(redirect,),
        )
        async with running_node(here) as a:
            settings = connecting(a, client, allow_redirect=True)
            async with running_node(settings):
                await b.until(lambda: b.pumps and b.pumps[0].connection.is_open())
                opened = b.pumps[0].connection.remote_open
                assert opened.hostname == "b.example"


async def test_certificates_are_replaced_under_traffic(authority: Authority) -> None:
    profile = authority.profile()
    assert profile.cert_file is not None
    context = ssl.create_default_context()
    authority.ca.configure_trust(context)
    async with running_node(serving(profile)) as running:

        async def shown() -> tuple[trio.SSLStream[trio.SocketStream], bytes]:
            stream = await trio.open_tcp_stream(*running.address)
            secured = trio.SSLStream(stream, context, server_hostname="localhost")
            await secured.send_all(AMQP_HEADER)
            assert await secured.receive_some() == AMQP_HEADER
            return secured, secured.getpeercert(binary_form=True)

        first, before = await shown()
        endpoints = running.node.endpoints
        profile.cert_file.write_text("not a certificate", encoding="utf-8")
        with capture_logs() as logs:
            await endpoints.renew_certificates()
            await endpoints.renew_certificates()
        # said only once
        [line] = logs
        assert line["event"] == "certificate not renewed"
        second, still = await shown()
        assert still == before
        profile.cert_file.write_bytes(authority.issue("localhost").read_bytes())
        with capture_logs() as logs:
            await endpoints.renew_certificates()
        assert [each["event"] for each in logs] == ["certificate renewed"]
        last, after = await shown()
        assert after != before
        assert len(running.pumps) == 3
        for each in (first, second, last):
            await trio.aclose_forcefully(each)


async def test_an_applied_profile_is_used(authority: Authority) -> None:
    old = authority.profile(cert_file=authority.issue("old.example"))
    new = authority.profile(cert_file=authority.issue("localhost"))
    context = ssl.create_default_context()
    authority.ca.configure_trust(context)
    async with running_node(serving(old)) as running:
        listeners = running.node.configuration.listeners
        applied = Configuration(ssl_profiles=(new,), listeners=listeners)
        await running.node.apply(applied)
        assert list(running.node.hub.certificate_expiries) == ["tls"]
        stream = await trio.open_ssl_over_tcp_stream(*running.address, ssl_context=context)
        with pytest.raises(trio.BrokenResourceError):
            await stream.do_handshake()
        await trio.aclose_forcefully(stream)
        stream = trio.SSLStream(
            await trio.open_tcp_stream(*running.address), context, server_hostname="localhost"
        )
        await stream.do_handshake()
        await trio.aclose_forcefully(stream)


async def test_external_without_a_certificate_is_not_left_out(authority: Authority) -> None:
    """A connector that may use nothing but EXTERNAL never connects without SASL."""
    trusting = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    configuration = serving(authority.profile())
    async with running_node(configuration) as a:
        settings = connecting(a, trusting, sasl_mechanisms=("EXTERNAL",))
        async with running_node(settings) as b:
            [standing] = b.node.endpoints.connectors.values()
            await b.until(lambda: standing.status.failure is not None)
            assert standing.status.failure is not None
            assert "the server offers SASL ANONYMOUS" in standing.status.failure.reason


class Flooding:
    """Client over TLS that changes its keys; it reads nothing that it is not asked to read."""

    def __init__(self, stream: trio.SocketStream, updater: KeyUpdater) -> None:
        self.stream = stream
        self.updater = updater

    async def shake_hands(self) -> None:
        """Do the handshake."""
        octets = b""
        while not self.updater.shake_hands(octets):
            await self.stream.send_all(self.updater.take())
            octets = bytes(await self.stream.receive_some(65536))
        await self.stream.send_all(self.updater.take())

    async def say(self, octets: bytes) -> None:
        """Send octets of AMQP."""
        self.updater.write(octets)
        await self.stream.send_all(self.updater.take())

    async def flood(self, count: int, kind: int) -> bool:
        """Change the keys; return False if the router does not read any more for a while."""
        self.updater.update(count, kind)
        with trio.move_on_after(1) as waiting:
            await self.stream.send_all(self.updater.take())
        return not waiting.cancelled_caught


@asynccontextmanager
async def flooding(address: tuple[str, int]) -> AsyncIterator[Flooding]:
    """Yield a connection with TLS whose handshake is complete."""
    updater = KeyUpdater()
    try:
        with trio.socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await sock.connect(address)
            client = Flooding(trio.SocketStream(sock), updater)
            await client.shake_hands()
            yield client
    finally:
        updater.close()


async def exchange(peer: Peer, number: int) -> None:
    """Send a message, and receive it on the same connection."""
    await peer.say(message(number, settled=True))
    await peer.hear_until(Transfer)


@pytest.mark.parametrize("kind", [NOT_REQUESTED, REQUESTED], ids=["own", "both"])
async def test_changes_of_keys_disturb_nobody(authority: Authority, kind: int) -> None:
    secured = ListenerSettings(port=0, ssl_profile="tls")
    configuration = Configuration(
        ssl_profiles=(authority.profile(),),
        listeners=(secured, ListenerSettings(port=0, name="plain")),
    )
    async with (
        running_node(configuration) as running,
        dialled(running.addresses[1]) as other,
        flooding(running.address) as client,
    ):
        await client.say(OPENING)
        await running.until(lambda: len(running.pumps) == 2)
        (pump,) = (each for each in running.pumps if each.tls is not None)
        pump.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        if kind == REQUESTED:
            # the kernel holds little of what the router does not receive
            pump.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await other.begin()
        await other.attach_receiver("q", credit=1000)
        await other.attach_sender("q")
        assert pump.tls is not None
        channel = pump.tls.channel
        is_read = True
        for number in range(40):
            if is_read:
                is_read = await client.flood(1000, kind)
            await exchange(other, number)
            assert len(channel.unsent) + channel._outgoing.pending < 2 * CONGESTED_BYTES
        # whose answers nobody reads is not read either; without answers there is no reason to stop
        assert is_read == (kind == NOT_REQUESTED)
        if kind == REQUESTED:
            return
        await client.say(encode_frame(0, Close()))
        await running.until(lambda: len(running.pumps) == 1)
