"""The times of the protocol fit each other."""

from __future__ import annotations

from router.control.network.timing import Timing


def test_nobody_is_forgotten_who_speaks_in_time() -> None:
    timing = Timing()
    assert timing.hello_max_age_s >= 3 * timing.hello_interval_s
    assert timing.max_age_s >= 3 * timing.refresh_s
    assert timing.ra_interval_flux_s <= timing.ra_interval_s
