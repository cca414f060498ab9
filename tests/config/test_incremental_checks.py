"""Checks of single changes find the same as checks of the whole configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from hypothesis import given, strategies as st

from router.config.edits import Edit
from router.config.incremental_checks import IncrementalChecks
from router.config.listeners import ListenerSettings
from router.config.mistakes import Finding
from router.config.model import AddressSettings, Configuration
from router.config.validate import find_mistakes

from support.edits import BY_NAME, EXCHANGES, STEP, edited
from support.examples import examples

ADDRESS = BY_NAME["address"]


@examples(300)
@given(
    st.sampled_from([Configuration(), EXCHANGES]),
    st.lists(st.lists(STEP, min_size=1, max_size=3), max_size=20),
)
def test_mistakes_are_those_of_the_whole(runs: Configuration, changes: list[list[Any]]) -> None:
    rechecks = IncrementalChecks()
    for steps in changes:
        wanted = runs
        edits: list[Edit] = []
        for step in steps:
            # nothing is edited twice at a time
            if not edits or step[0] == "add":
                wanted, some = edited(wanted, step)
                edits += some
        found = rechecks.find_mistakes(runs, wanted, edits)
        assert [str(each) for each in found] == [str(each) for each in find_mistakes(wanted)]
        if not found:
            runs = wanted


class Seen:
    """A check that finds nothing, and notes how many addresses it was to look at."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, configuration: Configuration, _: Mapping[str, Any]) -> Iterator[Finding]:
        self.counts.append(len(configuration.addresses))
        yield from ()


def with_one_more(runs: Configuration, name: str) -> tuple[Configuration, list[Edit]]:
    new = AddressSettings(prefix=name)
    return attrs.evolve(runs, addresses=(*runs.addresses, new)), [Edit(ADDRESS, None, new)]


def test_one_beside_many_is_checked_alone() -> None:
    seen = Seen()
    rechecks = IncrementalChecks([seen])
    runs = Configuration(addresses=tuple(AddressSettings(prefix=f"a{n}") for n in range(100)))
    for name in ("b", "c", "d"):
        wanted, edits = with_one_more(runs, name)
        assert rechecks.find_mistakes(runs, wanted, edits) == []
        runs = wanted
    assert seen.counts == [101, 1, 1]
    wanted, edits = with_one_more(runs, "a7")
    (taken,) = rechecks.find_mistakes(runs, wanted, edits)
    assert "covers the same addresses as address[7]" in str(taken)
    # it has to do with one, and the words are those of the whole
    assert seen.counts[3:] == [2, 104]
    wanted, edits = with_one_more(runs, "e")
    assert rechecks.find_mistakes(runs, wanted, edits) == []
    assert seen.counts[5:] == [1]


def test_what_is_not_known_is_looked_at_as_a_whole() -> None:
    seen = Seen()
    rechecks = IncrementalChecks([seen])
    runs, edits = with_one_more(Configuration(), "a")
    rechecks.find_mistakes(Configuration(), runs, edits)
    # one was applied of which nobody said what is other in it
    other = Configuration(addresses=(AddressSettings(prefix="x"),))
    assert rechecks.find_mistakes(runs, other, None) == []
    wanted, edits = with_one_more(other, "b")
    rechecks.find_mistakes(other, wanted, edits)
    again, edits = with_one_more(wanted, "c")
    rechecks.find_mistakes(wanted, again, edits)
    assert seen.counts == [1, 1, 2, 1]


def test_what_may_be_about_all_is_checked_with_all() -> None:
    seen = Seen()
    rechecks = IncrementalChecks([seen])
    runs, edits = with_one_more(Configuration(), "a")
    rechecks.find_mistakes(Configuration(), runs, edits)
    listener = ListenerSettings(port=1)
    wanted = attrs.evolve(runs, listeners=(listener,))
    rechecks.find_mistakes(runs, wanted, [Edit(BY_NAME["listener"], None, listener)])
    again, edits = with_one_more(wanted, "b")
    rechecks.find_mistakes(wanted, again, edits)
    # the addresses are known still
    assert seen.counts == [1, 1, 1]
