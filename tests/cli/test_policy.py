"""`trioute policy test`: the report, answers to questions, and expectations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from router.client import LinkLost, connect

from support.commands import Ended, invoke
from support.loopback import running_node
from support.routers import StartRouter

CONFIGURATION = """\
[[listener]]
host = "127.0.0.1"
port = 0
name = "l"

[policy]
enableVhostPolicy = true

[[vhost]]
hostname = "$default"
allowUnknownUser = true

[vhost.groups."$default"]
remoteHosts = "*"
targets = "orders, $management"
sources = "news*"
allowDynamicSource = true

[[vhost]]
hostname = "example.com"
aliases = "www.example.com"
maxConnections = 10

[vhost.groups.clients]
users = "ann"
remoteHosts = "10.0.0.0/8"
targetPattern = "a/#, a/b"
"""
DISPATCH = """\
policy {
    enableVhostPolicy: true
}
vhost {
    hostname: example.com
    groups: {
        clients: {
            users: ann
            remoteHosts: *
            targets: orders
        }
    }
}
"""
ANN = ("--as", "ann", "--vhost", "example.com", "--from", "10.0.0.1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write the configuration, and return its file."""
    written = tmp_path / "router.toml"
    written.write_text(CONFIGURATION, encoding="utf-8")
    return written


def policy(*arguments: str | Path) -> Ended:
    return invoke("policy", "test", *map(str, arguments))


def test_the_report(file: Path) -> None:
    ended = policy(file, "--width", "80")
    assert (ended.code, ended.errors) == (0, "")
    assert ended.lines[0].startswith("The policy is enforced. Peers with other host names belong")
    assert max(map(len, ended.lines)) <= 80
    assert "    users         all that are in no other group" in ended.lines
    assert "    send to       orders, $management" in ended.lines
    assert "    receive from  nothing" in ended.lines
    assert "vhost             example.com; also www.example.com; maxConnections 10" in ended.lines
    assert "2 warnings" in ended.lines
    assert " ".join(ended.output.split()).endswith("a/b has no effect, because of a/#")
    assert policy(file, "--strict").code == 1


def test_the_report_as_json(file: Path) -> None:
    told = json.loads(policy(file, "--json").output)
    assert [each["hostname"] for each in told["vhosts"]] == ["$default", "example.com"]
    assert told["vhosts"][1]["groups"]["clients"]["users"] == ["ann"]
    assert "a/b has no effect" in told["warnings"][1]["text"]


def test_long_lists_are_cut_unless_all_is_wanted(file: Path) -> None:
    users = ", ".join(f"user{number}" for number in range(30))
    file.write_text(CONFIGURATION.replace('"ann"', f'"{users}"'), encoding="utf-8")
    assert "user19 and 10 more" in policy(file).output
    assert "user29" in policy(file, "-v").output


def test_questions_and_their_answers(file: Path) -> None:
    ended = policy(file, *ANN, "open", "send a/x", "receive", "news")
    assert ended.code == 1
    assert ended.lines[0] == "ann at example.com, from 10.0.0.1: vhost example.com, group clients"
    assert [line.split()[0] for line in ended.lines[2:]] == ["allowed", "allowed", "refused"]
    assert "targetPattern has a/#" in ended.lines[3]
    assert policy(file, *ANN).code == policy(file, *ANN, "send", "a/x").code == 0
    assert policy(file, "send", "orders").code == 0
    assert policy(file, "--as", "eve", "--vhost", "example.com").code == 1
    assert policy(file, "--as", "eve", "--vhost", "example.com", "--groups", "clients").code == 0


def test_answers_as_json(file: Path) -> None:
    ended = policy(file, *ANN, "--json", "send", "a/x", "dynamic")
    told = json.loads(ended.output)
    assert (ended.code, told["allowed"], told["user"]) == (1, False, "ann")
    sent, dynamic = told["decisions"]
    assert sent["decidedBy"] == {
        "vhost": "example.com",
        "group": "clients",
        "attribute": "targetPattern",
        "entry": "a/#",
    }
    assert (dynamic["action"], dynamic["address"], dynamic["allowed"]) == ("dynamic", None, False)


def test_a_file_of_dispatch(tmp_path: Path) -> None:
    file = tmp_path / "qdrouterd.conf"
    file.write_text(DISPATCH, encoding="utf-8")
    assert policy(file, "--as", "ann", "--vhost", "example.com", "send", "orders").code == 0


def test_expectations_that_are_met_and_not(file: Path, tmp_path: Path) -> None:
    expected = tmp_path / "expected.toml"
    lines = """\
[[expect]]
user = "ann"
from = "10.0.0.1"
vhost = "example.com"
action = "send"
address = "a/x"

[[expect]]
action = "receive"
address = "secret"
allowed = false
"""
    expected.write_text(lines, encoding="utf-8")
    met = policy(file, "--expect", expected)
    assert (met.code, met.lines) == (0, ["2 of 2 expectations are met"])
    assert len(policy(file, "--expect", expected, "-v").lines) == 4
    expected.write_text(lines.replace("allowed = false", "allowed = true"), encoding="utf-8")
    failed = policy(file, "--expect", expected)
    assert (failed.code, failed.lines[-1]) == (1, "1 of 2 expectations are met")
    assert failed.lines[1].split()[:2] == ["failed", "2"]
    assert "sources has no entry that allows secret (vhost $default" in failed.lines[1]
    told = json.loads(policy(file, "--expect", expected, "--json").output)
    assert (told["expectations"], told["failed"]) == (2, 1)
    assert [each["met"] for each in told["outcomes"]] == [True, False]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["fly"], "'fly' is not a question; give open"),
        (["send"], "send needs an address"),
        (["open sesame"], "open does not take an address"),
        (["--expect", "nowhere.toml"], "No such file"),
        (["--expect", "nowhere.toml", "open"], "cannot be combined"),
    ],
)
def test_a_wrong_command_line(file: Path, arguments: list[str], error: str) -> None:
    ended = policy(file, *arguments)
    assert ended.code == 2
    assert error in ended.errors


def test_a_file_with_mistakes(file: Path) -> None:
    file.write_text(CONFIGURATION.replace("targets", "target"), encoding="utf-8")
    ended = policy(file)
    assert (ended.code, ended.output) == (2, "")
    assert "did you mean" in ended.errors


async def test_a_router_decides_the_same(file: Path) -> None:
    from router.config.load import load_configuration

    async with (
        running_node(load_configuration(file)) as running,
        connect(f"127.0.0.1:{running.address[1]}") as client,
    ):
        await client.open_sender("orders")
        await client.open_receiver("news.today")
        with pytest.raises(LinkLost):
            await client.open_sender("other")
    assert policy(file, "--from", "127.0.0.1", "send", "orders", "receive", "news.today").code == 0
    assert policy(file, "--from", "127.0.0.1", "send", "other").code == 1


def test_apply_with_force(file: Path, start_router: StartRouter, tmp_path: Path) -> None:
    router = start_router(CONFIGURATION)
    wanted = tmp_path / "wanted.toml"
    text = CONFIGURATION.replace("orders, $management", "orders")
    wanted.write_text(text, encoding="utf-8")
    refused = invoke("apply", "--bus", router.url(), "--dry-run", str(wanted))
    assert refused.code == 1
    assert "would lock you out: user anonymous may not send to $management" in refused.errors
    shown = invoke("apply", "--bus", router.url(), "--dry-run", "--force", str(wanted))
    assert (shown.code, shown.lines[-1]) == (0, "nothing was changed")
