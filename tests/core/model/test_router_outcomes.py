"""The router's own outcomes are whole AMQP values, and each outcome has its rank."""

from __future__ import annotations

import pytest

from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.performatives import Modified, Rejected, decode_composite
from router.core.model import router_outcomes


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (router_outcomes.NO_TO, "amqp:precondition-failed"),
        (router_outcomes.NOT_FOUND, "amqp:not-found"),
        (router_outcomes.EXPIRED, "trioute:expired"),
        (router_outcomes.UNCONFIRMED, "amqp:precondition-failed"),
    ],
)
def test_a_rejection_says_why(octets: bytes, condition: str) -> None:
    found, end = decode_composite(octets)
    assert end == len(octets)
    assert isinstance(found, Rejected)
    assert found.error is not None
    assert str(found.error.condition) == condition
    # shorter than what the smallest frame takes
    assert len(octets) < 400


def test_a_lost_receiver_may_have_seen_it() -> None:
    found, _ = decode_composite(router_outcomes.DELIVERY_FAILED)
    assert found == Modified(delivery_failed=True)
    assert decode_value(router_outcomes.DELIVERY_FAILED)


def test_ranks() -> None:
    order = ["RELEASED", "MODIFIED", "ACCEPTED", "REJECTED"]
    ranks = [router_outcomes.rank(int(Descriptor[name])) for name in order]
    assert ranks == sorted(set(ranks))
    # any other receiver speaks for one that did not get it
    assert router_outcomes.rank(int(Descriptor.REJECTED), router_outcomes.UNCONFIRMED) < min(ranks)
    for other in (0, int(Descriptor.TRANSACTIONAL_STATE), 0xFF):
        assert ranks[1] < router_outcomes.rank(other) < ranks[2]


def test_a_copy_that_is_lost_between_routers_speaks_for_those_that_were_accepted() -> None:
    accepted, rejected = int(Descriptor.ACCEPTED), int(Descriptor.REJECTED)
    modified = int(Descriptor.MODIFIED)
    lost = router_outcomes.rank(modified, router_outcomes.LOST)
    assert router_outcomes.rank(accepted) < lost < router_outcomes.rank(rejected)
    assert router_outcomes.rank(modified, router_outcomes.DELIVERY_FAILED) < router_outcomes.rank(
        accepted
    )
    assert not router_outcomes.is_lost(accepted, router_outcomes.LOST)
    assert not router_outcomes.is_lost(modified, None)
    # no sender gets to see how routers tell it each other
    assert (
        router_outcomes.without_lost_mark(router_outcomes.LOST) == router_outcomes.DELIVERY_FAILED
    )
    assert router_outcomes.without_lost_mark(b"its own") == b"its own"
