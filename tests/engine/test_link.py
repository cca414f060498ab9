"""A link's own fields: what it begins with, and what it lets go of."""

from __future__ import annotations

from typing import Any

import pytest

from router.engine.link import IncomingLink, Link, OutgoingLink
from router.engine.states import LinkState

NO_SESSION: Any = None


@pytest.mark.parametrize("kind", [IncomingLink, OutgoingLink])
def test_a_new_link_has_no_credit_and_no_flow_state(kind: type[Link]) -> None:
    link = kind(NO_SESSION, "name", 3)
    assert (link.name, link.handle, link.remote_handle) == ("name", 3, -1)
    assert (link.credit, link.delivery_count, link.unsettled) == (0, 0, 0)
    assert not link.drain
    assert link.owner is None


def test_a_link_is_attached_in_one_state_only() -> None:
    link = IncomingLink(NO_SESSION, "name", 0)
    for state in LinkState:
        link.state = int(state)
        assert bool(link.is_attached()) is (state is LinkState.ATTACHED)


def test_a_link_that_is_dropped_keeps_nobody_alive() -> None:
    link = OutgoingLink(NO_SESSION, "name", 0)
    current: Any = object()
    link.owner = link.current = current
    link.drop()
    assert link.owner is None
    assert link.current is None


def test_who_may_go_beyond_the_credit() -> None:
    link = IncomingLink(NO_SESSION, "name", 0)
    # nobody, to begin with
    assert link.least_overdraft == 0
    assert not link.overdraws()
    link.overdraft = 1
    assert link.overdraws()
    assert (link.credit, link.overdraft) == (1, 0)
    assert not link.overdraws()
