"""Flow records: the deliveries of each link within an interval, from the router's counters."""

from __future__ import annotations

from typing import Final

from router.plugin import LinkTotals
from router_telemetry.rows import US, Rows

COUNTED: Final = ("deliveries", "presettled", "accepted", "rejected", "released", "modified")


class FlowMeter:
    """Source of flow records: a row for each link whose counters have changed since its last row.

    A link that is detached with unsettled deliveries always gets a last row. Times are in seconds:
    `wall` since 1970, and `now` on a monotonic clock.
    """

    def __init__(self, rows: Rows, wall: float, now: float) -> None:
        self._rows = rows
        self._began = wall, now
        # by the link's number: its counters at the start of the interval
        self._before: dict[int, tuple[int, ...]] = {}
        # links that were detached while totals were being read
        self._detached: set[int] = set()

    def detached(self, totals: LinkTotals, now: float) -> None:
        """Add the last row of a link that was detached."""
        self._add(totals, now, is_final=True)
        self._before.pop(totals.link.number, None)
        self._detached.add(totals.link.number)

    def begin_reading(self) -> None:
        """Begin to note which links are detached while their totals are read."""
        self._detached.clear()

    def end_interval(self, links: list[LinkTotals], wall: float, now: float) -> None:
        """Add rows for the links, and begin the next interval.

        The totals were read after `begin_reading` was called.
        """
        for totals in links:
            # the totals of a link that was detached meanwhile are outdated
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
