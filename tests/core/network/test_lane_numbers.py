"""Numbers of inter-router lanes, and the lane properties of an attach."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from router.amqp.constants import ReceiverSettleMode
from router.amqp.types import UByte, UInt
from router.core.model import address
from router.core.network.lane_numbers import (
    FIRST_LANE,
    HIGHEST_LANE,
    Lane,
    lane_in,
    lane_numbered,
    lane_of,
)
from router.core.routers.link_properties import LANE, PRIORITY
from router.errors import AmqpError, Scope

SECOND = ReceiverSettleMode.SECOND
ROUTER = Path(__file__).parents[3] / "router"


def test_each_priority_and_stripe_has_a_lane_of_its_own_and_most_messages_have_0() -> None:
    pairs = list(product(range(address.PRIORITIES), range(address.LANES_PER_PRIORITY)))
    numbers = [lane_of(*pair) for pair in pairs]
    assert sorted(numbers) == list(range(len(pairs)))
    assert [lane_numbered(number).priority for number in numbers] == [pair[0] for pair in pairs]
    assert lane_of(4, 0) == FIRST_LANE.number
    second = [lane_of(priority, 0, settles_second=True) for priority in range(10)]
    assert sorted(second) == list(range(len(pairs), len(pairs) + 10))
    assert [lane_numbered(number).priority for number in second] == list(range(10))
    assert {lane_numbered(number).mode for number in second} == {SECOND}
    assert SECOND not in {lane_numbered(number).mode for number in numbers}
    # a consumer has them as bits
    assert 1 << max(second) <= address.EVERY_LANE


def test_who_chooses_has_the_same_numbers() -> None:
    # compiled, these are no attributes
    told = (ROUTER / "core/forwarding/distribution.py").read_text(encoding="utf-8").splitlines()
    assert f"LEVELS = {address.PRIORITIES}" in told
    assert f"ORDINARY = {address.ORDINARY_PRIORITY}" in told
    assert f"LANES_PER_PRIORITY = {address.LANES_PER_PRIORITY}" in told
    assert f"SECOND_LANES = {address.SECOND_LANES}" in told


def test_an_attach_says_what_is_not_as_usual() -> None:
    assert FIRST_LANE.properties() == {}
    assert Lane(7, 4).properties() == {LANE: UInt(7)}
    assert Lane(20, 8).properties() == {LANE: UInt(20), PRIORITY: UByte(8)}
    for lane in (FIRST_LANE, Lane(7, 4), Lane(20, 8), Lane(51, 5, SECOND)):
        assert lane_in(lane.properties(), lane.mode) == lane


@pytest.mark.parametrize(
    "properties",
    [
        {LANE: HIGHEST_LANE + 1},
        {LANE: -1},
        {LANE: True},
        {LANE: "1"},
        {PRIORITY: 10},
        {PRIORITY: None},
    ],
)
def test_what_is_no_lane_is_refused(properties: dict[Any, Any]) -> None:
    with pytest.raises(AmqpError) as caught:
        lane_in(properties)
    assert caught.value.scope is Scope.LINK
