"""What each link has carried within an interval, from the router's own counters."""

from __future__ import annotations

from typing import Final

from router.plugin import LinkTotals
from router_telemetry.rows import US, Rows

COUNTED: Final = ("deliveries", "presettled", "accepted", "rejected", "released", "modified")


class FlowMeter:
    """Makes a row of each link that has carried anything since the last one.

    Times are in seconds: `wall` since 1970, and `now` on a clock that never goes back.
    """

    def __init__(self, rows: Rows, wall: float, now: float) -> None:
        self._rows = rows
        self._began = wall, now
        # by the link's number: what it had carried when the interval began
        self._before: dict[int, tuple[int, ...]] = {}
        # links that were detached while totals were being read
        self._detached: set[int] = set()

    def detached(self, totals: LinkTotals, now: float) -> None:
        """Add the last row of a link."""
        self._add(totals, now, is_final=True)
        self._before.pop(totals.link.number, None)
        self._detached.add(totals.link.number)

    def begin_reading(self) -> None:
        """Remember from now on which links are detached."""
        self._detached.clear()

    def end_interval(self, links: list[LinkTotals], wall: float, now: float) -> None:
        """Add a row for each link, whose totals were read since `begin_reading`."""
        for totals in links:
            # the totals of a link that was detached meanwhile are old
            if totals.link.number not in self._detached:
                self._add(totals, now, is_final=False)
        self._began = wall, now

    def _add(self, totals: LinkTotals, now: float, *, is_final: bool) -> None:
        link = totals.link
        counts = tuple(getattr(totals, name) for name in COUNTED)
        before = self._before.get(link.number, (0,) * len(COUNTED))
        if counts == before and not (is_final and totals.unsettled):
            return
        self._before[link.number] = counts
        wall, began = self._began
        self._rows.add(
            interval_start=round(wall * US),
            interval_us=max(0, round((now - began) * US)),
            link_number=link.number,
            link_name=link.name,
            direction=link.direction,
            container=link.connection.container,
            role=link.connection.role,
            address=link.address,
            unsettled=totals.unsettled,
            is_final=is_final,
            **{name: now - then for name, now, then in zip(COUNTED, counts, before, strict=True)},
        )
