"""Redirects as a file has them: their defaults, and what a connector does without being told."""

from __future__ import annotations

from router.config.load import parse_configuration
from router.config.redirects import RedirectSettings


def test_a_redirect_needs_to_say_little() -> None:
    text = '[[redirect]]\nprefix = "a"\ntoNetworkHost = "h"\n'
    (redirect,) = parse_configuration(text, source="f").redirects
    assert redirect == RedirectSettings(prefix="a", to_network_host="h")
    assert (redirect.direction, redirect.to_port) == ("both", 5672)
    assert (redirect.to_hostname, redirect.to_address) == (None, None)


def test_a_redirect_may_say_all() -> None:
    text = """
        [[redirect]]
        pattern = "a/*"
        direction = "out"
        toHostname = "container"
        toNetworkHost = "::1"
        toPort = "amqp"
        toScheme = "wss"
        toPath = "/p?a=b"
        toAddress = "an address"
        """
    (redirect,) = parse_configuration(text, source="f").redirects
    assert redirect == RedirectSettings(
        pattern="a/*",
        direction="out",
        to_hostname="container",
        to_network_host="::1",
        to_port=5672,
        to_scheme="wss",
        to_path="/p?a=b",
        to_address="an address",
    )


def test_a_connector_stays_where_it_was_sent_by_its_own_configuration() -> None:
    (connector,) = parse_configuration("[[connector]]", source="f").connectors
    assert connector.allow_redirect is False
    assert connector.redirect_hosts == ()
