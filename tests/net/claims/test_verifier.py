"""Tokens verified with what is configured; keys that are loaded again; routers with claims."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.message import AmqpValue, Message, encode_message
from router.amqp.performatives import (
    Accepted,
    Attach,
    Close,
    Detach,
    Disposition,
    Open,
    Rejected,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
)
from router.amqp.types import Symbol
from router.config.claims import ClaimsSettings, SharedAccessKeySettings
from router.config.model import Configuration
from router.config.secret import Secret
from router.core.addresses.claims import TokenRefused
from router.net.claims.verifier import ClaimsUnusable, LiveClaims, load_all, renew

from support.logins import plain
from support.loopback import Peer, dialled, listening, running_node
from support.tokens import KEY, NOW, hs256, sas
from support.transcripts import On, attach_receiver

SECRET = "s" * 32
CLAIMS = {"exp": NOW + 60, "aud": "router", "rights": "send:orders listen:orders"}


def configured(key: str = KEY, **fields: Any) -> Configuration:
    """Return a configuration with claims for both kinds of tokens."""
    given: dict[str, Any] = {
        "name": "c",
        "shared_access_keys": ("root",),
        "hmac_key": Secret("literal", SECRET),
        "algorithms": ("HS256",),
        "audiences": ("router",),
    }
    return attrs.evolve(
        listening(claims="c"),
        shared_access_keys=(SharedAccessKeySettings(name="root", key=Secret("literal", key)),),
        claims=(ClaimsSettings(**{**given, **fields}),),
    )


def live(configuration: Configuration) -> LiveClaims:
    """Return the verifier of a configuration, at a fixed time."""
    return LiveClaims(load_all(configuration)["c"], lambda: NOW)


@pytest.mark.spec("G3.2-6")
@pytest.mark.parametrize("kind", ["jwt", "amqp:jwt", "servicebus.windows.net:sastoken", ""])
def test_the_kind_follows_from_the_token(kind: str) -> None:
    verifier = live(configured())
    assert verifier.verify(kind, sas("sb://host/orders"), "sb://host/orders").key == "root"
    assert verifier.verify(kind, hs256(SECRET.encode(), CLAIMS), "orders").key == "jwt"


@pytest.mark.parametrize(
    ("token", "audience"),
    [
        (sas("sb://host/orders"), "sb://host/secret"),
        (sas("sb://host/orders"), "sb://host/"),
        (sas("sb://host/orders"), "sb://host/orders2"),
        (sas("sb://host/orders"), "sb://host/Orders"),
        (sas("sb://host/orders"), "sb://host/orders/../secret"),
        (hs256(SECRET.encode(), CLAIMS), "secret"),
    ],
    ids=["other", "wider", "longer", "case", "dots", "jwt"],
)
def test_a_token_is_not_for_another_audience(token: str, audience: str) -> None:
    with pytest.raises(TokenRefused, match="does not cover the audience") as caught:
        live(configured()).verify("", token, audience)
    assert caught.value.status == 401


@pytest.mark.parametrize("token", ["x", "a.b", "sharedaccesssignature sr=", "Bearer x.y.z q"])
def test_other_tokens_are_refused(token: str) -> None:
    with pytest.raises(TokenRefused) as caught:
        live(configured()).verify("jwt", token, None)
    assert caught.value.status == 400


def test_simple_web_tokens_are_refused_by_name() -> None:
    with pytest.raises(TokenRefused, match="not supported; SAS tokens"):
        live(configured()).verify("amqp:swt", "Issuer=x", None)


def test_only_what_is_configured_is_accepted() -> None:
    only_sas = live(configured(hmac_key=None, audiences=(), algorithms=ClaimsSettings().algorithms))
    with pytest.raises(TokenRefused, match="SAS tokens"):
        only_sas.verify("jwt", hs256(SECRET.encode(), CLAIMS), None)
    only_jwt = live(configured(shared_access_keys=()))
    with pytest.raises(TokenRefused, match="JWTs"):
        only_jwt.verify("jwt", sas("orders"), None)


def test_keys_are_exchanged_and_withdrawn() -> None:
    table: dict[str, LiveClaims] = {}
    renew(table, load_all(configured()))
    verifier = table["c"]
    token = sas("orders", expiry=4_000_000_000)
    assert verifier.verify("", token, "orders").key == "root"
    renew(table, load_all(configured("another", required_of="everyone")))
    assert table["c"] is verifier
    assert verifier.requires_of_all
    with pytest.raises(TokenRefused):
        verifier.verify("", token, "orders")
    renew(table, {})
    assert table == {}
    with pytest.raises(TokenRefused, match="any more"):
        verifier.verify("", sas("orders", key="another"), "orders")


@pytest.mark.parametrize(
    ("attribute", "fields"),
    [
        ("jwksFile", {"jwks_file": Path("/nowhere")}),
        ("publicKeyFile", {"public_key_file": Path("/dev/null")}),
        ("hmacKey", {"hmac_key": Secret("literal", "short")}),
        ("hmacKey", {"hmac_key": Secret("env", "NOT_SET_ANYWHERE")}),
        ("hmacKey", {"algorithms": ("RS256",)}),
    ],
    ids=["missing", "empty", "short", "unset", "algorithm"],
)
def test_what_cannot_be_loaded(attribute: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ClaimsUnusable) as caught:
        load_all(configured(**fields))
    assert caught.value.attribute == attribute
    assert "short" not in str(caught.value)


def test_nothing_shows_a_key() -> None:
    loaded = load_all(configured())
    shown = f"{configured()!r} {loaded!r} {live(configured())!r}"
    assert KEY not in shown
    assert SECRET not in shown


# Running routers.


def request(token: str) -> bytes:
    """Return a request to put a token."""
    given = {"operation": "put-token", "type": "jwt", "name": "orders"}
    return encode_message(Message(application_properties=given, body=(AmqpValue(token),)))


@pytest.mark.spec("C3.1-1", "C3.1-2", "G3.2-3")
async def test_a_router_offers_the_node_and_drops_who_puts_no_token() -> None:
    configuration = configured(token_timeout_seconds=0.5)
    async with running_node(configuration) as running, dialled(running.address) as peer:
        opened = await peer.begin()
        assert "AMQP_CBS_V1_0" in opened.offered_capabilities
        assert isinstance(opened.properties, dict)
        assert "cbs-node" not in opened.properties
        close = await peer.hear_until(Close)
        assert close.error is not None
        assert close.error.condition == "amqp:unauthorized-access"
        assert "within 0.5 s" in str(close.error.description)


@pytest.mark.parametrize("mechanism", ["MSSBCBS", "ANONYMOUS"])
async def test_clients_of_azure_log_in_by_the_name_that_they_know(mechanism: str) -> None:
    configuration = configured()
    async with running_node(configuration) as running, dialled(running.address) as peer:
        running.node.hub.claims["c"]._wall_clock = lambda: NOW
        await peer.say(SASL_HEADER, On(0, SaslInit(Symbol(mechanism)), frame_type=1))
        assert await peer.octets(8) == SASL_HEADER
        offered = await peer.hear(SaslMechanisms)
        assert list(offered.sasl_server_mechanisms) == ["ANONYMOUS", "MSSBCBS"]
        assert (await peer.hear(SaslOutcome)).code is SaslCode.OK
        await peer.begin()
        connection = (await running.pump_of(peer)).connection
        assert (connection.mechanism, connection.user) == ("ANONYMOUS", "anonymous")
        await peer.attach_sender("$cbs", handle=0)
        await peer.transfer(0, request(sas("orders", expiry=int(NOW) + 3600)))
        assert (await peer.hear_until(Disposition)).state is not None
        await peer.attach_receiver("orders", handle=1)


async def test_links_live_as_long_as_tokens_and_survive_a_reload() -> None:
    configuration = configured(leeway_seconds=0.0)
    async with running_node(configuration) as running, dialled(running.address) as peer:
        running.node.hub.claims["c"]._wall_clock = lambda: NOW
        await peer.begin()
        await peer.attach_sender("$cbs", handle=0)
        await peer.transfer(0, request(sas("orders", expiry=int(NOW) + 3600)))
        assert (await peer.hear_until(Disposition)).state is not None
        await peer.attach_receiver("orders", handle=1)
        # other keys: the links stay, and the old key is good for nothing new
        renewed = attrs.evolve(
            configuration, shared_access_keys=configured("another").shared_access_keys
        )
        await running.node.apply(renewed)
        await peer.transfer(1, request(sas("orders", expiry=int(NOW) + 3600)))
        refused = await peer.hear_until(Disposition)
        assert isinstance(refused.state, Rejected)
        await peer.transfer(2, request(sas("orders", key="another", expiry=int(NOW) + 1)))
        await peer.hear_until(Disposition)
        # the renewal ends earlier
        detach = await peer.hear_until(Detach)
        assert detach.error is not None
        assert detach.error.condition == "amqp:unauthorized-access"


# Tenants.


def of_tenants(*, bound: bool = False, **fields: Any) -> Configuration:
    """Return a configuration with a listener for tenants, and a key of each, perhaps bound."""
    keys = tuple(
        SharedAccessKeySettings(
            name=name, key=Secret("literal", KEY), vhost=name if bound else None
        )
        for name in ("a.com", "b.com")
    )
    return attrs.evolve(
        configured(shared_access_keys=("a.com", "b.com")),
        listeners=listening(claims="c", multi_tenant=True, **fields).listeners,
        shared_access_keys=keys,
    )


async def outcome_of(peer: Peer, token: str, host: str) -> str:
    """Put a token at a host; return "accepted", or the description of the error."""
    await peer.begin(hostname=host)
    await peer.attach_sender("$cbs", handle=0)
    await peer.transfer(0, request(token))
    state = (await peer.hear_until(Disposition)).state
    if isinstance(state, Accepted):
        return "accepted"
    assert isinstance(state, Rejected)
    assert state.error is not None
    return str(state.error.description)


@pytest.mark.parametrize(
    ("audience", "bound", "said"),
    [
        ("sb://b.com/orders", False, "accepted"),
        ("sb://a.com/orders", False, "the token is for another host"),
        ("orders", False, "the token names no host"),
        ("orders", True, "the key is for another vhost"),
    ],
    ids=["own", "other", "no host", "bound"],
)
async def test_tokens_are_for_one_tenant(audience: str, bound: bool, said: str) -> None:
    token = sas(audience, name="a.com", expiry=4_000_000_000)
    async with running_node(of_tenants(bound=bound)) as running, dialled(running.address) as peer:
        assert (await outcome_of(peer, token, "b.com")).startswith(said)
        await peer.say(attach_receiver(1, "orders"))
        attach = await peer.hear_until(Attach)
        assert (attach.source is not None) is (said == "accepted")


@pytest.mark.parametrize(
    ("bound", "host", "said"),
    [
        (False, "a.com", "the shared access key is bound to no vhost"),
        (True, "b.com", "the key is for another vhost"),
        (True, "a.com", ""),
    ],
    ids=["unbound", "other", "own"],
)
async def test_logins_by_key_are_for_one_tenant(bound: bool, host: str, said: str) -> None:
    login = plain("a.com", KEY).encode()
    wanted = of_tenants(bound=bound, sasl_mechanisms=("PLAIN",), users_file=Path("/dev/null"))
    async with running_node(wanted) as running, dialled(running.address) as peer:
        await peer.say(SASL_HEADER, On(0, SaslInit(Symbol("PLAIN"), login), frame_type=1))
        assert await peer.octets(8) == SASL_HEADER
        await peer.hear(SaslMechanisms)
        await peer.hear(SaslOutcome)
        await peer.say(AMQP_HEADER, Open("peer", hostname=host))
        assert await peer.octets(8) == AMQP_HEADER
        await peer.hear(Open)
        if said:
            error = (await peer.hear(Close)).error
            assert error is not None
            assert error.condition == "amqp:unauthorized-access"
            assert str(error.description).startswith(said)
        else:
            await peer.say(Close())
            assert (await peer.hear(Close)).error is None
