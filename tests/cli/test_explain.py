"""`trioute explain` against a router: the answer first, then what it follows from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from router.cli.explain import Who, read_question
from router.cli.main import main

from support.commands import Command, Ended, OtherSide, invoke, run
from support.routers import PLAIN, RouterProcess, StartRouter


def explained(router: RouterProcess, *arguments: str, width: int = 100) -> Ended:
    """How `trioute explain` ended, which has to be with an answer."""
    ended = invoke("explain", "-b", router.url(), *arguments, "--width", str(width))
    assert ended.errors == ""
    assert max(map(len, ended.lines)) <= width
    return ended


def test_messages_flow(other_side: OtherSide) -> None:
    other_side.receiver(credit=7)
    ended = explained(other_side.router, "anonymous@any", "send", other_side.address)
    assert ended.code == 0
    assert ended.lines[:2] == [f"anybody@any may send to {other_side.address}.", "Messages flow."]
    assert "policy    no policy is configured: allowed" in ended.lines
    assert "address   balanced, no rule matches" in ended.lines
    *_, credit, _window, unsettled, is_next, reason = ended.lines[-1].split()
    assert (credit, unsettled, is_next, reason) == ("7", "0", "yes", "-")


def test_nothing_flows(router_process: RouterProcess) -> None:
    ended = explained(router_process, "anonymous", "send", "multicast/nobody")
    assert ended.code == 1
    assert ended.lines[1] == "Nothing flows: the address has no receiver (no_consumer)."
    assert "address   multicast, by the prefix multicast" in ended.lines
    assert ended.lines[-1] == "state     not in use"
    # asking has not made it one
    assert explained(router_process, "anonymous", "send", "multicast/nobody").code == 1


def test_what_keeps_back_those_who_are_there(other_side: OtherSide) -> None:
    other_side.receiver(credit=0)
    with Command("send", other_side.url, "--count", "1", "-q"):
        asked = ("anonymous", "send", other_side.address)
        ended = explained(other_side.router, *asked, width=200)
        while "Senders" not in ended.lines:
            ended = explained(other_side.router, *asked, width=200)
    assert ended.code == 1
    assert ended.lines[1].endswith("no receiver of the address has given credit (no_credit).")
    for title in ("Receivers", "Senders"):
        row = ended.lines[ended.lines.index(title) + 2]
        assert row.endswith("no receiver of the address has given credit")


def test_the_links_of_the_user(start_router: StartRouter, tmp_path: Path) -> None:
    users = tmp_path / "users"
    assert run("user", "add", users, "ann", "--stdin", stdin=b"pa55\n").code == 0
    plain = f'saslMechanisms = "ANONYMOUS PLAIN"\nusersFile = "{users}"\n\n[[address]]'
    router = start_router(PLAIN.replace("\n[[address]]", plain, 1))
    mine = Command("send", router.url("q", user="ann:pa55"), "--count", "1", "-q")
    other = Command("send", router.url("q"), "--count", "1", "-q")
    with mine, other:
        told: dict[str, Any] = {"senderCount": 0}
        while told["senderCount"] < 2:
            ended = invoke("explain", "-b", router.url(), "ann", "send", "q", "--json")
            told = json.loads(ended.output)
    (own,) = told["ownLinks"]
    assert (own["user"], own["reason"]) == ("ann", "no_consumer")
    assert [each["admits"] for each in told["listeners"]] == [True]
    assert "bob may send to q." in explained(router, "bob", "send", "q").lines


def test_who_may_not(router_process: RouterProcess) -> None:
    ended = explained(router_process, "ann@host", "send", "unavailable/x", width=60)
    assert ended.code == 1
    assert ended.lines[0] == "ann@host may not send to unavailable/x."
    assert "does not let the user in" in " ".join(" ".join(ended.lines).split())


POLICY = """
saslMechanisms = "ANONYMOUS PLAIN"

[policy]
enableVhostPolicy = true

[[vhost]]
hostname = "a.com"

[vhost.groups.clients]
users = "ann"
remoteHosts = "10.0.0.0/8"
targets = "orders"

