"""A connection costs what its listener or connector says now, not what it said when it began."""

from __future__ import annotations

import attrs

from router.control.network.endpoint_costs import EndpointCosts


@attrs.frozen
class Settings:
    endpoint: str
    cost: int


@attrs.frozen
class Connection:
    is_client: bool
    settings: Settings


def test_the_last_change_counts_until_the_endpoint_is_removed() -> None:
    costs = EndpointCosts()
    dialled, accepted = Connection(True, Settings("x", 2)), Connection(False, Settings("x", 3))
    assert (costs.of(dialled), costs.of(accepted)) == (2, 3)
    costs.change({(True, "x"): 9})
    assert (costs.of(dialled), costs.of(accepted)) == (9, 3)
    costs.change({(True, "x"): None, (False, "x"): None})
    assert (costs.of(dialled), costs.of(accepted)) == (2, 3)
