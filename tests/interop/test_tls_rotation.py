"""Certificates are replaced while clients send: nothing is lost, and new peers see new ones."""

from __future__ import annotations

import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from proton import Message

from support.certificates import Authority, certificate
from support.commands import Command, Ended
from support.management_tool import Tool
from support.proton_peers import ProtonConnection, ProtonPeers, ProtonReceiver, ProtonSender
from support.rhea_peers import RheaPeer
from support.routers import RouterProcess, StartRouter
from support.tls_peers import (
    external_session,
    listener,
    profile,
    shown_certificate,
    ssl_context,
    ssl_domain,
)

MOST_UNSETTLED = 50
SECURED, PLAIN = range(2)
RENEWED = "certificate renewed"


@attrs.define
class Rotating:
    """Router whose certificate and key are in files of their own, and what is sent through it."""

    router: RouterProcess
    authority: Authority
    proton: ProtonPeers
    text: str
    certificate: Path
    key: Path
    sender: ProtonSender
    receiver: ProtonReceiver

    def go_on(self) -> None:
        """Send what can be sent."""
        while self.sender.link.credit > 0 and len(self._unsettled()) < MOST_UNSETTLED:
            self.sender.send(Message(len(self.sender.sent)))

    def _unsettled(self) -> list[Any]:
        return [sent for sent in self.sender.sent[-MOST_UNSETTLED:] if not sent.is_settled]

    def until(self, holds: Callable[[], Any], what: str) -> None:
        """Send until something is so, and until a message that was sent after that is settled."""

        def is_so() -> bool:
            self.go_on()
            return bool(holds())

        self.proton.until(is_so, what)
        count = len(self.sender.sent)
        self.proton.until(lambda: self._has_settled(count), "another message is settled")

    def _has_settled(self, number: int) -> bool:
        self.go_on()
        return len(self.sender.sent) > number and self.sender.sent[number].is_settled

    def shown(self) -> int:
        """Return the serial number of the certificate that new connections are shown."""
        return shown_certificate(self.router.port, self.authority).serial_number

    def replace(self) -> int:
        """Write another certificate and key over the files; return the serial number."""
        issued = self.authority.issue("localhost")
        write(issued, self.certificate, self.key)
        return certificate(issued).serial_number

    def hang_up(self) -> None:
        """Tell the router to read its files again."""
        self.router.process.send_signal(signal.SIGHUP)

    def apply(self, text: str | None = None) -> Ended:
        """Run `trioute apply` while messages pass."""
        arguments = ["apply", "--yes", "--bus", self.router.url(listener=PLAIN), "-"]
        with Command(*arguments, stdin=(text or self.text).encode()) as command:
            self.until(lambda: command.has_ended, "the command has ended")
            return command.end()

    def until_reloaded(self, count: int = 1) -> None:
        """Send until the router has read its files again so many times."""
        log = self.router.log_text
        self.until(lambda: log().count("configuration reloaded") >= count, "the files are read")

    def check(self) -> None:
        """Check that nothing was lost, on links and connections that have never ended."""
        self.proton.until(self.sender.all_settled, "all is settled")
        assert set(self.sender.outcomes) == {"accepted"}
        assert self.receiver.bodies() == list(range(len(self.sender.sent)))
        assert not self.sender.is_over
        assert not self.receiver.is_over


def write(issued: Path, to: Path, key: Path) -> None:
    """Write the certificate and the key of a file to files of their own."""
    text = issued.read_text("ascii")
    begin = text.index("-----BEGIN CERTIFICATE")
    key.write_text(text[:begin], encoding="ascii")
    to.write_text(text[begin:], encoding="ascii")


