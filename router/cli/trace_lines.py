"""Format the lines of a trace for people: connection, time, direction and frame."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import click

from router.amqp.describing import Words
from router.cli.render import JsonMap

_ARROWS: Final = {"in": "<-", "out": "->"}
_EVENTS: Final = {
    "came in": "green",
    "is here": "green",
    "waits": "yellow",
    "went out": "cyan",
    "is out": "cyan",
    "outcome": "magenta",
    "told": "magenta",
    "was aborted": "red",
}
# Facts about a delivery, with their labels.
_DELIVERY_FACTS: Final = (
    ("deliveryId", "id"),
    ("tag", "tag"),
    ("address", "at"),
    ("messageId", "message-id"),
    ("bytes", "octets"),
    ("reason", "since"),
    ("state", ""),
    ("by", "known by its"),
)
_COLOURS: Final = {"in": "green", "out": "cyan"}


def format_line(line: JsonMap) -> str:
    """Return a trace line as text with colours, which `click.echo` strips outside a terminal."""
    kind = line.get("kind")
    if kind == "delivery":
        return _format_delivery(line)
    if kind == "recorded":
        return f"{line.get('offset', ''):>10}  {line.get('channel', '')} {_words(line)}"
    head = f"{_time(line.get('at'))}  {_connection(line):>6}"
    if kind == "connection":
        gone = " is gone" if line.get("gone") else ""
        return f"{head}  --  {_introduction(line)}{gone}"
    direction = str(line.get("direction"))
    arrow = click.style(_ARROWS.get(direction, "??"), fg=_COLOURS.get(direction))
    return f"{head}  {arrow}  {line.get('channel', '')} {_words(line)}"


def _format_delivery(line: JsonMap) -> str:
    """Return the text for an event in the life of a delivery."""
    event = str(line.get("event"))
    shown = click.style(f"{_plain(event):<10}", fg=_EVENTS.get(event), bold=True)
    told = []
    if "link" in line:
        told.append(f"{_connection(line)}[L{_plain(line['link'])}]")
    told += [
        f"{words} {_plain(line[name])}".lstrip()
        for name, words in _DELIVERY_FACTS
        if line.get(name) is not None
    ]
    if "settled" in line:
        told.append("settled" if line["settled"] else "unsettled")
    head = f"{_time(line.get('at'))}  {'#' + str(line.get('delivery', '?')):>6}"
    after = line.get("afterMs")
    delay = f"  +{after:.1f} ms" if isinstance(after, float | int) and after else ""
    return f"{head}  {shown}  {' '.join(told)}{delay}"


def _time(at: object) -> str:
    """Return the time of day in this host's time zone; `at` is in milliseconds since 1970."""
    if not isinstance(at, int):
        return " " * 12
    moment = datetime.fromtimestamp(int(at) / 1000, UTC).astimezone()
    return moment.strftime("%H:%M:%S.") + f"{int(at) % 1000:03}"


def _connection(line: JsonMap) -> str:
    return f"[C{line.get('connection', '?')}]"


def _introduction(line: JsonMap) -> str:
    told = [_plain(line.get("peer", ""))]
    told += [f"{name} {_plain(line[name])}" for name in ("container", "user") if name in line]
    return ", ".join(told)


def _words(line: JsonMap) -> str:
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


def _number(value: object) -> int:
    return int(value) if isinstance(value, int) else 0


def _plain(value: object) -> str:
    """Return a value as text, with characters escaped that would control a terminal."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
