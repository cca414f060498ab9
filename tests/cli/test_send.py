"""`trioute send`: what it sends is what Proton receives, and what became of it is what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner
from proton import Condition, Delivery
from trio.testing import MockClock

from router.cli.send import Pace, send
from router.config.users import hash_password

from support.commands import Command, OtherSide, run
from support.routers import RouterProcess, StartRouter

pytestmark = pytest.mark.both_builds

PASSWORDS = """\
[[listener]]
port = 0
authenticatePeer = true
saslMechanisms = ["PLAIN"]
usersFile = "{users}"
"""


def received(other_side: OtherSide, *arguments: str, stdin: bytes | None = None) -> Any:
    """Run a send that has to go well, and return the one message that it sent."""
    receiver = other_side.receiver(credit=1)
    with Command("send", *arguments, stdin=stdin) as command:
        ended = other_side.end(command)
    assert ended.code == 0, ended.errors
    assert ended.output == ""
    return receiver.get(1)[0]


def test_everything_arrives_as_it_was_sent(other_side: OtherSide) -> None:
    message = received(
        other_side, other_side.url, "--body", "héllo", "--durable",
        "--ttl", "60000", "--priority", "7", "--property", "a=1", "--property", "b=x=y",
        "--subject", "about", "--reply-to", "answers",
    ).message  # fmt: skip
    assert message.body == "héllo"
    assert message.durable
    assert 0 < message.ttl <= 60_000
    assert message.priority == 7
    assert message.properties == {"a": "1", "b": "x=y"}
    assert message.subject == "about"
    assert message.reply_to == "answers"
    assert message.address is None
    assert list(message.annotations) == ["x-opt-trioute-sent-ns"]


def test_a_plain_message_says_nothing_more(other_side: OtherSide) -> None:
    message = received(other_side, other_side.url).message
    assert message.body == "hello, world"
    assert not message.durable
    assert message.ttl == 0
    assert message.priority == 4
    assert message.properties is None
    assert message.subject is None
    assert message.reply_to is None


@pytest.mark.parametrize("kind", ["size", "file", "stdin"])
def test_bodies_of_octets(other_side: OtherSide, tmp_path: Path, kind: str) -> None:
    octets = bytes(range(256)) * 500
    file = tmp_path / "body"
    file.write_bytes(octets)
    arguments, body = {
        "size": (["--size", "70000"], b"x" * 70_000),
        "file": (["--file", str(file)], octets),
        "stdin": (["--file", "-"], octets),
    }[kind]
    stdin = octets if kind == "stdin" else None
    assert received(other_side, other_side.url, *arguments, stdin=stdin).body == body


def test_presettled_messages(other_side: OtherSide) -> None:
    assert received(other_side, other_side.url, "--settle", "presettled").is_settled_by_sender


def test_the_anonymous_relay(other_side: OtherSide) -> None:
    url, address = other_side.router.url(), other_side.address
    assert received(other_side, url, "--to", address).message.address == address


def test_a_load_is_summed_up_as_json(other_side: OtherSide) -> None:
    receiver = other_side.receiver(credit=100)
    receiver.renews = True
    with Command("send", other_side.url, "--count", "500", "--size", "100", "--json") as command:
        ended = other_side.end(command)
    assert ended.code == 0
    assert ended.errors == ""
    summary = json.loads(ended.output)
    assert summary["count"] == 500
    assert summary["outcomes"] == {"accepted": 500}
    assert summary["bytes"] == sum(len(each.octets) for each in receiver.received)
    assert summary["rate"] > 0
    times = summary["latency_ms"]
    assert 0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"]
    assert len(receiver.received) == 500


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (Delivery.RELEASED, ["outcomes: 1 released"]),
        (Delivery.MODIFIED, ["outcomes: 1 modified"]),
        (Delivery.REJECTED, ["rejected 1: my:condition: too blue", "outcomes: 1 rejected"]),
    ],
)
def test_an_outcome_that_is_not_accepted_is_said(
    other_side: OtherSide, state: Any, said: list[str]
) -> None:
    receiver = other_side.receiver(credit=1, accept=False)
    with Command("send", other_side.url) as command:
        (message,) = receiver.get(1)
        if state == Delivery.REJECTED:
            message.delivery.local.condition = Condition("my:condition", "too blue")
        message.settle(state)
        ended = other_side.end(command)
    assert ended.code == 1
    first, *rest = ended.errors.splitlines()
    assert first == "trioute: 1 of 1 messages were not accepted"
    assert [line for line in rest if line.startswith(("rejected", "outcomes"))] == said


def test_nobody_receives(router_process: RouterProcess) -> None:
    ended = run("send", router_process.url("send/nobody"), "--timeout", "0.2", "--quiet")
    assert ended.code == 1
    assert ended.errors == "trioute: no credit after 0 of 1 messages within 0.2 s\n"


def test_nobody_settles(other_side: OtherSide) -> None:
    other_side.receiver(credit=1, accept=False)
    ended = run("send", other_side.url, "--timeout", "0.2", "--quiet")
    assert ended.code == 1
    assert ended.errors == "trioute: no outcome for 1 messages within 0.2 s\n"


@pytest.mark.parametrize(("password", "code"), [("secret", 1), ("wrong", 3)])
def test_a_password(start_router: StartRouter, tmp_path: Path, password: str, code: int) -> None:
    users = tmp_path / "users"
    users.write_text(f"ada:{hash_password('secret')}\n", encoding="utf-8")
    router = start_router(PASSWORDS.format(users=users))
    ended = run("send", router.url("q", user=f"ada:{password}"), "--timeout", "0.2", "--quiet")
    assert ended.code == code
    assert ("amqp:unauthorized-access" in ended.errors) is (code == 3)
    assert password not in ended.errors


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["http://there/q"],
        ["there"],
        ["there/q", "--to", "other"],
        ["there/q", "--body", "a", "--size", "1"],
        ["there/q", "--count", "0"],
        ["there/q", "--rate", "0"],
        ["there/q", "--timeout", "-1"],
        ["there/q", "--priority", "10"],
        ["there/q", "--ttl", "4294967296"],
        ["there/q", "--settle", "maybe"],
        ["there/q", "--property", "novalue"],
        ["there/q", "--property", "=x"],
        ["there/q", "--file", "/no/such/file"],
    ],
)
def test_a_wrong_command_line(arguments: list[str]) -> None:
    result = CliRunner().invoke(send, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output


async def test_a_pace_is_kept(autojump_clock: MockClock) -> None:
    pace = Pace(4)
    began = trio.current_time()
    for sent in range(9):
        await pace.wait(sent)
        assert pace.allowed(sent)
        assert not pace.allowed(sent + 1)
    assert trio.current_time() - began == pytest.approx(2)
    # what was late is caught up with
    await trio.sleep(1)
    assert [sent for sent in range(20) if pace.allowed(sent)] == list(range(13))


async def test_without_a_rate_there_is_no_wait() -> None:
    pace = Pace(0)
    await pace.wait(10**9)
    assert pace.allowed(10**9)
