"""GET-LOG: the last lines of the log, in the form that Dispatch's tools expect."""

from __future__ import annotations

from router.management.requests import Request
from router.management.views import RouterView


def get_log(router: RouterView, request: Request) -> list[list[object]]:
    """Return the last `limit` log lines, or all that are kept, oldest first.

    Each line is a list: module, level, text, source file, source line, and time in seconds since
    1970. Source file and line are None, because the log does not have them.
    """
    limit = _limit(request)
    return [
        [line.module, line.level, line.text, None, None, line.at_s]
        for line in router.journal.recent.last(limit)
    ]


def _limit(request: Request) -> int | None:
    """Return how many log lines are requested; None for all. Tools send a number or text."""
    # as in Dispatch, no limit and 0 mean all of them
    return request.count("limit") or None
