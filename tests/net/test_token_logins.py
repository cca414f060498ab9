"""Connectors and clients that log in with a token at a router whose plugin knows it, with TLS."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from structlog.testing import capture_logs
from structlog.typing import EventDict

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.performatives import (
    Open,
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)
from router.amqp.types import Symbol
from router.client import ConnectFailed, connect
from router.client.url import Url
from router.config.connectors import ConnectorSettings
from router.config.model import Configuration
from router.config.secret import Secret
from router.management.entities.configured import CONNECTOR
from router.net.router_pump import RouterPump
from router.net.shutdown import close_in_order

from support.certificates import Authority
from support.connecting import Server, Waits, connecting, of, places
from support.entities import told
from support.logins import with_logins_by
from support.loopback import Running, running_node
from support.own_address import own_address
from support.plugins import install
from support.transcripts import On

SASL = 1
MECHANISMS = ("XOAUTH2", "OAUTHBEARER")
ERRORS = {"XOAUTH2": "401", "OAUTHBEARER": "invalid_token"}
# longer than the 512 octets of other SASL frames
FIRST, SECOND, WRONG = (f"{name}.{'~s3cret/+' * 100}==" for name in ("first", "second", "wrong"))
PLUGIN = """
@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    "The file of the token that is accepted."
    file: str = attrs.field(metadata=plugin.setting(plugin.text(500), "The file."))

class Tokens(plugin.Plugin):
    "Knows one token, and may be asked for another user than the peer names."
    api_version = (1, 1)
    mechanisms = ("XOAUTH2", "OAUTHBEARER")
    settings_class = Settings

    async def run(self, router):
        self.router = router
        router.started()
        await trio.sleep_forever()

    async def authenticate(self, login):
        found = plugin.read_token(login.mechanism, login.response)
        if found.token != await trio.Path(self.settings.file).read_text():
            return None
        return plugin.Identity(found.user or "owner")
