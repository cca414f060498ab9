"""Connectors: they connect at once, and again with longer and longer waits while they fail."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from structlog.testing import capture_logs
from trio.testing import MockClock, wait_all_tasks_blocked

from router.amqp.constants import Condition, SaslCode
from router.amqp.failover import FAILOVER_SERVER_LIST
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import Close, Error, SaslInit, SaslMechanisms
from router.amqp.types import Symbol
from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.secret import Secret
from router.engine.opening import ESTABLISHMENT_FAILED
from router.management.entities.configured import CONNECTOR
from router.net.connectors import (
    FIRST_DELAY_S,
    LASTING_CONNECTION_S,
    LONGEST_DELAY_S,
    REFUSAL_S,
    backoff_delays,
)

from support.connecting import (
    HERE,
    Server,
    Waits,
    connecting,
    leave,
    meet,
    of,
    open_as_server,
    places,
)
from support.entities import told
from support.loopback import Peer, Running, dialled, listening, running_node
from support.own_address import own_address


def test_waits_double_up_to_a_limit_and_vary() -> None:
    longest = FIRST_DELAY_S
    for wait in itertools.islice(backoff_delays(), 20):
        assert longest / 2 <= wait <= longest
        longest = min(LONGEST_DELAY_S, longest * 2)
    assert longest == LONGEST_DELAY_S
    assert len({next(backoff_delays()) for _ in range(20)}) > 10


async def served(
    configure: Callable[[int], Configuration],
    script: Callable[[Peer, int], Awaitable[None]],
    count: int,
) -> list[Any]:
    """Serve so many connections of the router's, one after another; what was logged."""
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    with capture_logs() as logs:
        async with listener, running_node(configure(listener.socket.getsockname()[1])):
            for number in range(count):
                async with await listener.accept() as stream:
                    await script(Peer(stream), number)
    return logs


async def live(peer: Peer, clock: MockClock, seconds: float) -> None:
    """Be open for so long, and close in order."""
    await open_as_server(peer)
    clock.jump(seconds)
    await peer.say(Close())
    await peer.hear(Close)


async def test_it_connects_at_once_and_begins_anew_after_a_success(
    waits: Waits, mock_clock: MockClock
) -> None:
    async def script(peer: Peer, number: int) -> None:
        assert len(waits.asked) == number
        await live(peer, mock_clock, LASTING_CONNECTION_S if number < 2 else 0)

    await served(connecting, script, 3)
    assert len(waits.asked) >= 2
    assert all(wait <= FIRST_DELAY_S for wait in waits.asked[:2])


@pytest.mark.parametrize("lasts_s", [0, LASTING_CONNECTION_S / 4])
async def test_it_waits_longer_and_longer_for_who_closes_soon(
    waits: Waits, mock_clock: MockClock, lasts_s: float
) -> None:
    async def script(peer: Peer, number: int) -> None:
        if number == 5:
            await live(peer, mock_clock, LASTING_CONNECTION_S)
        elif lasts_s:
            await live(peer, mock_clock, lasts_s)
        elif number % 2:
            await live(peer, mock_clock, 0)
        # else closed before it was open

    logs = await served(connecting, script, 7)
    assert waits.asked[4] > FIRST_DELAY_S * 4
    assert waits.asked[5] <= FIRST_DELAY_S
    assert all(line["connector"] == "out" for line in logs if line["event"] == "reconnecting")


async def test_a_refused_connection_is_said_and_counted(waits: Waits) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with capture_logs() as logs:
            async with running_node(connecting(port)) as running:
                while len(waits.asked) < 3:
                    await trio.lowlevel.checkpoint()
                (counters,) = running.node.hub.connection_counters
                assert (counters.opened, counters.failed >= 3) == (0, True)
    failed = next(line for line in logs if line["event"] == "connection failed")
    assert failed["reason"] == "Connection refused"
    assert failed["peer"] == f"127.0.0.1:{port}"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b"])
async def test_a_host_that_there_is_not_is_tried_again(waits: Waits, host: str) -> None:
    with capture_logs() as logs:
        async with running_node(connecting(5672, host=host)):
            while len(waits.asked) < 2:
                await trio.lowlevel.checkpoint()
    assert all(line["reason"] for line in logs if line["event"] == "connection failed")


