"""No token comes out of a router: planted ones are put at `$cbs`, and searched for in all it says.

The router logs everything, traces all frames, keeps its state and writes telemetry.
`test_secrets.py` does the same with passwords and keys.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import attrs
import pyarrow.parquet as pq
import pytest
import trio

from router.amqp.encode import encode_value
from router.amqp.framing import AMQP_HEADER, SASL_HEADER
from router.amqp.message import AmqpValue, Data, Message, Properties, encode_message
from router.amqp.performatives import (
    Accepted,
    Attach,
    Begin,
    Disposition,
    Open,
    Rejected,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
)
from router.amqp.sections import AmqpSequence
from router.amqp.types import Described, Symbol, ULong

from support.commands import invoke
from support.configuring import entity
from support.loopback import WIDE, Peer, dialled
from support.planted_secrets import PlantedSecrets
from support.plugins import write_metadata
from support.routers import RouterProcess, running_router
from support.tokens import hs256, sas
from support.transcripts import On, attach_sender

PATIENCE_S = 60.0
MANAGE, CLAIMS, TENANTS = range(3)
PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
LATER = 4_000_000_000
HMAC = "hmac key"
TRACED = '[log]\nlevel = "trace"\nlinesPerSecond = 0\n\n'


@attrs.define
class Place:
    """Router, what was planted in it, and what it and its tools have said."""

    folder: Path
    planted: PlantedSecrets
    router: RouterProcess
    said: dict[str, str] = attrs.Factory(dict)

    def ask(self, *arguments: str) -> str:
        """Run a tool, and return what it has printed."""
        bus = self.router.url(listener=MANAGE).rstrip("/")
        done = invoke(*arguments, "--bus", bus)
        self.said[" ".join(arguments)] = done.output + done.errors
        return done.output

    def signed(self, name: str, token: str) -> str:
        """Plant what makes a token secret, and return it."""
        if token.startswith("SharedAccess"):
            signature = token.partition("&sig=")[2].partition("&")[0]
            self.planted.plant(f"signature of {name}", signature)
        else:
            _, claims, signature = token.split(".")
            self.planted.plant(f"claims of {name}", claims)
            self.planted.plant(f"signature of {name}", signature)
        return token

    def sas(self, title: str, key: str = "shared key", **fields: Any) -> str:
        """Return a planted SAS token."""
        given = {"expiry": LATER, "name": "sas", **fields}
        return self.signed(title, sas("sb://a.com/orders", key=self.planted[key], **given))

    def jwt(self, title: str, key: str = HMAC, **claims: object) -> str:
        """Return a planted JWT, which has a secret of its own among its claims."""
        given = {"exp": LATER, "aud": "router", "rights": ["send:orders"], **claims}
        given["secret"] = self.planted.plant(f"content of {title}")
        return self.signed(title, hs256(self.planted[key].encode(), given))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Run a router with claims and telemetry."""
    planted = PlantedSecrets()
    for name in ("shared key", "second key", HMAC, "wrong key"):
        planted.plant(name)
    site = tmp_path / "site"
    write_metadata(site, "telemetry_of_test", {"telemetry": "router_telemetry.exporter:Telemetry"})
    paths = (site, PLUGINS / "router_telemetry")
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, paths)))
    for name, secret in (("second", "second key"), ("hmac", HMAC)):
        (tmp_path / name).write_text(planted[secret])
    text = TRACED + entity(
        "sharedAccessKey",
        name="sas",
        key=planted["shared key"],
        secondaryKey=f"file:{tmp_path / 'second'}",
    )
    text += entity(
        "claims",
        name="claims",
        sharedAccessKeys=["sas"],
        hmacKey=f"file:{tmp_path / 'hmac'}",
        algorithms=["HS256"],
        audiences=["router"],
        leewaySeconds=0,
    )
    mechanisms = ["ANONYMOUS", "PLAIN"]
    common: dict[str, Any] = {"port": 0, "enableProtocolTrace": True}
    claims: dict[str, Any] = {**common, "claims": "claims", "saslMechanisms": mechanisms}
    text += entity("listener", name="manage", **common)
    text += entity("listener", name="claims", **claims)
    text += entity("listener", name="tenants", multiTenant=True, **claims, usersFile="/dev/null")
    text += entity("listener", name="web", port=0, http=True)
    text += entity("plugin", plugin="telemetry")
    folder = json.dumps(str(tmp_path / "telemetry"))
    text += f"settings = {{ directory = {folder}, sampleShare = 1.0, intervalSeconds = 1 }}\n"
    options = ("--state", tmp_path / "state.toml")
    with running_router(tmp_path / "router", text, *options) as router:
        yield Place(tmp_path, planted, router)


@asynccontextmanager
async def connected(
    place: Place, listener: int = CLAIMS, host: str = "a.com", node: str = "$cbs"
) -> AsyncIterator[Peer]:
    """Connect without SASL, with a sender to `$cbs` or another node."""
    address = place.router.addresses[listener]
    with trio.fail_after(PATIENCE_S):
        async with dialled(address) as peer:
            await peer.begin(hostname=host)
            await peer.attach_sender(node)
            yield peer


