"""The router's own outcomes are whole AMQP values, and each outcome has its rank."""

from __future__ import annotations

import pytest

from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value
from router.amqp.performatives import Modified, Rejected, decode_composite
from router.core import verdicts


@pytest.mark.parametrize(
    ("octets", "condition"),
    [
        (verdicts.NO_TO, "amqp:precondition-failed"),
        (verdicts.NOT_FOUND, "amqp:not-found"),
        (verdicts.EXPIRED, "trioute:expired"),
        (verdicts.UNCONFIRMED, "amqp:precondition-failed"),
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
    found, _ = decode_composite(verdicts.DELIVERY_FAILED)
    assert found == Modified(delivery_failed=True)
    assert decode_value(verdicts.DELIVERY_FAILED)


def test_ranks() -> None:
    order = ["RELEASED", "MODIFIED", "ACCEPTED", "REJECTED"]
    ranks = [verdicts.rank(int(Descriptor[name])) for name in order]
    assert ranks == sorted(set(ranks))
    # any other receiver speaks for one that did not get it
    assert verdicts.rank(int(Descriptor.REJECTED), verdicts.UNCONFIRMED) < min(ranks)
    for other in (0, int(Descriptor.TRANSACTIONAL_STATE), 0xFF):
        assert ranks[1] < verdicts.rank(other) < ranks[2]


def test_a_copy_that_is_lost_between_routers_speaks_for_those_that_were_accepted() -> None:
    accepted, rejected = int(Descriptor.ACCEPTED), int(Descriptor.REJECTED)
    modified = int(Descriptor.MODIFIED)
    lost = verdicts.rank(modified, verdicts.LOST)
    assert verdicts.rank(accepted) < lost < verdicts.rank(rejected)
    assert verdicts.rank(modified, verdicts.DELIVERY_FAILED) < verdicts.rank(accepted)
    assert not verdicts.is_lost(accepted, verdicts.LOST)
    assert not verdicts.is_lost(modified, None)
    # no sender gets to see how routers tell it each other
    assert verdicts.told(verdicts.LOST) == verdicts.DELIVERY_FAILED
    assert verdicts.told(b"its own") == b"its own"
