"""Log of the router as a whole: the levels of each module, the format and the output.

Every line belongs to a module (`router.logs.modules`). The levels of a module can be changed while
the router runs, and all loggers follow immediately. A line at a disabled level costs only a call
and a comparison.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import time
from typing import Final

import structlog
from structlog.typing import EventDict, WrappedLogger

from router.config.log_levels import LEVELS, MODULES, bit
from router.config.log_settings import LogSettings
from router.log_limits import SUPPRESSED, LogRateLimiter
from router.logs.lines import escape_and_cut, plain_text
from router.logs.modules import module_of
from router.logs.recent_lines import Line, RecentLines

Renderer = Callable[[WrappedLogger, str, EventDict], str | bytes]


class Module:
    """Log module: the levels that are written, and how many lines there were at each level."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.mask = 0
        # includes lines that were not written
        self.counts: Counter[str] = Counter()


class Logger(structlog.BoundLoggerBase):
    """Logger that the rest of the router uses, with a method for each level."""

    def _write(self, level: str, event: str, **facts: object) -> None:
        output: Output = self._logger
        output.module.counts[level] += 1
        if output.module.mask & bit(level):
            self._proxy_to_logger(level, event, **facts)

    def traced(self, event: str, **facts: object) -> None:
        """Write a trace line that was requested, even if the module's levels exclude traces."""
        self._logger.module.counts["trace"] += 1
        self._proxy_to_logger("trace", event, **facts)

    def exception(self, event: str, **facts: object) -> None:
        """Write an error, with the exception that is being handled."""
        facts.setdefault("exc_info", True)
        self._write("error", event, **facts)


def _method(level: str) -> Callable[..., None]:
    def write(self: Logger, event: str, **facts: object) -> None:
        self._write(level, event, **facts)

    return write


for _level in LEVELS:
    setattr(Logger, _level, _method(_level))


class Output:
    """Output for the lines of one log module."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def __getattr__(self, level: str) -> Callable[[str], None]:
        if level not in LEVELS:
            raise AttributeError(level)
        return _print


def _print(text: str) -> None:
    # in one call, so that lines of processes that share standard error do not mix
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class Journal:
    """Log of this process. No line reaches it before `begin` is called."""

    def __init__(self) -> None:
        self.settings = LogSettings()
        self.modules: Final = {name: Module(name) for name in MODULES}
        self.recent: Final = RecentLines()
        self.rate_limiter = LogRateLimiter(self.settings.lines_per_second)
        self._render = _renderer(self.settings)
        self._frames: Logger | None = None
        # called with the settings whenever they change
        self.watchers: list[Callable[[LogSettings], None]] = []

    def begin(self, settings: LogSettings) -> None:
        """Direct every logger of this process to this journal from now on."""
        self.change(settings)
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                _name_module,
                self._limit,
                escape_and_cut,
                structlog.processors.add_log_level,
                self._remember,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                structlog.processors.format_exc_info,
                self._rendered,
            ],
            wrapper_class=Logger,
            logger_factory=self._output,
            cache_logger_on_first_use=True,
        )

        self._frames = structlog.get_logger("router.protocol").bind()

    def lines_by_level(self) -> dict[str, int]:
        """Return how many lines there were at each level, whether written or not."""
        return {
            level: sum(module.counts[level] for module in self.modules.values()) for level in LEVELS
        }

    def log_frame(self, connection: int, text: str) -> None:
        """Write a line about a frame of a traced connection."""
        if self._frames is not None:
            self._frames.traced(text, connection=connection)

    def logs_frames(self) -> bool:
        """Return whether the log contains the frames of all connections."""
        return bool(self.settings.mask("PROTOCOL") & bit("trace"))

    def change(self, settings: LogSettings) -> None:
        """Use other settings from now on; the counts and the recent lines are kept."""
        if settings.lines_per_second != self.settings.lines_per_second:
            self.report_suppressed()
            self.rate_limiter = LogRateLimiter(settings.lines_per_second)
        self.settings = settings
        self._render = _renderer(settings)
        for name, module in self.modules.items():
            module.mask = settings.mask(name)
        for watcher in self.watchers:
            watcher(settings)

    def report_suppressed(self) -> None:
        """Write how many lines were suppressed since the last report."""
        for summary in self.rate_limiter.take_summaries():
            facts = dict(summary.facts)
            log = structlog.get_logger(f"{_OF_MODULE}{facts.pop('module', '')}")
            getattr(log, summary.level)(SUPPRESSED, **facts)

    def _output(self, name: str = "") -> Output:
        if name.startswith(_OF_MODULE):
            return Output(self.modules.get(name.removeprefix(_OF_MODULE), self.modules["DEFAULT"]))
        return Output(self.modules[module_of(name)])

    def _limit(self, logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        return self.rate_limiter(logger, method, event)

    def _remember(self, _logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        self.recent.add(Line(event["module"], method, plain_text(event), int(time())))
        return event

    def _rendered(self, logger: WrappedLogger, method: str, event: EventDict) -> str | bytes:
        return self._render(logger, method, event)


# Prefix of logger names that consist of a module's name only.
_OF_MODULE: Final = "module."


def _name_module(logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["module"] = logger.module.name
    return event


def _renderer(settings: LogSettings) -> Renderer:
    if settings.format == "json":
        return structlog.processors.JSONRenderer()
    return partial(_for_people, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty()))


def _for_people(
    console: structlog.dev.ConsoleRenderer, logger: WrappedLogger, method: str, event: EventDict
) -> str:
    # the renderer shows the logger in brackets
    event["logger"] = event.pop("module")
    return console(logger, method, event)
