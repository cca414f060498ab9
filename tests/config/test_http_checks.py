"""Listeners for HTTP, and AMQP over WebSockets at them."""

from __future__ import annotations

import pytest

from support.configuring import problems_in

WEB = "[[listener]]\nport = 1\nhttp = true\nwebsockets = true\n"


@pytest.mark.parametrize(
    "text",
    [
        WEB,
        f"{WEB}metrics = false\nhealthz = false",
        f'{WEB}maxFrameSize = 512\nrole = "route-container"\nsaslMechanisms = "ANONYMOUS"',
        f'{WEB}allowedOrigins = ["https://a.example", "*", "null"]',
        "[[listener]]\nport = 1\nhttp = true\nwebsockets = false\nallowedOrigins = []",
    ],
)
def test_what_fits(text: str) -> None:
    assert problems_in(text) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{WEB}requireSsl = true", "listener[0].requireSsl: has no effect on a listener for HTTP"),
        (f"{WEB}cost = 2", "listener[0].cost: has no effect on a listener for HTTP"),
        (
            f'[router]\nmode = "interior"\n{WEB}role = "inter-router"',
            'listener[0].role: "inter-router" is not allowed with websockets',
        ),
        (
            "[[listener]]\nwebsockets = true",
            "listener[0].websockets: true has no effect on a listener for AMQP",
        ),
        (
            '[[listener]]\nport = 1\nhttp = true\nallowedOrigins = ["*"]',
            "listener[0].allowedOrigins: has no effect without WebSockets",
        ),
        (f'{WEB}saslMechanisms = "PLAIN"', "listener[0].usersFile: is missing"),
        (f"{WEB}authenticatePeer = true", "listener[0].authenticatePeer: true lets no peer in"),
    ],
)
def test_what_does_not_fit(text: str, said: str) -> None:
    (found,) = problems_in(text)
    assert found.startswith(said)