async def outcome(peer: Peer, number: int, octets: bytes) -> object:
    """Send a request, and return its outcome."""
    await peer.transfer(number, octets)
    return (await peer.hear_until(Disposition)).state


def put_token(body: object, *, name: str = "sb://a.com/orders", **given: Any) -> bytes:
    """Return a request of Azure's dialect."""
    properties = {"operation": "put-token", "type": "jwt", "name": name, **given}
    message = Message(application_properties=properties, body=(AmqpValue(body),))
    return encode_message(message)


def set_token(token: str) -> bytes:
    """Return a request of the dialect of OASIS."""
    properties = Properties(subject="set-token")
    given = {"token-type": "amqp:jwt"}
    message = Message(properties=properties, application_properties=given, body=(AmqpValue(token),))
    return encode_message(message)


def malformed(token: str) -> dict[str, bytes]:
    """Return requests with a token where it does not belong, or that are no messages."""
    octets = token.encode()
    good = put_token(token)
    made = {
        "a list": put_token([token]),
        "a map": put_token({"token": token}),
        "described": put_token(Described(ULong(5), token)),
        "no properties": encode_message(Message(body=(AmqpValue(token),))),
        "as the operation": put_token("", operation=token),
        "as the name": put_token("x", name=token),
        "as part of the name": put_token("x", name=f"sb://a.com/?{token}"),
        "as the type": put_token("", type=token),
        "deleted": put_token("", operation="delete-token", name=token),
        "behind other octets": put_token(b"\xff" + octets),
        "data": encode_message(
            Message(
                application_properties={"operation": "put-token", "name": "n"},
                body=(Data(b"\xff"), Data(octets)),
            )
        ),
        "a sequence": encode_message(
            Message(
                application_properties={"operation": "put-token", "name": "n"},
                body=(AmqpSequence([token]),),
            )
        ),
        "subject": encode_message(Message(properties=Properties(subject=token))),
        "cut": good[:-3],
        "longer": good + b"\x00",
        "raw": octets,
        "an unknown section": b"\x00\x53\x99" + encode_value(token),
        "a section twice": good + b"\x00\x53\x77" + encode_value(token),
    }
    assert all(token[-12:].encode() in each or name == "cut" for name, each in made.items())
    return made


async def log_in(place: Place, listener: int, key: str, *, host: str = "a.com") -> int:
    """Log in with a shared access key by PLAIN; return the code of the outcome."""
    response = b"\0sas\0" + place.planted[key].encode()
    with trio.fail_after(PATIENCE_S):
        async with dialled(place.router.addresses[listener]) as peer:
            init = SaslInit(Symbol("PLAIN"), response)
            await peer.say(SASL_HEADER, On(0, init, frame_type=1))
            assert await peer.octets(8) == SASL_HEADER
            await peer.hear(SaslMechanisms)
            code = (await peer.hear(SaslOutcome)).code
            if code == 0:
                begin = Begin(next_outgoing_id=0, incoming_window=WIDE, outgoing_window=WIDE)
                await peer.say(AMQP_HEADER, Open("peer", hostname=host), begin)
                assert await peer.octets(8) == AMQP_HEADER
                await peer.hear(Open)
            return int(code)


def leaks(place: Place) -> list[str]:
    """Return where a secret was said."""
    for path in ("metrics", "healthz", "readyz"):
        host, port = place.router.http_addresses[0]
        place.said[path] = fetched(f"http://{host}:{port}/{path}")
    for operation in ("query", "get-log", "get-configuration", "get-schema"):
        place.ask("manage", operation)
    for kind in ("sharedAccessKey", "claims", "connection", "listener"):
        place.ask("manage", "query", "--type", kind)
    for form in ((), ("--json",), ("--memory",), ("--links",), ("--connections",)):
        place.ask("stat", *form)
    place.said["log"] = place.router.log_text()
    return [
        leak for source, text in place.said.items() for leak in place.planted.leaks(source, text)
    ]


def fetched(url: str) -> str:
    """Return the body of an HTTP response."""
    with urlopen(url, timeout=PATIENCE_S) as response:
        return str(response.read().decode())


