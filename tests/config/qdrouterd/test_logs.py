"""Dispatch's log sections are one table, and the file that DEFAULT names is known."""

from __future__ import annotations

from typing import Any

from router.config.qdrouterd.sections import read_sections
from router.config.qdrouterd.translation import Translation, translate


def logs(*sections: dict[str, Any]) -> Translation:
    """Return the translation of log sections."""
    lines = []
    for section in sections:
        lines += ["log {", *(f"{key}: {value}" for key, value in section.items()), "}"]
    return translate(read_sections("\n".join(lines), "f"), "f")


def test_modules_are_levels() -> None:
    made = logs(
        {"module": "DEFAULT", "enable": "trace+"},
        {"module": "AGENT", "enable": "debug, error+"},
        {"module": "SERVER", "enable": "default"},
        {"module": "POLICY"},
    )
    assert made.data["log"] == {"levels": {"DEFAULT": "trace+", "AGENT": "debug, error+"}}
    assert made.lines["log", "levels", "AGENT"] == 7
    assert made.mistakes == []


def test_where_it_is_written() -> None:
    made = logs(
        {"module": "DEFAULT", "output": "/var/log/x", "includeSource": "yes"},
        {"module": "AGENT", "outputFile": "agent.log", "includeTimestamp": "yes"},
    )
    assert made.log_file == "/var/log/x"
    assert [(each.sort, each.path) for each in made.remarks if each.sort != "default"] == [
        ("old", "log[0].output"),
        ("ignored", "log[0].outputFile"),
        ("ignored", "log[0].includeSource"),
        ("missing", "log[1].outputFile"),
    ]
    assert logs({"module": "DEFAULT", "outputFile": "stderr"}).log_file == ""
    syslog = logs({"module": "DEFAULT", "outputFile": "syslog"})
    assert ("missing", "log[0].outputFile") in [(one.sort, one.path) for one in syslog.remarks]


def test_mistakes() -> None:
    made = logs({"enable": "info+"}, {"module": "DEFAULT", "enable": "loud"}, {"module": "X"})
    assert [(mistake.line, mistake.path) for mistake in made.mistakes] == [
        (9, "log[2].module"),
        (1, "log[0].module"),
        (6, "log[1].enable"),
        (8, "log[2].module"),
    ]
