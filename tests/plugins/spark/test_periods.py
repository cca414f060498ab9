"""Time ranges."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from router_spark.errors import BadInput
from router_spark.periods import Period, parse_period

pytestmark = pytest.mark.spark


def test_times_are_utc_unless_they_say_otherwise() -> None:
    period = parse_period("2026-11-25", "2026-11-26T01:00:00+01:00")
    assert period == Period(datetime(2026, 11, 25, tzinfo=UTC), datetime(2026, 11, 26, tzinfo=UTC))
    assert str(period) == "2026-11-25 00:00:00 to 2026-11-26 00:00:00 UTC"
    assert parse_period(None, None) == Period()


def test_the_end_is_not_within() -> None:
    period = parse_period("2026-11-25T12:00:00Z", "2026-11-26T00:00:00Z")
    days = [day for day in (24, 25, 26) if period.may_hold(date(2026, 11, day))]
    assert days == [25]
    start, end = datetime(2026, 11, 25, 12, tzinfo=UTC), datetime(2026, 11, 26, tzinfo=UTC)
    assert period.overlaps(start, start)
    assert not period.overlaps(end, end)


@pytest.mark.parametrize(
    ("start", "end", "told"),
    [
        ("yesterday", None, "--from yesterday: not a time in ISO 8601"),
        (None, "25.11.2026", "--to 25.11.2026: not a time in ISO 8601"),
        ("2026-11-26", "2026-11-25", "--from 2026-11-26 is not before --to 2026-11-25"),
    ],
)
def test_limits_that_make_no_sense(start: str | None, end: str | None, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        parse_period(start, end)
