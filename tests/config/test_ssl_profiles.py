"""TLS profiles in a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration
from router.config.secret import Secret
from router.config.ssl_profiles import SslProfileSettings


def test_files_are_beside_the_configuration(tmp_path: Path) -> None:
    text = """
        [[sslProfile]]
        name = "p"
        certFile = "own.pem"
        caCertFile = "/etc/ca.pem"
        password = "file:password"
        protocols = "TLSv1.3"
        uidFormat = "n2"
        """
    [profile] = parse_configuration(text, source="f", folder=tmp_path).ssl_profiles
    assert profile.cert_file == tmp_path / "own.pem"
    assert profile.private_key_file is None
    assert profile.ca_cert_file == Path("/etc/ca.pem")
    assert profile.password is not None
    assert profile.password.reference == str(tmp_path / "password")
    assert profile.protocols == ("TLSv1.3",)
    assert profile.uid_format == "n2"


def test_a_profile_with_only_a_name_allows_every_safe_version() -> None:
    [profile] = parse_configuration('[[sslProfile]]\nname = "p"', source="f").ssl_profiles
    assert profile == SslProfileSettings(name="p", protocols=("TLSv1.2", "TLSv1.3"))
    assert (profile.cert_file, profile.ca_cert_file, profile.crl_file) == (None, None, None)
    assert (profile.password, profile.ciphers, profile.uid_format) == (None, None, None)


def test_versions_may_be_a_list_or_one_text() -> None:
    listed = SslProfileSettings(name="p", protocols=("TLSv1.3", "TLSv1.2"))
    for value in ('["TLSv1.3", "TLSv1.2"]', '"TLSv1.3 TLSv1.2"'):
        text = f'[[sslProfile]]\nname = "p"\nprotocols = {value}'
        assert parse_configuration(text, source="f").ssl_profiles == (listed,)


@pytest.mark.parametrize(
    ("line", "mistake"),
    [
        ('certFile = ""', 'certFile: "" is not allowed; give the path of a file'),
        ('ciphers = ""', 'ciphers: "" is not allowed; give text of 1 to 4096'),
        ("protocols = []", "protocols: [] is not allowed; give a list of one or more of"),
        ('protocols = "TLSv1.1 TLSv1.2"', 'protocols: "TLSv1.1 TLSv1.2" is not allowed; give a'),
        ('protocols = "TLSv1.2 TLSv1.2"', 'protocols: "TLSv1.2 TLSv1.2" is not allowed; give a'),
        ('uidFormat = "x"', 'uidFormat: "x" is not allowed; give one or more different letters'),
        ('uidFormat = "nn"', 'uidFormat: "nn" is not allowed; give one or more different letters'),
        ('uidFormat = ""', 'uidFormat: "" is not allowed; give one or more different letters'),
    ],
)
def test_a_value_that_is_not_allowed_is_said(line: str, mistake: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(f'[[sslProfile]]\nname = "p"\n{line}', source="f")
    [said] = caught.value.mistakes
    assert str(said).startswith(f"f:3: sslProfile[0].{mistake}")


def test_a_password_is_not_shown() -> None:
    profile = SslProfileSettings(name="p", password=Secret.parse("s3cret"))
    assert "s3cret" not in repr(profile)
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration('[[sslProfile]]\npassword = "s3cret"\nuidFormat = "x"', source="f")
    assert "s3cret" not in str(caught.value)
