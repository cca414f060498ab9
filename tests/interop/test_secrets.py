"""No secret comes out of a router: planted ones are searched for in all that it and its tools say.

There are two routers, which log everything and trace all frames. One has every kind of secret that
a configuration can have, and logs in at the other one. Clients log in at both, rightly and wrongly.
"""

from __future__ import annotations

import base64
import gc
import socket
import ssl
import stat
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import pytest
import trio
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from router.amqp.constants import Descriptor
from router.amqp.encode import encode_value
from router.amqp.framing import SASL_HEADER, encode_frame
from router.amqp.performatives import SaslChallenge, SaslInit, SaslMechanisms, SaslResponse
from router.amqp.types import Described, Symbol, ULong
from router.config.connectors import ConnectorSettings
from router.config.load import parse_configuration
from router.config.proxy_profiles import ProxyProfileSettings
from router.config.secret import Secret
from router.config.users import Users
from router.engine.settings import ConnectionSettings
from router.net.authentication import Authenticator
from router.net.scram import ScramClientLogin, ScramLogin

from support.certificates import Authority
from support.commands import Command, Ended, invoke, run
from support.configuring import entity
from support.http_proxies import HttpProxy
from support.logins import log_in, oauthbearer, plain, xoauth2
from support.loopback import dialled, running_node
from support.planted_secrets import PART_CHARACTERS, PlantedSecrets, forms_of
from support.plugins import HEAD, write_distribution
from support.routers import RouterProcess, running_router
from support.transcripts import On

PATIENCE_S = 60.0
# the listeners of `Place.router`, by number
MANAGE, USERS, SECURED, TOKENS, READERS = range(5)
TRACED = """\
[log]
level = "trace"
linesPerSecond = 0

"""
WITH_TOKENS: dict[str, Any] = {
    "port": 0,
    "saslMechanisms": ["XOAUTH2", "OAUTHBEARER"],
    "authenticationPlugin": "tokens",
    "authenticatePeer": True,
    "enableProtocolTrace": True,
}
PLUGIN = """
@attrs.frozen(kw_only=True, field_transformer=plugin.checked)
class Settings:
    "Settings with a secret."
    key: plugin.Secret | None = attrs.field(
        default=None, metadata=plugin.setting(plugin.secret(), "A key.", default="none")
    )

class Tokens(plugin.Plugin):
    "Knows one token, and logs all that it may."
    api_version = (1, 1)
    mechanisms = ("XOAUTH2", "OAUTHBEARER")
    settings_class = Settings

    async def run(self, router):
        self.router = router
        router.log.info("started", settings=repr(self.settings))
        assert self.settings.key.reveal()
        router.started()
        await trio.sleep_forever()

    async def authenticate(self, login):
        self.router.log.info("asked", login=repr(login))
        found = plugin.read_token(login.mechanism, login.response)
        self.router.log.info("read", token=repr(found))
        if found.user == "failing":
            raise ValueError(found.token)
        return plugin.Identity(found.user) if found.token == RIGHT else None
"""


@attrs.define
class Place:
    """Routers, the secrets that were planted in them, and all that was said so far."""

    folder: Path
    authority: Authority
    planted: PlantedSecrets
    broker: RouterProcess
    router: RouterProcess
    said: dict[str, str] = attrs.Factory(dict)

    @property
    def state(self) -> Path:
        """Return the file of what is saved."""
        return self.folder / "state.toml"

    def note(self, source: str, ended: Ended) -> Ended:
        """Keep what a command has printed, and return it."""
        assert "Traceback" not in ended.errors, ended.errors
        self.said[f"{len(self.said)} {source}"] = ended.output + ended.errors
        return ended

    def ask(self, *arguments: str, listener: int = MANAGE, stdin: str | None = None) -> Ended:
        """Run a command for the router at a listener without users."""
        octets = None if stdin is None else stdin.encode()
        bus = self.router.url(listener=listener).rstrip("/")
        return self.note(" ".join(arguments[:3]), invoke(*arguments, "--bus", bus, stdin=octets))

    def leaks(self) -> list[str]:
        """Return where a secret was said."""
        said = {
            **self.said,
            "log of the router": self.router.log_text(),
            "log of the broker": self.broker.log_text(),
        }
        return [leak for source, text in said.items() for leak in self.planted.leaks(source, text)]


