"""A table that is split into many dicts."""

from __future__ import annotations

from router.core.split_table import PARTS, SplitTable

MANY = 100 * PARTS


def test_it_is_a_mapping() -> None:
    table: SplitTable[str, int] = SplitTable()
    assert len(table) == 0
    table["a"] = 1
    table["a"] = 2
    table["b"] = 3
    assert (len(table), table.get("a"), table.get("b"), table.get("c")) == (2, 2, 3, None)
    assert (table.pop("a"), table.pop("a"), len(table)) == (2, None, 1)
    table.clear()
    assert (len(table), table.get("b")) == (0, None)


def test_no_part_has_many_of_very_many() -> None:
    table: SplitTable[tuple[str, int], int] = SplitTable()
    for number in range(MANY):
        table["name", number] = number
    sizes = [len(part) for part in table._parts]
    assert sum(sizes) == len(table) == MANY
    assert max(sizes) < 2 * MANY / PARTS
    assert all(table.get(("name", number)) == number for number in range(MANY))
