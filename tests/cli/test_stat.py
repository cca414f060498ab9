"""`trioute stat` against a router: every view, the forms it can be printed in, and watching."""

from __future__ import annotations

import csv
import itertools
import json
import signal
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from proton import Message

from router.cli.main import main
from router.cli.stat import LOGS, NAMES
from router.cli.views import VIEWS
from router.client.management import PAGE

from support.certificates import Authority
from support.commands import Command, Ended, OtherSide, invoke, screen
from support.routers import PLAIN, RouterProcess, StartRouter
from support.tls_peers import profile

NAMED = '[router]\nid = "solo"\n\n' + PLAIN

# As qdstat has them.
SHORT = {
    "-g": "general", "-c": "connections", "-l": "links", "-n": "nodes", "-e": "edges",
    "-a": "addresses", "-m": "memory", "--autolinks": "auto-links", "--linkroutes": "link-routes",
    "--vhosts": "vhosts", "--vhostgroups": "vhostgroups", "--vhoststats": "vhoststats",
    "-p": "policy",
}  # fmt: skip


def shown(router: RouterProcess, *arguments: str) -> Ended:
    """Run `trioute stat`, which must succeed, and return how it ended."""
    ended = invoke("stat", "-b", router.url(), *arguments)
    assert (ended.code, ended.errors) == (0, "")
    return ended


def told(router: RouterProcess, *arguments: str) -> Any:
    """Return what `trioute stat --json` prints, as data."""
    return json.loads(shown(router, "--json", *arguments).output)


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_has_something_to_say(router_process: RouterProcess, name: str) -> None:
    lines = shown(router_process, name).lines
    view = VIEWS[name]
    assert lines[0] in (view.title, view.empty_text)
    assert len(lines) > 1 or lines == [view.empty_text]
    assert list(told(router_process, name)) == [name]


@pytest.mark.parametrize(("option", "name"), SHORT.items())
def test_views_go_by_the_options_of_qdstat_too(
    router_process: RouterProcess, option: str, name: str
) -> None:
    assert list(told(router_process, option)) == [name]


def test_several_views_in_the_order_they_were_given(router_process: RouterProcess) -> None:
    assert list(told(router_process, "nodes", "vhosts", "nodes")) == ["nodes", "vhosts"]
    assert list(told(router_process, "-l", "-c")) == ["links", "connections"]
    assert list(told(router_process, "--all-entities")) == list(VIEWS)
    assert [*VIEWS, LOGS] == list(NAMES)


def test_the_router_s_own_state_comes_first(start_router: StartRouter) -> None:
    router = start_router(NAMED)
    lines = shown(router).lines
    assert lines[0] == "Router"
    assert lines[3].split() == ["router", "id", "solo"]
    assert told(router)["general"][0]["id"] == "solo"


def test_what_clients_did_is_counted(other_side: OtherSide) -> None:
    receiver = other_side.receiver(credit=7)
    sender = other_side.sender()
    for _ in range(3):
        sender.outcome(Message(body="x"))
    assert len(receiver.bodies()) == 3
    (address,) = (
        each
        for each in told(other_side.router, "-a")["addresses"]
        if each["name"] == f"M0{other_side.address}"
    )
    assert (address["deliveriesIngress"], address["deliveriesEgress"]) == (3, 3)
    assert address["subscriberCount"] == 1
    row = next(
        line for line in shown(other_side.router, "-a").lines if line.startswith(other_side.address)
    )
    assert row.split()[1:] == ["balanced", "1", "0", "3", "3", "0", "0"]


def test_csv_has_the_names_of_the_schema(other_side: OtherSide) -> None:
    other_side.receiver(credit=7)
    rows = list(csv.DictReader(shown(other_side.router, "-l", "--csv").lines))
    (link,) = (row for row in rows if row["owningAddr"] == f"M0{other_side.address}")
    assert (link["linkDir"], link["creditAvailable"]) == ("out", "7")
    asked = invoke("manage", "-b", other_side.router.url(), "get-attributes", "router.link")
    (names,) = json.loads(asked.output).values()
    assert list(link) == names


