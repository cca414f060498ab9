"""Plugins that log peers in, and that say who may connect: right, wrong, slow, failing, stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from router.amqp.constants import Condition, SaslCode
from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import (
    Begin,
    Close,
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.plugins import PluginSettings
from router.config.users import hash_password
from router.hosting.host import MAX_CALLS

from support.loopback import Peer, Running, dialled, running_node
from support.plugins import hosted, install
from support.transcripts import On

SASL = 1
SOURCE = """
@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    kind: str = attrs.field(default="old", metadata=plugin.setting(plugin.text(9), "A kind."))

class Asking(plugin.Plugin):
    "Knows a few users."
    api_version = (1, 1)
    mechanisms = ("PLAIN", "XOAUTH2", "OAUTHBEARER")
    settings_class = Settings

    def __init__(self, settings):
        super().__init__(settings)
        self.logins = []
        self.requests = []
        self.now = self.most = 0
        self.go_on = trio.Event()
        self.asked = trio.Event()
        self.cancelled = 0

    async def run(self, router):
        router.started()
        await trio.sleep_forever()

    async def authenticate(self, login):
        self.logins.append(login)
        if login.mechanism == "PLAIN":
            found = plugin.read_plain(login.response)
            user, secret = found.user, found.password
        else:
            found = plugin.read_token(login.mechanism, login.response)
            user, secret = found.user, found.token
        self.asked.set()
        self.now += 1
        self.most = max(self.now, self.most)
        try:
            return await self.answer(user, secret)
        except trio.Cancelled:
            self.cancelled += 1
            raise
        finally:
            self.now -= 1

    async def answer(self, user, secret):
        if user == "slow":
            await self.go_on.wait()
        elif user == "raising":
            raise ValueError(f"no {secret}")
        elif user == "leaving":
            raise SystemExit(secret)
        elif user == "nested":
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.answer, "raising", secret)
                await trio.sleep_forever()
        elif user == "wrong":
            return user
        elif user == "nameless":
            return plugin.Identity("")
        elif user == "grouped":
            return plugin.Identity(user, frozenset({1}))
        elif user == "hanging":
            while True:
                time.sleep(0.01)
        if secret != "s3cret":
            return None
        return plugin.Identity(user or "ada", frozenset({"staff", "all"}))

    async def authorize(self, request):
        self.requests.append(request)
        self.asked.set()
        if request.connection.container == "slow":
            await self.go_on.wait()
        elif request.connection.container == "raising":
            raise ValueError("no")
        elif request.connection.container == "wrong":
            return 1
        elif request.address == "slow":
            await self.go_on.wait()
        return "refused" not in (request.connection.container, request.address)

class Finished(plugin.Plugin):
    api_version = (1, 0)
    mechanisms = ("PLAIN",)

    async def run(self, router):
        router.started()

class Plain(plugin.Plugin):
    api_version = (1, 0)

    async def run(self, router):
        router.started()
        await trio.sleep_forever()
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, SOURCE, asking="Asking", finished="Finished", plain="Plain")


def configuration(plugin: str = "asking", **fields: Any) -> Configuration:
    """Return the configuration of a router whose listener leaves logins to a plugin."""
    fields.setdefault("sasl_mechanisms", ("XOAUTH2", "OAUTHBEARER", "PLAIN"))
    settings = ListenerSettings(
        port=0, authenticate_peer=True, authentication_plugin=plugin, **fields
    )
    return Configuration(listeners=(settings,), plugins=(PluginSettings(plugin=plugin),))


@asynccontextmanager
async def guarded(plugin: str = "asking", **fields: Any) -> AsyncIterator[tuple[Running, Any]]:
    """Run a router whose plugin is set up; yield the router and the plugin."""
    async with running_node(configuration(plugin, **fields)) as running:
        await hosted(running, plugin).is_settled.wait()
        yield running, hosted(running, plugin).instance


def response_of(mechanism: str, user: str, secret: str) -> bytes:
    """Return the response by which a user logs in."""
    return {
        "PLAIN": f"\0{user}\0{secret}",
        "XOAUTH2": f"user={user}\x01auth=Bearer {secret}\x01\x01",
        "OAUTHBEARER": f"n,a={user},\x01host=h\x01auth=Bearer {secret}\x01\x01",
    }[mechanism].encode()


