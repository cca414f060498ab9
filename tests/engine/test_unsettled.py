"""The ring of unsettled deliveries behaves like a dictionary, whatever is settled when."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from router.engine import serial
from router.engine.delivery import Delivery
from router.engine.link import IncomingLink, OutgoingLink
from router.engine.unsettled import RING_LIMIT, Unsettled

from support.examples import examples

NO_SESSION: Any = None

TOP = 2**32 - 1
HALF = 2**31
# What router.engine.unsettled calls so: constants of compiled code cannot be imported.
NOTED_SPAN = 1024
NOTED_AT_ONCE = 8
STARTS = [0, 1, 63, 64, HALF - 2, HALF, TOP - 70, TOP - 1, TOP]


def filled(numbers: list[int]) -> tuple[Unsettled, dict[int, Delivery]]:
    unsettled, model = Unsettled(), {}
    for number in numbers:
        model[number] = Delivery()
        unsettled.add(number, model[number])
    return unsettled, model


def between(unsettled: Unsettled, first: int, last: int) -> list[int]:
    """Return the unsettled ids of a range, found as a disposition over it finds them."""
    ring = (
        serial.add(unsettled.start_from(first), n)
        for n in range(unsettled.count_between(first, last))
    )
    return [
        *sorted(unsettled.stragglers_between(first, last), key=lambda n: serial.distance(first, n)),
        *(number for number in ring if unsettled.find(number) is not None),
    ]


def within(first: int, number: int, last: int) -> bool:
    width = serial.distance(first, last)
    return 0 <= (number - first) % 2**32 <= width


def test_what_a_range_costs_is_what_is_looked_at() -> None:
    unsettled, _ = filled(list(range(100, 120)))
    assert unsettled.cost_between(0, 99) == 0
    assert unsettled.cost_between(0, 2**31 - 1) == 20
    assert unsettled.cost_between(110, 112) == 3
    unsettled.stragglers = {number: Delivery() for number in range(10)}
    assert unsettled.cost_between(0, 2**31 - 1) == 30
    assert unsettled.cost_between(3, 4) == 2


@pytest.mark.parametrize("start", STARTS)
def test_settling_the_oldest_first_keeps_the_ring_small(start: int) -> None:
    unsettled = Unsettled()
    for step in range(1000):
        number = serial.add(start, step)
        unsettled.add(number, Delivery())
        if step >= 20:
            assert unsettled.remove(serial.add(number, -20)) is not None
    assert unsettled.count == 20
    assert len(unsettled.ring) == 64


@pytest.mark.parametrize("start", [0, TOP - 70])
def test_one_that_stays_does_not_keep_memory_for_those_that_went(start: int) -> None:
    unsettled, model = filled([start])
    number = start
    for _ in range(RING_LIMIT + 2000):
        number = serial.add(number, 1)
        unsettled.add(number, Delivery())
        unsettled.remove(number)
    assert unsettled.count == 1
    assert len(unsettled.ring) <= RING_LIMIT
    assert unsettled.find(start) is model[start]
    assert between(unsettled, start, start) == [start]
    assert unsettled.remove(start) is model[start]
    assert unsettled.remove(start) is None
    assert unsettled.count == 0


@pytest.mark.parametrize("gap", [1, 63, 64, 65, RING_LIMIT, HALF - 1, HALF, HALF + 1, TOP - 1])
def test_any_number_of_ids_may_pass_unused(gap: int) -> None:
    """Pre-settled deliveries use up ids and are never added."""
    unsettled, model = filled([5])
    later = serial.add(5, gap)
    model[later] = Delivery()
    unsettled.add(later, model[later])
    assert unsettled.find(5) is model[5]
    assert unsettled.find(later) is model[later]
    assert unsettled.find(serial.add(later, 1)) is None
    assert unsettled.count == 2
    assert unsettled.remove(5) is model[5]
    assert unsettled.remove(later) is model[later]
    assert unsettled.count == 0


def test_more_than_the_ring_holds_can_be_unsettled() -> None:
    unsettled, model = filled(list(range(RING_LIMIT + 100)))
    assert unsettled.count == RING_LIMIT + 100
    assert between(unsettled, 0, RING_LIMIT + 99) == list(model)
    for number, delivery in model.items():
        assert unsettled.remove(number) is delivery
    assert not unsettled.stragglers


def test_more_than_the_ring_holds_is_added_without_another_ring() -> None:
    """Each would copy all that the ring holds."""
    unsettled, _ = filled(list(range(RING_LIMIT)))
    ring = unsettled.ring
    for number in range(RING_LIMIT, RING_LIMIT + 100):
        unsettled.add(number, Delivery())
        assert unsettled.ring is ring
    assert len(unsettled.stragglers) == 100


@pytest.mark.parametrize("start", STARTS)
def test_a_range_may_reach_as_far_as_serial_numbers_do(start: int) -> None:
    unsettled, model = filled([serial.add(start, n) for n in range(10)])
    ids = list(model)
    for first, last in [
        (ids[0], ids[9]),
        (ids[9], ids[9]),
        (serial.add(ids[0], -100), ids[3]),
        (ids[3], serial.add(ids[3], HALF - 1)),
        (ids[9], serial.add(ids[9], HALF - 1)),
        (serial.add(ids[9], 1), serial.add(ids[9], HALF)),
        (serial.add(ids[0], 1 - HALF), ids[0]),
        (serial.add(ids[5], 1 - HALF), ids[5]),
    ]:
        expected = [number for number in ids if within(first, number, last)]
        assert between(unsettled, first, last) == expected, (first, last)


def test_the_deliveries_of_a_link_are_found_oldest_first() -> None:
    unsettled = Unsettled()
    incoming, outgoing = IncomingLink(NO_SESSION, "in", 0), OutgoingLink(NO_SESSION, "out", 1)
    expected: dict[int, Delivery] = {}
    for number in range(RING_LIMIT + 10):
        delivery = Delivery()
        if number % 20_000 == 0:
            delivery.incoming, delivery.incoming_id = incoming, number
            expected[number] = delivery
        elif number % 20_000 == 1:
            delivery.outgoing, delivery.outgoing_id = outgoing, number
        unsettled.add(number, delivery)
    assert unsettled.of_link(incoming) == list(expected.values())
    assert len(unsettled.of_link(outgoing)) == 4


def of_two_links(count: int) -> tuple[Unsettled, list[Delivery], list[IncomingLink]]:
    """So many unsettled deliveries, by one link and another in turns."""
    unsettled, links, made = Unsettled(), [IncomingLink(NO_SESSION, name, 0) for name in "ab"], []
    for number in range(count):
        delivery = Delivery()
        delivery.incoming, delivery.incoming_id = links[number % 2], number
        unsettled.add(number, delivery)
        made.append(delivery)
    return unsettled, made, links


@pytest.mark.parametrize("count", [10, NOTED_SPAN, 5 * NOTED_SPAN, RING_LIMIT + 5 * NOTED_SPAN])
def test_a_search_finds_the_deliveries_of_a_link_oldest_first(count: int) -> None:
    unsettled, made, links = of_two_links(count)
    for link in links:
        found = list(unsettled.search(link))
        assert [each for each in found if each is not None] == unsettled.of_link(link)
        assert [each for each in found if each is not None] == made[links.index(link) :: 2]


def test_no_step_of_a_search_looks_at_many() -> None:
    """What each step looks at is noted: there is a None for every few."""
    unsettled, made, links = of_two_links(5 * NOTED_SPAN)
    steps = list(unsettled.search(links[0]))
    assert steps[: len(made) // NOTED_AT_ONCE - 1] == [None] * (len(made) // NOTED_AT_ONCE - 1)
    # for another link they are noted by now
    assert None not in list(unsettled.search(links[1]))[1:]


def test_a_search_finds_what_leaves_the_ring_meanwhile() -> None:
    unsettled, made, links = of_two_links(2 * NOTED_SPAN)
    search = unsettled.search(links[0])
    assert [next(search) for _ in range(3)] == [None] * 3
    # so far ahead that all the others become stragglers
    unsettled.add(RING_LIMIT + 2 * NOTED_SPAN, Delivery())
    assert len(unsettled.stragglers) == 2 * NOTED_SPAN
    assert [each for each in search if each is not None] == made[::2]


def test_a_search_goes_on_while_others_are_added_and_settled() -> None:
    unsettled, made, links = of_two_links(RING_LIMIT)
    newest = RING_LIMIT
    found = []
    for step, each in enumerate(unsettled.search(links[0])):
        if each is not None:
            found.append(each)
            unsettled.remove(each.incoming_id)
        # each moves another one out of the ring
        delivery = Delivery()
        delivery.incoming, delivery.incoming_id = links[1], newest
        unsettled.add(newest, delivery)
        newest += 1
        assert step < 2 * RING_LIMIT
    assert found == made[::2]
    assert len(unsettled.of_link(links[1])) == RING_LIMIT // 2 + newest - RING_LIMIT


def test_a_search_passes_over_what_is_settled_before_its_turn() -> None:
    unsettled, made, links = of_two_links(5 * NOTED_SPAN)
    search = unsettled.search(links[0])
    first = next(each for each in search if each is not None)
    assert first is made[0]
    for number in range(2, len(made) - 2):
        unsettled.remove(number)
    assert [each for each in search if each is not None] == [made[-2]]


def test_what_stays_when_it_was_found_is_found_again() -> None:
    unsettled, made, links = of_two_links(5 * NOTED_SPAN)
    for each in unsettled.search(links[0]):
        if each is not None and each is not made[4]:
            unsettled.remove(each.incoming_id)
    assert unsettled.of_link(links[0]) == [made[4]]


def test_the_newest_id_may_come_to_stand_for_a_delivery_of_another_link() -> None:
    unsettled, made, links = of_two_links(5 * NOTED_SPAN)
    assert len(unsettled.of_link(links[0])) == len(made) // 2
    other = Delivery()
    other.incoming, other.incoming_id = links[0], len(made) - 1
    unsettled.replace(len(made) - 1, other)
    assert unsettled.of_link(links[0])[-1] is other
    assert made[-1] not in unsettled.of_link(links[1])


def test_deliveries_may_come_to_go_by_another_link() -> None:
    unsettled, made, links = of_two_links(5 * NOTED_SPAN)
    assert len(unsettled.of_link(links[0])) == len(made) // 2
    for delivery in made[::2]:
        delivery.incoming = links[1]
    unsettled.links_changed()
    assert unsettled.of_link(links[0]) == []
    assert unsettled.of_link(links[1]) == made


def test_links_that_come_and_go_beside_much_that_is_unsettled_are_not_kept() -> None:
    unsettled, _, _ = of_two_links(5 * NOTED_SPAN)
    link, delivery = IncomingLink(NO_SESSION, "c", 0), Delivery()
    before = sys.getrefcount(link)
    delivery.incoming, delivery.incoming_id = link, 5 * NOTED_SPAN
    unsettled.add(delivery.incoming_id, delivery)
    found = [each for each in unsettled.search(link) if each is not None]
    assert found == [delivery]
    unsettled.remove(delivery.incoming_id)
    del delivery, found
    assert sys.getrefcount(link) == before


def test_one_that_stays_is_not_found_by_walking_over_those_that_went() -> None:
    unsettled, kept = filled(list(range(10_000)))
    for number in range(1, 10_000):
        unsettled.remove(number)
    assert unsettled.count_between(0, 9_999) == 10_000
    unsettled.thin()
    assert unsettled.count_between(0, 9_999) == 0
    assert unsettled.stragglers_between(0, 9_999) == [0]
    assert unsettled.find(0) is kept[0]
    unsettled.add(10_000, kept[1])
    assert unsettled.find(10_000) is kept[1]
    assert unsettled.count_between(0, 10_000) == 1


LINKS = [IncomingLink(NO_SESSION, name, 0) for name in "abc"]


class UnsettledMachine(RuleBasedStateMachine):
    """Everything that a session does with its unsettled deliveries, beside a plain dictionary."""

    @initialize(start=st.sampled_from(STARTS) | st.integers(0, TOP))
    def begin(self, start: int) -> None:
        self.unsettled = Unsettled()
        self.model: dict[int, Delivery] = {}
        self.next = start

    @rule(count=st.integers(1, 200) | st.integers(1000, 2000))
    def add(self, count: int) -> None:
        for _ in range(count):
            delivery = self.model[self.next] = Delivery()
            delivery.incoming, delivery.incoming_id = LINKS[count % len(LINKS)], self.next
            self.unsettled.add(self.next, delivery)
            self.next = serial.add(self.next, 1)

    @rule(count=st.integers(1, 300) | st.sampled_from([RING_LIMIT, 10**6, HALF - 500]))
    def skip(self, count: int) -> None:
        # a number comes again only when nothing of it is left
        oldest = next(iter(self.model), self.next)
        if (self.next - oldest) % 2**32 + count < 2**32 - 1000:
            self.next = serial.add(self.next, count)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(list(self.model)))
        assert self.unsettled.find(number) is self.model[number]
        assert self.unsettled.remove(number) is self.model.pop(number)
        assert self.unsettled.find(number) is None

    @precondition(lambda self: self.model)
    @rule(share=st.floats(0, 1))
    def remove_oldest(self, share: float) -> None:
        for number in list(self.model)[: int(len(self.model) * share)]:
            assert self.unsettled.remove(number) is self.model.pop(number)

    @rule()
    def thin(self) -> None:
        self.unsettled.thin()

    @rule(link=st.sampled_from(LINKS))
    def of_link(self, link: IncomingLink) -> None:
        expected = [each for each in self.model.values() if each.incoming is link]
        assert self.unsettled.of_link(link) == expected

    @rule(link=st.sampled_from(LINKS), settles=st.booleans(), added=st.integers(0, 5))
    def search(self, link: IncomingLink, settles: bool, added: int) -> None:
        expected = [each for each in self.model.values() if each.incoming is link]
        found = []
        for step, each in enumerate(self.unsettled.search(link)):
            if each is not None:
                found.append(each)
                if settles:
                    assert self.unsettled.remove(each.incoming_id) is each
                    del self.model[each.incoming_id]
            elif step < 20 and added:
                self.add(added)
        # those that came before it had looked at all are found, too
        assert found[: len(expected)] == expected
        assert all(each.incoming is link for each in found)

    @rule(number=st.integers(0, TOP))
    def look_for_any(self, number: int) -> None:
        assert self.unsettled.find(number) is self.model.get(number)
        if number not in self.model:
            assert self.unsettled.remove(number) is None

    @rule(data=st.data(), width=st.integers(0, 300) | st.integers(0, HALF - 1))
    def between(self, data: st.DataObject, width: int) -> None:
        around = [*self.model, self.next]
        first = data.draw(st.sampled_from(around).map(lambda n: serial.add(n, -width // 2)))
        last = serial.add(first, width)
        expected = [number for number in self.model if within(first, number, last)]
        assert between(self.unsettled, first, last) == expected

    @invariant()
    def counts_agree(self) -> None:
        assert self.unsettled.count == len(self.model)
        assert len(self.unsettled.ring) <= RING_LIMIT


TestUnsettled = UnsettledMachine.TestCase
TestUnsettled.settings = settings(examples(40), stateful_step_count=25)