def test_lines_are_no_wider_than_they_may_be(router_process: RouterProcess) -> None:
    for width in (30, 80, 120):
        lines = shown(router_process, "-l", "-c", "-a", "--width", str(width)).lines
        assert max(map(len, lines)) <= width


def test_many_entities_are_told_in_parts(other_side: OtherSide) -> None:
    count = PAGE + 30
    for number in range(count):
        other_side.proton.receiver(f"{other_side.address}/{number}")
    every = [each["identity"] for each in told(other_side.router, "-l")["links"]]
    assert len(every) >= count
    part = told(other_side.router, "-l", "--offset", "5", "--limit", str(PAGE + 3))["links"]
    assert len(part) == PAGE + 3
    assert len(told(other_side.router, "-l", "--limit", "0")["links"]) >= count


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--csv", "-l", "-c"], "--csv shows one view"),
        (["--csv", "--json"], "cannot be combined with --json"),
        (["--watch", "1", "--logs"], "logs cannot be watched"),
        (["--logs", "--csv"], "logs cannot be shown as CSV"),
        (["--looks", "3"], "--looks needs --watch"),
        (["nosuch"], "'nosuch' is not one of"),
    ],
)
def test_a_wrong_command_line(arguments: list[str], error: str) -> None:
    result = CliRunner().invoke(main, ["stat", "-b", "127.0.0.1:1", *arguments])
    assert result.exit_code == 2
    assert error in result.output


def test_the_last_lines_of_the_log(start_router: StartRouter) -> None:
    # of its own, since the links of other tests may still be on their way out of a shared one
    router = start_router(PLAIN)
    lines = shown(router, "--log", "--limit", "2").lines
    assert len(lines) == 2
    assert all("link attached" in line for line in lines), lines
    (first, _) = json.loads(shown(router, "--logs", "--json", "--limit", "2").output)[LOGS]
    assert (first["module"], first["level"]) == ("ROUTER_CORE", "info")
    assert isinstance(first["time"], int | float)


def test_rates_from_the_second_look_on(other_side: OtherSide) -> None:
    other_side.receiver(credit=10_000)
    sender = other_side.sender()
    watch = ("--json", "--watch", "1.0", "--looks", "3")
    command = Command("stat", "-b", other_side.router.url(), "-a", "-c", *watch)
    with command:
        while not command.has_ended:
            sender.outcome(Message(body="x"))
        ended = command.end()
    assert ended.code == 0
    looks = [json.loads(line) for line in ended.lines]
    assert len(looks) == 3
    name = f"M0{other_side.address}"
    mine = [
        next(each for each in look["addresses"] if each["name"] == name) for look in looks
    ]  # fmt: skip
    assert "rates" not in mine[0]
    for before, now in itertools.pairwise(mine):
        grown = now["deliveriesIngress"] - before["deliveriesIngress"]
        assert grown > 0
        # a second and a little more went by
        assert 0 < now["rates"]["deliveriesIngress"] <= grown / 0.8
    busy = [each.get("rates", {}) for each in looks[-1]["connections"]]
    assert any(rates.get("deliveriesIn", 0) > 0 for rates in busy)
    assert any(rates.get("deliveriesOut", 0) > 0 for rates in busy)


def test_what_the_router_counts_has_rates_beside_it(other_side: OtherSide) -> None:
    other_side.receiver(credit=10_000)
    sender = other_side.sender()
    watch = ("--watch", "1.0", "--looks", "2")
    with Command("stat", "-b", other_side.router.url(), *watch) as command:
        while not command.has_ended:
            sender.outcome(Message(body="x"))
        ended = command.end()
    for counter in ("deliveries in", "deliveries out", "accepted"):
        first, second = (line.split() for line in ended.lines if line.startswith(counter))
        assert not first[-1].endswith("/s")
        assert float(second[-1].removesuffix("/s").replace(",", "")) > 0


