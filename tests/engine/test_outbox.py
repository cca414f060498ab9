"""An outbox is in the turn once, and congested between two marks."""

from __future__ import annotations

from typing import Any

from router.engine.outbox import Outbox, Turn

CONGESTED_BYTES = 512 * 1024


def test_a_connection_is_touched_once_a_turn() -> None:
    turn: Any = Turn()
    outboxes = [Outbox(turn, name) for name in "ab"]
    for outbox in [*outboxes, *outboxes]:
        outbox.touch()
    assert turn.touched == ["a", "b"]
    outboxes[0].in_turn = False
    outboxes[0].touch()
    assert turn.touched == ["a", "b", "a"]


def test_congestion_begins_above_a_mark_and_ends_below_half_of_it() -> None:
    outbox = Outbox(Turn(), "a")
    outbox.output.append(bytes(CONGESTED_BYTES))
    outbox.touch()
    assert bool(outbox.congested) is False
    outbox.output.append(b"x")
    outbox.touch()
    assert bool(outbox.congested) is True
    outbox.output.sent(CONGESTED_BYTES // 2)
    assert not outbox.relieve()
    assert bool(outbox.congested) is True
    outbox.output.sent(2)
    assert [bool(outbox.relieve()) for _ in range(2)] == [True, False]


def test_a_closed_outbox_holds_nothing() -> None:
    outbox = Outbox(Turn(), "a")
    outbox.output.append(bytes(2 * CONGESTED_BYTES))
    outbox.touch()
    outbox.close()
    assert outbox.output.size() == 0
    assert len(outbox.output.octets) == 0
    assert bool(outbox.congested) is False
