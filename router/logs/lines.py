"""Format log lines: escape and cut texts from peers, and make the text for Dispatch's tools."""

from __future__ import annotations

from typing import Final

from structlog.typing import EventDict, WrappedLogger

# Maximum length of values: peers choose their container-ids and link names freely.
MAX_VALUE: Final = 256
# The event is the router's own text, except for frames of traced connections.
MAX_EVENT: Final = 2048

# Keys that are not shown as facts; the ids are shown in front.
_FRAME: Final = frozenset(
    {"event", "timestamp", "level", "logger", "module", "connection", "link_id"}
)


def escape_and_cut(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape control characters in texts, which peers may have chosen, and cut long texts."""
    for key, value in event.items():
        if isinstance(value, str):
            longest = MAX_EVENT if key == "event" else MAX_VALUE
            if len(value) > longest:
                value = f"{value[:longest]}... ({len(value)} characters)"
                event[key] = value
            if not value.isprintable():
                event[key] = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in value)
    return event


def plain_text(event: EventDict) -> str:
    """Return a log line as plain text, such as `[C7][L7.0.1] link attached name=x`.

    The numbers after C and L are the identities of the `connection` and `router.link` entities.
    """
    ids = ""
    if "connection" in event:
        ids += f"[C{event['connection']}]"
    if "link_id" in event:
        ids += f"[L{event['link_id']}]"
    text = str(event.get("event"))
    # as in Dispatch, a frame follows its connection without a space
    told = [f"{ids}{text}" if text.startswith(":") else f"{ids} {text}".lstrip()]
    told += [f"{name}={value}" for name, value in event.items() if name not in _FRAME]
    return " ".join(told)[: 2 * MAX_EVENT]
