"""A router's hub has all that is read of it."""

from __future__ import annotations

from router.metrics.views import MeasuredRouter

from support.readings import idle_hub


def test_the_exchange_is_what_is_observed() -> None:
    # typed, so that mypy holds the one to the other
    observed: MeasuredRouter = idle_hub()
    members = [name for name in vars(MeasuredRouter) if not name.startswith("_")]
    assert len(members) > 5
    for name in members:
        assert hasattr(observed, name)
