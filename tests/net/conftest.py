"""Clocks of the hub, in the hands of tests."""

from __future__ import annotations

import pytest
import trio

from router.net import hub


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Put the hub's time in the test's hands."""
    now = [1000.0]

    class Time:
        @staticmethod
        def monotonic() -> float:
            return now[0]

    monkeypatch.setattr(hub, "time", Time)
    return now


@pytest.fixture
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the hub use trio's clock."""

    class Time:
        monotonic = staticmethod(trio.current_time)

    monkeypatch.setattr(hub, "time", Time)
