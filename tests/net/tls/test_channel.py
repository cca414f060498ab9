"""TLS over memory: what passes, what is refused, and why."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from router.config.listeners import ClientCertificate
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.channel import (
    CONGESTED_BYTES,
    LEAN_PIECE_BYTES,
    OUTPUT_BYTES,
    PIECE_BYTES,
    RECORD_BYTES,
    RECORD_OVERHEAD_BYTES,
    TLS_HEADER,
    Phase,
    TlsChannel,
    TlsFailed,
)
from router.net.tls.contexts import client_context, server_context

from support.certificates import Authority
from support.key_updates import REQUESTED, UPDATE_BYTES, KeyUpdater

ROOM = 2**18
MARGIN = 2 * (RECORD_BYTES + RECORD_OVERHEAD_BYTES)
AMQP = b"AMQP\x00\x01\x00\x00"


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return an authority whose certificates both sides trust."""
    return Authority(tmp_path_factory.mktemp("certificates"))


class Ends:
    """Client and server, each with the octets that it has decrypted."""

    def __init__(self, client: TlsChannel, server: TlsChannel) -> None:
        self.client = client
        self.server = server
        self.heard = {id(client): b"", id(server): b""}

    def pass_on(self) -> None:
        """Pass octets both ways until neither side has any."""
        while self.client.has_output or self.server.has_output:
            for one, other in ((self.client, self.server), (self.server, self.client)):
                if one.has_output:
                    self.deliver(other, bytes(taken(one)))

    def deliver(self, end: TlsChannel, octets: bytes) -> None:
        """Let one side receive some octets."""
        into = memoryview(bytearray(len(octets) + MARGIN))
        count = end.receive(memoryview(octets), into)
        self.heard[id(end)] += bytes(into[:count])
        while end.has_rest:
            count = end.receive(memoryview(b""), into)
            self.heard[id(end)] += bytes(into[:count])

    def say(self, end: TlsChannel, octets: bytes) -> None:
        """Let one side send octets, and the other receive them."""
        rest = memoryview(octets)
        while rest:
            rest = rest[end.encrypt(rest) :]
            self.pass_on()


def taken(end: TlsChannel) -> memoryview:
    """Take the output of one side."""
    octets = end.take_output()
    end.unsent = memoryview(b"")
    return octets


def ends(
    authority: Authority,
    *,
    asks: ClientCertificate = "none",
    client: SslProfileSettings | None = None,
    hostname: str = "localhost",
    upgrade: bool = False,
) -> Ends:
    """Return a client and a server that have not exchanged anything yet."""
    trusting = SslProfileSettings(name="client", ca_cert_file=authority.ca_file)
    dialled = client_context(client or trusting, verify_hostname=True)
    return Ends(
        TlsChannel(dialled, server_hostname=hostname, upgrade=upgrade),
        TlsChannel(server_context(authority.profile(), asks)),
    )


@pytest.mark.spec("0.2-9", "2.8.19-1", "5.2-1", "5.2-2", "5.2-3", "5.2.1-1")
@pytest.mark.parametrize("upgrade", [False, True])
def test_octets_pass_both_ways(authority: Authority, upgrade: bool) -> None:
    both = ends(authority, upgrade=upgrade)
    both.pass_on()
    assert both.client.is_secured
    assert both.server.is_secured
    long = bytes(range(256)) * 8192
    both.say(both.client, long)
    both.say(both.server, long[1:])
    assert both.heard[id(both.server)] == long
    assert both.heard[id(both.client)] == long[1:]
    for end in (both.client, both.server):
        assert end.security().version == "TLSv1.3"
        assert end.security().bits >= 128
    assert not both.client.is_ended


def test_octets_may_come_one_by_one(authority: Authority) -> None:
    both = ends(authority, upgrade=True)
    for _ in range(10):
        for one, other in ((both.client, both.server), (both.server, both.client)):
            for octet in bytes(taken(one)):
                both.deliver(other, bytes([octet]))
    both.client.encrypt(memoryview(b"hello"))
    for octet in bytes(taken(both.client)):
        both.deliver(both.server, bytes([octet]))
    assert both.heard[id(both.server)] == b"hello"


def test_the_output_of_one_call_is_bounded(authority: Authority) -> None:
    both = ends(authority)
    both.pass_on()
    count = both.client.encrypt(memoryview(bytes(2**20)))
    assert count < 2**20
    assert len(taken(both.client)) < OUTPUT_BYTES + RECORD_BYTES + RECORD_OVERHEAD_BYTES


@pytest.fixture
def updater() -> Iterator[KeyUpdater]:
    """Return a client that changes its keys."""
    found = KeyUpdater()
    yield found
    found.close()


