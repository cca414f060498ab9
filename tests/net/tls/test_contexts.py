"""Profiles that cannot be used, and the attribute at fault."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from router.config.secret import Secret
from router.config.ssl_profiles import SslProfileSettings
from router.net.tls.contexts import ProfileUnusable, client_context, server_context

from support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return an authority."""
    return Authority(tmp_path)


def test_certificate_and_key_may_be_one_file(authority: Authority) -> None:
    server_context(authority.profile())
    client_context(authority.profile(), verify_hostname=True)


def test_a_key_may_be_encrypted(authority: Authority, tmp_path: Path) -> None:
    file = authority.issue("localhost")
    key = load_pem_private_key(file.read_bytes(), None)
    locked = tmp_path / "locked.key"
    encryption = BestAvailableEncryption(b"s3cret")
    locked.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, encryption)
    )
    (tmp_path / "password").write_text("s3cret\n", encoding="utf-8")
    for text in ("s3cret", f"file:{tmp_path / 'password'}"):
        profile = SslProfileSettings(
            name="p", cert_file=file, private_key_file=locked, password=Secret.parse(text)
        )
        server_context(profile)
    for password, reason in (
        (None, "privateKeyFile is encrypted; give its password"),
        (Secret.parse("wrong"), "password is wrong"),
    ):
        profile = SslProfileSettings(
            name="p", cert_file=file, private_key_file=locked, password=password
        )
        with pytest.raises(ProfileUnusable, match=reason):
            server_context(profile)


def test_a_password_that_cannot_be_read(authority: Authority) -> None:
    profile = authority.profile(password=Secret.parse("env:TRIOUTE_NOT_SET"))
    with pytest.raises(ProfileUnusable, match="TRIOUTE_NOT_SET is not set") as unusable:
        server_context(profile)
    assert unusable.value.attribute == "password"


@pytest.mark.parametrize("attribute", ["cert_file", "private_key_file", "ca_cert_file", "crl_file"])
@pytest.mark.parametrize(
    ("content", "reason"), [(None, "cannot be read: No such file"), ("x", "in PEM form")]
)
def test_files_that_cannot_be_used(
    authority: Authority, tmp_path: Path, attribute: str, content: str | None, reason: str
) -> None:
    file = tmp_path / "file"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    profile = authority.profile(**{attribute: file})  # type: ignore[arg-type]
    with pytest.raises(ProfileUnusable, match=reason) as unusable:
        server_context(profile, "required")
    assert unusable.value.attribute.lower() == attribute.replace("_", "")


def test_a_key_of_another_certificate(authority: Authority) -> None:
    profile = authority.profile(private_key_file=authority.issue("other.example"))
    with pytest.raises(ProfileUnusable, match="does not belong to the certificate"):
        server_context(profile)


def test_ciphers_that_there_are_not(authority: Authority) -> None:
    server_context(authority.profile(ciphers="ECDHE+AESGCM"))
    with pytest.raises(ProfileUnusable, match="ciphers names no cipher that is available"):
        server_context(authority.profile(ciphers="NO-SUCH-CIPHER"))


def test_a_listener_needs_a_certificate(authority: Authority) -> None:
    profile = SslProfileSettings(name="p", ca_cert_file=authority.ca_file)
    with pytest.raises(ProfileUnusable, match="certFile is missing"):
        server_context(profile)
    client_context(profile, verify_hostname=True)


def test_a_key_of_a_kind_that_nobody_knows(authority: Authority, tmp_path: Path) -> None:
    def sequence(*parts: bytes) -> bytes:
        content = b"".join(parts)
        return bytes([0x30, len(content)]) + content

    algorithm = sequence(bytes.fromhex("06082a0304050607080a"))
    key = sequence(bytes.fromhex("020100"), algorithm, bytes.fromhex("0403020101"))
    text = b"-----BEGIN PRIVATE KEY-----\n" + base64.encodebytes(key)
    file = tmp_path / "odd.key"
    file.write_bytes(text + b"-----END PRIVATE KEY-----\n")
    with pytest.raises(ProfileUnusable, match="privateKeyFile has no private key"):
        server_context(authority.profile(private_key_file=file))
    with pytest.raises(ProfileUnusable, match="certFile has no private key"):
        server_context(authority.profile(cert_file=file))
