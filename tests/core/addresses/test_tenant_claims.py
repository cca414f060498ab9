"""Claims of tenants' clients: a token is valid only for the tenant that it, or its key, names."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from router.core.addresses.claims import ANY, Grant, TokenRefused, VerifiedToken
from router.core.addresses.tenant_claims import TenantClaims
from router.core.links import cbs
from router.engine.connection import Connection
from router.engine.events import OpenReceived
from router.engine.states import ConnectionState
from router.net.claims.jwt_tokens import JwtRules, secret_key
from router.net.claims.sas import SasKey, SasKeys

from support.in_memory import ReceivingLink
from support.policed import Policed, PolicedClient, vhost
from support.tokens import KEY, NOW, answer_in, hs256, put, sas

SECRET = b"s" * 32


@attrs.frozen
class Keys:
    """Verifier with a shared access key and a secret for JWTs, both perhaps bound to a vhost."""

    bound_to: str | None = None
    requires_of_all: bool = False
    time_limit_s: float = 0.0

    def verify(self, kind: str, token: str, audience: str | None) -> VerifiedToken:
        """Return what a token allows, as a router's own verifier does."""
        if token.startswith("Shared"):
            keys = SasKeys([SasKey("root", (KEY.encode(),), ANY, self.bound_to)])
            return keys.verify(token, NOW, 0.0)
        hs = frozenset({"HS256"})
        rules = JwtRules(
            (secret_key(SECRET),), hs, frozenset({"r"}), None, "rights", 0.0, self.bound_to
        )
        return rules.verify(token, NOW)

    def log_in(self) -> VerifiedToken:
        """Return what a login with the key by PLAIN allows."""
        return VerifiedToken((Grant("", ANY),), 1e6, "root", "root", self.bound_to)


def jwt(*rights: str) -> str:
    """Return a JWT with rights."""
    return hs256(SECRET, {"exp": NOW + 60, "aud": "r", "rights": list(rights)})


class Tenants(Policed):
    """Router with the tenants a.com and b.com, whose peers have claims; they may log in by key."""

    def __init__(self, verifier: Keys, *, by_key: bool = False, **settings: Any) -> None:
        everyone = {"sources": ("*",), "targets": ("*",)}
        names = ("a.com", "b.com")
        vhosts = [vhost(each, aliases=(f"www.{each}",), default=everyone) for each in names]
        super().__init__(*vhosts, **settings)
        self.verifier = verifier
        self.by_key = by_key

    def event_received(self, connection: Connection, event: object) -> None:
        """Serve `$cbs` to a peer whose open the policy allows, as the pump does."""
        super().event_received(connection, event)
        is_admitted = connection.state == ConnectionState.OPEN_RCVD
        if isinstance(event, OpenReceived) and is_admitted:
            token = self.verifier.log_in() if self.by_key else None
            cbs.serve(connection, self.verifier, token)


def said(client: PolicedClient, token: str, name: str) -> tuple[int, str]:
    """Put a token, and return the status and description of the answer."""
    receiver = client.receiver("$cbs", credit=1)
    put(client.sender("$cbs"), token, name)
    return answer_in(receiver)[:2]


def opened(client: PolicedClient, address: str = "orders") -> ReceivingLink | None:
    """Return a receiver from an address; None if it is refused."""
    receiver = client.receiver(address, credit=5)
    return None if receiver.detached is not None else receiver


@pytest.mark.parametrize("has_policy", [True, False], ids=["policy", "no policy"])
@pytest.mark.parametrize(
    "audience",
    [
        "sb://a.com/orders",
        "amqps://A.com.:5671/orders",
        "sb://a.com/",
        "sb://www.a.com/orders",
        "sb://b.com@a.com/orders",
        "sb://a.com@b.com/orders",
        "sb://b.com.a.com/orders",
        "sb://b.com?x/orders",
        "sb:///orders",
        "/orders",
        "orders",
        "b.com/orders",
        "amqp:orders",
        "//b.com/orders",
    ],
)
def test_a_token_of_one_tenant_opens_nothing_of_another(audience: str, has_policy: bool) -> None:
    router = Tenants(Keys(), enable_vhost_policy=has_policy)
    intruder = router.tenant("b.com")
    # whatever the request names
    for name in (audience, "sb://b.com/orders", "orders"):
        status, description = said(intruder, sas(audience), name)
        assert status == 401
        assert "this connection belongs to the vhost b.com" in description
    assert opened(intruder) is None
    assert intruder.connection.account.of_kind("tokens") == 0


@pytest.mark.parametrize(
    "audience",
    ["sb://b.com/orders", "amqps://B.com:5671/orders", "https://www.b.com/orders", "sb://b.com/"],
)
def test_a_token_opens_what_its_host_names(audience: str) -> None:
    router = Tenants(Keys())
    client = router.tenant("b.com")
    assert said(client, sas(audience), audience) == (200, "OK")
    receiver = opened(client)
    assert receiver is not None
    other = router.tenant("a.com")
    assert said(other, sas("sb://a.com/orders"), "sb://a.com/orders")[0] == 200
    # which has no receiver
    assert other.sender("orders").credit == 0
    client.sender("orders").send(b"ours")
    assert receiver.take() == b"ours"


