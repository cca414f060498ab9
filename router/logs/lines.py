"""Format lines of the log: make them safe, and make the text that Dispatch's tools show."""

from __future__ import annotations

from typing import Final

from structlog.typing import EventDict, WrappedLogger

# A peer chooses its container-id and the names of its links; a line of the log stays a line.
LONGEST_TEXT: Final = 256
# What a line says is ours, but for the frames of a connection that is traced.
LONGEST_EVENT: Final = 2048

# What a line has besides what it tells; and the ids, which stand in front.
_FRAME: Final = frozenset(
    {"event", "timestamp", "level", "logger", "module", "connection", "link_id"}
)


def tame(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters in texts, which peers may have chosen, and cut long texts."""
    for key, value in event.items():
        if isinstance(value, str):
            longest = LONGEST_EVENT if key == "event" else LONGEST_TEXT
            if len(value) > longest:
                value = f"{value[:longest]}... ({len(value)} characters)"
                event[key] = value
            if not value.isprintable():
                event[key] = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in value)
    return event


def plain_text(event: EventDict) -> str:
    """Return a line as one text: `[C7][L7.0.1] link attached name=x`.

    The numbers are the identities of the `connection` and `router.link` entities.
    """
    ids = ""
    if "connection" in event:
        ids += f"[C{event['connection']}]"
    if "link_id" in event:
        ids += f"[L{event['link_id']}]"
    text = str(event.get("event"))
    # as in Dispatch, a frame stands right behind its connection
    told = [f"{ids}{text}" if text.startswith(":") else f"{ids} {text}".lstrip()]
    told += [f"{name}={value}" for name, value in event.items() if name not in _FRAME]
    return " ".join(told)[: 2 * LONGEST_EVENT]