def init(mechanism: str, response: bytes | None, hostname: str | None = None) -> On:
    """Return a SASL init."""
    frame = SaslInit(Symbol(mechanism), initial_response=response, hostname=hostname)
    return On(0, frame, frame_type=SASL)


async def greeted(peer: Peer) -> list[str]:
    """Begin SASL, and return the mechanisms that are offered."""
    await peer.say(SASL_HEADER)
    assert await peer.octets(8) == SASL_HEADER
    return [str(each) for each in (await peer.hear(SaslMechanisms)).sasl_server_mechanisms or ()]


async def log_in(peer: Peer, user: str, secret: str = "s3cret", mechanism: str = "PLAIN") -> None:
    """Begin SASL, and send an init."""
    await greeted(peer)
    await peer.say(init(mechanism, response_of(mechanism, user, secret)))


@pytest.mark.parametrize("mechanism", ["PLAIN", "XOAUTH2", "OAUTHBEARER"])
async def test_a_user_that_the_plugin_knows(mechanism: str) -> None:
    async with guarded() as (running, plugin), dialled(running.address) as peer:
        assert await greeted(peer) == ["XOAUTH2", "OAUTHBEARER", "PLAIN"]
        await peer.say(init(mechanism, response_of(mechanism, "ada", "s3cret"), "tenant"))
        assert (await peer.hear(SaslOutcome)).code is SaslCode.OK
        await peer.begin()
        pump = await running.pump_of(peer)
        connection = pump.connection
        assert (connection.user, connection.mechanism) == ("ada", mechanism)
        assert connection.groups == {"staff", "all"}
    (login,) = plugin.logins
    assert (login.mechanism, login.hostname, login.external_user) == (mechanism, "tenant", None)
    assert login.peer == connection.name
    assert "s3cret" not in repr(login)


@pytest.mark.parametrize("mechanism", ["XOAUTH2", "OAUTHBEARER"])
async def test_a_client_that_waits_to_be_asked(mechanism: str) -> None:
    async with guarded() as (running, _), dialled(running.address) as peer:
        await greeted(peer)
        await peer.say(init(mechanism, None))
        assert (await peer.hear(SaslChallenge)).challenge == b""
        response = SaslResponse(response_of(mechanism, "ada", "s3cret"))
        await peer.say(On(0, response, frame_type=SASL))
        assert (await peer.hear(SaslOutcome)).code is SaslCode.OK


async def test_a_long_token() -> None:
    async with guarded() as (running, plugin), dialled(running.address) as peer:
        await log_in(peer, "ada", "x" * 8000, "XOAUTH2")
        assert b"401" in (await peer.hear(SaslChallenge)).challenge
    (login,) = plugin.logins
    assert len(login.response) > 8000
    # but not any length
    async with guarded() as (running, plugin), dialled(running.address) as peer:
        await log_in(peer, "ada", "x" * 20_000, "XOAUTH2")
        assert await peer.rest() == b""
    assert plugin.logins == []


@pytest.mark.parametrize(
    ("mechanism", "told"),
    [
        ("PLAIN", None),
        ("XOAUTH2", b'{"status": "401", "schemes": "bearer"}'),
        ("OAUTHBEARER", b'{"status": "invalid_token"}'),
    ],
)
async def test_a_refusal(mechanism: str, told: bytes | None) -> None:
    with capture_logs() as logs:
        async with guarded() as (running, _), dialled(running.address) as peer:
            await log_in(peer, "ada", "t0psecret", mechanism)
            if told is not None:
                assert (await peer.hear(SaslChallenge)).challenge == told
                await peer.say(On(0, SaslResponse(b"\x01"), frame_type=SASL))
            assert (await peer.hear(SaslOutcome)).code is SaslCode.AUTH
            assert await peer.rest() == b""
            (listener,) = running.node.endpoints.listeners.values()
            server: Any = listener.server
            assert server.counters.unauthenticated == 1
            assert server.authenticator.failed._hosts["127.0.0.1"].failures == 1
    failures = [line for line in logs if line["event"] == "authentication failed"]
    assert len(failures) == 1
    assert "t0psecret" not in str(logs)


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ("raising", "it raised ValueError"),
        ("leaving", "it raised SystemExit"),
        ("nested", "it raised ValueError"),
        ("wrong", "it returned no usable Identity"),
        ("nameless", "it returned no usable Identity"),
        ("grouped", "it returned no usable Identity"),
    ],
)
@pytest.mark.parametrize("mechanism", ["PLAIN", "OAUTHBEARER"])
async def test_a_call_that_fails(user: str, reason: str, mechanism: str) -> None:
    with capture_logs() as logs:
        async with guarded() as (running, _):
            async with dialled(running.address) as peer:
                await log_in(peer, user, "t0psecret", mechanism)
                assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS
                assert await peer.rest() == b""
            # the plugin goes on
            async with dialled(running.address) as peer:
                await log_in(peer, "ada")
                assert (await peer.hear(SaslOutcome)).code is SaslCode.OK
            (listener,) = running.node.endpoints.listeners.values()
            server: Any = listener.server
            assert server.counters.unauthenticated == 0
            assert not server.authenticator.failed._hosts
    (line,) = (line for line in logs if line["event"] == "authentication callout failed")
    assert (line["reason"], line["plugin"]) == (reason, "asking")
    assert "t0psecret" not in str(logs)


