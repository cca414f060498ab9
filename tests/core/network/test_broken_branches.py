"""Branches without a link get another one in the order in which their time comes."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from router.core.network.broken_branches import REFUSED_S, BrokenBranches, first


def test_a_lost_link_is_due_at_once_and_a_refused_one_later() -> None:
    lost: Any = object()
    refused: Any = object()
    broken = BrokenBranches()
    broken.refuse(refused, 5.0)
    broken.lose(lost, 6.0)
    assert list(broken.due(6.0)) == [lost]
    assert broken.is_left_out(refused, 6.0)
    assert not broken.is_left_out(lost, 6.0)
    assert broken.forget(lost)
    assert not broken.forget(lost)
    assert list(broken.due(5.0 + REFUSED_S)) == [refused]
    assert not broken.is_left_out(refused, 5.0 + REFUSED_S)
    broken.lose(refused, 70.0)
    assert len(broken) == 1


def test_one_that_is_put_back_is_not_due_again_before_the_others() -> None:
    entries = OrderedDict.fromkeys(range(3), 1.0)
    found = []
    for number in first(entries, 1.0):
        found.append(number)
        del entries[number]
        entries[number] = 1.0
    assert found == [0, 1, 2]
