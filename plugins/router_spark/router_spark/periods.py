"""Periods of time, from which jobs read rows."""

from __future__ import annotations

from datetime import UTC, date, datetime

import attrs

from router_spark.errors import BadInput


@attrs.frozen
class Period:
    """Time range from `start` up to but not including `end`; None means no limit."""

    start: datetime | None = None
    end: datetime | None = None

    def may_hold(self, day: date) -> bool:
        """Return whether a day, in UTC, overlaps the period."""
        after = self.start is None or day >= self.start.date()
        return after and (
            self.end is None or datetime(day.year, day.month, day.day, tzinfo=UTC) < self.end
        )

    def overlaps(self, earliest: datetime, latest: datetime) -> bool:
        """Return whether the period overlaps the time from `earliest` to `latest`, inclusive."""
        return (self.start is None or latest >= self.start) and (
            self.end is None or earliest < self.end
        )

    def __str__(self) -> str:
        """Return the period as text for an error or a heading."""
        start = "the beginning" if self.start is None else f"{self.start:%Y-%m-%d %H:%M:%S}"
        end = "now" if self.end is None else f"{self.end:%Y-%m-%d %H:%M:%S} UTC"
        return f"{start} to {end}"


def parse_period(start: str | None, end: str | None) -> Period:
    """Parse the limits of a period in ISO 8601, in UTC unless they have a time zone.

    Raises BadInput if a limit is invalid, or the start is not before the end.
    """
    period = Period(parse_time("--from", start), parse_time("--to", end))
    if period.start is not None and period.end is not None and period.start >= period.end:
        raise BadInput(f"--from {start} is not before --to {end}")
    return period


def parse_time(option: str, text: str | None) -> datetime | None:
    """Parse the value of `option`, a time in ISO 8601; None means no limit.

    Raises BadInput if the time is invalid.
    """
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"{option} {text}: not a time in ISO 8601, such as 2026-11-25 or 2026-11-25T14:30:00Z"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