def users_file(planted: PlantedSecrets, file: Path, *names: str) -> Path:
    """Write a file of users with `trioute user add`; their passwords and hashes are planted."""
    for name in names:
        done = run("user", "add", "--stdin", file, name, stdin=f"{planted[name]}\n".encode())
        assert done.code == 0, done.errors
        assert planted.leaks("user add", done.output + done.errors) == []
    for line in file.read_text(encoding="utf-8").splitlines():
        name, _, hashes = line.partition(":")
        for number, part in enumerate(hashes.replace(" ", "$").replace(",", "$").split("$")):
            if len(part) > 2 * PART_CHARACTERS:
                planted.plant(f"hash {number} of {name}", part)
    return file


def private_key(planted: PlantedSecrets, authority: Authority, password: str) -> tuple[Path, Path]:
    """Return the files of a certificate and of its encrypted key, whose content is planted."""
    issued: trustme.LeafCert = authority.ca.issue_cert("localhost", "127.0.0.1")
    certificate, file = authority.folder / "certificate.pem", authority.folder / "key.pem"
    certificate.write_bytes(b"".join(each.bytes() for each in issued.cert_chain_pems))
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    encrypted = BestAvailableEncryption(password.encode())
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encrypted))
    der = key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    # behind the names of the algorithms, which are no secret
    planted.plant("private key", base64.b64encode(der).decode()[48:88])
    planted.plant("encrypted key", file.read_text("ascii").splitlines()[4])
    return certificate, file


def broker_configuration(planted: PlantedSecrets, folder: Path) -> str:
    """Return the configuration of the router that the other one logs in at."""
    users = users_file(planted, folder / "broker-users", "literal", "pass", "env", "file")
    login: dict[str, Any] = {
        "saslMechanisms": ["PLAIN", "SCRAM-SHA-256"],
        "authenticatePeer": True,
    }
    return "".join(
        (
            TRACED,
            entity("listener", port=0, usersFile=str(users), enableProtocolTrace=True, **login),
            entity("listener", name="tokens", **WITH_TOKENS),
            entity("plugin", plugin="tokens"),
            f'settings = {{ key = "{secret_file(planted, folder, "plugin")}" }}\n',
        )
    )


def secret_file(planted: PlantedSecrets, folder: Path, name: str) -> str:
    """Return the reference to a file with a secret."""
    file = folder / f"{name}.secret"
    file.write_text(planted[name], encoding="utf-8")
    return f"file:{file}"


def connectors(planted: PlantedSecrets, folder: Path, broker: RouterProcess) -> str:
    """Return connectors with passwords in all forms, by all mechanisms, right and wrong."""
    (_, port), (_, token_port) = broker.addresses
    forms = {
        "literal": f"literal:{planted['literal']}",
        "pass": f"pass:{planted['pass']}",
        "env": "env:TRIOUTE_TEST_ENV",
        "file": secret_file(planted, folder, "file"),
    }
    texts = [
        _connector(f"{user}-{mechanism}", port, user, password, saslMechanisms=[mechanism])
        for user, password in forms.items()
        for mechanism in ("PLAIN", "SCRAM-SHA-256")
    ]
    texts.append(_connector("wrong", port, "literal", planted["wrong connector"]))
    for proxy in ("proxy", "wrong-proxy"):
        more = {"proxyProfile": proxy}
        texts.append(_connector(f"by-{proxy}", port, "pass", f"pass:{planted['pass']}", **more))
    for mechanism in ("XOAUTH2", "OAUTHBEARER"):
        for token in ("token", "wrong token"):
            name, secret = f"{mechanism} {token}", secret_file(planted, folder, token)
            texts.append(_connector(name, token_port, "ada", secret, saslMechanisms=[mechanism]))
    return "".join(texts)


