"""How much goes through a router, from one router of its network to another."""

from __future__ import annotations

from router.core.table import AddressTable


def passed_through(table: AddressTable) -> int:
    """How many deliveries have come from one router for another, so far."""
    return table.passed_through + sum(each.counters.ingress for each in table.transit.values())
