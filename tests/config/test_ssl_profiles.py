"""TLS profiles in a file."""

from __future__ import annotations

from pathlib import Path

from router.config.load import parse_configuration


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
