"""How often a router says what its links are."""

from __future__ import annotations

from router.control.network.messages import LinkState
from router.control.network.own_state import OwnLinkState
from router.control.network.tables import Table
from router.control.network.timing import Timing


def test_changes_are_said_at_once_until_there_are_too_many() -> None:
    own_state = OwnLinkState(
        LinkState("A", 1, 0, {}), Timing(burst=3, pace_s=0.5, refresh_s=30), 0.0
    )
    own, said = Table("A", 1), []
    for step in range(40):
        now = step / 10
        own_state.has_changed = True
        if own_state.is_due(now):
            own_state.renew(step, {"B": step + 1}, own, now)
            said.append(now)
    assert said[:3] == [0.0, 0.1, 0.2]
    assert len(said) <= 3 + 4 * 2
    assert said[-1] > 3.0
    assert own_state.last.state.links == {"B": int(own_state.last.sent_at * 10 + 0.5) + 1}


def test_what_has_not_changed_is_said_now_and_then() -> None:
    own_state = OwnLinkState(LinkState("A", 1, 0, {}), Timing(refresh_s=30), 0.0)
    assert own_state.is_due(0.0)
    own_state.renew(1, {}, Table("A", 1), 0.0)
    assert own_state.due_at() == 30.0
    assert not own_state.is_due(29.9)
    assert own_state.is_due(30.0)
