"""Names of users from certificates, and what a router's own certificate says."""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from router.net.tls.certificates import crl_expiry, load_user_names, own_certificate, user_of
from router.net.tls.contexts import ProfileUnusable

from support.certificates import Authority

SUBJECT = {
    NameOID.COMMON_NAME: "ada",
    NameOID.ORGANIZATION_NAME: "Client",
    NameOID.ORGANIZATIONAL_UNIT_NAME: "Dev",
    NameOID.STATE_OR_PROVINCE_NAME: "NC",
    NameOID.COUNTRY_NAME: "US",
}


def certificate(subject: dict[x509.ObjectIdentifier, str], *names: str) -> x509.Certificate:
    """Return a self-signed certificate, valid until 2040, with this subject."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in subject.items()])
    builder = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(dt.datetime(2020, 1, 1, tzinfo=dt.UTC))
        .not_valid_after(dt.datetime(2040, 1, 1, tzinfo=dt.UTC))
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        builder = builder.add_extension(alternatives, critical=False)
    return builder.sign(key, hashes.SHA256())


ADA = certificate(SUBJECT).public_bytes(Encoding.DER)


@pytest.mark.parametrize(
    ("uid_format", "user"),
    [
        (None, "C=US,ST=NC,OU=Dev,O=Client,CN=ada"),
        ("n", "ada"),
        ("nsuco", "ada;NC;Dev;US;Client"),
        # it has no locality
        ("ln", "ada"),
        ("l", "C=US,ST=NC,OU=Dev,O=Client,CN=ada"),
    ],
)
def test_the_parts_of_a_name(uid_format: str | None, user: str) -> None:
    assert user_of(ADA, uid_format, {}) == user


def test_a_name_may_have_a_fingerprint() -> None:
    assert user_of(ADA, "1", {}) == hashlib.sha1(ADA, usedforsecurity=False).hexdigest()
    assert user_of(ADA, "2n", {}) == f"{hashlib.sha256(ADA).hexdigest()};ada"
    assert user_of(ADA, "n5", {}) == f"ada;{hashlib.sha512(ADA).hexdigest()}"


def test_a_name_may_stand_for_another() -> None:
    names = {"ada": "countess", "C=US,ST=NC,OU=Dev,O=Client,CN=ada": "nobody"}
    assert user_of(ADA, "n", names) == "countess"
    assert user_of(ADA, "no", names) == "ada;Client"
    # names are those of uidFormat
    assert user_of(ADA, None, names) == "C=US,ST=NC,OU=Dev,O=Client,CN=ada"


def test_no_subject_passes_for_another() -> None:
    forged = certificate({NameOID.COMMON_NAME: "ada,O=Client", NameOID.COUNTRY_NAME: "US"})
    assert user_of(forged.public_bytes(Encoding.DER), None, {}) == r"C=US,CN=ada\,O=Client"


def test_a_router_knows_its_certificate(tmp_path: Path) -> None:
    file = tmp_path / "own.pem"
    file.write_bytes(certificate(SUBJECT, "a.example", "*.B.example").public_bytes(Encoding.PEM))
    own = own_certificate(file)
    assert own.expires_at == dt.datetime(2040, 1, 1, tzinfo=dt.UTC).timestamp()
    assert own.host_names == {"a.example", "*.b.example"}


def test_without_other_names_the_common_name_counts(tmp_path: Path) -> None:
    file = tmp_path / "own.pem"
    file.write_bytes(certificate(SUBJECT).public_bytes(Encoding.PEM))
    assert own_certificate(file).host_names == {"ada"}


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read"), ("x", "has no certificate in PEM form")]
)
def test_no_certificate(tmp_path: Path, content: str | None, reason: str) -> None:
    file = tmp_path / "own.pem"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    with pytest.raises(ProfileUnusable, match=f"certFile {reason}"):
        own_certificate(file)


def test_names_of_users_are_read(tmp_path: Path) -> None:
    file = tmp_path / "names.json"
    file.write_text('{"ada": "countess"}', encoding="utf-8")
    assert load_user_names(file) == {"ada": "countess"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON text"),
        ("[" * 100_000, "is not JSON text"),
        ("\xff", "is not JSON text"),
        ("[]", "is not a JSON object whose values are texts"),
        ('{"a": 1}', "is not a JSON object whose values are texts"),
    ],
)
def test_names_of_users_that_cannot_be_read(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    file = tmp_path / "names.json"
    if content is not None:
        file.write_bytes(content.encode("latin-1"))
    with pytest.raises(ProfileUnusable, match=f"uidNameMappingFile {reason}"):
        load_user_names(file)


def test_certificates_of_an_authority_have_names(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    assert own_certificate(authority.issue("localhost")).host_names == {"localhost"}


def test_the_first_list_that_expires_counts(tmp_path: Path) -> None:
    one, other = (Authority(tmp_path) for _ in range(2))
    file = one.revoke(next_update=dt.timedelta(days=9))
    at = crl_expiry(file)
    assert at is not None
    assert 8.9 * 86400 < at - time.time() < 9.1 * 86400
    file.write_bytes(
        file.read_bytes() + other.revoke(next_update=dt.timedelta(days=-2)).read_bytes()
    )
    # the file has changed, and is read anew
    at = crl_expiry(file)
    assert at is not None
    assert -2.1 * 86400 < at - time.time() < -1.9 * 86400


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "crlFile cannot be read: No such file"),
        (b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n", "crlFile has a list that"),
    ],
    ids=["missing", "broken"],
)
def test_lists_that_cannot_be_read(tmp_path: Path, content: bytes | None, reason: str) -> None:
    file = tmp_path / "crl.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ProfileUnusable, match=reason):
        crl_expiry(file)


def test_a_file_without_lists_has_no_expiry(tmp_path: Path) -> None:
    assert crl_expiry(Authority(tmp_path).ca_file) is None
