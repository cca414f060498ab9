"""What runs, and for how long."""

from __future__ import annotations

import platform

from router import __version__
from router.build import data_plane

from support.readings import idle_exchange, reading_of, samples


def test_which_build_runs() -> None:
    found = samples(reading_of(idle_exchange()), "trioute_build_info")
    assert found == {(__version__, data_plane(), platform.python_version()): 1}


def test_for_how_long() -> None:
    assert samples(reading_of(idle_exchange()), "trioute_uptime_seconds") == {(): 1.5}
