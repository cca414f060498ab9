"""Peers that connect with TLS: rules for Proton, Python's `ssl`, OpenSSL's `s_client`, key stores.

All of them connect to localhost, and trust one `Authority`.
"""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import attrs
from cryptography import x509
from proton import SSLDomain

from support.certificates import Authority
from support.routers import RouterProcess

PATIENCE_S = 60.0
STORE_PASSWORD = "password"  # noqa: S105

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", re.DOTALL)


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


def shown_certificate(port: int, authority: Authority) -> x509.Certificate:
    """Return the certificate that a new connection is shown."""
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as sock,
        ssl_context(authority).wrap_socket(sock, server_hostname="localhost") as secured,
    ):
        octets = secured.getpeercert(binary_form=True)
    assert octets is not None
    return x509.load_der_x509_certificate(octets)


def trust_store(authority: Authority) -> Path:
    """Return a Java key store with the authority; its password is `STORE_PASSWORD`."""
    store = authority.folder / "trusted.p12"
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
