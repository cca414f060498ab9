"""Links that wait for room: the most urgent first, and each in the end."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from router.engine.blocking import BlockedLinks, block
from router.engine.link import OutgoingLink

from support.in_memory import Router

NO_SESSION: Any = None

# the levels of a message's priority, and how long those below the highest wait at most
LEVELS = 10
PATIENCE = 16


def links(count: int) -> list[OutgoingLink]:
    return [OutgoingLink(NO_SESSION, f"link {number}", number) for number in range(count)]


def taken(blocked: BlockedLinks) -> list[OutgoingLink]:
    found = []
    while (link := blocked.take()) is not None:
        assert isinstance(link, OutgoingLink)
        found.append(link)
    return found


def test_the_most_urgent_comes_first_and_of_these_who_has_waited_longest() -> None:
    blocked, (a, b, c, d) = BlockedLinks(), links(4)
    for link, level in ((a, 4), (b, 8), (c, 4), (d, 8)):
        blocked.add(link, level)
    assert (blocked.count, blocked.top) == (4, 8)
    assert taken(blocked) == [b, d, a, c]
    assert (blocked.count, blocked.top) == (0, -1)
    assert blocked.take() is None


def test_who_becomes_more_urgent_moves_up_and_is_there_once() -> None:
    blocked, (a, b) = BlockedLinks(), links(2)
    blocked.add(a, 4)
    blocked.add(b, 4)
    blocked.add(b, 9)
    blocked.add(b, 9)
    assert blocked.count == 2
    assert taken(blocked) == [b, a]


def test_who_is_over_is_not_found() -> None:
    blocked, (a, b) = BlockedLinks(), links(2)
    blocked.add(a, 9)
    blocked.add(b, 1)
    a.drop()
    assert a.blocked_in is None
    assert blocked.top == 1
    assert taken(blocked) == [b]


def test_who_waits_elsewhere_by_now_has_left() -> None:
    here, there, (a,) = BlockedLinks(), BlockedLinks(), links(1)
    here.add(a, 4)
    there.add(a, 4)
    assert (here.count, there.count, a.blocked_in) == (0, 1, there)


def test_the_less_urgent_are_let_in_now_and_then_each_level_in_its_turn() -> None:
    blocked = BlockedLinks()
    for level, each in enumerate(links(LEVELS)):
        blocked.add(each, level)
    begun = []
    for _ in range(20 * (PATIENCE + 1)):
        link = blocked.take()
        assert isinstance(link, OutgoingLink)
        begun.append(link.blocked_level)
        blocked.add(link, link.blocked_level)
        blocked.note_full()
    others = [level for level in begun if level != LEVELS - 1]
    assert others[:9] == [8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert len(others) <= len(begun) // PATIENCE


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(-1, LEVELS - 1)), max_size=60))
def test_it_agrees_with_a_list(steps: list[tuple[int, int]]) -> None:
    blocked, all_links = BlockedLinks(), links(8)
    model: list[tuple[int, OutgoingLink]] = []
    for number, level in steps:
        link = all_links[number]
        if level < 0:
            if link.blocked_in is not None:
                blocked.remove(link)
        elif (level, link) in model:
            blocked.add(link, level)
            continue
        else:
            blocked.add(link, level)
        model = [each for each in model if each[1] is not link]
        if level >= 0:
            model.append((level, link))
        assert blocked.count == len(model)
        assert blocked.top == max((each[0] for each in model), default=-1)
    assert taken(blocked) == [each[1] for each in sorted(model, key=lambda each: -each[0])]


def test_a_link_waits_for_the_window_where_that_is_closed_or_else_for_the_socket() -> None:
    router = Router()
    client = router.client(window=1)
    for name in "ab":
        client.receiver(name, 10)
    a: Any
    b: Any
    a, b = client.connection.local_sessions[0].local_links.values()
    session, outbox = a.session, a.session.outbox
    block(session, a)
    assert a.blocked_in is outbox.blocked_links
    session.remote_incoming_window = 0
    block(session, a)
    block(session, b)
    assert (a.blocked_in, b.blocked_in) == (outbox.blocked_links, session.blocked_links)
    client.lose()
    assert (a.blocked_in, b.blocked_in) == (None, None)
