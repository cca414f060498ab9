"""Mistakes in connectors; those that listeners may have, too, are tested with the listeners."""

from __future__ import annotations

import pytest

from router.config.load import parse_configuration
from router.config.mistakes import InvalidConfiguration


def test_a_password_is_not_for_any_host() -> None:
    text = """\
[[connector]]
saslUsername = "u"
saslPassword = "p"
failoverHosts = ["b", "*"]
"""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f")
    assert str(caught.value) == (
        "f:4: connector[0].failoverHosts: would show the password to any host that the peer names; "
        'name the hosts, or remove "*" or the saslUsername'
    )


def test_who_has_no_password_may_go_anywhere() -> None:
    parse_configuration('[[connector]]\nfailoverHosts = ["*"]\n', source="f")


def test_urls_for_tls_need_a_profile() -> None:
    profile = '[[sslProfile]]\nname = "p"\n'
    connector = '[[connector]]\nbackupUrls = ["amqps://b"]\n'
    parse_configuration(f'{profile}{connector}sslProfile = "p"', source="f")
    with pytest.raises(InvalidConfiguration, match=r"backupUrls: has a URL for TLS, but the"):
        parse_configuration(connector, source="f")


PLAIN = """\
[[connector]]
saslUsername = "u"
saslPassword = "p"
saslMechanisms = ["PLAIN"]
"""


@pytest.mark.parametrize(
    ("lines", "host"),
    [
        ('host = "b"', "b"),
        ('host = "10.0.0.1"', "10.0.0.1"),
        ('backupUrls = ["amqp://localhost", "amqp://b"]', "b"),
        ("", None),
        ('host = "localhost"\nbackupUrls = ["amqp://[::1]"]', None),
        ('host = "b"\nallowInsecureAuthentication = true', None),
        ('host = "b"\nsslProfile = "p"\n[[sslProfile]]\nname = "p"', None),
    ],
    ids=["name", "address", "backup", "default", "loopback", "allowed", "TLS"],
)
def test_a_password_is_not_for_everybody_on_the_way(lines: str, host: str | None) -> None:
    if host is None:
        parse_configuration(PLAIN + lines, source="f")
        return
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(PLAIN + lines, source="f")
    assert str(caught.value) == (
        "f:4: connector[0].saslMechanisms: is PLAIN alone, which would send the password in clear "
        f"text to {host}; give an sslProfile, add SCRAM, or set allowInsecureAuthentication = true"
    )


def test_scram_needs_no_tls() -> None:
    text = PLAIN.replace('["PLAIN"]', '["PLAIN", "SCRAM-SHA-1"]') + 'host = "b"'
    parse_configuration(text, source="f")


def mistakes(text: str) -> str:
    """Return what is wrong with a configuration."""
    with pytest.raises(InvalidConfiguration) as caught:
        parse_configuration(text, source="f")
    return str(caught.value)


@pytest.mark.parametrize(
    ("mechanisms", "keys", "wrong"),
    [
        ("XOAUTH2", ["saslUsername", "saslPassword"], None),
        ("OAUTHBEARER", ["saslUsername", "saslPassword"], None),
        ("OAUTHBEARER", ["saslPassword"], None),
        ("OAUTHBEARER XOAUTH2 PLAIN", ["saslUsername", "saslPassword"], None),
        (
            "XOAUTH2",
            ["saslPassword"],
            "saslUsername: is missing, though XOAUTH2 is to be used; give saslUsername and ",
        ),
        (
            "OAUTHBEARER",
            ["saslUsername"],
            "saslPassword: is missing, though OAUTHBEARER is to be used; give the token",
        ),
        (
            "SCRAM-SHA-1 SCRAM-SHA-256 OAUTHBEARER",
            ["saslPassword"],
            "saslUsername: is missing, though SCRAM or OAUTHBEARER is to be used; give ",
        ),
    ],
    ids=range(7),
)
def test_what_a_token_needs(mechanisms: str, keys: list[str], wrong: str | None) -> None:
    lines = "".join(f'{key} = "x"\n' for key in keys)
    text = f'[[connector]]\nsaslMechanisms = "{mechanisms}"\n{lines}'
    if wrong is None:
        parse_configuration(text, source="f")
    else:
        assert mistakes(text).startswith(f"f:1: connector[0].{wrong}")


def test_a_token_is_not_for_any_host() -> None:
    text = '[[connector]]\nsaslMechanisms = ["OAUTHBEARER"]\nsaslPassword = "s3cret"\n'
    assert mistakes(f'{text}failoverHosts = ["*"]') == (
        "f:4: connector[0].failoverHosts: would show the password to any host that the peer names; "
        'name the hosts, or remove "*" or the saslPassword'
    )


@pytest.mark.parametrize("mechanisms", ["XOAUTH2", "OAUTHBEARER", "OAUTHBEARER PLAIN"])
def test_a_token_is_not_for_everybody_on_the_way(mechanisms: str) -> None:
    text = PLAIN.replace('["PLAIN"]', f'"{mechanisms}"') + 'host = "b"\n'
    assert mistakes(text) == (
        f"f:4: connector[0].saslMechanisms: is {mechanisms.replace(' ', ' or ')} alone, which "
        "would send the token in clear text to b; give an sslProfile, or set "
        "allowInsecureAuthentication = true"
    )
    parse_configuration(text + "allowInsecureAuthentication = true", source="f")
    parse_configuration(text + 'sslProfile = "p"\n[[sslProfile]]\nname = "p"', source="f")


def test_no_token_is_sent_unless_that_is_said() -> None:
    text = '[[connector]]\nsaslUsername = "u"\nsaslPassword = "p"\nsslProfile = "p"\n'
    found = parse_configuration(text + '[[sslProfile]]\nname = "p"', source="f")
    assert not {"XOAUTH2", "OAUTHBEARER"} & set(found.connectors[0].sasl_mechanisms)