def secured_by(updater: KeyUpdater, authority: Authority) -> TlsChannel:
    """Return a server whose handshake with a client is complete."""
    server = TlsChannel(server_context(authority.profile()))
    into = memoryview(bytearray(ROOM))
    while not updater.shake_hands(bytes(taken(server))):
        server.receive(memoryview(updater.take()), into)
    server.receive(memoryview(updater.take()), into)
    assert server.is_secured
    taken(server)
    return server


def calls(server: TlsChannel, octets: bytes) -> tuple[int, int, int]:
    """Let a server receive octets; return how many calls that took, and how much data came.

    The first call took the last number of octets.
    """
    into = memoryview(bytearray(len(octets) + MARGIN))
    number, data = 1, server.receive(memoryview(octets), into)
    first = len(octets) - len(server._rest)
    while server.has_rest:
        number += 1
        data += server.receive(memoryview(b""), into)
    return number, data, first


def test_changes_of_keys_are_taken_a_few_at_a_time(
    authority: Authority, updater: KeyUpdater
) -> None:
    server = secured_by(updater, authority)
    updater.update(8000)
    flood = updater.take()
    assert len(flood) == 8000 * UPDATE_BYTES
    number, data, first = calls(server, flood)
    # the first call notices it, and each further one takes little, for a millisecond or two
    assert data == 0
    assert first <= 2 * PIECE_BYTES
    assert number >= (len(flood) - first) // (2 * LEAN_PIECE_BYTES)
    # nothing is lost, and whoever sends data again is served as before
    long = bytes(range(256)) * 1024
    updater.write(long[:100])
    updater.write(long)
    assert calls(server, updater.take())[1] == 100 + len(long)
    updater.write(long)
    assert calls(server, updater.take())[:2] == (1, len(long))


def test_little_data_among_changes_of_keys_helps_little(
    authority: Authority, updater: KeyUpdater
) -> None:
    server = secured_by(updater, authority)
    for _ in range(400):
        updater.update(20)
        updater.write(b"x" * 20)
    flood = updater.take()
    number, data, _ = calls(server, flood)
    assert data == 8000
    assert number >= len(flood) // (4 * LEAN_PIECE_BYTES)


@pytest.mark.parametrize("size", [100, 1000, 16_384])
def test_records_with_data_are_taken_at_once(
    authority: Authority, updater: KeyUpdater, size: int
) -> None:
    server = secured_by(updater, authority)
    for _ in range(60_000 // size):
        updater.write(bytes(size))
    assert calls(server, updater.take())[0] == 1


def test_who_does_not_read_the_answers_is_not_heard_for_ever(
    authority: Authority, updater: KeyUpdater
) -> None:
    server = secured_by(updater, authority)
    into = memoryview(bytearray(ROOM))
    received = 0

    def is_congested() -> bool:
        return server.is_congested

    while not is_congested():
        updater.update(100, REQUESTED)
        octets = updater.take()
        received += len(octets)
        server.receive(memoryview(octets), into)
        assert received < 10 * CONGESTED_BYTES
    # in ordinary traffic there is never so much
    taken(server)
    assert not is_congested()
    server.encrypt(memoryview(bytes(2**20)))
    assert not is_congested()


def test_the_end_of_a_stream_is_seen(authority: Authority) -> None:
    both = ends(authority)
    both.pass_on()
    both.client.end()
    both.pass_on()
    assert both.server.is_ended


def test_a_peer_without_tls_is_told_that_tls_is_needed(authority: Authority) -> None:
    server = TlsChannel(server_context(authority.profile()))
    with pytest.raises(TlsFailed, match=r"the peer began with b'AMQP.*TLS is required here"):
        server.receive(memoryview(AMQP), memoryview(bytearray(ROOM)))
    assert bytes(taken(server)) == TLS_HEADER


def test_a_peer_without_tls_is_let_in_where_that_is_allowed(authority: Authority) -> None:
    server = TlsChannel(server_context(authority.profile()), allows_plain=True)
    into = memoryview(bytearray(ROOM))
    # the beginning could still become the header for TLS
    assert server.receive(memoryview(AMQP[:4]), into) == 0
    assert server.phase is Phase.OPENING
    assert server.receive(memoryview(AMQP[4:] + b"rest"), into) == len(AMQP) + 4
    assert bytes(into[:12]) == AMQP + b"rest"
    assert server.is_plain
    assert not server.has_output


def test_a_server_that_knows_no_upgrade(authority: Authority) -> None:
    both = ends(authority, upgrade=True)
    assert bytes(taken(both.client)) == TLS_HEADER
    with pytest.raises(TlsFailed, match=r"the server answered the TLS header with b'AMQP"):
        both.deliver(both.client, AMQP)


@pytest.mark.spec("5.2-5")
def test_a_certificate_for_another_host_is_refused(authority: Authority) -> None:
    both = ends(authority, hostname="elsewhere.example")
    with pytest.raises(TlsFailed, match=r"refused: Hostname mismatch"):
        both.pass_on()
    assert both.client.phase is Phase.FAILED


@pytest.mark.spec("5.2-5")
def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, tmp_path: Path
) -> None:
    stranger = Authority(tmp_path)
    profile = SslProfileSettings(name="client", ca_cert_file=stranger.ca_file)
    both = ends(authority, client=profile)
    with pytest.raises(TlsFailed, match="refused: unable to get local issuer certificate"):
        both.pass_on()
    with pytest.raises(TlsFailed, match="does not trust this side's certificate"):
        both.deliver(both.server, bytes(taken(both.client)))


