"""Which router is asked, and what a command says and exits with where that comes to nothing."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli.main import main
from router.cli.router_options import BUS

from support.commands import Command, run
from support.routers import RouterProcess, StartRouter

LISTENER = """\
[router]
id = "solo"

[[listener]]
host = "127.0.0.1"
port = 0
"""


@pytest.mark.parametrize("command", [["manage", "get-mgmt-nodes"], ["manage", "query"]])
@pytest.mark.parametrize(
    ("bus", "told"),
    [
        ("wss://127.0.0.1", "wss:// is not supported here"),
        ("127.0.0.1:99999", "'99999' is not a port number (1 to 65535)"),
        ("", "the host is missing"),
    ],
)
def test_a_wrong_url_is_a_wrong_command_line(command: list[str], bus: str, told: str) -> None:
    result = CliRunner().invoke(main, [*command, "-b", bus])
    assert result.exit_code == 2
    assert told in result.output


def test_nobody_listens() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        # bound and not listening: a connection is refused
        ended = run("manage", "query", "-b", f"127.0.0.1:{port}")
    assert ended.code == 3
    assert ended.output == ""
    assert ended.errors == f"trioute: cannot connect to 127.0.0.1:{port}: Connection refused\n"


def test_a_peer_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        bus = f"127.0.0.1:{server.getsockname()[1]}"
        ended = run("manage", "query", "-b", bus, "--timeout", "0.2")
    assert ended.code == 3
    assert ended.errors == "trioute: the peer did not open the connection within 0.2 s\n"


def test_no_answer_in_time(router_process: RouterProcess) -> None:
    # nobody receives there, so nobody gives credit
    ended = run("manage", "query", "-b", router_process.url("nobody/here"), "-t", "1")
    assert ended.code == 3
    assert ended.errors == "trioute: nobody/here did not answer within 1 s\n"


def test_a_router_whose_management_is_switched_off(start_router: StartRouter) -> None:
    off = '[[address]]\nprefix = "$management"\ndistribution = "unavailable"\n'
    ended = run("manage", "query", "-b", start_router(LISTENER + off).url())
    assert ended.code == 3
    assert ended.errors.startswith("trioute: amqp:not-found: ")
    assert ended.errors.count("\n") == 1


def test_the_router_is_named(start_router: StartRouter) -> None:
    url = start_router(LISTENER).url()
    assert run("manage", "get-mgmt-nodes", "-b", url, "-r", "solo").code == 0
    other = run("manage", "get-mgmt-nodes", "-b", url, "-r", "other", "-t", "1")
    assert other.code == 3
    assert "_topo/0/other/$management did not answer" in other.errors
    edge = run("manage", "get-mgmt-nodes", "-b", url, "-d", "leaf", "-t", "1")
    assert "_edge/leaf/$management did not answer" in edge.errors


def test_two_routers_cannot_be_named() -> None:
    result = CliRunner().invoke(main, ["manage", "query", "-r", "a", "-d", "b"])
    assert result.exit_code == 2
    assert "cannot be combined" in result.output


def test_the_url_can_be_in_the_environment(router_process: RouterProcess) -> None:
    os.environ[BUS] = router_process.url()
    try:
        assert run("manage", "get-mgmt-nodes").code == 0
    finally:
        del os.environ[BUS]


def test_a_user_and_a_password_that_nobody_sees(start_router: StartRouter, tmp_path: Path) -> None:
    users, secret = tmp_path / "users", tmp_path / "secret"
    assert run("user", "add", users, "ann", "--stdin", stdin=b"pa55\n").code == 0
    router = start_router(
        LISTENER
        + f'saslMechanisms = "PLAIN"\nauthenticatePeer = true\nusersFile = "{users}"\n'
    )  # fmt: skip
    arguments = ["manage", "get-mgmt-nodes", "-b", router.url(), "--sasl-username", "ann"]
    secret.write_text("pa55\n", encoding="utf-8")
    assert run(*arguments, "--sasl-password-file", secret).code == 0
    secret.write_text("", encoding="utf-8")
    refused = run(*arguments, "--sasl-password-file", secret)
    assert refused.code == 3
    assert refused.errors.count("\n") == 1
    secret.write_bytes(b"\xff")
    unreadable = run(*arguments, "--sasl-password-file", secret)
    assert (unreadable.code, "is not UTF-8 text" in unreadable.errors) == (2, True)
    lonely = run(*arguments[:4], "--sasl-password-file", secret)
    assert lonely.code == 2
    assert "needs a user" in lonely.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_it_waits(number: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        bus = f"127.0.0.1:{server.getsockname()[1]}"
        with Command("manage", "query", "-b", bus, "--timeout", "30") as command:
            sock, _ = server.accept()
            with sock:
                sock.recv(1)
                command.interrupt(number)
                ended = command.end()
    assert ended.code == 128 + number
    assert ended.errors == ""


def test_who_reads_the_output_has_enough(router_process: RouterProcess) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    arguments = ["manage", "get-schema", "-b", router_process.url()]
    with os.fdopen(theirs, "wb") as output, Command(*arguments, stdout=output) as command:
        ended = command.end()
    assert ended.code == 141
    assert ended.errors == ""
