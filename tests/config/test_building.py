"""From parsed data to a configuration, or to findings with their places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from router.config.building import build
from router.config.mistakes import Finding
from router.config.model import Configuration


def test_what_is_right_is_built(tmp_path: Path) -> None:
    data = {"connector": [{"saslUsername": "me", "saslPassword": "file:secret"}]}
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    built = build(data, tmp_path)
    assert built.findings == ()
    password = built.configuration.connectors[0].sasl_password
    assert password is not None
    assert password.reference == str(tmp_path / "secret")


def test_files_of_a_profile_are_beside_the_file(tmp_path: Path) -> None:
    keys = {
        "certFile": "own.pem",
        "privateKeyFile": "keys/own.pem",
        "caCertFile": "/etc/ca.pem",
        "crlFile": "../revoked.pem",
        "uidNameMappingFile": "names.json",
    }
    passwords = ("file:secret", "file:/etc/secret", "env:SECRET", "secret")
    data = {
        "sslProfile": [
            {"name": f"p{number}", "password": password, **keys}
            for number, password in enumerate(passwords)
        ]
    }
    built = build(data, tmp_path)
    assert built.findings == ()
    profiles = built.configuration.ssl_profiles
    for profile in profiles:
        assert profile.cert_file == tmp_path / "own.pem"
        assert profile.private_key_file == tmp_path / "keys" / "own.pem"
        assert profile.ca_cert_file == Path("/etc/ca.pem")
        assert profile.crl_file == tmp_path / "../revoked.pem"
        assert profile.uid_name_mapping_file == tmp_path / "names.json"
    assert [each.password and each.password.reference for each in profiles] == [
        str(tmp_path / "secret"),
        "/etc/secret",
        "SECRET",
        "secret",
    ]


def test_findings_become_mistakes_where_they_stand() -> None:
    data: dict[str, Any] = {"listener": [{"port": -1}, {"port": 1}, {"port": 1}]}
    built = build(data, None)
    lines = {("listener",): 1, ("listener", 0, "port"): 9, ("listener", 2): 5}
    mistakes = built.mistakes(data, lines, "f", lambda path: ("here", *path))
    assert [str(mistake).partition(":")[2].partition(";")[0] for mistake in mistakes] == [
        "5: here.listener[2].port: 1 is taken: listener[1] also listens on 127.0.0.1:1",
        "9: here.listener[0].port: -1 is not allowed",
    ]


def test_what_others_find_counts() -> None:
    data: dict[str, Any] = {"listener": [{}]}
    finding = Finding(("listener", 0, "port"), "is no good")

    def find(_: Configuration, given: Mapping[str, Any]) -> Iterator[Finding]:
        assert given == data
        yield finding

    assert build(data, None, [find]).findings == (finding,)