def test_csv_of_several_looks_has_one_header(router_process: RouterProcess) -> None:
    lines = shown(router_process, "-a", "--csv", "--watch", "0.1", "--looks", "3").lines
    assert [line.startswith("time,name,") for line in lines].count(True) == 1
    assert lines[0].endswith("deliveriesIngress/s,deliveriesEgress/s")
    assert len({line.split(",")[0] for line in lines[1:]}) >= 1


def test_plain_lines_where_there_is_no_terminal(router_process: RouterProcess) -> None:
    lines = shown(router_process, "-g", "--watch", "0.1", "--looks", "2").lines
    assert lines.count("Router") == 2
    assert not any("\x1b" in line for line in lines)
    # when it was, and what is told of the router
    assert lines[0].endswith("Z")


def test_a_terminal_is_drawn_over_until_ctrl_c(router_process: RouterProcess) -> None:
    with screen() as terminal:
        command = Command(
            "stat", "-b", router_process.url(), "--watch", "0.1",
            stdout=terminal.theirs, stderr=terminal.theirs,
        )  # fmt: skip
        with command:
            for _ in range(3):
                terminal.wait_for("\x1b[H")
                terminal.text = terminal.text.split("\x1b[H", 1)[1]
            command.interrupt(signal.SIGINT)
            rest = terminal.rest()
            assert command.end().code == 130
    assert "\x1b[?1049l" in rest
    # what was seen last stays
    assert "router id" in rest.rsplit("\x1b[?1049l", 1)[1]
    assert "\x1b[1mRouter\x1b[0m" in rest


# Days until a certificate expires, and whether that is soon.
CERTIFICATES = {"soon": (7, True), "late": (400, False), "over": (-1, True)}


def test_certificates_that_expire_soon_stand_out(start_router: StartRouter, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    now = datetime.now(UTC)
    text = PLAIN
    for name, (days, _) in CERTIFICATES.items():
        file = authority.issue("localhost", not_after=now + timedelta(days=days, minutes=1))
        text += profile(name, file)
    for name, hours in (("crl-soon", 11), ("crl-late", 13)):
        revoked = authority.revoke(next_update=timedelta(hours=hours), name=name)
        text += profile(name, authority.issue("localhost"), crlFile=str(revoked))
    router = start_router(text)
    entities = {each["name"]: each for each in told(router, "--certificates")["certificates"]}
    for name, (days, _) in CERTIFICATES.items():
        assert days * 86400 <= entities[name]["certificateSeconds"] + 1 <= days * 86400 + 61
        assert "crlSeconds" not in entities[name]
    assert 10 * 3600 < entities["crl-soon"]["crlSeconds"] <= 11 * 3600
    rows = [line.split() for line in shown(router, "--certificates", "--width", "200").lines]
    assert rows[0] == ["Certificates"]
    assert rows[1] == ["profile", "file", "expires", "in", "CRL", "expires", "CRL", "in"]
    (late,) = (row for row in rows if row and row[0] == "late")
    expires = (now + timedelta(days=400, minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert late[2:4] == [expires, "400d"]
    (over,) = (row for row in rows if row and row[0] == "over")
    assert over[3].startswith(("-23:5", "-1d"))
    with screen() as terminal:
        arguments = ("stat", "-b", router.url(), "--certificates", "--width", "200")
        with Command(*arguments, stdout=terminal.theirs, stderr=terminal.theirs) as command:
            lines = terminal.rest().splitlines()
            assert command.end().code == 0
    for name, (_, is_soon) in CERTIFICATES.items():
        (line,) = (each for each in lines if each.startswith(name))
        assert ("\x1b[33m" in line) == is_soon, line
    for name, is_soon in (("crl-soon", True), ("crl-late", False)):
        (line,) = (each for each in lines if each.startswith(name))
        assert ("\x1b[33m" in line) == is_soon, line
