"""Clocks of the hub, and the waits of connectors, in the hands of tests."""

from __future__ import annotations

import pytest
import trio

from router.net import hub

from support.connecting import Waits


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


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Make connectors try again at once, and record how long they would wait."""
    return Waits(monkeypatch)
