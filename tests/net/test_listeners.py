"""Listening sockets: where they are bound, why they cannot be, and what accepting survives."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import SaslMechanisms
from router.config.listeners import ListenerSettings
from router.config.users import credentials_of
from router.net.listeners import bind_sockets, close_sockets

from support.loopback import dialled, listening, running_node
from support.own_address import own_address


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_either_family_is_listened_on(host: str) -> None:
    with capture_logs() as logs:
        async with running_node(listening(host=host)) as running:
            assert running.address[0] == host
            async with dialled(running.address) as peer:
                await peer.begin()
    shown = f"[{host}]:" if ":" in host else f"{host}:"
    (opened,) = (line for line in logs if line["event"] == "connection opened")
    assert opened["peer"].startswith(shown)


async def test_a_family_can_be_asked_for() -> None:
    for name, family in (("IPv4", socket.AF_INET), ("IPv6", socket.AF_INET6)):
        host = "127.0.0.1" if name == "IPv4" else "::1"
        settings = ListenerSettings(host=host, port=0, socket_address_family=name)  # type: ignore[arg-type]
        sockets = await bind_sockets(settings)
        assert [each.socket.family for each in sockets] == [family]
        close_sockets(sockets)
    with pytest.raises(OSError, match=r"::1"):
        await bind_sockets(ListenerSettings(host="::1", port=0, socket_address_family="IPv4"))


async def test_port_0_is_some_free_port() -> None:
    sockets = await bind_sockets(ListenerSettings(port=0))
    assert sockets[0].socket.getsockname()[1] > 0
    close_sockets(sockets)
    assert sockets[0].socket.fileno() == -1


async def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"in use: 127\.0\.0\.1:{port} \(mine\)") as caught:
            await bind_sockets(ListenerSettings(port=port, name="mine"))
    assert caught.value.errno == errno.EADDRINUSE


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", "x" * 100])
async def test_a_host_that_there_is_not_is_named(host: str) -> None:
    with pytest.raises(OSError, match=r"\(mine\)") as caught:
        await bind_sockets(ListenerSettings(host=host, port=0, name="mine"))
    assert host in str(caught.value)


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_plain_is_offered_to_this_host_and_to_others_only_where_that_is_allowed(
    tmp_path: Path, is_allowed: bool
) -> None:
    users = tmp_path / "users"
    users.write_text(f"ada:{credentials_of('x', ['SCRAM-SHA-256'])}\n", encoding="utf-8")
    names = ("SCRAM-SHA-256", "PLAIN", "ANONYMOUS")
    configuration = listening(
        host="0.0.0.0",
        users_file=users,
        sasl_mechanisms=names,
        allow_insecure_authentication=is_allowed,
    )
    async with running_node(configuration) as running:
        for host, has_plain in (("127.0.0.1", True), (own_address(), is_allowed)):
            async with dialled((host, running.address[1])) as peer:
                await peer.say(SASL_HEADER)
                assert await peer.octets(8) == SASL_HEADER
                offered = await peer.hear(SaslMechanisms)
            wanted = [name for name in names if has_plain or name != "PLAIN"]
            assert list(offered.sasl_server_mechanisms) == wanted


async def test_peers_that_reset_before_they_are_accepted_disturb_nobody() -> None:
    async with running_node() as running:
        # accepted only after they have gone
        for _ in range(20):
            sock = socket.create_connection(running.address)
            linger = (1).to_bytes(4, "little") + bytes(4)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            sock.close()
        async with dialled(running.address) as peer:
            await peer.begin()
