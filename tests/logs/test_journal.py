"""Logs: every level and both forms can be had, and a line stays a line whatever peers say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from router.config.log_levels import LEVELS, LogLevel
from router.config.log_settings import LogSettings, with_levels
from router.log_limits import BURST_S
from router.logs.journal import Journal


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def begun(**settings: Any) -> Journal:
    """Start a journal with these log settings."""
    journal = Journal()
    journal.begin(LogSettings(**settings))
    return journal


def lines_at(level: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the levels of the lines that are written if `level` is configured."""
    begun(level=level, format="json")
    log = structlog.get_logger("test")
    for each in LEVELS:
        getattr(log, each)("said")
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line)["level"] for line in captured.err.splitlines()]


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_a_threshold(level: LogLevel, capsys: pytest.CaptureFixture[str]) -> None:
    assert lines_at(level, capsys) == list(LEVELS[LEVELS.index(level) :])


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    begun(format="text")
    structlog.get_logger("test").bind(peer="127.0.0.1:1").warning("link detached", address="q")
    (line,) = capsys.readouterr().err.splitlines()
    for part in ("warning", "link detached", "peer=127.0.0.1:1", "address=q", "Z "):
        assert part in line
    assert "\x1b" not in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_defect_is_logged_whole(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    begun(format=form)
    try:
        raise LookupError("what went wrong")
    except LookupError:
        structlog.get_logger("test").exception("connection failed")
    written = capsys.readouterr().err
    assert "LookupError: what went wrong" in written
    assert "test_journal.py" in written
    if form == "json":
        assert len(written.splitlines()) == 1


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "text", ["\x1b[2J", "a\nlevel=error", "a\rb", "\u2028", "\ud800", "\x9b1m"]
)
def test_what_peers_chose_cannot_forge_a_line(
    form: Any, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(format=form)
    structlog.get_logger("test").info("connection opened", container=text)
    written = capsys.readouterr().err
    assert len(written.splitlines()) == 1
    assert written[:-1].isprintable()


def test_a_flood_is_cut_and_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    journal = begun(format="json", level="warning", lines_per_second=1)
    log = structlog.get_logger("test").bind(connection=1, peer="127.0.0.1:1")
    for _ in range(1000):
        log.warning("link refused")
        log.info("link attached")
    log.warning("session ended")
    journal.report_suppressed()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    *written, ended, summary = lines
    assert BURST_S <= len(written) < 1000
    assert {line["event"] for line in written} == {"link refused"}
    assert ended["event"] == "session ended"
    assert (summary["event"], summary["level"]) == ("lines suppressed", "warning")
    assert (summary["like"], summary["count"]) == ("link refused", 1000 - len(written))
    assert (summary["connection"], summary["peer"]) == (1, "127.0.0.1:1")
    journal.report_suppressed()
    assert capsys.readouterr().err == ""


def test_levels_of_one_module_change_while_loggers_are_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    journal = begun(format="json", level="warning")
    agent = structlog.get_logger("router.management").bind(asker="x")
    link = structlog.get_logger("router.link").bind(connection=7)

    def written() -> list[tuple[str, str]]:
        for log in (agent, link):
            for level in ("debug", "info", "warning"):
                getattr(log, level)("said")
        lines = map(json.loads, capsys.readouterr().err.splitlines())
        return [(line["module"], line["level"]) for line in lines]

    assert written() == [("AGENT", "warning"), ("ROUTER_CORE", "warning")]
    first = with_levels(journal.settings, "AGENT", "debug, error+")
    journal.change(first)
    assert written() == [("AGENT", "debug"), ("ROUTER_CORE", "warning")]
    journal.change(with_levels(first, "DEFAULT", "info+"))
    assert written() == [
        ("AGENT", "debug"),
        ("ROUTER_CORE", "info"),
        ("ROUTER_CORE", "warning"),
    ]
    journal.change(with_levels(first, "AGENT", None))
    assert written() == [("AGENT", "warning"), ("ROUTER_CORE", "warning")]
    # written or not, they are counted
    assert journal.modules["AGENT"].counts == {"debug": 4, "info": 4, "warning": 4}


def test_what_is_written_is_remembered_and_what_is_not_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    journal = begun()
    log = structlog.get_logger("router.link").bind(connection=7)
    log.debug("unsaid")
    log.info("link attached", link_id="7.0.1", link="a\nb")
    (line,) = journal.recent.last()
    assert (line.module, line.level) == ("ROUTER_CORE", "info")
    assert line.text == "[C7][L7.0.1] link attached link=a\\nb"
    assert "link attached" in capsys.readouterr().err


def test_the_form_can_change_and_watchers_hear_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    journal = begun(format="text")
    heard: list[LogSettings] = []
    journal.watchers.append(heard.append)
    log = structlog.get_logger("router.http")
    log.info("said")
    assert "[HTTP" in capsys.readouterr().err
    settings = LogSettings(format="json", lines_per_second=0)
    journal.change(settings)
    log.info("said")
    assert json.loads(capsys.readouterr().err)["module"] == "HTTP"
    assert heard == [settings]
