"""Metrics by address: each address first, and all others together at the end."""

from __future__ import annotations

from support.readings import idle_hub, reading_of, samples


def test_each_address_and_the_others() -> None:
    hub = idle_hub("a", "b")
    for address in hub.table.addresses():
        address.counters.ingress = 5
    name = "trioute_address_deliveries_ingress_total"
    assert samples(reading_of(hub), name) == {("a",): 5, ("b",): 5, ("other",): 0}
    assert samples(reading_of(hub, limit=2), name) == {("a",): 5, ("b",): 5, ("other",): 0}


def test_without_a_label_it_is_among_the_others() -> None:
    hub = idle_hub("a", "b")
    for count, address in enumerate(hub.table.addresses(), 1):
        address.counters.accepted = address.counters.ingress = count
    name = "trioute_address_deliveries_outcome_total"
    found = samples(reading_of(hub, limit=1), name)
    assert {labels: value for labels, value in found.items() if value} == {
        ("b", "accepted"): 2,
        ("other", "accepted"): 1,
    }


def test_an_address_says_why_it_does_not_flow() -> None:
    hub = idle_hub("a")
    name = "trioute_address_blocked"
    assert samples(reading_of(hub), name) == {("a", "no_consumer"): 1}
    # those without labels are not told apart
    assert samples(reading_of(idle_hub("a"), limit=0), name) == {}