def _connector(name: str, port: int, user: str, password: str, **more: str | list[str]) -> str:
    more.setdefault("saslMechanisms", ["PLAIN"])
    return entity(
        "connector",
        name=name,
        host="127.0.0.1",
        port=port,
        saslUsername=user,
        saslPassword=password,
        enableProtocolTrace=True,
        **more,
    )


def router_configuration(
    planted: PlantedSecrets,
    folder: Path,
    authority: Authority,
    broker: RouterProcess,
    proxy: HttpProxy,
) -> str:
    """Return the configuration of the router with all kinds of secrets."""
    certificate, key = private_key(planted, authority, planted["key"])
    tls = {"certFile": str(certificate), "privateKeyFile": str(key)}
    users = users_file(planted, folder / "users", "ada")
    login: dict[str, Any] = {
        "port": 0,
        "usersFile": str(users),
        "saslMechanisms": ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"],
        "authenticatePeer": True,
        "enableProtocolTrace": True,
    }
    return "".join(
        (
            '[router]\nid = "A"\n\n',
            TRACED,
            entity("sslProfile", name="own", password=planted["key"], **tls),
            entity(
                "sslProfile", name="by-file", password=secret_file(planted, folder, "key"), **tls
            ),
            proxy.settings("proxy", username="p", password=planted["proxy"]),
            proxy.settings("wrong-proxy", username="p", password=f"pass:{planted['wrong proxy']}"),
            entity("listener", name="manage", port=0, enableProtocolTrace=True),
            entity("listener", name="users", **login),
            entity("listener", name="secured", sslProfile="own", requireSsl=True, **login),
            entity("listener", name="tokens", **WITH_TOKENS),
            entity("listener", name="readers", port=0, management="read"),
            entity("listener", name="web", port=0, http=True, websockets=True),
            entity(
                "sharedAccessKey",
                name="sas",
                key=planted["shared key"],
                secondaryKey=secret_file(planted, folder, "second key"),
            ),
            entity(
                "claims",
                name="claims",
                sharedAccessKeys=["sas"],
                hmacKey=f"pass:{planted['hmac key']}",
                algorithms=["HS256"],
                audiences=["router"],
            ),
            entity("listener", name="claims", port=0, claims="claims", enableProtocolTrace=True),
            connectors(planted, folder, broker),
            entity("plugin", plugin="tokens"),
            f'settings = {{ key = "{secret_file(planted, folder, "plugin")}" }}\n',
        )
    )


