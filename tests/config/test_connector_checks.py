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
