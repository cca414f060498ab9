"""Clients and routers that log in with a token, at a router with a plugin that knows one token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.amqp.constants import SASL_FRAME, SaslCode
from router.amqp.framing import SASL_HEADER, encode_frame
from router.amqp.performatives import (
    SaslChallenge,
    SaslInit,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol

from support.commands import invoke
from support.configuring import entity
from support.go_peers import login_by_go
from support.jms import jms
from support.kafka_logins import kafka_login
from support.plugins import HEAD, write_distribution
from support.proton_peers import ProtonPeers
from support.raw_peers import RawPeer
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter

# longer than the 512 octets that a SASL frame may have
TOKEN = "abc.def-" * 200
SOURCE = f'''
class Tokens(plugin.Plugin):
    "Knows one token."
    api_version = (1, 1)
    mechanisms = ("XOAUTH2", "OAUTHBEARER", "PLAIN")

    async def run(self, router):
        router.started()
        await trio.sleep_forever()

    async def authenticate(self, login):
        if login.mechanism == "PLAIN":
            said = plugin.read_plain(login.response)
            return plugin.Identity(said.user) if said.password == "pw" else None
        found = plugin.read_token(login.mechanism, login.response)
        if found.user == "failing":
            raise ValueError(found.token)
        return plugin.Identity(found.user or "owner") if found.token == "{TOKEN}" else None
'''


@pytest.fixture
def guarded(routers: StartRouter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RouterProcess:
    """Start a router whose logins the plugin decides."""
    site = tmp_path / "site"
    site.mkdir()
    write_distribution(site, "tokens_of_test", HEAD + SOURCE, tokens="Tokens")
    monkeypatch.setenv("PYTHONPATH", str(site))
    return routers("""
        [[listener]]
        port = 0
        saslMechanisms = ["XOAUTH2", "OAUTHBEARER", "PLAIN"]
        authenticatePeer = true
        authenticationPlugin = "tokens"

        [[plugin]]
        plugin = "tokens"
        """)


def test_rhea_logs_in_with_a_token(guarded: RouterProcess, rhea: RheaPeer, address: str) -> None:
    options = {"port": guarded.port, "username": "ada"}
    rhea.tell("connect", connection="right", options={**options, "token": TOKEN})
    rhea.wait("connection_open", connection="right")
    for name, more in (("wrong", {"token": "abc"}), ("failing", {"username": "failing"})):
        login = {**options, "token": TOKEN, **more}
        rhea.tell("connect", connection=name, options=login)
        rhea.wait("disconnected", connection=name)
        assert rhea.find("connection_open", connection=name) == []
    log = guarded.log_text()
    assert log.count("user=ada") == 1
    assert log.count("authentication failed") == 1
    assert log.count("authentication callout failed") == 1
    assert "abc" not in log


def test_go_amqp_logs_in_with_a_token(guarded: RouterProcess) -> None:
    assert login_by_go(guarded.url(), "ada", TOKEN) == "opened"
    assert "SASL XOAUTH2 auth failed" in login_by_go(guarded.url(), "ada", "abc")
    assert login_by_go(guarded.url(), "failing", TOKEN) != "opened"
    assert "abc" not in guarded.log_text()


def test_jms_logs_in_with_a_token(guarded: RouterProcess, address: str) -> None:
    options = f"amqp.saslMechanisms=XOAUTH2&jms.username=ada&jms.password={TOKEN}"
    assert jms(f"{guarded.url()}?{options}", address, "queue") == ["blue"]
    assert "user=ada" in guarded.log_text()


@pytest.mark.parametrize("extensions", [{}, {"host": "broker.example", "traceId": "1"}])
def test_kafka_python_logs_in_with_a_token(
    guarded: RouterProcess, extensions: dict[str, str]
) -> None:
    """Its OAUTHBEARER is not ours, but travels in our frames: no AMQP client has the mechanism."""
    for token, code in ((TOKEN, SaslCode.OK), ("wr0ng-token", SaslCode.AUTH)):
        mechanism = kafka_login(token, extensions)
        with RawPeer(guarded.port) as peer:
            init = SaslInit(Symbol("OAUTHBEARER"), initial_response=mechanism.auth_bytes())
            peer.send(SASL_HEADER + encode_frame(0, init, frame_type=SASL_FRAME))
            peer.header(SASL_HEADER)
            heard = peer.hear_until((SaslChallenge, SaslOutcome))
            if isinstance(heard, SaslChallenge):
                assert json.loads(heard.challenge)["status"] == "invalid_token"
                mechanism.receive(heard.challenge)
                response = SaslResponse(mechanism.auth_bytes())
                peer.send(encode_frame(0, response, frame_type=SASL_FRAME))
                heard = peer.hear_until(SaslOutcome)
            assert heard.code == code
    assert guarded.log_text().count("mechanism=OAUTHBEARER") == 1
    assert "wr0ng" not in guarded.log_text()


def test_proton_logs_in_with_a_password(guarded: RouterProcess, proton: ProtonPeers) -> None:
    login = {"user": "ada", "allowed_mechs": "PLAIN"}
    proton.connect(guarded.url(), password="pw", **login)
    refused = proton.begin_connect(guarded.url(), password="wrong", **login)
    proton.until(lambda: refused.is_lost, "the connection is refused")
    assert refused.opened == 0


@pytest.mark.parametrize("mechanism", ["XOAUTH2", "OAUTHBEARER"])
def test_a_router_logs_in_with_a_token(
    guarded: RouterProcess,
    routers: StartRouter,
    proton: ProtonPeers,
    tmp_path: Path,
    mechanism: str,
) -> None:
    file = tmp_path / "token"
    file.write_text("wr0ng-token", encoding="utf-8")
    connector = entity(
        "connector",
        name="out",
        host="127.0.0.1",
        port=guarded.port,
        saslUsername="ada",
        saslPassword=f"file:{file}",
        saslMechanisms=[mechanism],
    )
    router = routers(entity("listener", port=0) + connector)
    refusal = {"XOAUTH2": "401", "OAUTHBEARER": "invalid_token"}[mechanism]
    why = f"the server refuses the token of user ada: {refusal} (SASL outcome 1)"
    proton.until(lambda: why in router.log_text(), "the token is refused")
    file.write_text(TOKEN, encoding="utf-8")
    proton.until(lambda: "user=ada" in guarded.log_text(), "the token is accepted")
    done = invoke("stat", "-c", "-v", "--bus", router.url().rstrip("/"))
    assert done.code == 0, done.errors
    (line,) = (line for line in done.output.splitlines() if f"127.0.0.1:{guarded.port}" in line)
    assert mechanism in line
    for text in (router.log_text(), guarded.log_text(), done.output):
        assert "wr0ng" not in text
        assert TOKEN[:16] not in text


@pytest.mark.parametrize("mechanism", ["XOAUTH2", "OAUTHBEARER"])
def test_commands_log_in_with_a_token(
    guarded: RouterProcess, tmp_path: Path, mechanism: str
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN, encoding="utf-8")
    login = ("--sasl-mechanisms", mechanism, "--sasl-password-file", str(file))
    bus = ("--bus", guarded.url().rstrip("/"))
    done = invoke("stat", "--general", *bus, *login, "--sasl-username", "ada")
    assert done.code == 0, done.errors
    # without a user, the token has to say who this is
    done = invoke("stat", "--general", *bus, *login)
    if mechanism == "XOAUTH2":
        assert "--sasl-password-file needs a user" in done.errors
    else:
        assert done.code == 0, done.errors
    file.write_text("wr0ng-token", encoding="utf-8")
    done = invoke("stat", "--general", *bus, *login, "--sasl-username", "ada")
    assert done.code != 0
    assert "the server refuses the token of user ada" in done.errors
    assert "wr0ng" not in done.errors + guarded.log_text()
