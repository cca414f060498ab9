"""Connections to neighbours: who is one, and which carries."""

from __future__ import annotations

from router.control.network.changes import LinkFailed
from router.control.network.codec import MAX_CONTROL_BYTES, encode_control
from router.control.network.links import OTHER_ID, SILENT, RouterLink, RouterLinks, portions
from router.control.network.messages import Aged, Hello, LinkStateUpdate
from router.control.network.protocol import Protocol
from router.control.network.timing import Timing


def links() -> RouterLinks:
    """Those of A."""
    return RouterLinks("A", 1, Timing())


def add(several: RouterLinks, number: int, cost: int, *, up: bool = True) -> RouterLink:
    """Add a connection to B, and bring it up unless `up` is false."""
    link = RouterLink(number, "B", 2, cost, 1, 0.0)
    several.add(link)
    if up:
        several.hello_received(link, Hello("B", 2, 1))
    return link


def greetings(several: RouterLinks) -> list[int]:
    """Whom it says it has heard."""
    return [send.message.heard for send in several.take(lambda _: (), lambda _: ())]  # type: ignore[union-attr]


def test_a_neighbour_is_who_has_heard_and_is_heard() -> None:
    several = links()
    link = add(several, 1, 1, up=False)
    assert greetings(several) == [0]
    several.hello_received(link, Hello("B", 2, 0))
    assert greetings(several) == [2]
    assert several.elect() == ([], False)
    several.hello_received(link, Hello("B", 2, 1))
    assert greetings(several) == []
    assert several.elect() == ([link], True)
    several.hello_received(link, Hello("B", 2, 0))
    assert several.elect() == ([], True)
    assert several.costs() == {}


def test_the_cheapest_carries_and_the_others_stand_by() -> None:
    several = links()
    first, second, third = add(several, 1, 5), add(several, 3, 2), add(several, 2, 2)
    assert several.elect() == ([third], True)
    assert several.costs() == {"B": 2}
    several.remove(2)
    assert several.elect() == ([second], True)
    several.remove(3)
    assert several.elect() == ([first], True)
    assert several.costs() == {"B": 5}


def test_who_says_nothing_is_gone() -> None:
    several = links()
    add(several, 1, 1)
    assert several.next_silence() == 3.0
    several.drop_silent(2.9)
    assert several.failed == []
    several.drop_silent(3.0)
    assert [each.condition for each in several.failed] == [SILENT]
    assert several.by_number == {}
    assert several.next_silence() == float("inf")


def test_who_is_somebody_else_suddenly_is_refused() -> None:
    several = links()
    several.hello_received(add(several, 1, 1), Hello("C", 2, 1))
    assert [each.condition for each in several.failed] == [OTHER_ID]


def test_portions_hold_all_in_order() -> None:
    assert list(portions(range(5), lambda _: 20_000)) == [[0, 1], [2, 3], [4]]
    assert list(portions((), lambda _: 1)) == []


def test_no_more_neighbours_than_can_be_told_of_in_one_message() -> None:
    protocol = Protocol("A", 1, Timing(), 0.0)
    for number in range(1, 1200):
        name = f"{number:0255}"
        protocol.link_up(number, name, 2, 1, 0.0)
        protocol.received(number, Hello(name, 2, 1), 0.0)
    failed = [each for each in protocol.take(0.0) if isinstance(each, LinkFailed)]
    assert {each.condition for each in failed} == {"trioute:unsuitable-router"}
    links = protocol.own_state.last.state.links
    assert len(links) + len(failed) == 1199
    assert len(links) > 700
    octets = encode_control(LinkStateUpdate((Aged(protocol.own_state.last.state, 0),)))
    assert len(octets) <= MAX_CONTROL_BYTES


def test_a_cost_that_changes_is_told_and_counts_from_both_ends() -> None:
    several = links()
    link = add(several, 1, 2)
    several.elect()
    several.take(lambda _: (), lambda _: ())
    several.set_cost(1, 7, 0.0)
    told = [send.message for send in several.take(lambda _: (), lambda _: ())]
    assert told == [Hello("A", 1, 2, 7, 1)]
    assert several.elect() == ([], True)
    assert several.costs() == {"B": 7}
    several.hello_received(link, Hello("B", 2, 1, 9))
    assert several.elect() == ([], True)
    assert several.costs() == {"B": 9}
    # a router that does not tell its cost keeps that of its open
    several.hello_received(link, Hello("B", 2, 1))
    several.set_cost(1, 7, 0.0)
    several.set_cost(5, 7, 0.0)
    assert several.elect() == ([], False)
    assert several.costs() == {"B": 9}


def test_a_connection_that_gets_cheaper_carries_from_then_on() -> None:
    several = links()
    first, second = add(several, 1, 5), add(several, 2, 6)
    assert several.elect() == ([first], True)
    several.set_cost(2, 1, 0.0)
    assert several.elect() == ([second], True)
    assert several.costs() == {"B": 1}
