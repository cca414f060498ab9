"""Requests for address tables that are not answered yet."""

from __future__ import annotations

from typing import Final

from router.control.network.links import RouterLinks

LONGEST_ANSWER_S: Final = 60.0
"""Time after which a table is requested again although messages of a neighbour still wait."""


class PendingRequest:
    """Request for a router's address table, up to version `seq`.

    If `whole` is true, the known table is wrong, and the whole table is requested.
    """

    def __init__(self, seq: int, link: int | None, due: float) -> None:
        self.seq = seq
        self.whole = False
        self.link = link
        # when to send it, or to send it again; and until when an answer that waits is waited for
        self.due = due
        self.patient_until = due
        self.tries = 0
        # connections on which it was requested; answers on others are ignored
        self.asked: set[int] = set()

    def is_due(self, now: float, links: RouterLinks) -> bool:
        """Return whether to send the request, for the first time or once more.

        While messages of a neighbour that was asked wait to be processed, the answer is probably
        one of them.
        """
        if self.due > now:
            return False
        if now < self.patient_until and links.is_any_behind(self.asked):
            self.due = min(now + links.timing.retry_s, self.patient_until)
            return False
        return True
