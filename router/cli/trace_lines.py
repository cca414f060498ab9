"""Lines of a trace, for people: what passed over which connection, when, which way."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import click

from router.amqp.describing import Words

_ARROWS: Final = {"in": "<-", "out": "->"}
_COLOURS: Final = {"in": "green", "out": "cyan"}


def format_line(line: dict[str, Any]) -> str:
    """One line, with colours; whoever writes to no terminal strips them."""
    kind = line.get("kind")
    head = f"{_time(line.get('at'))}  {_connection(line):>6}"
    if kind == "connection":
        return f"{head}  --  {_introduction(line)}"
    direction = str(line.get("direction"))
    arrow = click.style(_ARROWS.get(direction, "??"), fg=_COLOURS.get(direction))
    return f"{head}  {arrow}  {line.get('channel', '')} {_words(line)}"


def _time(at: Any) -> str:
    """The time of day, in this host's zone."""
    if not isinstance(at, int):
        return " " * 12
    moment = datetime.fromtimestamp(int(at) / 1000, UTC).astimezone()
    return moment.strftime("%H:%M:%S.") + f"{int(at) % 1000:03}"


def _connection(line: dict[str, Any]) -> str:
    return f"[C{line.get('connection', '?')}]"


def _introduction(line: dict[str, Any]) -> str:
    told = [_plain(line.get("peer", ""))]
    told += [f"{name} {_plain(line[name])}" for name in ("container", "user") if name in line]
    return ", ".join(told)


def _words(line: dict[str, Any]) -> str:
    fields = line.get("fields")
    words = Words(
        name=_plain(line.get("name", "")),
        code=_number(line.get("code")),
        fields={_plain(k): _plain(v) for k, v in fields.items()}
        if isinstance(fields, dict)
        else {},
        payload_bytes=_number(line.get("payloadBytes")),
        payload=_plain(line.get("payload", "")),
        note=_plain(line.get("note", "")),
    )
    name, found, rest = words.text.partition(" ")
    return f"{click.style(name, bold=True)}{found}{rest}"


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int) else 0


def _plain(value: Any) -> str:
    """A text that a terminal does nothing with, whoever sent it."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
