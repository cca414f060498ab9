"""Tables that are split into many dicts."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given, strategies as st

from router.core.model.split_table import MANY, PARTS, ListedTable, SplitTable

from support.examples import examples


class Thing:
    """Something whose hash is its place in memory."""


def test_it_is_a_mapping() -> None:
    table: SplitTable[str, int] = SplitTable()
    assert len(table) == 0
    table["a"] = 1
    table["a"] = 2
    table["b"] = 3
    assert (len(table), table.get("a"), table.get("b"), table.get("c")) == (2, 2, 3, None)
    assert (table.get("c", 4), "a" in table, "c" in table) == (4, True, False)
    assert (table.pop("a"), table.pop("a"), len(table)) == (2, None, 1)
    assert (table["b"], table.pop("c", 4)) == (3, 4)
    table.clear()
    assert (len(table), table.get("b")) == (0, None)
    with pytest.raises(KeyError, match="b"):
        table["b"]


@pytest.mark.parametrize("of", ["texts", "things"])
def test_no_part_has_many_of_very_many(of: str) -> None:
    table: SplitTable[object, int] = SplitTable()
    keys = [("name", number) if of == "texts" else Thing() for number in range(2 * MANY)]
    for number, key in enumerate(keys):
        table[key] = number
    sizes = [len(part) for part in table._parts]
    assert sum(sizes) == len(table) == len(keys)
    assert len(sizes) == PARTS
    assert max(sizes) < 2 * len(keys) / PARTS
    assert all(table.get(key) == number for number, key in enumerate(keys))
    assert all(table.pop(key) == number for number, key in enumerate(keys))
    assert len(table) == 0


def test_what_a_dict_has_becomes_a_table() -> None:
    for count in (0, 3, MANY, 2 * MANY):
        table = SplitTable.of({number: -number for number in range(count)})
        assert len(table) == count
        assert all(table[number] == -number for number in range(count))
        assert dict(table.popitem() for _ in range(count)) == {n: -n for n in range(count)}
        with pytest.raises(KeyError, match="empty"):
            table.popitem()


def test_one_of_few_is_a_single_dict() -> None:
    table: SplitTable[int, int] = SplitTable()
    for number in range(MANY - 1):
        table[number] = number
    assert len(table._parts) == 1
    table.clear()
    table[1] = 1
    assert len(table) == 1


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.integers())))
@examples(100)
def test_a_listed_one_has_what_a_dict_has(steps: list[tuple[bool, int, int]]) -> None:
    table: ListedTable[int, int] = ListedTable()
    model: dict[int, int] = {}
    for puts, key, value in steps:
        if puts:
            table[key] = model[key] = value
        else:
            assert table.pop(key, None) == model.pop(key, None)
        assert dict(table) == model
        assert (len(table), bool(table)) == (len(model), bool(model))
        assert [key in table for key in range(10)] == [key in model for key in range(10)]
    taken = dict(table.popitem() for _ in range(len(table)))
    assert taken == model


def test_a_listed_one_has_its_keys_in_the_order_in_which_they_came() -> None:
    table: ListedTable[str, int] = ListedTable()
    for number, key in enumerate("cabd"):
        table[key] = number
    table["a"] = 7
    assert list(table.items()) == [("c", 0), ("a", 7), ("b", 2), ("d", 3)]
    del table["a"]
    assert list(table) == ["c", "d", "b"]
    assert table.popitem() == ("b", 2)


def test_what_is_not_there_is_an_error() -> None:
    table: ListedTable[str, int] = ListedTable()
    with pytest.raises(KeyError, match="q"):
        table["q"]
    with pytest.raises(KeyError, match="q"):
        del table["q"]
    with pytest.raises(KeyError, match="empty"):
        table.popitem()


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 19)), max_size=40))
@examples(200)
def test_each_one_that_stays_is_found_while_others_come_and_go(
    steps: list[tuple[bool, int]],
) -> None:
    table: ListedTable[int, int] = ListedTable()
    for key in range(10):
        table[key] = key
    stay = set(range(10))
    found = []
    rest = iter(steps)
    for value in table.each():
        found.append(value)
        for comes, key in islice(rest, 2):
            if comes:
                table[key] = key
            else:
                table.pop(key, None)
                stay.discard(key)
    assert stay <= set(found)
    assert sorted(table.values()) == sorted(table)
