"""GET-LOG: the last lines that the router wrote, as Dispatch's tools take them."""

from __future__ import annotations

from typing import Any

from router.management.requests import Request
from router.management.views import RouterView


def get_log(router: RouterView, request: Request) -> list[list[Any]]:
    """The last `limit` lines, or all that are kept, oldest first: each is its module, its level,
    its text, the file and the line it was written in, which are not known here, and when it was, in
    seconds since 1970.
    """
    limit = _limit(request)
    return [
        [line.module, line.level, line.text, None, None, line.at_s]
        for line in router.journal.recent.last(limit)
    ]


def _limit(request: Request) -> int | None:
    """How many lines are asked for; None for all. Tools send it as a number or as text."""
    # as in Dispatch, none and 0 are all of them
    return request.count("limit") or None
