"""Links that a plugin is asked about: they wait, one after the other, and nothing else does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Attach,
    Close,
    Coordinator,
    Detach,
    End,
    Flow,
    Open,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    Source,
    Target,
)
from router.amqp.types import Symbol
from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.listeners import ListenerSettings
from router.config.model import Configuration
from router.config.plugins import PluginSettings
from router.config.secret import Secret
from router.config.vhosts import PolicySettings, VhostGroupSettings, VhostSettings

from support.loopback import Peer, Running, dialled, running_node
from support.plugins import hosted, install
from support.transcripts import On

PLUGIN = """
import trio

from router import plugin

class Deciding(plugin.Plugin):
    "Decides about links by their addresses."
    api_version = (1, 1)

    def __init__(self, settings):
        super().__init__(settings)
        self.requests = []
        self.go_on = trio.Event()
        self.now = self.most = self.opens = 0

    async def run(self, router):
        router.started()
        await trio.sleep_forever()

    async def authorize(self, request):
        if request.action == "open":
            self.opens += 1
            return True
        self.requests.append((request.action, request.address))
        self.now += 1
        self.most = max(self.now, self.most)
        if request.address.startswith("slow"):
            await self.go_on.wait()
        self.now -= 1
        if request.address == "raising":
            raise ValueError("no")
        return request.address != "secret"
"""


@pytest.fixture(autouse=True)
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install the plugin."""
    install(tmp_path, monkeypatch, PLUGIN, deciding="Deciding")


@asynccontextmanager
async def deciding(**fields: Any) -> AsyncIterator[tuple[Running, Any]]:
    """Run a router whose plugin decides about links; `listener` has settings of its listener."""
    more = fields.pop("listener", {})
    settings = ListenerSettings(port=0, authorization_plugin="deciding", **more)
    plugins = (PluginSettings(plugin="deciding"),)
    async with running_node(Configuration(listeners=(settings,), plugins=plugins, **fields)) as it:
        await hosted(it, "deciding").is_settled.wait()
        yield it, hosted(it, "deciding").instance


async def attach(peer: Peer, handle: int, address: str | None, *, sends: bool = True) -> None:
    """Say the attach of a link."""
    source = Source() if sends else Source(address=address)
    target = Target(address=address) if sends else Target()
    count = 0 if sends else None
    frame = Attach(f"l{handle}", handle, not sends, source=source, target=target)
    await peer.say(frame if count is None else _counted(frame))


def _counted(frame: Attach) -> Attach:
    return attrs.evolve(frame, initial_delivery_count=0)


async def refusal(peer: Peer) -> tuple[str, str]:
    """Return the condition and the description with which the next link is refused."""
    await peer.hear(Attach)
    detach = await peer.hear(Detach)
    assert detach.error is not None
    return str(detach.error.condition), detach.error.description or ""


async def test_a_link_that_is_allowed_or_not() -> None:
    async with deciding() as (running, plugin), dialled(running.address) as peer:
        await peer.begin()
        await attach(peer, 0, "/q")
        answer = await peer.hear(Attach)
        assert answer.target is not None
        await attach(peer, 1, "secret", sends=False)
        assert await refusal(peer) == (
            "amqp:unauthorized-access",
            "the plugin deciding does not allow anonymous to receive from secret",
        )
        await attach(peer, 2, "raising")
        assert (await refusal(peer))[0] == "amqp:unauthorized-access"
        assert plugin.requests == [("send", "q"), ("receive", "secret"), ("send", "raising")]


async def test_what_has_no_address() -> None:
    async with deciding() as (running, plugin), dialled(running.address) as peer:
        await peer.begin()
        await attach(peer, 0, None)
        await peer.hear(Attach)
        await peer.hear(Flow)
        frame = Attach("c", 1, False, source=Source(), target=Coordinator())
        await peer.say(_counted(frame))
        # it was allowed, but the router has no coordinator
        assert (await refusal(peer))[0] == "amqp:precondition-failed"
        dynamic = Attach("d", 2, True, source=Source(dynamic=True), target=Target())
        await peer.say(dynamic)
        await peer.hear(Attach)
        assert plugin.requests == [("send", ""), ("send", "$coordinator"), ("receive", "")]


