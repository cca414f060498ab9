"""What should not be is remembered, and when it was."""

from __future__ import annotations

from router.control.network.seen import Seen
from router.core.routers.news import ConflictSeen, NeighbourFound, NeighbourLost
from router.engine.outbox import Turn


def test_the_last_of_each_is_remembered() -> None:
    turn = Turn()
    seen = Seen(turn)
    seen.heard(NeighbourFound("a", 1, 1))
    assert (seen.conflict, seen.conflict_at, seen.lost, seen.lost_at) == (None, None, None, None)
    turn.now = 5.0
    seen.heard(NeighbourLost("a"))
    turn.now = 6.0
    seen.heard(ConflictSeen("b", "another one has it"))
    assert (seen.lost, seen.lost_at) == ("a", 5.0)
    assert (seen.conflict, seen.conflict_at) == ("b: another one has it", 6.0)
    seen.heard(ConflictSeen("c", "again"))
    assert seen.conflict == "c: again"
