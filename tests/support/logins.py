"""Routers whose logins a plugin of the tree decides, and a raw client that logs in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from router.amqp.constants import SaslCode
from router.amqp.framing import SASL_HEADER
from router.amqp.performatives import (
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
from router.config.ssl_profiles import SslProfileSettings

from support.loopback import Running, dialled, running_node
from support.plugins import hosted
from support.transcripts import On

SASL = 1


@asynccontextmanager
async def with_logins_by(
    plugin: str,
    settings: dict[str, object],
    *,
    ssl_profiles: tuple[SslProfileSettings, ...] = (),
    **fields: Any,
) -> AsyncIterator[Running]:
    """Run a router with a listener whose logins a plugin decides, which is set up."""
    listener = ListenerSettings(
        **{
            "port": 0,
            "authenticate_peer": True,
            "authentication_plugin": plugin,
            "sasl_mechanisms": ("XOAUTH2", "OAUTHBEARER", "PLAIN"),
            **fields,
        }
    )
    section = PluginSettings(plugin=plugin, settings=settings)
    wanted = Configuration(listeners=(listener,), plugins=(section,), ssl_profiles=ssl_profiles)
    async with running_node(wanted) as running:
        state = hosted(running, plugin)
        await state.is_settled.wait()
        assert state.is_running, state.reason
        yield running


async def log_in(
    running: Running, mechanism: str, response: str, hostname: str | None = None
) -> tuple[SaslCode, str | None, frozenset[str]]:
    """Log in; return the code of the outcome, and the user and the groups of the connection."""
    async with dialled(running.address) as peer:
        init = SaslInit(Symbol(mechanism), initial_response=response.encode(), hostname=hostname)
        await peer.say(SASL_HEADER, On(0, init, frame_type=SASL))
        assert await peer.octets(8) == SASL_HEADER
        await peer.hear(SaslMechanisms)
        answer = (await peer.frame()).performative
        if isinstance(answer, SaslChallenge):
            # a refusal of a token; the answer to it is a single octet
            await peer.say(On(0, SaslResponse(b"\x01"), frame_type=SASL))
            answer = (await peer.frame()).performative
        assert isinstance(answer, SaslOutcome)
        if answer.code is not SaslCode.OK:
            return answer.code, None, frozenset()
        await peer.begin()
        connection = (await running.pump_of(peer)).connection
        return answer.code, connection.user, connection.groups


def plain(user: str, password: str, identity: str = "") -> str:
    """Return a response of PLAIN."""
    return f"{identity}\0{user}\0{password}"


def xoauth2(user: str, token: str) -> str:
    """Return a response of XOAUTH2."""
    return f"user={user}\x01auth=Bearer {token}\x01\x01"


def oauthbearer(user: str, token: str) -> str:
    """Return a response of OAUTHBEARER."""
    return f"n,a={user},\x01auth=Bearer {token}\x01\x01"
