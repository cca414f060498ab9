"""The metrics of auto-links."""

from __future__ import annotations

import attrs

from router.metrics.auto_links import AutoLinkReading

from support.readings import idle_hub, reading_of, samples


def test_each_has_its_number() -> None:
    of = AutoLinkReading(2, {"active": 1, "failed": 1}, 4, 3)
    reading = attrs.evolve(reading_of(idle_hub()), auto_links=of)
    assert samples(reading, "trioute_auto_links") == {("active",): 1, ("failed",): 1}
    assert samples(reading, "trioute_auto_link_attempts_total") == {(): 4}
    assert samples(reading, "trioute_auto_link_failures_total") == {(): 3}
