"""The settings for stuck receivers, and the rules that they become."""

from __future__ import annotations

import pytest

from router.config.model import AddressSettings
from router.config.stuck_receivers import LONGEST_S, SHORTEST_S
from router.net.endpoints import configured_rules


def test_they_are_waited_for_by_default() -> None:
    settings = AddressSettings(prefix="q", distribution="multicast")
    assert settings.stuck_receiver == "wait"
    (rule,) = configured_rules([settings])
    assert rule.drop_after_s == 0


@pytest.mark.parametrize("timeout_s", [SHORTEST_S, 30.0, LONGEST_S])
def test_they_are_dropped_after_so_long(timeout_s: float) -> None:
    settings = AddressSettings(
        prefix="q",
        distribution="multicast",
        stuck_receiver="drop",
        stuck_receiver_timeout_seconds=timeout_s,
    )
    (rule,) = configured_rules([settings])
    assert rule.drop_after_s == timeout_s


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan"), LONGEST_S + 1])
def test_no_other_time_makes_sense(timeout_s: float) -> None:
    with pytest.raises(ValueError, match="seconds"):
        AddressSettings(prefix="q", stuck_receiver_timeout_seconds=timeout_s)
