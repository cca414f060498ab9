"""How often routers speak, and how long they wait for each other."""

from __future__ import annotations

import attrs

from router.config.router_settings import RouterSettings


@attrs.frozen
class Timing:
    """All times of the routing protocol, in seconds."""

    hello_interval_s: float = 1.0
    """Between two HELLOs on a connection."""
    hello_max_age_s: float = 3.0
    """A neighbour that has been silent for so long is gone."""
    ra_interval_s: float = 30.0
    """Between two comparisons of what neighbours know, while nothing changes."""
    ra_interval_flux_s: float = 4.0
    """The same, while something has changed lately."""
    refresh_s: float = 30.0
    """A router says its links again, although they are the same."""
    max_age_s: float = 90.0
    """What a router said of its links is forgotten when it is not said again."""
    retry_s: float = 1.0
    """After how long without an answer a request is made again, of another neighbour."""
    burst: int = 10
    """How many changes of a router's links are told at once, each as it comes; then at `pace_s`."""
    pace_s: float = 0.25
    """Between two changes of a router's links, when its connections come and go all the time."""


def timing_of(router: RouterSettings) -> Timing:
    """The times that a router's settings say."""
    return Timing(
        hello_interval_s=router.hello_interval_seconds,
        hello_max_age_s=router.hello_max_age_seconds,
        ra_interval_s=router.ra_interval_seconds,
    )
