"""Every way for a delivery to end has its series, whether any has ended so or not."""

from __future__ import annotations

from router.metrics.rows.deliveries import OUTCOMES

from support.readings import idle_hub, reading_of, samples


def test_every_outcome_is_there_from_the_start() -> None:
    found = samples(reading_of(idle_hub()), "trioute_deliveries_outcome_total")
    assert found == {(outcome,): 0 for outcome in OUTCOMES}


def test_outcomes_are_counted_apart() -> None:
    hub = idle_hub("orders")
    for address in hub.table.addresses():
        address.counters.rejected = 7
    found = samples(reading_of(hub), "trioute_deliveries_outcome_total")
    assert {labels[0]: value for labels, value in found.items() if value} == {"rejected": 7}
