"""Times of the routing protocol: intervals of its messages, and time limits."""

from __future__ import annotations

import attrs

from router.config.router_settings import RouterSettings


@attrs.frozen
class Timing:
    """Times of the routing protocol, in seconds."""

    hello_interval_s: float = 1.0
    """Interval of HELLOs on a connection."""
    hello_max_age_s: float = 3.0
    """Silence after which a neighbour is lost."""
    ra_interval_s: float = 30.0
    """Interval of comparisons with neighbours, while nothing changes."""
    ra_interval_flux_s: float = 4.0
    """Interval of these comparisons after a recent change."""
    refresh_s: float = 30.0
    """Interval after which unchanged link state is sent again."""
    max_age_s: float = 90.0
    """Age at which link state is forgotten."""
    retry_s: float = 1.0
    """Time after which an unanswered request is sent to another neighbour."""
    burst: int = 10
    """Most changes to link state that are sent without delay; then one per `pace_s`."""
    pace_s: float = 0.25
    """Interval of changes to link state while connections come and go all the time."""


def timing_of(router: RouterSettings) -> Timing:
    """Return the routing protocol's times from a router's settings."""
    return Timing(
        hello_interval_s=router.hello_interval_seconds,
        hello_max_age_s=router.hello_max_age_seconds,
        ra_interval_s=router.ra_interval_seconds,
    )