@pytest.mark.parametrize("asks", ["optional", "required"])
def test_a_peer_shows_its_certificate(authority: Authority, asks: ClientCertificate) -> None:
    both = ends(authority, asks=asks, client=authority.profile("client"))
    both.pass_on()
    assert both.server.peer_certificate() is not None


def test_a_peer_that_is_not_asked_shows_none(authority: Authority) -> None:
    both = ends(authority, client=authority.profile("client"))
    both.pass_on()
    assert both.server.peer_certificate() is None


def test_a_peer_need_not_have_a_certificate(authority: Authority) -> None:
    both = ends(authority, asks="optional")
    both.pass_on()
    assert both.server.is_secured
    assert both.server.peer_certificate() is None


def test_a_peer_must_have_a_certificate(authority: Authority) -> None:
    both = ends(authority, asks="required")
    with pytest.raises(TlsFailed, match="sent no certificate, which is required"):
        both.pass_on()
    with pytest.raises(TlsFailed, match="the peer requires a certificate"):
        both.deliver(both.client, bytes(taken(both.server)))


def test_versions_in_common_are_needed(authority: Authority) -> None:
    old = SslProfileSettings(name="client", ca_cert_file=authority.ca_file, protocols=("TLSv1.2",))
    both = ends(authority, client=old)
    both.pass_on()
    assert both.client.security().version == "TLSv1.2"
    newest = server_context(authority.profile(protocols=("TLSv1.3",)))
    client = TlsChannel(client_context(old, verify_hostname=True), server_hostname="localhost")
    both = Ends(client, TlsChannel(newest))
    with pytest.raises(TlsFailed, match="none of the allowed TLS versions"):
        both.pass_on()


def test_damaged_octets_end_the_connection(authority: Authority) -> None:
    both = ends(authority)
    both.pass_on()
    both.client.encrypt(memoryview(b"hello"))
    octets = bytearray(taken(both.client))
    octets[-1] ^= 1
    with pytest.raises(TlsFailed, match="bad record mac"):
        both.deliver(both.server, bytes(octets))
    assert both.server.has_output


@given(octets=st.binary(min_size=1, max_size=2000), is_after=st.booleans(), is_tls=st.booleans())
def test_no_octets_have_another_effect(
    authority: Authority, octets: bytes, is_after: bool, is_tls: bool
) -> None:
    both = ends(authority)
    if is_after:
        both.pass_on()
    with contextlib.suppress(TlsFailed):
        both.deliver(both.server, (b"\x16\x03\x03" if is_tls else b"") + octets)
    with contextlib.suppress(TlsFailed):
        both.deliver(both.client, octets)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("revoked", "the peer's certificate is refused: certificate revoked"),
        (
            "expired",
            "has expired, so nobody with such a certificate is let in until there is a new",
        ),
        ("early", "is not valid yet"),
        ("other", "crlFile has no revocation list of the authority that signed it"),
    ],
)
def test_a_client_looks_at_its_revocation_list(
    tmp_path: Path, authority: Authority, case: str, reason: str
) -> None:
    server = authority.profile()
    assert server.cert_file is not None
    lists = {
        "revoked": lambda: authority.revoke(server.cert_file, name=case),
        "expired": lambda: authority.revoke(next_update=timedelta(days=-1), name=case),
        "early": lambda: authority.revoke(
            begins=timedelta(days=1), next_update=timedelta(days=2), name=case
        ),
        "other": lambda: Authority(tmp_path).revoke(),
    }
    client = SslProfileSettings(
        name="client", ca_cert_file=authority.ca_file, crl_file=lists[case]()
    )
    both = Ends(
        TlsChannel(client_context(client, verify_hostname=True), server_hostname="localhost"),
        TlsChannel(server_context(server)),
    )
    with pytest.raises(TlsFailed, match=reason) as caught:
        both.pass_on()
    assert caught.value.is_refusal