@pytest.mark.spec("2.2-5")
async def test_a_peer_that_speaks_tls_only_is_left(waits: Waits) -> None:
    async def script(peer: Peer, _: int) -> None:
        assert await peer.octets(8) == SASL_HEADER
        # an alert
        await peer.say(bytes.fromhex("15030100020246"))
        assert await peer.rest() == b""

    logs = await served(connecting, script, 2)
    closed = next(line for line in logs if line["event"] == "connection closed")
    assert "is not an AMQP 1.0 protocol header" in closed["description"]


async def test_a_password_is_read_anew_and_never_logged(waits: Waits, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("pa55-0", encoding="utf-8")
    said = []

    async def script(peer: Peer, number: int) -> None:
        file.write_text(f"pa55-{number + 1}", encoding="utf-8")
        said.append(await open_as_server(peer, SaslCode.OK if number == 1 else SaslCode.AUTH))
        assert number == 1 or await peer.rest() == b""

    def configure(port: int) -> Configuration:
        password = Secret.parse(f"file:{file}")
        return connecting(port, sasl_username="ada", sasl_password=password)

    logs = await served(configure, script, 3)
    assert said == ["\0ada\0pa55-0", "\0ada\0pa55-1", "\0ada\0pa55-2"]
    assert "pa55" not in str(logs)
    closed = next(line for line in logs if line["event"] == "connection closed")
    assert closed["condition"] == Condition.UNAUTHORIZED_ACCESS


async def test_a_password_that_is_not_there_is_asked_for_again(
    waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_PASSWORD", raising=False)
    password = Secret.parse("env:NO_SUCH_PASSWORD")
    with capture_logs() as logs:
        async with running_node(connecting(1, sasl_username="ada", sasl_password=password)):
            while len(waits.asked) < 2:
                await trio.lowlevel.checkpoint()
    failed = next(line for line in logs if line["event"] == "connection failed")
    assert "NO_SUCH_PASSWORD is not set" in failed["reason"]


async def offered_plain_alone(server: Server) -> bytes | None:
    """Offer PLAIN alone to the router; return what it sends, or None if it goes."""
    async with server.visited() as peer:
        assert await peer.octets(8) == SASL_HEADER
        await peer.say(SASL_HEADER, SaslMechanisms((Symbol("PLAIN"),)))
        try:
            return (await peer.hear(SaslInit)).initial_response
        except EOFError:
            return None


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_a_password_is_not_sent_in_clear_text(waits: Waits, is_allowed: bool) -> None:
    """Whatever a server offers, and whoever may be between the two."""
    with places(0, own_address()) as (server,), capture_logs() as logs:
        configuration = connecting(
            server.port,
            host=server.host,
            sasl_username="ada",
            sasl_password=Secret.parse("pass:pa55"),
            allow_insecure_authentication=is_allowed,
        )
        async with running_node(configuration) as running:
            said = await offered_plain_alone(server)
            assert said == (b"\0ada\0pa55" if is_allowed else None)
            await until(lambda: state(running)["failedAttempts"])
            found = state(running)
    if not is_allowed:
        assert (found["connectionStatus"], found["lastErrorKind"]) == ("FAILED", "unauthorized")
        why = (
            "the server offers SASL PLAIN; PLAIN would send the password in clear text: give the "
            "connector an sslProfile, or set its allowInsecureAuthentication = true"
        )
        assert found["lastError"] == why
        assert why in [line.get("description") for line in logs]
    assert "pa55" not in str(logs)


async def test_what_counts_is_where_the_password_would_go(waits: Waits) -> None:
    """The own host gets it, in clear text as well; its backup elsewhere does not."""
    with places(1, own_address()) as (home, backup):
        configuration = connecting(
            home.port,
            backup_urls=(f"{backup.host}:{backup.port}",),
            sasl_username="ada",
            sasl_password=Secret.parse("pass:pa55"),
        )
        async with running_node(configuration):
            for _ in range(2):
                assert await offered_plain_alone(home) == b"\0ada\0pa55"
                assert await offered_plain_alone(backup) is None


async def test_a_proxy_on_this_host_may_lead_elsewhere(waits: Waits) -> None:
    with places(1) as (proxy,):
        connector = ConnectorSettings(
            host="broker.example",
            name="out",
            proxy_profile="proxy",
            sasl_username="ada",
            sasl_password=Secret.parse("pass:pa55"),
        )
        profile = ProxyProfileSettings(name="proxy", host=HERE, port=proxy.port)
        configuration = Configuration(connectors=(connector,), proxy_profiles=(profile,))
        async with running_node(configuration), proxy.visited() as peer:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += await peer.octets(1)
            await peer.stream.send_all(b"HTTP/1.1 200 OK\r\n\r\n")
            assert await peer.octets(8) == SASL_HEADER
            await peer.say(SASL_HEADER, SaslMechanisms((Symbol("PLAIN"),)))
            assert await peer.rest() == b""


# Other places, and what is told of it all.


def state(running: Running) -> dict[str, Any]:
    """Return what management tells of the only connector."""
    (entity,) = told(running, CONNECTOR)
    return entity


async def until(is_so: Callable[[], object]) -> None:
    """Let everybody go on until something is so."""
    while not is_so():
        await trio.lowlevel.checkpoint()


async def connected(running: Running) -> None:
    """Let everybody go on until the connector has its connection."""
    await until(lambda: state(running)["connectionStatus"] == "SUCCESS")


def urls(*servers: Server) -> str:
    """Places as management tells them."""
    return ", ".join(f"amqp://{HERE}:{server.port}" for server in servers)


def listed(*servers: Server, host: str = HERE) -> dict[Symbol, Any]:
    """Return the properties of an open with a failover-server-list of these servers."""
    return {
        FAILOVER_SERVER_LIST: [
            {Symbol("network-host"): host, Symbol("port"): str(server.port)} for server in servers
        ]
    }


async def test_it_goes_round_its_places_and_waits_after_each_round(waits: Waits) -> None:
    with places(3) as servers:
        backups = tuple(f"{HERE}:{server.port}" for server in servers[1:])
        async with running_node(connecting(servers[0].port, backup_urls=backups)) as running:
            for number in range(9):
                async with servers[number % 3].visited():
                    rest = [*servers[number % 3 :], *servers[: number % 3]]
                    assert state(running)["failoverUrls"] == urls(*rest)
    # two of three are tried at once
    for number in range(8):
        longest = FIRST_DELAY_S * 2 ** (number // 3 if number % 3 == 2 else 0)
        assert longest / 2 <= waits.asked[number] <= longest


async def test_what_a_peer_names_is_gone_to_when_it_is_lost(waits: Waits) -> None:
    with places(3) as (home, second, third), capture_logs() as logs:
        configuration = connecting(
            home.port, sasl_username="ada", sasl_password=Secret.parse("pass:pa55")
        )
        async with running_node(configuration) as running:
            async with home.visited() as peer:
                await meet(peer, properties=listed(second))
                await connected(running)
                assert state(running)["failoverUrls"] == urls(home, second)
            async with second.visited() as peer:
                # a list without entries forgets all but home and here
                init, opened = await meet(peer, properties=listed())
                assert init.initial_response == b"\0ada\0pa55"
                assert opened.hostname == HERE
                await connected(running)
                assert state(running)["failoverUrls"] == urls(second, home)
            async with home.visited() as peer:
                # none at all changes nothing, and another takes its place
                await meet(peer)
                await connected(running)
                assert state(running)["failoverUrls"] == urls(home, second)
            async with second.visited() as peer:
                await meet(peer, properties=listed(third))
                await connected(running)
                assert state(running)["failoverUrls"] == urls(second, third, home)
            async with third.visited():
                pass
    assert len(of(logs, "failover list received")) == 2


async def test_where_the_configuration_does_not_allow_it_nobody_goes(waits: Waits) -> None:
    with places(2) as (home, other), capture_logs() as logs:
        async with running_node(connecting(home.port)) as running:
            for value in (listed(other, host="localhost"), {FAILOVER_SERVER_LIST: "localhost"}):
                async with home.visited() as peer:
                    await meet(peer, properties=value)
                    await connected(running)
                    assert state(running)["failoverUrls"] == urls(home)
            async with home.visited():
                assert other.is_untouched()
    (line,) = of(logs, "failover host ignored")
    assert line["reason"] == "localhost is not among failoverHosts"
    assert line["to"] == f"amqp://localhost:{other.port}"
    (line,) = of(logs, "failover list ignored")
    assert line["reason"] == "it is not a list"


async def test_a_redirect_leaves_from_where_it_is(waits: Waits) -> None:
    with places(3) as (home, backup, there):
        fields = {"backup_urls": (f"{HERE}:{backup.port}",), "allow_redirect": True}
        async with running_node(connecting(home.port, host=HERE, **fields)) as running:
            async with home.visited():
                pass
            async with backup.visited() as peer:
                await meet(peer)
                await leave(peer, there.at(HERE))
            async with there.visited() as peer:
                await meet(peer)
                await connected(running)
                assert state(running)["connectedTo"] == urls(there)
                assert state(running)["failoverUrls"] == urls(backup, home)
            async with home.visited():
                pass


async def refuse_by_sasl(peer: Peer) -> None:
    """Let nobody in."""
    await peer.authenticate("PLAIN", "ANONYMOUS", code=SaslCode.AUTH)


async def refuse_after_open(peer: Peer) -> None:
    """Say in the open that it is none."""
    await meet(peer, properties={ESTABLISHMENT_FAILED: True})
    await peer.say(Close(Error(Symbol("amqp:invalid-field"), "that container is here already")))


async def offer_no_mechanism(peer: Peer) -> None:
    """Offer what the router has not."""
    assert await peer.octets(8) == SASL_HEADER
    await peer.say(SASL_HEADER, SaslMechanisms((Symbol("SCRAM-SHA-256"),)))
    assert await peer.rest() == b""


async def speak_no_sasl(peer: Peer) -> None:
    """Answer as one that has no SASL."""
    await peer.octets(8)
    await peer.say(AMQP_HEADER)
    assert await peer.rest() == b""


async def speak_something_else(peer: Peer) -> None:
    """Answer as a web server does."""
    await peer.octets(8)
    await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    assert await peer.rest() == b""


async def hang_up(peer: Peer) -> None:
    """Close the socket."""
    await peer.octets(8)


async def close_with_a_reason(peer: Peer) -> None:
    """Open, and close again."""
    await meet(peer)
    await peer.say(Close(Error(Symbol("amqp:unauthorized-access"), "not today")))
    await peer.hear_until(Close)


@pytest.mark.parametrize(
    ("script", "status", "kind", "reason"),
    [
        (refuse_by_sasl, "FAILED", "unauthorized", "the server refuses anonymous peers (SASL"),
        (refuse_after_open, "FAILED", "refused", "amqp:invalid-field: that container is here"),
        (offer_no_mechanism, "FAILED", "unauthorized", "SASL SCRAM-SHA-256; this side can use"),
        (speak_no_sasl, "CONNECTING", "protocol", "the server does not support SASL"),
        (speak_something_else, "CONNECTING", "protocol", "answered the header with"),
        (hang_up, "CONNECTING", "protocol", "closed the socket before its open"),
        (close_with_a_reason, "CONNECTING", "closed", "amqp:unauthorized-access: not today"),
    ],
)
async def test_each_failure_is_told_in_words(
    waits: Waits,
    script: Callable[[Peer], Awaitable[None]],
    status: str,
    kind: str,
    reason: str,
) -> None:
    with places(1) as (server,):
        async with running_node(connecting(server.port)) as running:
            async with server.visited() as peer:
                await script(peer)
            await until(lambda: waits.asked)
            found = state(running)
            assert found["connectionStatus"] == status
            assert found["lastErrorKind"] == kind
            assert reason in found["lastError"]
            assert found["connectionMsg"].endswith(f"failed: {found['lastError']}")
            assert found["lastErrorSeconds"] == 0
            assert found["failedAttempts"] >= 1


async def test_a_peer_that_takes_the_connection_and_says_nothing_is_left(waits: Waits) -> None:
    with places(1) as (server,):
        async with running_node(connecting(server.port)) as running:
            async with server.visited() as peer:
                await until(lambda: running.pumps)
                # as if it had been there for long
                running.pumps[0].connection.started_at -= 11
                await peer.rest()
            await until(lambda: waits.asked)
            assert state(running)["lastErrorKind"] == "silent"
            assert state(running)["lastError"] == "no open within 10 s"


async def test_a_refusal_that_is_never_closed_is_closed_here(
    waits: Waits, mock_clock: MockClock
) -> None:
    with places(1) as (server,):
        async with running_node(connecting(server.port)) as running:
            async with server.visited() as peer:
                await meet(peer, properties={ESTABLISHMENT_FAILED: True})
                await until(lambda: running.pumps[0].connection.remote_open)
                await wait_all_tasks_blocked()
                assert state(running)["connectionStatus"] == "CONNECTING"
                mock_clock.jump(REFUSAL_S)
                await peer.hear_until(Close)
                await peer.say(Close())
            await until(lambda: waits.asked)
            assert state(running)["lastErrorKind"] == "refused"


async def test_what_is_configured_anew_is_tried_at_once(mock_clock: MockClock) -> None:
    with places(1) as (server,):
        secret = Secret.parse("env:NO_SUCH_PASSWORD")
        wrong = connecting(server.port, sasl_username="ada", sasl_password=secret)
        async with running_node(wrong) as running:
            await until(lambda: state(running)["nextAttemptSeconds"])
            (connector,) = wrong.connectors
            right = attrs.evolve(connector, sasl_password=Secret.parse("pass:pa55"))
            await running.node.apply(attrs.evolve(wrong, connectors=(right,)))
            # the clock stands still: nothing was waited for
            async with server.visited() as peer:
                init, _ = await meet(peer)
                assert init.initial_response == b"\0ada\0pa55"
                await connected(running)
                found = state(running)
                assert (found["container"], found["failedAttempts"]) == ("broker", 0)
                assert "NO_SUCH_PASSWORD is not set" in found["lastError"]
                assert found["connectionId"] == str(running.pumps[0].number)


async def test_a_listener_tells_its_clients_where_else_to_go() -> None:
    urls = ("second-host:25000", "amqps://third-host")
    configuration = listening(failover_urls=urls)
    async with running_node(configuration) as running, dialled(running.address) as peer:
        opened = await peer.begin()
    assert opened.properties is not None
    assert opened.properties[FAILOVER_SERVER_LIST] == [
        {"network-host": "second-host", "port": "25000"},
        {"network-host": "third-host", "port": "5671", "scheme": "amqps"},
    ]


@pytest.mark.parametrize(
    ("needed_for", "expected"),
    [
        ("nothing", [False, False, False]),
        ("start", [True, False, False]),
        ("service", [True, False, True]),
    ],
)
async def test_a_router_is_ready_when_it_has_what_it_needs(
    waits: Waits, needed_for: str, expected: list[bool]
) -> None:
    with places(1) as (server,):
        async with running_node(connecting(server.port, needed_for=needed_for)) as running:
            reasons = running.node.readiness.reasons
            async with server.visited() as peer:
                assert reasons() == expected[0] * ["connector out is not connected"]
                await meet(peer)
                await connected(running)
                assert reasons() == expected[1] * ["never"]
            async with server.visited():
                why = "connector out is not connected: amqp:connection:forced: the socket was"
                assert reasons() == expected[2] * [f"{why} closed"]


async def test_what_is_not_needed_any_more_is_not_waited_for(waits: Waits) -> None:
    with places(1) as (server,):
        needed = connecting(server.port, needed_for="service")
        async with running_node(needed) as running:
            assert running.node.readiness.reasons()
            await running.node.apply(connecting(server.port))
            assert not running.node.readiness.reasons()


async def test_what_clients_are_told_can_be_changed_while_they_are_there() -> None:
    before = listening(failover_urls=("one",))
    (listener,) = before.listeners
    after = attrs.evolve(before, listeners=(attrs.evolve(listener, failover_urls=("two",)),))
    async with running_node(before) as running, dialled(running.address) as first:
        await first.begin()
        await running.node.apply(after)
        async with dialled(running.address) as second:
            opened = await second.begin()
            assert opened.properties is not None
            (told,) = opened.properties[FAILOVER_SERVER_LIST]
            assert told["network-host"] == "two"
        # who was there before stays
        await first.say(Close())
        await first.hear_until(Close)
