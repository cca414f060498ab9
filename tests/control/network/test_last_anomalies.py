"""The last id conflict and the last lost neighbour are remembered, each with its time."""

from __future__ import annotations

from router.control.network.last_anomalies import LastAnomalies
from router.core.routers.news import DuplicateRouterId, NeighbourFound, NeighbourLost
from router.engine.outbox import Turn


def test_the_last_of_each_is_remembered() -> None:
    turn = Turn()
    seen = LastAnomalies(turn)
    seen.heard(NeighbourFound("a", 1, 1))
    assert (seen.conflict, seen.conflict_at, seen.lost, seen.lost_at) == (None, None, None, None)
    turn.now = 5.0
    seen.heard(NeighbourLost("a"))
    turn.now = 6.0
    seen.heard(DuplicateRouterId("b", "another one has it"))
    assert (seen.lost, seen.lost_at) == ("a", 5.0)
    assert (seen.conflict, seen.conflict_at) == ("b: another one has it", 6.0)
    seen.heard(DuplicateRouterId("c", "again"))
    assert seen.conflict == "c: again"
