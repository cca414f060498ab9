"""Proxies, and connectors that use proxies or WebSockets."""

from __future__ import annotations

import pytest

from support.configuring import problems_in

PROXY = '[[proxyProfile]]\nname = "p"\nhost = "h"\nport = 1\n'
INTERIOR = '[router]\nmode = "interior"\n'
SECURED = '[[sslProfile]]\nname = "t"\n[[connector]]\nsslProfile = "t"\n'


@pytest.mark.parametrize(
    "text",
    [
        PROXY,
        f'{PROXY}username = "u"\npassword = "x"\n[[connector]]\nproxyProfile = "p"',
        '[[connector]]\nwebSocketPath = "/"\nrole = "route-container"',
        f'{SECURED}webSocketPath = "/"',
    ],
)
def test_what_fits(text: str) -> None:
    assert problems_in(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[proxyProfile]]\nhost = "h"\nport = 1', "proxyProfile[0].name: is missing"),
        ('[[proxyProfile]]\nname = "p"\nport = 1', "proxyProfile[0].host: is missing"),
        ('[[proxyProfile]]\nname = "p"\nhost = "h"', "proxyProfile[0].port: is missing"),
        (PROXY * 2, 'proxyProfile[1].name: "p" is taken: proxyProfile[0] has the same name'),
        (f'{PROXY}username = "u"', "proxyProfile[0].password: is missing"),
        (f'{PROXY}password = "x"', "proxyProfile[0].username: is missing"),
        (
            f'{PROXY}username = "u:v"\npassword = "x"',
            'proxyProfile[0].username: "u:v" contains a colon',
        ),
        (
            f'{PROXY}username = "u"\npassword = "env:TRIOUTE_NOT_SET"',
            "proxyProfile[0].password: is not available",
        ),
        (
            '[[connector]]\nproxyProfile = "p"',
            "connector[0].proxyProfile: names p, which does not exist; there is no",
        ),
        (
            f'{PROXY}[[connector]]\nproxyProfile = "q"',
            "connector[0].proxyProfile: names q, which does not exist; known here: p",
        ),
        (
            f'{SECURED}webSocketPath = "/"\nsslUpgrade = true',
            "connector[0].sslUpgrade: has no effect with webSocketPath",
        ),
        (
            f'{INTERIOR}[[connector]]\nwebSocketPath = "/"\nrole = "inter-router"',
            'connector[0].role: "inter-router" is not allowed with webSocketPath',
        ),
    ],
)
def test_what_does_not_fit(text: str, said: str) -> None:
    (found,) = problems_in(text)
    assert found.startswith(said)
