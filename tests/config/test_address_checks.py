"""The checks of addresses, each on a configuration that has one mistake; see also `test_checks`."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.address_checks import ADDRESS_CHECKS
from router.config.model import AddressSettings, Configuration

RIGHT = AddressSettings(
    prefix="q",
    dead_letter_address="dead",
    enable_fallback=True,
    distribution="multicast",
    stuck_receiver="drop",
)
WRONG = {
    "_dead_letters": AddressSettings(pattern="q", dead_letter_address="q/"),
    "_fallbacks": AddressSettings(prefix="q", enable_fallback=True, waypoint=True),
    "_stuck_receivers": AddressSettings(prefix="q", stuck_receiver="drop"),
}


@pytest.mark.parametrize("check", ADDRESS_CHECKS)
def test_each_finds_its_mistake_and_no_other(check: Any) -> None:
    assert list(check(Configuration(addresses=(RIGHT,)), {})) == []
    for name, settings in WRONG.items():
        found = list(check(Configuration(addresses=(RIGHT, settings)), {}))
        assert len(found) == (name == check.__name__)
        assert all(finding.path[:2] == ("address", 1) for finding in found)