[[vhost]]
hostname = "127.0.0.1"
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "localhost"
targets = "$management"
allowDynamicSource = true
"""


def test_what_the_policy_of_the_router_decides(start_router: StartRouter, tmp_path: Path) -> None:
    users = tmp_path / "users"
    assert run("user", "add", users, "ann", "--stdin", stdin=b"pa55\n").code == 0
    router = start_router(
        f'[[listener]]\nhost = "127.0.0.1"\nport = 0\nusersFile = "{users}"{POLICY}'
    )
    ann = ("--as", "ann", "--vhost", "a.com")
    ended = explained(router, *ann, "--from", "10.1.2.3", "send", "orders", width=200)
    assert ended.lines[0] == "ann@a.com may send to orders."
    decided = [line for line in ended.lines if line.startswith("policy")]
    assert decided == ["policy    allowed: targets has orders (vhost a.com, group clients)"]
    # nobody receives
    assert ended.code == 1
    for arguments, reason in (
        ((*ann, "--from", "10.1.2.3", "send", "secret"), "targets has no entry that allows secret"),
        ((*ann, "--from", "10.1.2.3", "receive", "orders"), "sources has no entry that allows"),
        ((*ann, "--from", "192.0.2.1", "send", "orders"), "does not contain 192.0.2.1"),
        (("--as", "bob", "--vhost", "a.com", "send", "orders"), "'bob' is in no group"),
        (("--as", "ann", "--vhost", "b.com", "send", "orders"), "no vhost has the host name"),
    ):
        ended = explained(router, *arguments, width=200)
        assert ended.code == 1
        assert "may not" in ended.lines[0]
        assert reason in " ".join(ended.lines)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["", "send", "q"], "give USER@VHOST"),
        (["@", "send", "q"], "give USER@VHOST"),
        (["u", "fly", "q"], "'fly' is neither send nor receive"),
        (["u"], "give USER@VHOST, send or receive, and an address"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], error: str) -> None:
    result = CliRunner().invoke(main, ["explain", "-b", "127.0.0.1:1", *arguments])
    assert result.exit_code == 2
    assert error in result.output


def test_the_router_says_no(router_process: RouterProcess) -> None:
    ended = invoke("explain", "-b", router_process.url(), "@host", "send", "/")
    assert ended.code == 1
    assert ended.errors.startswith("trioute: 400 address must be text of 1 to")


def test_where_links_are_forwarded(start_router: StartRouter) -> None:
    routes = """
[[linkRoute]]
prefix = "far"
direction = "in"
connection = "brokers"
addExternalPrefix = "site."

[[listener]]
port = 0
name = "brokers"
role = "route-container"

[[address]]"""
    router = start_router(PLAIN.replace("\n[[address]]", routes, 1))
    ended = explained(router, "anonymous", "send", "far/q")
    assert ended.code == 1
    assert ended.lines[0] == "anybody may not send to far/q."
    assert "(no_container)" in " ".join(ended.lines[1:3])
    with Command("receive", router.url("x", listener=1), "--count", "1", "-q"):
        while (ended := explained(router, "anonymous", "send", "far/q")).code:
            pass
    assert ended.lines[1] == "Messages flow."
    (line,) = (line for line in ended.lines if line.startswith("forwarded"))
    assert line.startswith("forwarded links that clients send on, by the link route of far/#;")
    head, row = ended.lines[ended.lines.index("Containers") + 1 :]
    assert head.split()[:3] == ["conn", "container", "address"]
    assert "site.far/q" in row


@pytest.mark.parametrize(
    ("words", "user", "vhost", "who"),
    [
        (("ann@a.com", "send", "q"), None, None, Who("ann", "a.com")),
        (("send", "q"), "ann", None, Who("ann", None)),
        (("send", "q"), "ann", "a.com", Who("ann", "a.com")),
        (("send", "q"), None, None, Who(None, None)),
        (("send", "q"), "anonymous", "a.com", Who(None, "a.com")),
    ],
    ids=["word", "user", "both", "nobody", "vhost"],
)
def test_the_user_is_a_word_or_an_option(
    words: tuple[str, ...], user: str | None, vhost: str | None, who: Who
) -> None:
    assert read_question(words, user, vhost) == (who, "send", "q")
