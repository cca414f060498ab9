"""A router is ready when nothing is lacking, and says what is."""

from __future__ import annotations

from router.metrics.readiness import STARTING, STOPPING, Readiness


def test_a_router_begins_unready() -> None:
    readiness = Readiness()
    assert readiness.reasons() == [STARTING]
    readiness.has("router")
    assert readiness.reasons() == []


def test_every_part_that_is_lacking_is_named() -> None:
    readiness = Readiness()
    readiness.has("router")
    readiness.lacks("listener a", "a is not bound")
    readiness.lacks("listener b", "b is not bound")
    assert readiness.reasons() == ["a is not bound", "b is not bound"]
    readiness.has("listener a")
    readiness.has("listener that never was")
    assert readiness.reasons() == ["b is not bound"]


def test_what_is_watched_is_asked_each_time() -> None:
    readiness = Readiness()
    readiness.has("router")
    answers: list[str | None] = ["no agent", None]
    readiness.watch(lambda: answers.pop(0))
    assert readiness.reasons() == ["no agent"]
    assert readiness.reasons() == []


def test_a_router_that_stops_says_nothing_else() -> None:
    readiness = Readiness()
    readiness.lacks("listener a", "a is not bound")
    readiness.lacks("router", STOPPING)
    assert readiness.reasons() == [STOPPING]