@pytest.fixture
def place(tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Run both routers."""
    planted = PlantedSecrets()
    names = ["literal", "pass", "env", "file", "ada", "key", "proxy", "plugin"]
    names += ["shared key", "second key", "hmac key"]
    for name in (*names, "wrong connector", "wrong proxy", "token", "wrong token", "wrong user"):
        planted.plant(name)
    site = tmp_path / "site"
    site.mkdir()
    source = f"{HEAD}RIGHT = {planted['token']!r}\n{PLUGIN}"
    write_distribution(site, "secrets_of_test", source, tokens="Tokens")
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("TRIOUTE_TEST_ENV", planted["env"])
    with ExitStack() as stack:
        proxy = stack.enter_context(HttpProxy(f"p:{planted['proxy']}"))
        broker = stack.enter_context(
            running_router(tmp_path / "broker", broker_configuration(planted, tmp_path))
        )
        text = router_configuration(planted, tmp_path, authority, broker, proxy)
        options = ("--state", tmp_path / "state.toml")
        router = stack.enter_context(running_router(tmp_path / "router", text, *options))
        yield Place(tmp_path, authority, planted, broker, router)


# Logins.


def say(
    port: int, octets: bytes, context: ssl.SSLContext | None = None, *, more: bytes = b""
) -> bytes:
    """Send octets, and return all that is answered until the router closes, which it has to do.

    With `more`, these octets follow the first answer to a login, if there is any.
    """
    with ExitStack() as stack:
        sock = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE_S))
        if context is not None:
            sock = stack.enter_context(context.wrap_socket(sock, server_hostname="localhost"))
        sock.sendall(octets)
        found = b""
        try:
            while received := sock.recv(65536):
                found += received
                if more and b"\x00\x53\x42" in found:
                    sock.sendall(more)
                    more = b""
        except (ConnectionResetError, ssl.SSLError):
            # what was sent was not all read
            pass
        return found


def init(mechanism: str, response: str) -> bytes:
    """Return a SASL header and an init."""
    body = SaslInit(Symbol(mechanism), initial_response=response.encode())
    return SASL_HEADER + encode_frame(0, body, frame_type=1)


def broken_inits(response: str) -> list[bytes]:
    """Return what clients with mistakes send in place of an init of PLAIN."""
    said = init("PLAIN", response)
    code = ULong(int(Descriptor.SASL_INIT))
    texts = [
        # the response is text; is a symbol; is in a list; there are too many fields; no list at all
        [Symbol("PLAIN"), response],
        [Symbol("PLAIN"), Symbol(response.replace("\0", ""))],
        [Symbol("PLAIN"), [response.encode()]],
        [Symbol("PLAIN"), None, None, response.encode(), response],
        {"PLAIN": response.encode()},
        # the response stands where the mechanism or the host should be
        [response],
        [Symbol("PLAIN"), b"x", response.encode()],
    ]
    bodies = [encode_value(Described(code, each)) for each in texts]
    bodies += [
        encode_value(Described(ULong(0x7777), [response])),
        encode_value(Described(Symbol("amqp:sasl-init:list"), [Symbol("PLAIN"), response])),
        encode_value(response.encode()),
        encode_value(Described(code, [Symbol("PLAIN"), b"x"])) + response.encode(),
        encode_value(Described(code, [Symbol("PLAIN"), response.encode()]))[:-3],
        response.encode(),
    ]
    frames = [(len(body) + 8).to_bytes(4, "big") + b"\x02\x01\x00\x00" + body for body in bodies]
    # of another type, without a header of SASL, and without any frame
    other = bytearray(said)
    other[13] = 0
    return [*(SASL_HEADER + each for each in frames), bytes(other), said[8:], said[:8] + b"PLAIN"]


def log_in_rightly(place: Place) -> None:
    """Log in with each mechanism, by commands with the password in a URL and in a file."""
    ada = quote(place.planted["ada"], safe="")
    file = place.folder / "ada.password"
    file.write_text(place.planted["ada"], encoding="utf-8")
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
        bus = place.router.url(listener=USERS, user=f"ada:{ada}").rstrip("/")
        options = ("--sasl-mechanisms", mechanism)
        done = place.note("right", invoke("stat", "-c", "-v", "--bus", bus, *options))
        assert done.code == 0, done.errors
        bus = place.router.url(listener=SECURED, scheme="amqps").rstrip("/")
        trust = ("--ssl-trustfile", str(place.authority.ca_file), *options)
        user = ("--sasl-username", "ada", "--sasl-password-file", file)
        done = place.note("right, TLS", invoke("stat", "--bus", bus, *trust, *user))
        assert done.code == 0, done.errors


def log_in_wrongly(place: Place) -> None:
    """Log in with wrong passwords and tokens, and in ways that are not allowed."""
    wrong = place.planted["wrong user"]
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        bus = place.router.url(listener=USERS, user=f"ada:{quote(wrong, safe='')}").rstrip("/")
        done = invoke("stat", "--bus", bus, "--sasl-mechanisms", mechanism)
        assert place.note("wrong", done).code != 0
    context = ssl.create_default_context(cafile=str(place.authority.ca_file))
    ports = [port for _, port in place.router.addresses]
    response = plain("ada", wrong)
    for octets in [init("PLAIN", response), *broken_inits(response)]:
        say(ports[USERS], octets)
    say(ports[SECURED], init("PLAIN", response), context)
    say(ports[SECURED], init("PLAIN", response))
    # where nobody expects a password
    say(ports[USERS], init("EXTERNAL", wrong))
    say(ports[USERS], init("SCRAM-SHA-256", f"n,,n=ada,r={wrong}"), more=_response(wrong))
    say(ports[USERS], init("SCRAM-SHA-256", wrong))
    # asked for by a challenge
    say(ports[USERS], init("PLAIN", "")[:-2] + b"\x40\x40", more=_response(response))
    say(ports[USERS], SASL_HEADER + _response(response))
    web = place.router.http_addresses[0][1]
    basic = base64.b64encode(f"ada:{wrong}".encode()).decode()
    upgrade = (
        "Host: h\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 13\r\n"
        f"Sec-WebSocket-Key: {'A' * 22}==\r\nSec-WebSocket-Protocol"
    )
    for head in (
        f"GET /?token={wrong} HTTP/1.1\r\nHost: h\r\nAuthorization: Basic {basic}\r\n",
        f"GET /{wrong} {wrong} HTTP/1.1\r\nHost: h\r\nAuthorization : Basic {basic}\r\n",
        f"GET / HTTP/1.1\r\n{upgrade}: amqp\r\nAuthorization : Basic {basic}\r\n",
        f"GET /?token={wrong} HTTP/1.1\r\n{upgrade}: other\r\nAuthorization: Basic {basic}\r\n",
    ):
        say(web, f"{head}Connection: close\r\n\r\n".encode())


def _response(text: str) -> bytes:
    return encode_frame(0, SaslResponse(text.encode()), frame_type=1)


def log_in_with_tokens(place: Place) -> None:
    """Log in with tokens: a right one that fails in the plugin, and wrong ones."""
    port = place.router.addresses[TOKENS][1]
    for mechanism, made in (("XOAUTH2", xoauth2), ("OAUTHBEARER", oauthbearer)):
        for user, token in (("failing", "token"), ("ada", "wrong token")):
            response = made(user, place.planted[token])
            say(port, init(mechanism, response), more=_response("\x01"))
            # neither form is one of the mechanism's
            say(port, init(mechanism, response[:-1]), more=_response("\x01"))
            say(port, init(mechanism, place.planted[token]), more=_response("\x01"))
    # the connection stays open until this side closes it
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock:
        sock.sendall(init("XOAUTH2", xoauth2("ada", place.planted["token"])))
        found = b""
        while b"\x00\x53\x44" not in found:
            found += sock.recv(65536)


# The tests.


def test_logins_are_not_shown(place: Place) -> None:
    with Command("trace", "--all", "--json", "--bus", place.router.url().rstrip("/")) as command:
        assert command.process.stderr is not None
        log_in_rightly(place)
        log_in_wrongly(place)
        log_in_with_tokens(place)
        place.ask("explain", "ada@x", "send", "queue")
        command.interrupt()
        place.note("trace", command.end())
    place.ask("manage", "get-log")
    assert "\n".join(place.leaks()) == ""
    # so that none of it was in vain
    log = place.router.log_text()
    assert log.count("user=ada") >= 6
    for error in ("401", "invalid_token"):
        assert f"the server refuses the token of user ada: {error} (SASL outcome 1)" in log
    assert place.broker.log_text().count("user=ada") >= 2
    assert "@sasl-init(65)" in log
    assert "authentication callout failed" in log
    assert "settings=\"Settings(key=Secret(kind='file'))\"" in log
    assert any("sasl-init" in text for name, text in place.said.items() if "trace" in name)


def test_what_a_router_shows_has_no_secrets(place: Place) -> None:
    place.ask("manage", "query")
    kinds = ("connector", "sslProfile", "proxyProfile", "listener", "plugin", "log")
    for kind in (*kinds, "sharedAccessKey", "claims"):
        place.ask("manage", "query", "--type", kind)
    for operation in ("get-log", "get-schema", "get-json-schema", "get-revisions"):
        place.ask("manage", operation)
    for listener in (MANAGE, READERS):
        shown = place.ask("manage", "get-configuration", listener=listener)
        assert "(a secret)" in shown.output
    for form in ((), ("--json",), ("--verbose",), ("--csv",)):
        place.ask("stat", "--all-entities", *form)
        place.ask("stat", "logs", *form)
    web = place.router.http_addresses[0][1]
    for path in ("metrics", "healthz", "readyz", ""):
        octets = say(web, f"GET /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
        place.said[f"/{path}"] = octets.decode()
    # the passwords of a backup are not for readers, and references remain references
    assert place.ask("manage", "export-configuration", listener=READERS).code == 1
    assert "\n".join(place.leaks()) == ""
    exported = place.ask("manage", "export-configuration").output
    assert place.planted["literal"] in exported
    assert leaking(place, "export", exported) == {"literal", "pass", "key", "proxy"} | {
        "wrong connector",
        "wrong proxy",
        "shared key",
        "hmac key",
    }


def leaking(place: Place, source: str, text: str) -> set[str]:
    """Return the names of the secrets in a text."""
    return {leak.split(": ")[1].partition(" (")[0] for leak in place.planted.leaks(source, text)}


def test_changes_show_no_secrets(place: Place) -> None:
    planted = place.planted
    configuration = place.folder / "router" / "trioute.toml"
    text = configuration.read_text(encoding="utf-8")
    planted.plant("new")
    for name in ("literal", "key", "proxy"):
        changed = place.folder / "changed.toml"
        changed.write_text(text.replace(planted[name], planted["new"]), encoding="utf-8")
        place.ask("apply", "--dry-run", str(changed))
        place.ask("apply", "--yes", str(changed))
    # what is shown can be applied, and nothing changes by that
    assert place.ask("manage", "get-configuration").code == 0
    create = ("manage", "create", "--type", "connector", "--name", "made")
    more = ("host=127.0.0.1", "port=1", "saslUsername=u", "enableProtocolTrace=true")
    planted.plant("created")
    done = place.ask(*create, *more, f"saslPassword=pass:{planted['created']}")
    assert done.code == 0, done.errors
    place.ask("manage", "read", "--type", "connector", "--name", "made")
    for wrong in (
        f"port=pass:{planted['created']}",
        f"role=literal:{planted['created']}",
        f"saslPasswrd={planted['created']}",
    ):
        done = place.ask(*create[:-1], "bad", *more, f"saslPassword={planted['created']}", wrong)
        assert done.code == 1
    assert place.ask(
        *create[:-1], "bad", "--stdin", stdin=f'{{"saslPassword": ["{planted["created"]}"]}}'
    ).code
    planted.plant("updated")
    update = ("manage", "update", "--type", "connector", "--name", "made")
    place.ask(*update, f"saslPassword=pass:{planted['updated']}")
    place.ask("manage", "query", "--type", "connector")
    # saved with the passwords that the file itself has, for its owner alone
    saved = place.state.read_text(encoding="utf-8")
    assert stat.S_IMODE(place.state.stat().st_mode) == 0o600
    assert planted["updated"] in saved
    assert "env:TRIOUTE_TEST_ENV" in saved
    assert not {"env", "file", "plugin"} & leaking(place, "state", saved)
    place.ask("manage", "get-log")
    assert "\n".join(place.leaks()) == ""


BAD_CONFIGURATIONS = {
    "unknown": '[[connector]]\nsaslPasswrd = "{}"\n[odd]\nkey = "{}"\n',
    "type": '[[connector]]\nname = "c"\nsaslUsername = "u"\nsaslPassword = ["{}"]\n',
    "table": '[[connector]]\nname = "c"\nsaslPassword = {{ literal = "{}" }}\n',
    "alone": '[[connector]]\nname = "c"\nsaslPassword = "{}"\n',
    "port": '[[connector]]\nport = "pass:{}"\nrole = "literal:{}"\n',
    "urls": '[[connector]]\nbackupUrls = ["pass:{}"]\n',
    "unfinished": '[[connector]]\nsaslPassword = "{}\nport = 1\n',
    "bare": "[[connector]]\nsaslPassword = {}\n",
    "bare key": "[[connector]]\nsaslPassword {}\n",
    "twice": '[[connector]]\nsaslPassword = "{}"\nsaslPassword = "{}"\n',
    "too long": '[[connector]]\nsaslUsername = "u"\nsaslPassword = "{}' + "x" * 600 + '"\n',
    "key": '[[sslProfile]]\nname = "own"\npassword = "{}"\ncertFile = "none.pem"\n',
    "proxy": '[[proxyProfile]]\nname = "p"\nhost = "h"\nport = 1\npassword = "{}"\n',
    "plugin": '[[plugin]]\nplugin = "tokens"\nsettings = {{ key = "{}" }}\n',
    "plugin, literal": '[[plugin]]\nplugin = "tokens"\nsettings = {{ key = "pass:{}" }}\n',
    "plugin, list": '[[plugin]]\nplugin = "tokens"\nsettings = {{ key = ["{}"] }}\n',
}
BAD_FILES_OF_DISPATCH = {
    "list": "connector {{\n port: 1\n saslUsername: u\n saslPassword: {}\n",
    "missing colon": "connector {{\n saslPassword {}\n}}\n",
    "unknown": "connector {{\n saslPasswrd: {}\n}}\n",
    "alone": "connector {{\n saslPassword: {}\n port: amqp\n}}\n",
    "port": "connector {{\n port: pass:{}\n}}\n",
    "key": "sslProfile {{\n name: x\n password: {}\n certFile: /none\n}}\n",
    "old": "ssl-profile {{\n name: x\n password-file: {}\n key-password: {}\n}}\n",
    "json": '[["connector", {{"saslPassword": ["{}"], "saslUsername": "u", "port": 1}}]]\n',
    "json, cut": '[["connector", {{"saslPassword": "{}", \n',
    "twice": "connector {{\n saslPassword: {}\n saslPassword: {}\n}}\n",
    "comment": "connector {{\n saslUsername: u\n saslPassword: {}#x\n port: 1\n}}\n",
}


def test_mistakes_in_configurations_show_no_secrets(place: Place) -> None:
    secret = place.planted.plant("mistaken")
    files = [(name, text, "toml") for name, text in BAD_CONFIGURATIONS.items()]
    files += [(name, text, "conf") for name, text in BAD_FILES_OF_DISPATCH.items()]
    for name, text, suffix in files:
        file = place.folder / f"bad.{suffix}"
        file.write_text(text.format(*[secret] * text.count("{}")), encoding="utf-8")
        place.note(name, invoke("check", file))
        if suffix == "toml":
            assert place.ask("apply", "--yes", str(file)).code == 1, name
            place.note(name, run("run", "--config", file))
    assert "\n".join(place.leaks()) == ""


def test_urls_on_the_command_line_are_not_shown(place: Place) -> None:
    secret = place.planted.plant("in a URL")
    raw, quoted = secret.replace("/", "%2F"), quote(secret, safe="")
    port = place.broker.port
    for url in (
        f"amqp://ada:{quoted}@127.0.0.1:{port}/q",
        f"amqp://ada:{raw}@127.0.0.1:x/q",
        f"amqp://ada:{secret}@127.0.0.1:{port}/q",
        f"amqp://ada:{secret}/{secret}@127.0.0.1:{port}/q",
        f"ada:{quoted}@127.0.0.1:1/q",
        f"ada:{quoted}@nowhere.invalid/q",
        f"http://ada:{quoted}@127.0.0.1/q",
        f"ada:{raw}://127.0.0.1/q",
        f"amqp://:{raw}@127.0.0.1/q",
        f"amqp://ada:{raw}@[::1/q",
        f"amqps://ada:{quoted}@127.0.0.1:{port}/q",
    ):
        for command in (("send", url, "x"), ("receive", url), ("stat", "--bus", url)):
            ended = place.note(f"{command[0]} {url[:8]}", invoke(*command))
            assert ended.code != 0
    for option in ("--sasl-password", "--password"):
        place.note(option, invoke("stat", f"{option}={secret}"))
    assert "\n".join(place.leaks()) == ""


async def test_nothing_in_memory_shows_a_secret_in_its_repr(tmp_path: Path) -> None:
    """A traceback, and any log line, may show the repr of an object."""
    planted = PlantedSecrets()
    for name in ("ada", "wrong user", "literal", "pass", "env", "file", "proxy", "key"):
        planted.plant(name)
    users = users_file(planted, tmp_path / "users", "ada")
    text = (
        entity(
            "listener",
            port=0,
            usersFile=str(users),
            saslMechanisms=["PLAIN", "SCRAM-SHA-256"],
            authenticatePeer=True,
        )
        + entity(
            "proxyProfile",
            name="p",
            host="127.0.0.1",
            port=1,
            username="u",
            password=planted["proxy"],
        )
        + _connector("c", 1, "u", f"pass:{planted['pass']}", proxyProfile="p")
        + _connector("d", 1, "u", planted["literal"])
    )
    wanted = parse_configuration(text, source="test")
    with trio.fail_after(PATIENCE_S):
        async with running_node(wanted) as running, dialled(running.address) as begun:
            assert (await log_in(running, "PLAIN", plain("ada", planted["ada"])))[1] == "ada"
            await log_in(running, "PLAIN", plain("ada", planted["wrong user"]))
            # one login is under way
            login = ScramClientLogin("SCRAM-SHA-256", "ada", planted["ada"])
            await begun.say(SASL_HEADER)
            await begun.say(On(0, SaslInit(Symbol("SCRAM-SHA-256"), login.first()), frame_type=1))
            assert await begun.octets(8) == SASL_HEADER
            await begun.hear(SaslMechanisms)
            await begun.hear(SaslChallenge)
            found = reprs_in_memory()
    shown = {
        f"{kind.__name__}: {leak}"
        for kind, texts in found.items()
        for leak in planted.leaks("repr", "\n".join(texts))
    }
    assert "\n".join(sorted(shown)) == ""
    # so that the search has seen what holds them
    assert {Secret, ConnectorSettings, ProxyProfileSettings, Users, Authenticator} <= found.keys()
    assert {ScramLogin, ConnectionSettings, ScramClientLogin} <= found.keys()


def reprs_in_memory() -> dict[type, list[str]]:
    """Return the reprs of all objects of the router's classes, by class."""
    found: dict[type, list[str]] = defaultdict(list)
    for each in gc.get_objects():
        kind = type(each)
        if str(getattr(kind, "__module__", "")).startswith("router."):
            found[kind].append(repr(each))
    return found


@pytest.mark.parametrize("form", sorted({form for form, _ in forms_of("0123456789abcdef+/~")}))
def test_the_search_finds_each_form(form: str) -> None:
    planted = PlantedSecrets()
    secret = planted.plant("control")
    for name, shown in forms_of(secret):
        if name == form:
            found = planted.leaks("text", f"before {shown} behind")
            assert [leak for leak in found if leak.startswith(f"text: control ({form})")], shown
    assert planted.leaks("text", "nothing of it") == []
    # as a part of more
    basic = base64.b64encode(f"user:{secret}".encode()).decode()
    assert planted.leaks("text", f"Authorization: Basic {basic}") != []


def test_the_search_finds_what_a_router_says(place: Place) -> None:
    # a host's name is no secret, but it is planted as one here
    name = place.planted.plant("control")
    body = SaslInit(Symbol("PLAIN"), initial_response=b"\0a\0b", hostname=name)
    say(place.router.addresses[USERS][1], SASL_HEADER + encode_frame(0, body, frame_type=1))
    assert leaking(place, "log", place.router.log_text()) == {"control"}
    assert any("log of the router: control (plain)" in leak for leak in place.leaks())