@pytest.fixture
def rotating(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, tmp_path: Path, address: str
) -> Rotating:
    """Start a router, and clients on connections of their own whose messages pass with TLS."""
    file, key = tmp_path / "router.pem", tmp_path / "router.key"
    write(authority.issue("localhost"), file, key)
    text = (
        profile("own", file, privateKeyFile=str(key))
        + listener("secured", sslProfile="own", idleTimeoutSeconds=120)
        + listener("plain", idleTimeoutSeconds=120)
    )
    router = routers(text)
    url, rules = router.url(scheme="amqps"), ssl_domain(authority)
    receiver = proton.connect(url, ssl_domain=rules).receiver(address, 100)
    receiver.renews = True
    sender = proton.connect(url, ssl_domain=rules).sender(address)
    return Rotating(router, authority, proton, text, file, key, sender, receiver)


@pytest.mark.parametrize("how", ["SIGHUP", "request", "apply", "nothing"])
def test_new_connections_see_the_new_certificate(rotating: Rotating, how: str) -> None:
    """The router notices by itself within ten seconds."""
    rotating.until(lambda: len(rotating.sender.sent) > 500, "messages pass")
    before = rotating.shown()
    assert before == certificate(rotating.certificate).serial_number
    # the last one is what counts
    after = [rotating.replace() for _ in range(3)][-1]
    assert after != before
    if how == "SIGHUP":
        rotating.hang_up()
        rotating.until_reloaded()
    elif how == "request":
        tool = Tool(rotating.router, url=rotating.router.url(listener=PLAIN))
        assert tool.status(rotating.text, operation="APPLY") == 200
        tool.close()
    elif how == "apply":
        ended = rotating.apply()
        assert ended.code == 0, ended.errors
    else:
        rotating.until(lambda: RENEWED in rotating.router.log_text(), "the router has noticed")
    assert rotating.shown() == after
    rotating.until(lambda: len(rotating.sender.sent) > 1000, "messages pass")
    rotating.check()


def test_certificates_are_replaced_again_and_again(rotating: Rotating) -> None:
    for count in range(1, 6):
        after = rotating.replace()
        rotating.hang_up()
        rotating.until_reloaded(count)
        assert rotating.shown() == after
    rotating.check()


def test_connections_open_while_certificates_are_replaced(
    rotating: Rotating, authority: Authority, proton: ProtonPeers
) -> None:
    """Each sees the old certificate or the new one."""
    url = rotating.router.url(scheme="amqps")
    opening: list[ProtonConnection] = []
    for count in range(1, 4):
        rotating.replace()
        rotating.hang_up()
        rules = ssl_domain(authority)
        opening.extend(proton.begin_connect(url, ssl_domain=rules) for _ in range(10))
        rotating.until(lambda: all(each.is_open for each in opening), "they are open")
        rotating.until_reloaded(count)
    assert not any(each.lost for each in opening)
    rotating.check()


@pytest.mark.parametrize("where", ["in place", "elsewhere"])
def test_files_that_do_not_belong_together_change_nothing(rotating: Rotating, where: str) -> None:
    before = rotating.shown()
    other = rotating.authority.issue("localhost")
    text = rotating.text
    if where == "in place":
        write(other, rotating.authority.folder / "unused.pem", rotating.key)
    else:
        text = text.replace(str(rotating.key), str(other))
    ended = rotating.apply(text)
    assert ended.code == 1
    assert "sslProfile[0].privateKeyFile (own): does not belong to the cert" in ended.errors
    assert rotating.shown() == before
    rotating.check()


def test_files_are_used_once_they_belong_together(rotating: Rotating) -> None:
    before = rotating.shown()
    other = rotating.authority.issue("localhost")
    unused = rotating.authority.folder / "unused.pem"
    # first the certificate alone
    write(other, rotating.certificate, unused)
    rotating.hang_up()
    refused = "does not belong to the certificate"
    rotating.until(lambda: rotating.router.warnings(refused), "the log says why")
    assert rotating.shown() == before
    # then the key
    write(other, unused, rotating.key)
    rotating.hang_up()
    rotating.until_reloaded()
    assert rotating.shown() == certificate(other).serial_number
    rotating.check()


