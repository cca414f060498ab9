"""`trioute send` and `trioute receive` at the wrong door: they say which one is right, and end."""

from __future__ import annotations

import pytest

from support.commands import run
from support.routers import RouterProcess, StartRouter

MOVED = """\
[[listener]]
port = 0

[[redirect]]
prefix = "moved"
toHostname = "container-2"
toNetworkHost = "10.0.0.2"
toPort = 5673

[[redirect]]
hostname = "localhost"
toNetworkHost = "10.0.0.2"
"""


@pytest.fixture
def router(start_router: StartRouter) -> RouterProcess:
    """Start a router that redirects an address prefix and a hostname."""
    return start_router(MOVED)


@pytest.mark.parametrize("command", ["send", "receive"])
def test_an_address_that_is_elsewhere(router: RouterProcess, command: str) -> None:
    ended = run(command, router.url("moved/x"), "--quiet")
    assert ended.code == 3
    assert ended.output == ""
    assert ended.errors == (
        "trioute: amqp:link:redirect: "
        "redirected to amqp://10.0.0.2:5673/moved/x (hostname container-2)\n"
    )


@pytest.mark.parametrize("command", ["send", "receive"])
def test_a_host_that_is_elsewhere(router: RouterProcess, command: str) -> None:
    ended = run(command, f"amqp://localhost:{router.port}/q", "--quiet")
    assert ended.code == 3
    assert ended.errors == "trioute: amqp:connection:redirect: redirected to amqp://10.0.0.2:5672\n"


def test_a_message_that_belongs_elsewhere(router: RouterProcess) -> None:
    ended = run("send", router.url(), "--to", "moved/x", "--count", "2")
    assert ended.code == 1
    first, reason, *_ = ended.errors.splitlines()
    assert first == "trioute: 2 of 2 messages were not accepted"
    assert reason == (
        "rejected 2: amqp:link:redirect: "
        "redirected to amqp://10.0.0.2:5673/moved/x (hostname container-2)"
    )