async def test_links_wait_one_after_the_other_and_other_links_go_on() -> None:
    async with (
        deciding() as (running, plugin),
        dialled(running.address) as slow,
        dialled(running.address) as quick,
    ):
        await slow.begin()
        for handle in range(20):
            await attach(slow, handle, f"slow{handle}")
        await quick.begin()
        await attach(quick, 0, "q")
        await quick.hear(Attach)
        plugin.go_on.set()
        for _ in range(20):
            await slow.hear(Attach)
        # one of `slow`, and the other connection's
        assert plugin.most <= 2


@pytest.mark.parametrize("way", ["detach", "end", "lose"])
async def test_a_link_that_ends_while_it_waits(way: str) -> None:
    async with deciding() as (running, plugin), dialled(running.address) as peer:
        await peer.begin()
        await attach(peer, 0, "slow")
        await attach(peer, 1, "q")
        with trio.fail_after(5):
            await running.until(lambda: plugin.requests)
        if way == "lose":
            peer.reset()
            await running.until_empty()
            return
        await peer.say(Detach(0, closed=True) if way == "detach" else On(0, End()))
        if way == "detach":
            await peer.hear(Attach)
        await peer.hear(Detach if way == "detach" else End)
        plugin.go_on.set()
        if way == "detach":
            # nothing is said about the first link any more
            answer = await peer.hear(Attach)
            assert answer.name == "l1"


async def test_what_the_policy_refuses_is_not_asked_about() -> None:
    group = VhostGroupSettings(remote_hosts=("*",), targets=("q",))
    vhost = VhostSettings(hostname="$default", allow_unknown_user=True, groups={"$default": group})
    policy = {"policy": PolicySettings(enable_vhost_policy=True), "vhosts": (vhost,)}
    async with deciding(**policy) as (running, plugin), dialled(running.address) as peer:
        await peer.begin()
        await attach(peer, 0, "p")
        assert (await refusal(peer))[1] == "link disallowed by local policy"
        await attach(peer, 1, "q")
        await peer.hear(Attach)
        assert plugin.requests == [("send", "q")]


async def test_links_that_end_while_they_wait_are_not_asked_about() -> None:
    async with deciding() as (running, plugin), dialled(running.address) as peer:
        await peer.begin()
        await attach(peer, 0, "slow")
        for number in range(100):
            await attach(peer, 1, f"gone{number}")
            await peer.say(Detach(1, closed=True))
            await peer.hear(Attach)
            await peer.hear(Detach)
        await attach(peer, 1, "q")
        plugin.go_on.set()
        await peer.hear(Attach)
        await peer.hear(Attach)
        assert plugin.requests == [("send", "slow"), ("send", "q")]


async def test_nobody_is_asked_about_an_open_that_a_key_s_vhost_refuses() -> None:
    listener = {"multi_tenant": True, "claims": "c", "sasl_mechanisms": ("PLAIN",)}
    key = SharedAccessKeySettings(name="k", key=Secret("literal", "key"), vhost="a.com")
    claims = ClaimsSettings(name="c", shared_access_keys=("k",))
    configured: dict[str, Any] = {"shared_access_keys": (key,), "claims": (claims,)}
    configured["listener"] = listener
    for host, opens in (("b.com", 0), ("a.com", 1)):
        async with (
            deciding(**configured) as (running, plugin),
            dialled(running.address) as peer,
        ):
            init = SaslInit(Symbol("PLAIN"), b"\0k\0key")
            await peer.say(SASL_HEADER, On(0, init, frame_type=1))
            assert await peer.octets(8) == SASL_HEADER
            await peer.hear(SaslMechanisms)
            await peer.hear(SaslOutcome)
            await peer.say(AMQP_HEADER, Open("peer", hostname=host))
            assert await peer.octets(8) == AMQP_HEADER
            await peer.hear(Open)
            await peer.say(Close())
            closed = await peer.hear(Close)
            assert (closed.error is None) is bool(opens)
            assert plugin.opens == opens