def test_files_that_are_missing_change_nothing(rotating: Rotating) -> None:
    before = rotating.shown()
    rotating.certificate.unlink()
    ended = rotating.apply()
    assert ended.code == 1
    assert "sslProfile[0].certFile (own): cannot be read: No such file" in ended.errors
    assert rotating.shown() == before
    rotating.check()


def test_another_profile_can_be_applied(rotating: Rotating) -> None:
    other = rotating.authority.issue("localhost")
    text = rotating.text.replace(str(rotating.certificate), str(other))
    ended = rotating.apply(text.replace(str(rotating.key), str(other)))
    assert ended.code == 0, ended.errors
    assert rotating.shown() == certificate(other).serial_number
    rotating.check()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_whoever_is_revoked_cannot_come_back_not_even_by_an_old_session(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, version: ssl.TLSVersion
) -> None:
    own = profile(
        "own",
        authority.issue("localhost"),
        caCertFile=str(authority.ca_file),
        crlFile=str(authority.revoke()),
    )
    login = listener("l", sslProfile="own", saslMechanisms="EXTERNAL", authenticatePeer=True)
    router = routers(own + login)
    ada, eve = (authority.issue(f"{name}@example.org", common_name=name) for name in ("ada", "eve"))
    url = router.url(scheme="amqps")
    there = proton.connect(url, ssl_domain=ssl_domain(authority, eve))
    context = ssl_context(authority, eve)
    context.minimum_version = context.maximum_version = version
    session, _ = external_session(router.port, context)
    assert external_session(router.port, context, session)[1]
    authority.revoke(eve)
    router.process.send_signal(signal.SIGHUP)
    proton.until(lambda: "configuration reloaded" in router.log_text(), "it is read")
    for old in (None, session):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            external_session(router.port, context, old)
    proton.connect(url, ssl_domain=ssl_domain(authority, ada))
    # who is there stays
    assert there.is_open
    assert there.sender("q").is_attached


def test_clients_over_web_sockets_go_on(
    routers: StartRouter,
    authority: Authority,
    proton: ProtonPeers,
    rhea: RheaPeer,
    address: str,
    tmp_path: Path,
) -> None:
    file, key = tmp_path / "router.pem", tmp_path / "router.key"
    write(authority.issue("localhost"), file, key)
    router = routers(
        profile("own", file, privateKeyFile=str(key))
        + listener("web", http=True, websockets=True, sslProfile="own")
        + listener("plain")
    )
    port = router.http_addresses[0][1]
    options: dict[str, Any] = {"ca": authority.ca_file.read_text("ascii")}
    socket = {"url": f"wss://localhost:{port}/", "subprotocols": ["amqp"], "options": options}
    rhea.connect(port=port, web_socket=socket)
    receiver, sender = rhea.receiver(address), rhea.sender(address)
    sent = 0

    def go_on(count: int = 20) -> None:
        nonlocal sent
        for _ in range(count):
            rhea.send(Message(sent).encode(), sender)
            sent += 1

    before = shown_certificate(port, authority).serial_number
    for count in range(1, 4):
        go_on()
        issued = authority.issue("localhost")
        write(issued, file, key)
        router.process.send_signal(signal.SIGHUP)
        while router.log_text().count("configuration reloaded") < count:
            go_on(1)
            rhea.wait("accepted", sent, link=sender)
        after = shown_certificate(port, authority).serial_number
        assert after == certificate(issued).serial_number != before
        # who comes now is served, too
        rhea.connect(port, f"c{count}", web_socket=socket)
    rhea.wait("accepted", sent, link=sender)
    messages = rhea.messages(sent, receiver)
    bodies = []
    for octets in messages:
        message = Message()
        message.decode(octets)
        bodies.append(message.body)
    assert bodies == list(range(sent))
    for event in ("disconnected", "connection_close", "receiver_close", "sender_close"):
        assert rhea.find(event) == []