async def put_all(place: Place) -> None:
    """Put tokens of all kinds, in both dialects."""
    expired = int(time.time()) - 3600
    tokens = {
        "right SAS": (place.sas("right SAS"), Accepted),
        "second SAS": (place.sas("second SAS", "second key"), Accepted),
        "wrong SAS": (place.sas("wrong SAS", "wrong key"), Rejected),
        "unknown SAS": (place.sas("unknown SAS", name="nobody"), Rejected),
        "expired SAS": (place.sas("expired SAS", expiry=expired), Rejected),
        "right JWT": (place.jwt("right JWT"), Accepted),
        "wrong JWT": (place.jwt("wrong JWT", "wrong key"), Rejected),
        "expired JWT": (place.jwt("expired JWT", exp=expired), Rejected),
        "JWT for others": (place.jwt("JWT for others", aud="other"), Rejected),
        "JWT without rights": (place.jwt("JWT without rights", rights=None), Rejected),
    }
    for name, (token, expected) in tokens.items():
        async with connected(place) as peer:
            # without a receiver the outcome is the answer in Azure's dialect as well
            assert isinstance(await outcome(peer, 0, set_token(token)), expected), name
            assert isinstance(await outcome(peer, 1, put_token(token)), expected), name
            # with one, a message is
            await peer.attach_receiver("$cbs", credit=5)
            await peer.transfer(2, put_token(token.encode()))
            assert isinstance((await peer.hear_until(Disposition)).state, Accepted)
            await peer.transfer(3, put_token("", operation="delete-token"))
            await peer.hear_until(Disposition)


async def misplace_all(place: Place) -> None:
    """Put tokens where they do not belong, and for other tenants."""
    for kind in ("SAS", "JWT"):
        made = place.sas if kind == "SAS" else place.jwt
        for name, octets in malformed(made(f"misplaced {kind}")).items():
            async with connected(place) as peer:
                assert await outcome(peer, 0, octets) is not None, name
    for name, host in (("SAS elsewhere", "b.com"), ("SAS here", "a.com")):
        async with connected(place, TENANTS, host) as peer:
            said = await outcome(peer, 0, put_token(place.sas(name), name="orders"))
            assert isinstance(said, Accepted if host == "a.com" else Rejected)


def test_tokens_are_not_shown(place: Place) -> None:
    trio.run(put_all, place)
    trio.run(misplace_all, place)
    assert "\n".join(leaks(place)) == ""
    # so that none of it was in vain
    log = place.router.log_text()
    assert log.count("token accepted") > 8
    assert log.count("token refused") > 12
    assert log.count("@transfer(20)") > 40


def test_keys_as_passwords_are_not_shown(place: Place) -> None:
    assert trio.run(log_in, place, CLAIMS, "shared key") == 0
    assert trio.run(log_in, place, CLAIMS, "second key") == 0
    assert trio.run(log_in, place, CLAIMS, "wrong key") != 0
    # which is closed, since the key is bound to no tenant
    assert trio.run(log_in, place, TENANTS, "shared key") == 0
    assert "\n".join(leaks(place)) == ""
    log = place.router.log_text()
    assert "user=sas" in log
    assert "bound to no vhost" in log
    assert "authentication failed" in log


async def ask_with(place: Place, tokens: list[object]) -> None:
    """Send requests to `$management`, each with a security_token."""
    async with connected(place, node="$management") as peer:
        for number, token in enumerate(tokens):
            given = {"operation": "READ", "type": "com.microsoft:eventhub", "name": "orders"}
            properties = Properties(message_id=str(number), reply_to="nowhere")
            body = (AmqpValue(None),)
            message = Message(properties=properties, application_properties=given, body=body)
            message = attrs.evolve(
                message, application_properties={**given, "security_token": token}
            )
            await outcome(peer, number, encode_message(message))


def test_tokens_of_management_requests_are_not_shown(place: Place) -> None:
    right, wrong = place.sas("right SAS"), place.sas("wrong SAS", "wrong key")
    jwt = place.jwt("right JWT")
    tokens: list[object] = [right, wrong, jwt, right.encode(), Symbol(wrong)]
    trio.run(ask_with, place, tokens)
    assert "\n".join(leaks(place)) == ""
    assert place.router.log_text().count("@transfer(20)") >= 5


async def attach_with(place: Place) -> None:
    """Attach a link that a token allows, so that there is something to be observed."""
    async with connected(place) as peer:
        assert isinstance(await outcome(peer, 0, set_token(place.jwt("last"))), Accepted)
        await peer.attach_receiver("$cbs", credit=5)
        await peer.say(attach_sender(5, "orders"))
        await peer.hear_until(Attach)


def test_neither_state_nor_telemetry_has_a_token(place: Place) -> None:
    trio.run(put_all, place)
    trio.run(attach_with, place)
    created = place.planted.plant("created")
    create = ("manage", "create", "--type", "router.config.sharedAccessKey", "--name", "made")
    bus = place.router.url(listener=MANAGE).rstrip("/")
    assert invoke(*create, f"key={created}", "--bus", bus).code == 0
    found = leaks(place)
    place.router.stop()
    files = sorted((place.folder / "telemetry").rglob("*.parquet"))
    texts = {file.name: json.dumps(pq.read_table(file).to_pylist(), default=repr) for file in files}
    assert any("orders" in text for text in texts.values())
    for name, text in texts.items():
        found += place.planted.leaks(name, text)
    assert "\n".join(found) == ""
    # the state has the keys that the configuration spells out, and nothing else
    saved = (place.folder / "state.toml").read_text(encoding="utf-8")
    told = {leak.split(": ")[1].partition(" (")[0] for leak in place.planted.leaks("state", saved)}
    assert told <= {"created", "shared key"}
    assert "created" in told
