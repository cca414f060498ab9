"""Logins that a web service decides: allowed, refused, and all that is neither."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from router_auth_http import MAX_ANSWER_BYTES, service_url
from structlog.testing import capture_logs

from router.amqp.constants import SaslCode
from router.amqp.framing import AMQP_HEADER
from router.amqp.performatives import Close, Open
from router.config.secret import Secret
from router.plugin import ValueNotAllowed

from support.certificates import Authority
from support.connecting import connecting
from support.logins import log_in, oauthbearer, plain, with_logins_by, xoauth2
from support.loopback import Running, dialled, running_node
from support.plugins import install_from_tree

NAME = "auth-http"


@attrs.define
class Service:
    """Web service with a few users; `asked` are the paths, headers and bodies it was sent."""

    url: str = ""
    asked: list[tuple[str, dict[str, str], dict[str, Any]]] = attrs.Factory(list)
    go_on: threading.Event = attrs.Factory(threading.Event)

    def answer(self, asked: dict[str, Any]) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        user, secret = asked.get("user"), asked.get("password") or asked.get("token")
        if "action" in asked:
            container = asked["connection"]["container"]
            return {"refused": 403, "failing": 500}.get(container, 200), b""
        if user == "slow":
            self.go_on.wait(20)
        odd = {
            "failing": (500, b"{}"),
            "moved": (302, b"{}"),
            "text": (200, b"yes"),
            "list": (200, b"[]"),
            "deep": (200, b"[" * 10_000),
            "nameless": (200, b'{"user": 3}'),
            "grouped": (200, b'{"groups": "staff"}'),
            "long": (200, b" " * (MAX_ANSWER_BYTES + 1)),
            "plain": (200, b""),
        }
        if user in odd:
            return odd[user]
        if secret != "s3cret":
            return (403 if user == "eve" else 401), b"no"
        return 200, json.dumps({"user": user or "owner", "groups": ["staff"]}).encode()


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[Service]:
    """Run a web service on a free port of the loopback address."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            service.asked.append((self.path, dict(self.headers.items()), body))
            status, answer = service.answer(body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        scheme = "http"
        if context is not None:
            scheme = "https"
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        service.url = f"{scheme}://localhost:{server.server_address[1]}/login"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield service
        finally:
            service.go_on.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    """Run a web service."""
    with serving() as running:
        yield running


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_from_tree(tmp_path, monkeypatch, **{NAME: "router_auth_http:AuthHttp"})


@asynccontextmanager
async def asking(service: Service, **settings: object) -> AsyncIterator[Running]:
    """Run a router that asks the service."""
    async with with_logins_by(NAME, {"authenticationUrl": service.url, **settings}) as running:
        yield running


async def test_a_password(service: Service) -> None:
    async with asking(service) as running:
        found = await log_in(running, "PLAIN", plain("ada", "s3cret"), "tenant")
        assert found == (SaslCode.OK, "ada", frozenset({"staff"}))
        found = await log_in(running, "PLAIN", plain("plain", "x"))
        assert found == (SaslCode.OK, "plain", frozenset())
    path, headers, asked = service.asked[0]
    assert path == "/login"
    assert "Authorization" not in headers
    assert asked.pop("peer").startswith("127.0.0.1:")
    assert asked == {
        "mechanism": "PLAIN",
        "user": "ada",
        "password": "s3cret",
        "hostname": "tenant",
    }


@pytest.mark.parametrize(
    ("mechanism", "user", "known_as"),
    [("XOAUTH2", "ada", "ada"), ("OAUTHBEARER", "ada", "ada"), ("OAUTHBEARER", "", "owner")],
)
async def test_a_token(
    service: Service, monkeypatch: pytest.MonkeyPatch, mechanism: str, user: str, known_as: str
) -> None:
    monkeypatch.setenv("OF_ROUTER", "Basic r0uter")
    response = xoauth2(user, "s3cret")
    if mechanism == "OAUTHBEARER":
        response = oauthbearer(user, "s3cret") if user else "n,,\x01auth=Bearer s3cret\x01\x01"
    async with asking(service, authorization="env:OF_ROUTER") as running:
        found = await log_in(running, mechanism, response)
    assert found == (SaslCode.OK, known_as, frozenset({"staff"}))
    (_, headers, asked) = service.asked[0]
    assert headers["Authorization"] == "Basic r0uter"
    assert (asked["user"], asked["token"]) == (user, "s3cret")


@pytest.mark.parametrize(
    ("mechanism", "user", "known_as"),
    [("XOAUTH2", "ada", "ada"), ("OAUTHBEARER", "ada", "ada"), ("OAUTHBEARER", None, "owner")],
)
async def test_a_token_of_a_connector(
    service: Service, mechanism: str, user: str | None, known_as: str
) -> None:
    async with asking(service) as running:
        login = {"sasl_username": user, "sasl_password": Secret.parse("s3cret")}
        wanted = connecting(running.address[1], sasl_mechanisms=(mechanism,), **login)
        async with running_node(wanted):
            await running.until(lambda: any(each.opened.is_set() for each in running.pumps))
            (pump,) = running.pumps
            assert (pump.connection.user, pump.connection.mechanism) == (known_as, mechanism)
            assert pump.connection.groups == {"staff"}
    (_, _, asked) = service.asked[0]
    assert (asked["mechanism"], asked["user"]) == (mechanism, user or "")
    assert (asked["token"], asked["hostname"]) == ("s3cret", "127.0.0.1")


@pytest.mark.parametrize("user", ["ada", "eve"])
async def test_a_refusal(service: Service, user: str) -> None:
    with capture_logs() as logs:
        async with asking(service) as running:
            for mechanism, response in (
                ("PLAIN", plain(user, "t0psecret")),
                ("XOAUTH2", xoauth2(user, "t0psecret")),
                ("OAUTHBEARER", oauthbearer(user, "t0psecret")),
            ):
                found = await log_in(running, mechanism, response)
                assert found[0] is SaslCode.AUTH
    assert len(service.asked) == 3
    assert "t0psecret" not in str(logs)


@pytest.mark.parametrize(
    ("mechanism", "response"),
    [
        ("PLAIN", plain("ada", "")),
        ("PLAIN", plain("ada", "s3cret", "bob")),
        ("PLAIN", "s3cret"),
        ("XOAUTH2", "s3cret"),
        ("OAUTHBEARER", "s3cret"),
    ],
)
async def test_what_is_refused_without_asking(
    service: Service, mechanism: str, response: str
) -> None:
    async with asking(service) as running:
        assert (await log_in(running, mechanism, response))[0] is SaslCode.AUTH
    assert service.asked == []


@pytest.mark.parametrize(
    "user", ["failing", "moved", "text", "list", "deep", "nameless", "grouped", "long"]
)
async def test_an_answer_that_says_nothing(service: Service, user: str) -> None:
    with capture_logs() as logs:
        async with asking(service) as running:
            found = await log_in(running, "PLAIN", plain(user, "t0psecret"))
    assert found[0] is SaslCode.SYS
    assert len(service.asked) == 1
    assert "t0psecret" not in str(logs)


async def test_a_service_that_is_slow_or_gone(service: Service) -> None:
    async with asking(service, timeoutSeconds=0.2) as running:
        assert (await log_in(running, "PLAIN", plain("slow", "s3cret")))[0] is SaslCode.SYS
    nowhere = Service("http://127.0.0.1:1/")
    async with asking(nowhere) as running:
        assert (await log_in(running, "PLAIN", plain("ada", "s3cret")))[0] is SaslCode.SYS


@pytest.mark.parametrize("trusted", [True, False])
async def test_the_certificate_of_the_service_is_verified(tmp_path: Path, trusted: bool) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path / "own"), Authority(tmp_path / "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("localhost"))
    file = (authority if trusted else other).ca_file
    with serving(context) as service:
        async with asking(service, caCertFile=str(file)) as running:
            found = await log_in(running, "PLAIN", plain("ada", "s3cret"))
        assert found[0] is (SaslCode.OK if trusted else SaslCode.SYS)
        assert len(service.asked) == trusted


async def test_only_passwords(service: Service) -> None:
    async with asking(service, tokens=False) as running:
        (listener,) = running.node.endpoints.listeners.values()
        server: Any = listener.server
        assert server.authenticator.offered(("XOAUTH2", "PLAIN")) == ("PLAIN",)


@pytest.mark.parametrize(
    ("container", "allowed"), [("c", True), ("refused", False), ("failing", False)]
)
async def test_connections(service: Service, container: str, allowed: bool) -> None:
    settings: dict[str, object] = {
        "authenticationUrl": service.url,
        "authorizationUrl": service.url.replace("login", "access"),
    }
    fields: dict[str, Any] = {"authorization_plugin": NAME, "authenticate_peer": False}
    asking = with_logins_by(NAME, settings, **fields)
    async with asking as running, dialled(running.address) as peer:
        await peer.say(AMQP_HEADER, Open(container))
        await peer.octets(8)
        await peer.hear(Open)
        if not allowed:
            assert (await peer.hear(Close)).error is not None
    ((path, _, asked),) = service.asked
    assert path == "/access"
    assert (asked["action"], asked["user"], asked["groups"]) == ("open", None, [])
    assert asked["connection"]["container"] == container


async def test_connections_without_a_url_are_refused(service: Service) -> None:
    fields: dict[str, Any] = {"authorization_plugin": NAME, "authenticate_peer": False}
    settings: dict[str, object] = {"authenticationUrl": service.url}
    async with with_logins_by(NAME, settings, **fields) as running:
        with trio.fail_after(20):
            async with dialled(running.address) as peer:
                await peer.say(AMQP_HEADER, Open("c"))
                await peer.octets(8)
                await peer.hear(Open)
                assert (await peer.hear(Close)).error is not None


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://accounts.example/login", True),
        ("https://accounts.example:8443/", True),
        ("http://localhost:80/", True),
        ("http://127.0.0.2/", True),
        ("http://[::1]:8080/", True),
        ("http://accounts.example/", False),
        ("http://localhost.example/", False),
        ("https://user:password@accounts.example/", False),
        ("https://accounts.example:port/", False),
        ("https:///", False),
        ("ftp://localhost/", False),
        ("", False),
        (3, False),
    ],
)
def test_urls(url: object, allowed: bool) -> None:
    kind = service_url()
    if allowed:
        assert kind.read(url) == url
        return
    with pytest.raises(ValueNotAllowed):
        kind.read(url)