def test_the_certificate_of_another_host_is_replaced(
    routers: StartRouter, authority: Authority, proton: ProtonPeers, address: str, tmp_path: Path
) -> None:
    """Traffic passes with both certificates; only that of one host is another."""
    file, key = tmp_path / "a.pem", tmp_path / "a.key"
    write(authority.issue("a.example"), file, key)
    text = (
        profile("own", authority.issue("localhost"))
        + profile("a", file, privateKeyFile=str(key))
        + listener("secured", sslProfile="own", sniSslProfiles=["a"], idleTimeoutSeconds=120)
        + listener("plain", idleTimeoutSeconds=120)
    )
    router = routers(text)
    url, rules = router.url(scheme="amqps"), ssl_domain(authority)
    receiver = proton.connect(url, ssl_domain=rules).receiver(address, 100)
    receiver.renews = True
    named = proton.connect(url, ssl_domain=ssl_domain(authority), virtual_host="a.example")
    sender = named.sender(address)
    rotating = Rotating(router, authority, proton, text, file, key, sender, receiver)
    main = rotating.shown()
    for count in range(1, 4):
        issued = authority.issue("a.example")
        write(issued, file, key)
        rotating.hang_up()
        rotating.until_reloaded(count)
        assert rotating.shown() == main
        found = shown_certificate(router.port, authority, "a.example")
        assert found.serial_number == certificate(issued).serial_number
    proton.connect(url, ssl_domain=ssl_domain(authority), virtual_host="a.example")
    rotating.check()


def test_the_authorities_and_the_list_of_clients_are_replaced(
    routers: StartRouter,
    authority: Authority,
    stranger: Authority,
    proton: ProtonPeers,
    address: str,
    tmp_path: Path,
) -> None:
    """Open connections stay, and new ones are verified with the new files."""
    authorities, revoked = tmp_path / "clients.pem", tmp_path / "clients.crl"
    authorities.write_bytes(authority.ca_file.read_bytes())
    revoked.write_bytes(authority.revoke().read_bytes())
    own = authority.issue("localhost")
    files = {"caCertFile": str(authorities), "crlFile": str(revoked)}
    login = {"saslMechanisms": "EXTERNAL", "authenticatePeer": True, "idleTimeoutSeconds": 120}
    text = (
        profile("own", own, **files)
        + listener("secured", sslProfile="own", **login)
        + listener("plain", idleTimeoutSeconds=120)
    )
    router = routers(text)
    url = router.url(scheme="amqps")
    ada, eve = (authority.issue(f"{name}@example.org", common_name=name) for name in ("ada", "eve"))
    new = stranger.issue("new@example.org", common_name="new")
    receiver = proton.connect(url, ssl_domain=ssl_domain(authority, ada)).receiver(address, 100)
    receiver.renews = True
    sender = proton.connect(url, ssl_domain=ssl_domain(authority, eve)).sender(address)
    rotating = Rotating(router, authority, proton, text, own, own, sender, receiver)
    served: dict[Path, bool] = {ada: True, eve: True, new: False}

    def check_served() -> None:
        for file, is_served in served.items():
            context = ssl_context(authority, file)
            if is_served:
                external_session(router.port, context)
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    external_session(router.port, context)

    check_served()
    # the list alone
    revoked.write_bytes(authority.revoke(eve).read_bytes())
    rotating.hang_up()
    rotating.until_reloaded()
    served[eve] = False
    check_served()
    # another authority as well, and its list
    authorities.write_bytes(authority.ca_file.read_bytes() + stranger.ca_file.read_bytes())
    revoked.write_bytes(authority.revoke(eve).read_bytes() + stranger.revoke().read_bytes())
    rotating.hang_up()
    rotating.until_reloaded(2)
    served[new] = True
    check_served()
    # that one alone
    authorities.write_bytes(stranger.ca_file.read_bytes())
    revoked.write_bytes(stranger.revoke().read_bytes())
    rotating.hang_up()
    rotating.until_reloaded(3)
    served[ada] = False
    check_served()
    rotating.check()
