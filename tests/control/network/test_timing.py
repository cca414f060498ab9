"""The times of the protocol fit each other."""

from __future__ import annotations

from router.config.router_settings import RouterSettings
from router.control.network.timing import Timing, timing_of


def test_nobody_is_forgotten_who_speaks_in_time() -> None:
    timing = Timing()
    assert timing.hello_max_age_s >= 3 * timing.hello_interval_s
    assert timing.max_age_s >= 3 * timing.refresh_s
    assert timing.ra_interval_flux_s <= timing.ra_interval_s


def test_what_is_configured_is_kept_to() -> None:
    timing = timing_of(RouterSettings(hello_interval_seconds=2.5, hello_max_age_seconds=7.5))
    assert (timing.hello_interval_s, timing.hello_max_age_s, timing.ra_interval_s) == (2.5, 7.5, 30)
