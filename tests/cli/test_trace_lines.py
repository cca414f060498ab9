"""Lines of a trace as people read them."""

from __future__ import annotations

import re
from typing import Any

import click
import pytest

from router.cli.trace_lines import format_line


def plain(line: dict[str, Any]) -> str:
    """Format a line without colours and without its time, which depends on the time zone."""
    text = click.unstyle(format_line({"at": 1_700_000_000_123, **line}))
    assert re.match(r"\d\d:\d\d:\d\d\.123 ", text)
    return text[12:]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            {"kind": "connection", "connection": "7", "peer": "10.0.0.1:5", "user": "ada"},
            "    [C7]  --  10.0.0.1:5, user ada",
        ),
        (
            {
                "kind": "frame",
                "connection": "12",
                "direction": "in",
                "channel": 3,
                "name": "detach",
                "code": 22,
                "fields": {"handle": "0", "closed": "true"},
            },
            "   [C12]  <-  3 @detach(22) [handle=0, closed=true]",
        ),
        (
            {
                "kind": "frame",
                "connection": "7",
                "direction": "out",
                "channel": 0,
                "name": "transfer",
                "code": 20,
                "fields": {"handle": "0"},
                "payload": '"abc"...',
                "payloadBytes": 70,
            },
            '    [C7]  ->  0 @transfer(20) [handle=0] (70) "abc"...',
        ),
        (
            {
                "kind": "frame",
                "connection": "7",
                "direction": "in",
                "name": "not AMQP",
                "note": "x",
            },
            "    [C7]  <-   not AMQP x",
        ),
    ],
)
def test_lines_have_columns(line: dict[str, Any], told: str) -> None:
    assert plain(line) == told


@pytest.mark.parametrize("line", [{}, {"kind": 3, "fields": [1]}, {"at": "x", "name": "\x1b[2J"}])
def test_whatever_a_router_sends_is_a_harmless_line(line: dict[Any, Any]) -> None:
    assert click.unstyle(format_line(line)).isprintable()


def test_directions_have_colours() -> None:
    inward = format_line({"kind": "frame", "direction": "in"})
    assert inward != click.unstyle(inward)
    assert inward != format_line({"kind": "frame", "direction": "out"})
