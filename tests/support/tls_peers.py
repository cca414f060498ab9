"""TLS peers, and the configuration, trust stores and OpenSSL client that they need.

All of them connect to localhost, and trust one `Authority`. Proton, Python's `ssl`, Java and
OpenSSL's `s_client` are such peers.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import attrs
from cryptography import x509
from proton import SSLDomain

from router.amqp.framing import AMQP_HEADER, SASL_HEADER, encode_frame
from router.amqp.performatives import Open, SaslInit
from router.amqp.types import Symbol

from support.certificates import Authority
from support.configuring import entity
from support.management_tool import Tool
from support.proton_peers import ProtonConnection, ProtonPeers
from support.routers import RouterProcess

PATIENCE_S = 60.0
STORE_PASSWORD = "password"

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)


def profile(name: str, file: Path, **more: Any) -> str:
    """Return a profile of a configuration, with the file of its certificate and key."""
    return entity("sslProfile", name=name, certFile=str(file), **more)


def listener(name: str, **more: Any) -> str:
    """Return a listener of a configuration, on a free port."""
    return entity("listener", name=name, port=0, **more)


def dialled(router: RouterProcess, number: int = 0) -> socket.socket:
    """Return a new socket that is connected to a listener, by its number."""
    return socket.create_connection(("127.0.0.1", router.addresses[number][1]), PATIENCE_S)


def rest(sock: socket.socket) -> bytes:
    """Return everything until the router ends the stream, which it has to do."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while more := sock.recv(65536):
            found += more
    return found


def external_session(
    port: int, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> tuple[ssl.SSLSession | None, bool]:
    """Log in by a certificate and open; return TLS's session, and whether it was an old one.

    Raises `ssl.SSLError` or `ConnectionError` if that is refused.
    """
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock,
        context.wrap_socket(sock, server_hostname="localhost", session=session) as secured,
    ):
        secured.sendall(SASL_HEADER + encode_frame(0, SaslInit(Symbol("EXTERNAL")), frame_type=1))
        secured.sendall(AMQP_HEADER + encode_frame(0, Open(container_id="ssl")))
        found = b""
        # its answer to the login is before that, and its open after it
        while AMQP_HEADER not in found or found.endswith(AMQP_HEADER):
            more = secured.recv(65536)
            if not more:
                raise ConnectionError(f"it ended after {found!r}")
            found += more
        return secured.session, bool(secured.session_reused)


def ssl_domain(authority: Authority, certificate: Path | None = None) -> SSLDomain:
    """Return Proton's rules for TLS: this authority, and the name of the host."""
    found = SSLDomain(SSLDomain.MODE_CLIENT)
    found.set_trusted_ca_db(str(authority.ca_file))
    found.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    if certificate is not None:
        found.set_credentials(str(certificate), str(certificate), None)
    return found


def ssl_context(authority: Authority, certificate: Path | None = None) -> ssl.SSLContext:
    """Return the same for Python's `ssl`."""
    found = ssl.create_default_context(cafile=str(authority.ca_file))
    if certificate is not None:
        found.load_cert_chain(certificate)
    return found


def rhea_rules(router: RouterProcess, authority: Authority, number: int = 0) -> dict[str, Any]:
    """Return rhea's options to connect to a listener, by its number."""
    _, port = router.addresses[number]
    ca = authority.ca_file.read_text("ascii")
    return {"host": "localhost", "port": port, "transport": "tls", "ca": ca}


def refusal(proton: ProtonPeers, url: str, **options: Any) -> str:
    """Connect, which has to fail, and return why as far as Proton knows."""
    connection = proton.begin_connect(url, **options)
    proton.until(lambda: connection.is_lost, "the connection is refused")
    assert connection.opened == 0
    assert connection.transport_condition is not None
    return str(connection.transport_condition.description)


def entity_of(connection: ProtonConnection, router: RouterProcess, number: int) -> dict[str, Any]:
    """Return what management, which is asked at another listener, says of a connection."""
    tool = Tool(router, url=router.url(listener=number))
    name = connection.endpoint.container
    (found,) = (each for each in tool.query("connection") if each["container"] == name)
    tool.close()
    return found


