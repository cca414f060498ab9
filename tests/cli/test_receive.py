"""`trioute receive`: what Proton sends is what it prints, and what it says is what Proton hears."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from click.testing import CliRunner
from proton import Message, symbol

from router.cli.receive import receive

from support.commands import Command, Ended, OtherSide, run
from support.proton_peers import ProtonSender
from support.routers import RouterProcess

pytestmark = pytest.mark.both_builds


def received(
    other_side: OtherSide, message: Message, *arguments: str, **options: Any
) -> tuple[Ended, ProtonSender]:
    """Run a receive, send it a message, and return how it ended and what the sender heard."""
    with Command("receive", other_side.url, *arguments) as command:
        sender = other_side.sender(message, **options)
        ended = other_side.end(command)
        other_side.settle(sender)
    return ended, sender


def test_bodies_are_printed(other_side: OtherSide) -> None:
    bodies: list[Any] = ["héllo", b"\xff\x00", {"a": [1, None]}]
    with Command("receive", other_side.url, "--count", "3") as command:
        sender = other_side.sender(*[Message(body=body) for body in bodies])
        other_side.peers.until(lambda: command.has_ended, "the command has ended")
        output, errors = command.process.communicate()
    assert output == "héllo\n".encode() + b'\xff\x00\n{"a": [1, null]}\n'
    assert command.process.returncode == 0
    first, *rest = errors.decode().splitlines()
    assert first.startswith("received 3 messages, ")
    # proton put no time into its messages
    assert rest == ["outcomes: 3 accepted"]
    assert other_side.settle(sender) == ["accepted"] * 3


def test_a_message_as_json(other_side: OtherSide) -> None:
    message = Message(
        inferred=True, body=b"\x01", durable=True, priority=7, ttl=60.0, id="m-1",
        subject="s", reply_to="r", correlation_id="c", properties={"k": 5},
        annotations={symbol("x-opt-a"): "b"},
    )  # fmt: skip
    ended, _ = received(other_side, message, "--count", "1", "--print", "json", "--quiet")
    assert ended.errors == ""
    shown = json.loads(ended.output)
    assert shown["header"].pop("ttl") <= 60_000
    assert shown["header"]["durable"] is True
    assert shown["header"]["priority"] == 7
    assert shown["message_annotations"] == {"x-opt-a": "b"}
    assert shown["application_properties"] == {"k": 5}
    assert shown["data"] == {"base64": "AQ=="}
    properties = shown["properties"]
    assert properties["message_id"] == "m-1"
    assert properties["subject"] == "s"
    assert properties["reply_to"] == "r"
    assert properties["correlation_id"] == "c"


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("accept", "accepted"),
        ("reject", "rejected"),
        ("release", "released"),
        ("modify", "modified"),
    ],
)
def test_the_sender_hears_the_outcome(other_side: OtherSide, word: str, outcome: str) -> None:
    ended, sender = received(
        other_side, Message(body="x"), "--count", "1", "--settle", word, "--print", "none"
    )
    assert ended.code == 0
    assert ended.output == ""
    assert sender.outcomes == [outcome]
    assert sender.sent[0].failed is (word == "modify")
    assert ended.errors.splitlines()[1] == f"outcomes: 1 {outcome}"


def test_presettled_messages(other_side: OtherSide) -> None:
    ended, sender = received(other_side, Message(body="x"), "--count", "1", "--presettled")
    assert ended.code == 0
    assert ended.errors.splitlines()[1] == "outcomes: 1 settled"
    assert sender.all_settled()


def test_no_more_is_taken_than_asked_for(other_side: OtherSide) -> None:
    with Command("receive", other_side.url, "--count", "2") as command:
        sender = other_side.sender(Message(body="1"), Message(body="2"))
        other_side.settle(sender)
        assert other_side.end(command).lines == ["1", "2"]
    receiver = other_side.receiver(credit=10)
    sender.outcome(Message(body="3"))
    assert receiver.bodies() == ["3"]


def test_too_few_come_in_time(other_side: OtherSide) -> None:
    ended, _ = received(other_side, Message(body="x"), "--count", "2", "--timeout", "1", "--quiet")
    assert ended.code == 1
    assert ended.lines == ["x"]
    assert ended.errors == "trioute: received 1 of 2 messages, and no other one within 1 s\n"


def test_a_timeout_ends_what_has_no_count(router_process: RouterProcess) -> None:
    ended = run("receive", router_process.url("receive/idle"), "--timeout", "0.2")
    assert ended.code == 0
    assert ended.errors.splitlines() == ["received 0 messages, 0 bytes, in 0.000 s (0/s)"]


def test_a_drain_ends_when_nothing_is_left(router_process: RouterProcess) -> None:
    ended = run("receive", router_process.url("receive/drain"), "--drain", "--json")
    assert ended.code == 0
    assert json.loads(ended.output)["count"] == 0


def test_a_drain_finds_too_few(router_process: RouterProcess) -> None:
    url = router_process.url("receive/drain2")
    ended = run("receive", url, "--drain", "--count", "2", "--quiet")
    assert ended.code == 1
    assert ended.errors == "trioute: only 0 of 2 messages were available\n"


def test_both_ends_agree_on_what_went_between(router_process: RouterProcess) -> None:
    url = router_process.url("receive/between")
    with Command("receive", url, "--count", "3000", "--json") as receiver:
        with Command("send", url, "--count", "3000", "--size", "1000", "--json") as sender:
            sent, got = json.loads(sender.end().output), json.loads(receiver.end().output)
        assert receiver.process.returncode == sender.process.returncode == 0
    assert sent["count"] == got["count"] == 3000
    assert sent["bytes"] == got["bytes"]
    assert sent["outcomes"] == got["outcomes"] == {"accepted": 3000}
    assert 0 < got["latency_ms"]["p50"] <= sent["latency_ms"]["max"]


def test_large_messages_and_a_reader_who_waits(router_process: RouterProcess) -> None:
    url = router_process.url("receive/large")
    size = 20_000_000
    with Command("receive", url, "--count", "2", "--quiet") as receiver:
        sender = Command("send", url, "--count", "2", "--size", str(size), "--quiet")
        with sender:
            # nobody reads what the receiver prints until the sender waits for it
            with pytest.raises(subprocess.TimeoutExpired):
                sender.process.wait(1)
            assert receiver.end().output == ("x" * size + "\n") * 2
            assert sender.end().code == 0


def test_who_reads_the_output_has_enough(other_side: OtherSide) -> None:
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "wb") as output:
        command = Command("receive", other_side.url, stdout=output)
    os.close(ours)
    with command:
        other_side.sender(Message(body="x"))
        ended = other_side.end(command)
    assert ended.code == 141
    assert ended.errors == ""


def test_what_is_no_message_is_said(other_side: OtherSide) -> None:
    with Command("receive", other_side.url, "--count", "1") as command:
        # a list of one item that is none: the router steps over it by its size
        other_side.sender(bytes.fromhex("005377 c00301 ffff"))
        ended = other_side.end(command)
    assert ended.code == 0
    assert ended.output == ""
    assert ended.errors.startswith("trioute: a message cannot be decoded: amqp:decode-error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["there"],
        ["amqp://there/q", "--ssl-trustfile", __file__],
        ["wss://there/q"],
        ["there/q", "--count", "0"],
        ["there/q", "--credit", "0"],
        ["there/q", "--settle", "maybe"],
        ["there/q", "--print", "all"],
        ["there/q", "--timeout", "0"],
    ],
)
def test_a_wrong_command_line(arguments: list[str]) -> None:
    result = CliRunner().invoke(receive, arguments)
    assert result.exit_code == 2
    assert "Usage:" in result.output