async def test_a_plugin_that_hangs_is_stopped() -> None:
    async with guarded() as (running, _):
        async with dialled(running.address) as peer:
            await log_in(peer, "hanging")
            assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS
        assert hosted(running, "asking").failure == "hung"
        async with dialled(running.address) as peer:
            await log_in(peer, "ada")
            assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS_PERM


async def test_a_call_that_takes_too_long() -> None:
    short = guarded(initial_handshake_timeout_seconds=0.5)
    async with short as (running, plugin), dialled(running.address) as peer:
        await log_in(peer, "slow")
        assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS_TEMP
    assert plugin.cancelled == 1


@pytest.mark.parametrize("sends_more", [False, True])
async def test_a_peer_that_goes_cancels_its_call(sends_more: bool) -> None:
    async with guarded() as (running, plugin):
        async with dialled(running.address) as peer:
            await log_in(peer, "slow")
            await plugin.asked.wait()
            if sends_more:
                await peer.say(b"AMQP\0\1\0\0", Open("c"))
        await running.until_empty()
        assert (plugin.now, plugin.cancelled) == (0, 1)


async def test_a_plugin_that_is_stopped_cancels_its_calls() -> None:
    async with guarded() as (running, plugin), dialled(running.address) as peer:
        await log_in(peer, "slow")
        await plugin.asked.wait()
        running.node.plugins.change([])
        assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS_PERM
        assert plugin.cancelled == 1


async def test_a_plugin_that_is_started_anew() -> None:
    async with guarded() as (running, plugin):
        async with dialled(running.address) as peer:
            await log_in(peer, "slow")
            await plugin.asked.wait()
            changed = PluginSettings(plugin="asking", settings={"kind": "new"})
            running.node.plugins.change([changed])
            assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS_TEMP
        # a login waits until it is set up
        async with dialled(running.address) as peer:
            await log_in(peer, "ada")
            assert (await peer.hear(SaslOutcome)).code is SaslCode.OK


async def test_a_plugin_that_does_not_run() -> None:
    async with guarded("finished") as (running, _), dialled(running.address) as peer:
        await hosted(running, "finished").over.wait()
        assert await greeted(peer) == ["PLAIN"]
        await peer.say(init("PLAIN", response_of("PLAIN", "ada", "s3cret")))
        assert (await peer.hear(SaslOutcome)).code is SaslCode.SYS_PERM


async def test_a_plugin_that_authenticates_nobody() -> None:
    async with guarded("plain") as (running, _), dialled(running.address) as peer:
        # nothing is left to offer
        await peer.say(SASL_HEADER)
        assert SASL_HEADER not in await peer.rest()


async def test_what_the_plugin_does_not_handle_is_handled_by_the_users_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "users"
    path.write_text(f"eve:{hash_password('pw')}\n", encoding="utf-8")
    with_file = guarded("plain", users_file=path)
    async with with_file as (running, _), dialled(running.address) as peer:
        assert await greeted(peer) == ["PLAIN"]
        await peer.say(init("PLAIN", b"\0eve\0pw"))
        assert (await peer.hear(SaslOutcome)).code is SaslCode.OK


