"""Who is whose fallback, and whose senders' messages come to whom."""

from __future__ import annotations

from router.core.addresses.related import (
    feeding_addresses,
    held_credit,
    producers,
    receiving_addresses,
    remove_empty_ties,
    served_by,
    tie,
    untie,
)
from router.core.addresses.rules import AddressRule
from router.core.model.address import BALANCED, FALLBACK, Address

from support.in_memory import Router
from support.waypoints import out_of


def pair() -> tuple[Address, Address]:
    primary, fallback = Address("q", BALANCED), Address("q", BALANCED, phase=FALLBACK)
    tie(primary, fallback)
    return primary, fallback


def test_two_addresses_are_tied_and_untied() -> None:
    primary, fallback = pair()
    assert primary.related_addresses is not None
    assert primary.related_addresses.is_needed()
    assert not primary.related_addresses.is_none()
    assert fallback.related_addresses is not None
    assert not fallback.related_addresses.is_needed()
    untie(primary, fallback)
    assert [each.related_addresses for each in (primary, fallback)] == [None, None]


def test_nobody_is_served_where_nobody_receives() -> None:
    primary, fallback = pair()
    assert served_by(primary) is primary
    assert served_by(fallback) is fallback
    assert receiving_addresses(primary) == []
    # those that there are stay
    remove_empty_ties(primary)
    assert primary.related_addresses is not None
    alone = Address("r", BALANCED)
    assert (served_by(alone), receiving_addresses(alone), feeding_addresses(alone)) == (
        alone,
        [],
        [alone],
    )


def test_the_fallback_serves_while_nobody_else_does() -> None:
    router = Router([AddressRule(True, "q", "balanced", fallback=True)])
    sender = router.client().sender("q")
    out_of(router.client(), "qd.fallback")
    primary, fallback = router.table.in_use("q"), router.table.in_use("q", FALLBACK)
    assert primary is not None
    assert fallback is not None
    assert served_by(primary) is fallback
    assert receiving_addresses(primary) == [fallback]
    assert feeding_addresses(fallback) == [fallback, primary]
    assert producers(fallback) == primary.producers
    assert held_credit(fallback) == sender.credit == 10
    receiver = router.client().receiver("q", credit=5)
    assert served_by(primary) is primary
    assert receiving_addresses(primary) == [primary]
    assert feeding_addresses(fallback) == [fallback]
    assert held_credit(fallback) == 0
    receiver.detach()
    assert served_by(primary) is fallback