def test_the_audience_of_the_request_must_name_the_tenant_as_well() -> None:
    client = Tenants(Keys("b.com")).tenant("b.com")
    status, description = said(client, sas("orders"), "sb://a.com/orders")
    assert status == 401
    assert description.startswith("the audience (name) has another host")


@pytest.mark.parametrize(
    "token",
    [sas("orders"), jwt("listen:orders"), jwt("manage:x", "listen:*")],
    ids=["sas", "jwt", "all"],
)
def test_a_bound_key_needs_no_host(token: str) -> None:
    router = Tenants(Keys("b.com"))
    assert said(router.tenant("b.com"), token, "orders") == (200, "OK")
    status, description = said(router.tenant("a.com"), token, "orders")
    assert status == 401
    assert description.startswith("the key is for another vhost")


def test_a_bound_key_does_not_sign_for_another_host() -> None:
    router = Tenants(Keys("b.com"))
    for name in ("a.com", "b.com"):
        assert said(router.tenant(name), sas("sb://a.com/orders"), "orders")[0] == 401


def test_a_jwt_may_name_a_host_with_each_address() -> None:
    token = jwt("listen:amqps://a.com/orders", "listen:amqps://b.com/others", "send:amqp://b.com/*")
    router = Tenants(Keys())
    client = router.tenant("b.com")
    # what covers the audience is for the other tenant
    assert said(client, token, "sb://b.com/others")[0] == 200
    assert opened(client, "others") is not None
    assert opened(client) is None
    assert client.sender("orders").detached is None
    other = router.tenant("a.com")
    status, description = said(other, token, "sb://a.com/others")
    assert (status, "does not cover" in description) == (401, True)
    assert said(other, token, "sb://a.com/orders")[0] == 200
    assert opened(other) is not None
    assert other.sender("orders").detached is not None


def test_a_jwt_of_an_unbound_key_without_hosts_gives_nothing() -> None:
    client = Tenants(Keys()).tenant("b.com")
    status, description = said(client, jwt("listen:*"), "orders")
    assert status == 401
    assert description.startswith("the token names no host, and its key is bound to no vhost")


@pytest.mark.parametrize(
    ("bound_to", "reason"),
    [(None, "the shared access key is bound to no vhost"), ("a.com", "the key is for another")],
)
def test_a_login_by_key_needs_a_key_of_the_tenant(bound_to: str | None, reason: str) -> None:
    router = Tenants(Keys(bound_to), by_key=True)
    intruder = router.tenant("b.com")
    assert intruder.condition() == "amqp:unauthorized-access"
    [close] = [each for each in intruder.heard if type(each).__name__ == "Close"]
    assert str(close.error.description).startswith(reason)
    assert opened(Tenants(Keys("b.com"), by_key=True).tenant("b.com")) is not None


def test_where_the_listener_sets_the_vhost_a_bound_key_may_name_any_host() -> None:
    def client(bound_to: str | None) -> PolicedClient:
        return Tenants(Keys(bound_to)).tenant("x.com", policy_vhost="b.com")

    token = sas("sb://router.example/orders")
    assert said(client("b.com"), token, "sb://router.example/orders")[0] == 200
    # the keys of two such listeners may be the same
    assert said(client(None), token, "sb://router.example/orders")[0] == 401
    assert said(client("a.com"), token, "sb://router.example/orders")[0] == 401
    assert said(client(None), sas("sb://b.com/orders"), "sb://b.com/orders")[0] == 200


def test_aliases_are_those_of_the_present_policy() -> None:
    router = Tenants(Keys())
    client = router.tenant("b.com")
    everyone = {"sources": ("*",), "targets": ("*",)}
    router.apply(vhost("b.com", aliases=("new.com",), default=everyone))
    assert said(client, sas("sb://www.b.com/orders"), "orders")[0] == 401
    assert said(client, sas("sb://new.com/orders"), "orders")[0] == 200


def test_without_tenants_hosts_do_not_matter() -> None:
    client = Tenants(Keys()).peer("b.com")
    assert said(client, sas("sb://a.com/orders"), "sb://c.com/orders")[0] == 200
    assert opened(client) is not None


@pytest.mark.parametrize("vhost_of_key", [None, "s3cret.com"], ids=["unbound", "bound"])
def test_no_refusal_shows_a_part_of_the_token(vhost_of_key: str | None) -> None:
    claims = TenantClaims("b" * 1000, "b.com".__eq__)
    grant = Grant("s3cret", ANY, "s3cret.com")
    token = VerifiedToken((grant,), 1.0, "s3cret", "s3cret", vhost_of_key)
    with pytest.raises(TokenRefused) as caught:
        claims.restricted(token, "sb://s3cret/s3cret")
    assert "s3cret" not in str(caught.value)
    assert len(str(caught.value)) < 400