"""


@attrs.define
class Place:
    """Server whose plugin accepts the token in `accepted`; connectors send the one in `sent`."""

    server: Running
    accepted: Path
    sent: Path
    authority: Authority

    def connector(self, mechanism: str, user: str | None = "ada", **fields: Any) -> Configuration:
        """Return the configuration of a router that logs in at the server."""
        connector = ConnectorSettings(
            **{
                "host": "localhost",
                "port": self.server.address[1],
                "name": "out",
                "ssl_profile": "tls",
                "sasl_mechanisms": (mechanism,),
                "sasl_username": user,
                "sasl_password": Secret.parse(f"file:{self.sent}"),
                **fields,
            }
        )
        return Configuration(
            connectors=(connector,),
            ssl_profiles=(self.authority.profile(cert_file=None, private_key_file=None),),
        )

    def visitors(self) -> list[RouterPump]:
        """Return the connections that are open at the server."""
        return [each for each in self.server.pumps if each.opened.is_set()]

    async def until_visited(self) -> RouterPump:
        """Wait for a connection to be open at the server, and return it."""
        await until(self.visitors)
        (pump,) = self.visitors()
        return pump

    async def dismiss(self) -> None:
        """Close the connection that is open at the server, and wait until it has ended."""
        pump = await self.until_visited()
        close_in_order(self.server.node.hub, [pump], "for a test")
        await until(lambda: pump not in self.server.pumps)


async def until(is_so: Any) -> None:
    """Let everybody go on until something is so."""
    while not is_so():
        await trio.lowlevel.checkpoint()


def state(running: Running) -> dict[str, Any]:
    """Return what management tells of the only connector."""
    (entity,) = told(running, CONNECTOR)
    return entity


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    """Run the server."""
    async with serving(tmp_path, monkeypatch) as found:
        yield found


@asynccontextmanager
async def serving(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any
) -> AsyncIterator[Place]:
    """Run a server with a listener that wants tokens, and TLS."""
    install(folder, monkeypatch, PLUGIN, tokens="Tokens")
    authority = Authority(folder)
    accepted, sent = folder / "accepted", folder / "sent"
    for file in (accepted, sent):
        file.write_text(FIRST, encoding="utf-8")
    listener = {
        "ssl_profile": "tls",
        "require_ssl": True,
        "sasl_mechanisms": MECHANISMS,
        "ssl_profiles": (authority.profile(),),
        **fields,
    }
    async with with_logins_by("tokens", {"file": str(accepted)}, **listener) as server:
        yield Place(server, accepted, sent, authority)


def shows_a_token(logs: list[EventDict]) -> bool:
    """Return whether any line of a log shows a part of a token."""
    return "s3cret" in str(logs)


@pytest.mark.parametrize(
    ("mechanism", "user", "known_as"),
    [("XOAUTH2", "ada", "ada"), ("OAUTHBEARER", "a=d,a", "a=d,a"), ("OAUTHBEARER", None, "owner")],
)
async def test_a_connector_logs_in(
    place: Place, mechanism: str, user: str | None, known_as: str
) -> None:
    with capture_logs() as logs:
        async with running_node(place.connector(mechanism, user)) as running:
            pump = await place.until_visited()
            found = pump.connection
            assert (found.user, found.mechanism, found.is_encrypted) == (known_as, mechanism, True)
            await until(lambda: state(running)["connectionStatus"] == "SUCCESS")
            assert "s3cret" not in str(state(running))
            (own,) = running.pumps
            assert "s3cret" not in repr(own.connection.settings)
    assert not shows_a_token(logs)


@pytest.mark.parametrize(
    ("mechanism", "status"), [("XOAUTH2", "401"), ("OAUTHBEARER", "invalid_token")]
)
async def test_a_token_is_read_again_for_each_login(
    place: Place, waits: Waits, mechanism: str, status: str
) -> None:
    with capture_logs() as logs:
        async with running_node(place.connector(mechanism)) as running:
            await place.until_visited()
            # the first has expired, and there is a new one
            place.accepted.write_text(SECOND, encoding="utf-8")
            place.sent.write_text(f"{SECOND}\n", encoding="utf-8")
            await place.dismiss()
            await place.until_visited()
            # then one that is refused
            place.sent.write_text(WRONG, encoding="utf-8")
            await place.dismiss()
            refusal = (
                f"the server refuses the token of user ada: {ERRORS[mechanism]} (SASL outcome 1)"
            )
            await until(lambda: state(running)["lastError"] == refusal)
            found = state(running)
            assert (found["connectionStatus"], found["lastErrorKind"]) == ("FAILED", "unauthorized")
            # no file, a file without a token, and the right one at last
            place.sent.unlink()
            await until(lambda: "cannot be read" in state(running)["lastError"])
            assert state(running)["lastErrorKind"] == "unauthorized"
            place.sent.write_text("s3cret of nobody", encoding="utf-8")
            await until(lambda: "needs a bearer token" in state(running)["lastError"])
            assert place.visitors() == []
            place.sent.write_text(SECOND, encoding="utf-8")
            await place.until_visited()
    assert not shows_a_token(logs)
    assert refusal in [line.get("description") for line in of(logs, "connection closed")]
    assert of(logs, "authentication failed")
    reasons = [line["reason"] for line in of(logs, "connection failed")]
    assert f"the file {place.sent} cannot be read: No such file or directory" in reasons


@pytest.mark.parametrize("is_allowed", [False, True])
@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_token_is_not_sent_in_clear_text(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    waits: Waits,
    mechanism: str,
    is_allowed: bool,
) -> None:
    host = own_address()
    plain = {"host": host, "ssl_profile": None, "require_ssl": False}
    insecure = {"allow_insecure_authentication": True}
    async with serving(tmp_path, monkeypatch, **plain, **insecure) as place:
        fields: dict[str, Any] = {"host": host, "ssl_profile": None}
        fields |= {"allow_insecure_authentication": is_allowed}
        with capture_logs() as logs:
            async with running_node(place.connector(mechanism, **fields)) as running:
                if is_allowed:
                    pump = await place.until_visited()
                    assert (pump.connection.user, pump.connection.is_encrypted) == ("ada", False)
                else:
                    why = (
                        f"the server offers SASL OAUTHBEARER XOAUTH2; {mechanism} would send the "
                        "token in clear text: give the connector an sslProfile, or set its "
                        "allowInsecureAuthentication = true"
                    )
                    await until(lambda: state(running)["lastError"] == why)
        assert not shows_a_token(logs)


# Clients.


def url(place: Place, mechanisms: tuple[str, ...], token: str | None, **fields: Any) -> Url:
    """Return a URL of the server."""
    context = ssl.create_default_context(cafile=str(place.authority.ca_file))
    where = Url("localhost", place.server.address[1], user="ada", password=token)
    return attrs.evolve(
        where, **{"is_encrypted": True, "tls": context, "mechanisms": mechanisms, **fields}
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_a_client_logs_in(place: Place, mechanism: str) -> None:
    async with connect(url(place, ("SCRAM-SHA-256", mechanism), FIRST)) as client:
        await client.open_receiver("q")
        pump = await place.until_visited()
        assert (pump.connection.user, pump.connection.mechanism) == ("ada", mechanism)
    status = ERRORS[mechanism]
    for token, reason in (
        (WRONG, f"the server refuses the token of user ada: {status} (SASL outcome 1)"),
        ("s3cret !", f"{mechanism} needs a bearer token as the password; a token has letters"),
        (None, f"{mechanism} needs a bearer token as the password"),
    ):
        with pytest.raises(ConnectFailed) as failed:
            async with connect(url(place, (mechanism,), token)):
                pass
        assert reason in str(failed.value)
        assert "s3cret" not in str(failed.value)


async def test_a_client_without_a_user_is_whom_the_token_stands_for(place: Place) -> None:
    async with connect(url(place, ("OAUTHBEARER",), FIRST, user=None)):
        pump = await place.until_visited()
        assert pump.connection.user == "owner"
    with pytest.raises(ConnectFailed, match="XOAUTH2 needs a user name"):
        async with connect(url(place, ("XOAUTH2",), FIRST, user=None)):
            pass


@pytest.mark.parametrize("mechanisms", [("XOAUTH2",), ("OAUTHBEARER", "PLAIN")])
async def test_a_client_sends_no_token_in_clear_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanisms: tuple[str, ...]
) -> None:
    """To name PLAIN permits to send a password, and a token in no case."""
    host = own_address()
    fields = {"ssl_profile": None, "require_ssl": False, "allow_insecure_authentication": True}
    async with serving(tmp_path, monkeypatch, host=host, **fields) as place:
        where = url(place, mechanisms, FIRST, host=host, is_encrypted=False)
        with pytest.raises(ConnectFailed, match="would send the token in clear text: use amqps"):
            async with connect(where):
                pass


# A server that says what a test wants.


@pytest.mark.parametrize(
    ("mechanism", "said", "answer"),
    [
        (
            "OAUTHBEARER",
            b"n,a=user@example.com,\x01host=127.0.0.1\x01port=%d\x01auth=Bearer vF9dft4==\x01\x01",
            b"\x01",
        ),
        ("XOAUTH2", b"user=user@example.com\x01auth=Bearer vF9dft4==\x01\x01", b""),
    ],
)
async def test_what_is_sent_and_answered(
    waits: Waits, mechanism: str, said: bytes, answer: bytes
) -> None:
    with places(1) as (server,):
        configuration = connecting(
            server.port,
            sasl_mechanisms=(mechanism,),
            sasl_username="user@example.com",
            sasl_password=Secret.parse("vF9dft4=="),
        )
        async with running_node(configuration) as running:
            # a long error, which does not fit into 512 octets
            error = b'{"status": "invalid_token", "scope": "%s"}' % (b"x" * 2000)
            init, response = await refused(server, mechanism, error)
            expected = said % server.port if b"%d" in said else said
            assert (init.initial_response, init.hostname) == (expected, "127.0.0.1")
            assert response == answer
            await until(lambda: "invalid_token" in str(state(running)["lastError"]))
            # it tries again, and is let in
            async with server.visited() as peer:
                await peer.authenticate(mechanism)
                assert await peer.octets(8) == AMQP_HEADER
                await peer.hear(Open)
                await peer.say(AMQP_HEADER, Open("broker"))
                await until(lambda: state(running)["connectionStatus"] == "SUCCESS")


async def refused(server: Server, mechanism: str, error: bytes) -> tuple[SaslInit, bytes]:
    """Refuse a token; return the init, and the answer to the error."""
    async with server.visited() as peer:
        assert await peer.octets(8) == SASL_HEADER
        await peer.say(SASL_HEADER, SaslMechanisms((Symbol(mechanism),)))
        init = await peer.hear(SaslInit)
        await peer.say(On(0, SaslChallenge(error), frame_type=SASL))
        answer = await peer.hear(SaslResponse)
        await peer.say(On(0, SaslOutcome(SaslCode.AUTH), frame_type=SASL))
        assert await peer.rest() == b""
    return init, bytes(answer.response)
