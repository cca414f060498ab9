"""Loops of exchanges are found from what is new."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.config import exchange_loops
from router.config.edits import Edit, Edits
from router.config.exchange_loops import ExchangeGraph
from router.config.exchanges import BindingSettings, ExchangeSettings

from support.edits import BY_NAME
from support.examples import examples


def binding(name: str, hop: str) -> Edit:
    settings = BindingSettings(exchange_name=name, next_hop_address=hop)
    return Edit(BY_NAME["binding"], None, settings)


def exchange(name: str, alternate: str | None = None) -> Edit:
    """Return an edit that adds an exchange whose address is its name."""
    settings = ExchangeSettings(name=name, address=name, alternate_address=alternate)
    return Edit(BY_NAME["exchange"], None, settings)


def loops_of(*edits: Edit) -> ExchangeGraph:
    loops = ExchangeGraph()
    for edit in edits:
        loops.enter(edit)
    return loops


def closes(loops: ExchangeGraph, *edits: Edit) -> bool:
    for edit in edits:
        loops.enter(edit)
    return loops.may_close_loop(edits)


def test_a_binding_that_leads_back_closes_a_loop() -> None:
    loops = loops_of(*map(exchange, "abc"), binding("a", "b"), binding("b", "c"), binding("b", "x"))
    assert not closes(loops, binding("a", "c"))
    assert not closes(loops, binding("c", "x"))
    assert closes(loops, binding("c", "a"))


def test_an_exchange_closes_a_loop_by_its_alternate_address() -> None:
    loops = loops_of(*map(exchange, "ab"), binding("a", "b"), binding("b", "c"))
    assert not closes(loops, exchange("d", "a"))
    assert closes(loops, exchange("c", "a"))


def test_an_exchange_that_leads_to_itself_is_a_loop() -> None:
    assert closes(ExchangeGraph(), exchange("a", "a"))
    assert closes(loops_of(exchange("b")), binding("b", "b"))


def test_what_is_gone_closes_no_loop() -> None:
    gone = binding("a", "b")
    loops = loops_of(*map(exchange, "ab"), gone)
    loops.enter(gone.inverse)
    assert not closes(loops, binding("b", "a"))


def test_a_chain_is_walked_no_further_than_its_shorter_side() -> None:
    names = [f"e{number}" for number in range(100)]
    loops = loops_of(*map(exchange, names))
    for one, other in pairwise(names):
        assert not closes(loops, binding(one, other))
    for name in reversed(names):
        assert not closes(loops, exchange(f"new-{name}", name))


def test_where_the_way_is_too_long_there_may_be_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange_loops, "MAX_STEPS_PER_EDIT", 10)
    names = [f"e{number}" for number in range(40)]
    chain = [binding(one, other) for one, other in pairwise(names)]
    # the last is in the middle, and long ways lead there and on
    middle = chain.pop(20)
    loops = loops_of(*map(exchange, names), *chain)
    assert closes(loops, middle)


@examples(200)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=30))
def test_loops_are_those_of_the_graph(pairs: list[tuple[int, int]]) -> None:
    loops = loops_of(*(exchange(str(number)) for number in range(8)))
    after: dict[int, set[int]] = {number: set() for number in range(8)}

    def leads(start: int, end: int) -> bool:
        found, pending = {start}, [start]
        while pending:
            new = after[pending.pop()] - found
            found |= new
            pending += new
        return end in found

    for one, other in dict.fromkeys(pairs):
        edit = binding(str(one), str(other))
        is_loop = leads(other, one)
        assert closes(loops, edit) == is_loop
        if is_loop:
            loops.enter(edit.inverse)
        else:
            after[one].add(other)


def test_taken_apart_nothing_is_left() -> None:
    loops = loops_of(exchange("a"), binding("a", "b"))
    left: list[Any] = list(loops.pieces())
    edits: Edits = [binding("a", "b")]
    assert len(left) == 4
    assert not loops.may_close_loop(edits)
