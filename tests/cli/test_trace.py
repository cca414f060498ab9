"""`trioute trace` against a router process: what is seen, how it ends, what it leaves behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from proton import Message

from support.commands import Command, run, screen
from support.proton_peers import ProtonPeers
from support.routers import RouterProcess, StartRouter

GOLDEN = Path(__file__).with_name("trace_of_one_connection.txt")


@contextmanager
def tracing(router: RouterProcess, *arguments: str) -> Iterator[Command]:
    """Run a trace that is active when the block begins."""
    with (
        screen() as shown,
        Command("trace", "-b", router.url(), *arguments, stderr=shown.theirs) as command,
    ):
        shown.wait_for("tracing ")
        yield command


def masked(line: str) -> str:
    """Remove the time from a line, and mask what differs from run to run."""
    text = re.sub(r"^\d\d:\d\d:\d\d\.\d{3} +", "", line)
    text = re.sub(r"127\.0\.0\.1:\d+", "HOST", text)
    return re.sub(r"container [^,]+", "container CONTAINER", text)


def test_one_connection_is_seen_as_it_speaks(start_router: StartRouter, peers: ProtonPeers) -> None:
    router = start_router()
    peer, other = peers.connect(router.url()), peers.connect(router.url())
    peer.receiver("before", 1)
    sender = other.sender("seen")
    peers.until(lambda: "address=seen" in router.log_text(), "both are attached")
    with tracing(router, "--connection", "1", "--count", "5") as command:
        other.receiver("elsewhere", 1)
        receiver = peer.receiver("seen", 1)
        sender.send(Message("hello"))
        peers.until(lambda: receiver.bodies() == ["hello"], "the message is there")
        peers.until(lambda: command.has_ended, "the trace has ended")
        ended = command.end()
    assert [masked(line) for line in ended.lines] == GOLDEN.read_text("utf-8").splitlines()
    assert ended.code == 0


def test_lines_are_json_for_machines(start_router: StartRouter, peers: ProtonPeers) -> None:
    router = start_router()
    with tracing(router, "--all", "--json", "--count", "4") as command:
        peer = peers.connect(router.url())
        peers.until(lambda: command.has_ended, "the trace has ended")
        ended = command.end()
        peer.close()
    lines = [json.loads(line) for line in ended.lines]
    assert lines[0]["kind"] == "connection"
    frames = [line for line in lines if line["kind"] == "frame"]
    assert [(line["direction"], line["name"]) for line in frames[:2]] == [
        ("in", "SASL 1.0.0"),
        ("out", "SASL 1.0.0"),
    ]
    assert {line["connection"] for line in lines} == {"2"}
    assert all(isinstance(line["at"], int) for line in lines)


def test_an_interrupt_ends_it_and_the_router_forgets_it(
    start_router: StartRouter, peers: ProtonPeers
) -> None:
    router = start_router()
    with tracing(router, "--all") as command:
        command.interrupt()
        ended = command.end()
    assert ended.code == 130
    peers.until(lambda: "trace ended" in router.log_text(), "the router has forgotten it")
    assert "its receiver is gone" in router.log_text()


def test_a_killed_trace_is_forgotten_too(start_router: StartRouter, peers: ProtonPeers) -> None:
    router = start_router()
    with tracing(router, "--all") as command:
        command.interrupt(9)
        command.end()
    peers.until(lambda: "trace ended" in router.log_text(), "the router has forgotten it")


def test_two_traces_of_everything_do_not_trace_each_other(
    start_router: StartRouter, peers: ProtonPeers
) -> None:
    router = start_router()
    with tracing(router, "--all", "--json") as one, tracing(router, "--all", "--json") as other:
        peer = peers.connect(router.url())
        receiver = peer.receiver("q", 1)
        peer.sender("q").send(Message("x"))
        peers.until(lambda: receiver.bodies() == ["x"], "the message is there")
        peer.close()
        peers.until(lambda: "connection=3" in router.log_text(), "all is logged")
        one.interrupt()
        other.interrupt()
        seen = [[json.loads(line) for line in command.end().lines] for command in (one, other)]
    # the second trace's own begin was seen by the first, and nothing of it once it was one
    for lines in seen:
        assert {line["connection"] for line in lines} <= {"2", "3"}
        assert len(lines) < 80


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        (["--connection", "999"], 1, "404 there is no connection 999"),
        ([], 2, "select what to trace by one of"),
        (["--all", "--user", "x"], 2, "select what to trace by one of"),
        (["--all", "--count", "0"], 2, "--count"),
    ],
)
def test_what_cannot_be_traced_is_said(
    router_process: RouterProcess, arguments: list[str], code: int, complaint: str
) -> None:
    ended = run("trace", "-b", router_process.url(), *arguments)
    assert ended.code == code
    assert complaint in ended.errors


def test_a_delivery_is_followed(start_router: StartRouter, peers: ProtonPeers) -> None:
    router = start_router()
    peer, other = peers.connect(router.url()), peers.connect(router.url())
    receiver = peer.receiver("followed", 10)
    sender = other.sender("followed")
    peers.until(lambda: router.log_text().count("address=followed") == 2, "both are attached")
    place = ("--delivery", "--address", "followed", "--message-id", "wanted")
    with tracing(router, *place, "--count", "1") as command:
        for name in ("other", "wanted"):
            sender.send(Message("hello", id=name))
        peers.until(lambda: len(receiver.bodies()) == 2, "the messages are there")
        peers.until(lambda: command.has_ended, "the trace has ended")
        ended = command.end()
    assert ended.code == 0
    told = [re.sub(r"^\S+ +| +\+\d+\.\d ms$| tag \S+", "", line) for line in ended.lines]
    assert told == [
        "#1  came in     [C2][L2.0.0] id 1 at followed message-id wanted octets 28 unsettled",
        "#1  went out    [C1][L1.0.0] id 1 unsettled",
        "#1  outcome     [C1][L1.0.0] id 1 accepted settled",
        "#1  told        [C2][L2.0.0] id 1 accepted settled",
    ]


def test_a_trace_ends_with_its_connection(start_router: StartRouter, peers: ProtonPeers) -> None:
    router = start_router()
    peer = peers.connect(router.url())
    with tracing(router, "--connection", "1") as command:
        peer.close()
        peers.until(lambda: command.has_ended, "the trace has ended")
        ended = command.end()
    assert ended.code == 0
    assert ended.lines[-1].endswith(" is gone")
