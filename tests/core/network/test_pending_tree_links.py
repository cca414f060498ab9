"""Links that wait for this router to see their trees are found by key, and forgotten bit by bit."""

from __future__ import annotations

from typing import Any

from router.core.network.pending_tree_links import CHECKED_AT_ONCE, PendingTreeLinks
from router.core.network.tree_links import PATIENCE_S, PendingTreeLink


class Waiting:
    """Stands for a link."""

    def __init__(self) -> None:
        self.lost = False

    def is_lost(self) -> bool:
        return self.lost


def asked_for(name: str) -> PendingTreeLink:
    link: Any = Waiting()
    return PendingTreeLink(link, name, 0, "root", b"digest", frozenset())


def test_those_of_an_address_are_found_by_its_key() -> None:
    links = PendingTreeLinks()
    found = [asked_for(name) for name in ("q", "p", "q")]
    for each in found:
        links.add(each)
    assert list(links) == found
    assert list(links.at("M0q")) == [found[0], found[2]]
    links.remove(found[0])
    assert found[0] not in links
    assert list(links.at("M0q")) == [found[2]]
    links.remove(found[2])
    assert list(links.at("M0q")) == []
    assert list(links) == [found[1]]


def test_those_that_have_waited_long_enough_are_taken_out_in_their_order() -> None:
    links = PendingTreeLinks()
    found = [asked_for("q") for _ in range(3)]
    for at, each in enumerate(found):
        links.add(each)
        assert not each.has_waited(float(at))
        links.wait_for_receivers(each)
    links.remove(found[0])
    assert list(links.take_overdue(PATIENCE_S + 1)) == [found[1]]
    assert list(links.take_overdue(PATIENCE_S + 1)) == []
    assert list(links.take_overdue(PATIENCE_S + 2)) == [found[2]]


def test_of_very_many_some_are_looked_at_each_time() -> None:
    links = PendingTreeLinks()
    found = [asked_for("q") for _ in range(2 * CHECKED_AT_ONCE)]
    for each in found:
        links.add(each)
    for each in found[1::2]:
        each.link.lost = True  # type: ignore[attr-defined]
    links.forget_lost()
    assert len(links) == CHECKED_AT_ONCE + CHECKED_AT_ONCE // 2
    links.forget_lost()
    assert sorted(map(id, links)) == sorted(map(id, found[::2]))
