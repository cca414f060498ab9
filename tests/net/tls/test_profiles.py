"""TLS profiles: which certificates are loaded, for which hosts, and when they are reloaded."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from router.config.connectors import ConnectorSettings
from router.config.listeners import ListenerSettings
from router.config.secret import Secret
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.channel import TlsChannel
from router.net.tls.contexts import ProfileUnusable, client_context
from router.net.tls.profiles import (
    ServerTls,
    expiries_of,
    load_client_tls,
    load_server_tls,
    renewed_client_tls,
    renewed_server_tls,
    stamps_of,
)

from support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return an authority."""
    return Authority(tmp_path)


def loaded(listener: ListenerSettings, *profiles: SslProfileSettings) -> ServerTls:
    """Return the TLS of a listener."""
    tls = load_server_tls(listener, {str(each.name): each for each in profiles})
    assert tls is not None
    return tls


def shown_to(tls: ServerTls, host: str, authority: Authority) -> str:
    """Return the name in the certificate that a peer is shown that asks for a host."""
    trusting = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    context = client_context(trusting, verify_hostname=False)
    client, server = TlsChannel(context, server_hostname=host), tls.channel()
    while client.has_output or server.has_output:
        for one, other in ((client, server), (server, client)):
            octets = memoryview(bytes(one.take_output()))
            one.unsent = memoryview(b"")
            if octets:
                other.receive(octets, memoryview(bytearray(2**18)))
    found = client._tls.getpeercert()
    assert found is not None
    return str(found["subjectAltName"][0][1])


def test_a_listener_without_a_profile_has_no_tls() -> None:
    assert load_server_tls(ListenerSettings(), {}) is None


@pytest.mark.spec("5.2-4")
def test_a_host_has_its_certificate(authority: Authority) -> None:
    profiles = [
        authority.profile("main", cert_file=authority.issue("main.example")),
        authority.profile("a", cert_file=authority.issue("a.example")),
        authority.profile("c", cert_file=authority.issue("*.c.example")),
    ]
    listener = ListenerSettings(ssl_profile="main", sni_ssl_profiles=("a", "c"))
    tls = loaded(listener, *profiles)
    for host, name in (
        ("main.example", "main.example"),
        ("a.example", "a.example"),
        ("A.Example", "a.example"),
        ("x.c.example", "*.c.example"),
        ("x.y.c.example", "main.example"),
        ("elsewhere.example", "main.example"),
        ("127.0.0.1", "main.example"),
    ):
        assert shown_to(tls, host, authority) == name, host


@pytest.mark.spec("0.2-8")
def test_peers_without_tls_are_let_in_only_if_told(authority: Authority) -> None:
    profile = authority.profile()
    for fields, allows in (
        ({}, False),
        ({"require_ssl": False}, True),
        ({"require_ssl": False, "require_encryption": True}, False),
    ):
        listener = ListenerSettings(ssl_profile="tls", **fields)  # type: ignore[arg-type]
        assert loaded(listener, profile).allows_plain is allows


def test_a_profile_at_fault_is_named(authority: Authority, tmp_path: Path) -> None:
    broken = authority.profile("broken", cert_file=tmp_path / "missing")
    listener = ListenerSettings(ssl_profile="tls", sni_ssl_profiles=("broken",))
    with pytest.raises(ProfileUnusable, match="sslProfile broken: certFile cannot be read"):
        loaded(listener, authority.profile(), broken)
    connector = ConnectorSettings(ssl_profile="broken")
    with pytest.raises(ProfileUnusable, match="sslProfile broken: certFile cannot be read"):
        load_client_tls(connector, broken)


def test_what_has_not_changed_is_kept(authority: Authority) -> None:
    profile = authority.profile()
    listener = ListenerSettings(ssl_profile="tls")
    before = loaded(listener, profile)
    assert renewed_server_tls(before, listener, {"tls": profile}) is before
    connector = ConnectorSettings(ssl_profile="tls")
    client = load_client_tls(connector, profile)
    assert renewed_client_tls(client, connector, profile) is client
    assert profile.cert_file is not None
    profile.cert_file.write_bytes(authority.issue("localhost").read_bytes())
    assert renewed_server_tls(before, listener, {"tls": profile}) is not before
    assert renewed_client_tls(client, connector, profile) is not client


def test_another_profile_is_loaded(authority: Authority) -> None:
    listener = ListenerSettings(ssl_profile="tls")
    before = loaded(listener, authority.profile())
    other = authority.profile(protocols=("TLSv1.3",))
    after = renewed_server_tls(before, listener, {"tls": other})
    assert after is not None
    assert after.context.minimum_version is ssl.TLSVersion.TLSv1_3


def test_every_file_counts(authority: Authority, tmp_path: Path) -> None:
    names = tmp_path / "names.json"
    password = tmp_path / "password"
    names.write_text("{}", encoding="utf-8")
    password.write_text("x", encoding="utf-8")
    profile = authority.profile(uid_name_mapping_file=names, password=Secret("file", str(password)))
    before = stamps_of([profile])
    for file in (names, password, authority.ca_file):
        status = file.stat()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        assert stamps_of([profile]) != before
        before = stamps_of([profile])
    names.unlink()
    assert len(stamps_of([profile])) == len(before) - 1


def test_expiries_of_what_can_be_read(authority: Authority, tmp_path: Path) -> None:
    profiles = [
        authority.profile(crl_file=authority.revoke()),
        authority.profile("broken", cert_file=tmp_path / "missing", crl_file=tmp_path / "missing"),
        SslProfileSettings(name="client"),
    ]
    found = expiries_of(profiles)
    assert list(found.certificates) == ["tls"]
    assert list(found.lists) == ["tls"]
