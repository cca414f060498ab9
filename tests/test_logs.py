"""Logs: every level and both forms can be had, and a line stays a line whatever peers say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from router.config.model import LogSettings
from router.floods import BURST_S
from router.logs import LEVELS, LONGEST_TEXT, configure_logs, report_suppressed, tame

WRITTEN = ("debug", "info", "warning", "error", "critical")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def lines_at(level: Any, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The levels that are written where `level` is configured."""
    configure_logs(LogSettings(level=level, format="json"))
    log = structlog.get_logger("test")
    for each in WRITTEN:
        getattr(log, each)("said")
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line)["level"] for line in captured.err.splitlines()]


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_is_a_threshold(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    first = {
        "trace": 0,
        "debug": 0,
        "info": 1,
        "notice": 2,
        "warning": 2,
        "error": 3,
        "critical": 4,
    }
    assert lines_at(level, capsys) == list(WRITTEN[first[level] :])


def test_text_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings(format="text"))
    structlog.get_logger("test").bind(peer="127.0.0.1:1").warning("link detached", address="q")
    (line,) = capsys.readouterr().err.splitlines()
    for part in ("warning", "link detached", "peer=127.0.0.1:1", "address=q", "Z "):
        assert part in line
    assert "\x1b" not in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_defect_is_logged_whole(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(LogSettings(format=form))
    try:
        raise LookupError("what went wrong")
    except LookupError:
        structlog.get_logger("test").exception("connection failed")
    written = capsys.readouterr().err
    assert "LookupError: what went wrong" in written
    assert "test_logs.py" in written
    if form == "json":
        assert len(written.splitlines()) == 1


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "text", ["\x1b[2J", "a\nlevel=error", "a\rb", "\u2028", "\ud800", "\x9b1m"]
)
def test_what_peers_chose_cannot_forge_a_line(
    form: Any, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(LogSettings(format=form))
    structlog.get_logger("test").info("connection opened", container=text)
    written = capsys.readouterr().err
    assert len(written.splitlines()) == 1
    assert written[:-1].isprintable()


def test_long_texts_are_cut() -> None:
    event = tame(None, "info", {"event": "link attached", "link": "x" * 100_000, "number": 7})
    assert event["link"] == "x" * LONGEST_TEXT + "... (100000 characters)"
    assert event["number"] == 7


def test_a_flood_is_cut_and_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    floods = configure_logs(LogSettings(format="json", level="warning", lines_per_second=1))
    log = structlog.get_logger("test").bind(connection=1, peer="127.0.0.1:1")
    for _ in range(1000):
        log.warning("link refused")
        log.info("link attached")
    log.warning("session ended")
    report_suppressed(floods)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    *written, ended, summary = lines
    assert BURST_S <= len(written) < 1000
    assert {line["event"] for line in written} == {"link refused"}
    assert ended["event"] == "session ended"
    assert (summary["event"], summary["level"]) == ("lines suppressed", "warning")
    assert (summary["like"], summary["count"]) == ("link refused", 1000 - len(written))
    assert (summary["connection"], summary["peer"]) == (1, "127.0.0.1:1")
    report_suppressed(floods)
    assert capsys.readouterr().err == ""