def shown_certificate(port: int, authority: Authority, host: str = "localhost") -> x509.Certificate:
    """Return the certificate that a new connection is shown, which asks for a host."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock,
        ssl_context(authority).wrap_socket(sock, server_hostname=host) as secured,
    ):
        octets = secured.getpeercert(binary_form=True)
    assert octets is not None
    return x509.load_der_x509_certificate(octets)


def trust_store(authority: Authority) -> Path:
    """Return a Java key store with the authority; its password is `STORE_PASSWORD`."""
    store = authority.folder / "trusted.p12"
    if store.exists():
        return store
    command = ["keytool", "-importcert", "-noprompt", "-file", str(authority.ca_file)]
    command += ["-keystore", str(store), "-storepass", STORE_PASSWORD, "-storetype", "PKCS12"]
    subprocess.run(command, check=True, capture_output=True)
    return store


def key_store(certificate: Path) -> Path:
    """Return a Java key store with a certificate and its key; its password is the same."""
    store = certificate.with_suffix(".p12")
    command = ["openssl", "pkcs12", "-export", "-in", str(certificate), "-out", str(store)]
    command += ["-passout", f"pass:{STORE_PASSWORD}"]
    subprocess.run(command, check=True, capture_output=True)
    return store


@attrs.frozen
class Handshake:
    """What `openssl s_client` has said of a connection, and whether it is content."""

    code: int
    text: str

    @property
    def works(self) -> bool:
        """Return whether the handshake is complete, and the certificate is trusted."""
        return self.code == 0 and "Verify return code: 0 (ok)" in self.text

    @property
    def used(self) -> tuple[str, str]:
        """Return the TLS version and the cipher."""
        found = re.search(r"^New, (\S+), Cipher is (\S+)$", self.text, re.MULTILINE)
        assert found, self.text
        return found[1], found[2]

    @property
    def certificate(self) -> x509.Certificate:
        """Return the certificate that it was shown."""
        found = _PEM.search(self.text)
        assert found, self.text
        return x509.load_pem_x509_certificate(found[0].encode())

    @property
    def names(self) -> list[str]:
        """Return the host names in this certificate."""
        extensions = self.certificate.extensions
        found = extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return list(found.value.get_values_for_type(x509.DNSName))


def s_client(
    router: RouterProcess, authority: Authority, *options: str | Path, listener: int = 0
) -> Handshake:
    """Connect with OpenSSL, and leave at once."""
    command = _command(router, authority, listener, options)
    done = subprocess.run(
        command, input="", capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    return Handshake(done.returncode, done.stdout + done.stderr)


class Dialogue:
    """Connection by OpenSSL that goes on: what is said is sent, and all that comes is in `heard`.

    What OpenSSL itself says is there, too.
    """

    def __init__(
        self,
        router: RouterProcess,
        authority: Authority,
        *options: str | Path,
        listener: int = 0,
    ) -> None:
        self.process = subprocess.Popen(
            _command(router, authority, listener, options),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.heard = b""
        self._news = threading.Condition()
        assert self.process.stdout is not None
        self._thread = threading.Thread(target=self._listen, args=[self.process.stdout])
        self._thread.start()

    def _listen(self, stdout: IO[bytes]) -> None:
        while octets := stdout.read1(65536):  # type: ignore[attr-defined]
            with self._news:
                self.heard += octets
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._thread.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def say(self, octets: bytes) -> None:
        """Send octets, or a command of OpenSSL's."""
        assert self.process.stdin is not None
        self.process.stdin.write(octets)
        self.process.stdin.flush()

    def wait_for(self, octets: bytes) -> None:
        """Wait until these octets have been heard."""
        end = time.monotonic() + PATIENCE_S
        with self._news:
            while octets not in self.heard:
                is_over = self.process.poll() is not None and not self._thread.is_alive()
                assert not is_over, self.heard
                assert self._news.wait(end - time.monotonic()), self.heard

    def end(self) -> bytes:
        """Wait until OpenSSL leaves by itself, and return all that was heard."""
        self.process.wait(PATIENCE_S)
        self._thread.join()
        return self.heard


def _command(
    router: RouterProcess, authority: Authority, listener: int, options: tuple[str | Path, ...]
) -> list[str | Path]:
    _, port = router.addresses[listener]
    place = f"localhost:{port}"
    return ["openssl", "s_client", "-connect", place, "-CAfile", authority.ca_file, *options]