async def test_a_flood_of_logins_is_bounded() -> None:
    async with guarded() as (running, plugin), trio.open_nursery() as nursery:
        count = MAX_CALLS + 20

        async def one() -> None:
            async with dialled(running.address) as peer:
                await log_in(peer, "slow")
                assert (await peer.hear(SaslOutcome)).code is SaslCode.OK

        for _ in range(count):
            nursery.start_soon(one)
        await running.until(lambda: plugin.now == MAX_CALLS)
        await running.until(lambda: hosted(running, "asking").turns.waiting == 20)
        # another host is next
        async with dialled(running.address, host="127.0.0.2") as other:
            await log_in(other, "ada")
            await running.until(lambda: hosted(running, "asking").turns.waiting == 21)
            plugin.go_on.set()
            assert (await other.hear(SaslOutcome)).code is SaslCode.OK
        assert plugin.most == MAX_CALLS


# Who may open a connection.


@asynccontextmanager
async def authorized(**fields: Any) -> AsyncIterator[tuple[Running, Any]]:
    """Run a router whose plugin says who may connect."""
    settings = ListenerSettings(port=0, authorization_plugin="asking", **fields)
    wanted = Configuration(listeners=(settings,), plugins=(PluginSettings(plugin="asking"),))
    async with running_node(wanted) as running:
        await hosted(running, "asking").is_settled.wait()
        yield running, hosted(running, "asking").instance


async def test_a_peer_that_may_connect() -> None:
    async with authorized() as (running, plugin), dialled(running.address) as peer:
        await peer.begin(container_id="c")
        await peer.attach_receiver("q", credit=1)
    request, attach = plugin.requests
    assert (request.action, request.address, request.user) == ("open", "", None)
    assert (attach.action, attach.address, attach.user) == ("receive", "q", None)
    assert request.groups == frozenset()
    assert request.connection.container == "c"


async def test_the_user_and_groups_of_a_request() -> None:
    fields: dict[str, Any] = {"authentication_plugin": "asking", "sasl_mechanisms": ("PLAIN",)}
    async with authorized(**fields) as (running, plugin), dialled(running.address) as peer:
        await log_in(peer, "ada")
        assert (await peer.hear(SaslOutcome)).code is SaslCode.OK
        await peer.begin()
    (request,) = plugin.requests
    assert (request.user, request.groups) == ("ada", {"staff", "all"})


@pytest.mark.parametrize(
    ("container", "text"),
    [
        ("refused", "the plugin asking does not allow anonymous to open a connection"),
        (
            "raising",
            "the plugin asking cannot decide now whether anonymous is allowed to open a connection",
        ),
        (
            "wrong",
            "the plugin asking cannot decide now whether anonymous is allowed to open a connection",
        ),
    ],
)
async def test_a_peer_that_may_not_connect(container: str, text: str) -> None:
    async with authorized() as (running, _), dialled(running.address) as peer:
        await peer.say(b"AMQP\0\1\0\0", Open(container), Begin(0, 1, 1))
        await peer.octets(8)
        await peer.hear(Open)
        error = (await peer.hear(Close)).error
        assert error is not None
        assert (error.condition, error.description) == (Condition.UNAUTHORIZED_ACCESS, text)


async def test_what_is_pipelined_behind_an_open_waits_for_the_answer() -> None:
    async with authorized() as (running, plugin), dialled(running.address) as peer:
        begin = Begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)
        opened = Open("slow", idle_time_out=300)
        await peer.say(b"AMQP\0\1\0\0", opened, begin)
        await peer.octets(8)
        await plugin.asked.wait()
        pump = await running.pump_of(peer)
        # time goes by: no heartbeat may come before our open
        running.node.hub.begin_turn()
        running.node.hub.turn.now += 1
        pump.connection.tick()
        running.node.hub.finish_turn()
        assert pump.connection.local_open is None
        plugin.go_on.set()
        await peer.hear(Open)
        await peer.hear(Begin)


async def test_a_slow_answer_about_an_open() -> None:
    limits = {"initial_handshake_timeout_seconds": 0.5}
    async with authorized(**limits) as (running, _), dialled(running.address) as peer:
        await peer.say(b"AMQP\0\1\0\0", Open("slow"))
        await peer.octets(8)
        await peer.hear(Open)
        error = (await peer.hear(Close)).error
        assert error is not None
        assert error.condition == Condition.UNAUTHORIZED_ACCESS


async def test_a_peer_that_goes_before_the_answer_about_its_open() -> None:
    async with authorized() as (running, plugin):
        async with dialled(running.address) as peer:
            await peer.say(b"AMQP\0\1\0\0", Open("slow"))
            await plugin.asked.wait()
        await running.until_empty()
