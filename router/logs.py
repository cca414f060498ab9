"""Logs, by structlog: lines for people or JSON for machines, on standard error."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from router.config.model import LogSettings
from router.floods import SUPPRESSED, Floods

# Dispatch's levels in terms of the standard library's. Nothing is logged at trace or notice; as a
# threshold, notice keeps back what is merely info.
LEVELS = {
    "trace": 5,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": 25,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
# The levels that structlog can filter at.
_FILTERS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)
# A peer chooses its container-id and the names of its links; a line of the log stays a line.
LONGEST_TEXT = 256


def configure_logs(settings: LogSettings) -> Floods:
    """Have every logger write in the configured form from the configured level up.

    Returns what keeps floods of lines back, for `report_suppressed` to be called now and then.
    """
    threshold = next(level for level in _FILTERS if level >= LEVELS[settings.level])
    floods = Floods(settings.lines_per_second)
    renderer: Processor
    if settings.format == "json":
        renderer = structlog.processors.JSONRenderer()
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            floods,
            tame,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    return floods


def report_suppressed(floods: Floods) -> None:
    """Write how many lines were left out since this was last done."""
    log = structlog.get_logger("router.logs")
    for summary in floods.take_summaries():
        getattr(log, summary.level)(SUPPRESSED, **summary.facts)


def tame(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Escape what a terminal would obey in texts that peers chose, and cut the long ones."""
    for key, value in event.items():
        if isinstance(value, str):
            if len(value) > LONGEST_TEXT:
                value = f"{value[:LONGEST_TEXT]}... ({len(value)} characters)"
                event[key] = value
            if not value.isprintable():
                event[key] = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in value)
    return event
