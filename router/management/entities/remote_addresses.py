"""Addresses that other routers of the network have announced, and that this router does not use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from router.core.addresses.rules import TREATMENT_NAMES
from router.core.model.counters import Counters
from router.core.routers.names import address_in
from router.core.routers.routing_state import MOBILE, Interest
from router.management.views import RouterView


@attrs.frozen
class RemoteAddress:
    """Address that has receivers at other routers only."""

    key: str
    interests: Mapping[str, Interest]
    # number of deliveries for it that were in transit here
    passed: int = 0
    counters: Counters = attrs.Factory(Counters)
    priority: int = -1
    in_process: int = 0
    subscribers: int = 0
    blocked_reason: None = None
    blocked_text: None = None
    containers: int = 0

    @property
    def distribution(self) -> str:
        """Return the name of the distribution that the first of `remote_routers` has announced."""
        return TREATMENT_NAMES[self.interests[self.remote_routers[0]].treatment]

    @property
    def remote_routers(self) -> list[str]:
        """Return the other routers that have receivers for the address."""
        return sorted(self.interests)


def remote_addresses(router: RouterView) -> Iterator[RemoteAddress | None]:
    """Yield each address that has receivers at other routers only.

    Yield None for each of the other announced keys, as a step without a result.
    """
    for key in list(router.observed.forwarder.reach.wanted):
        yield remote_address(router, key)


def remote_address(router: RouterView, key: str) -> RemoteAddress | None:
    """Return the address with this key; None unless it has receivers at other routers only."""
    observed = router.observed
    interests = observed.forwarder.reach.wanted.get(key)
    if not interests or not key.startswith(MOBILE):
        return None
    told = address_in(key)
    if told is not None and observed.table.in_use(*told) is not None:
        return None
    return RemoteAddress(
        key, dict(interests), observed.forwarder.network.transit_counts.count_of(key)
    )
