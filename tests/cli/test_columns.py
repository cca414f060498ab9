"""Columns of the views: their values, their order, and which values are highlighted."""

from __future__ import annotations

from router.cli import columns
from router.cli.columns import Column, text_order
from router.cli.tables import Head


def test_a_column_shows_an_attribute_or_what_is_made_of_several() -> None:
    plain = columns.octets("all", "memoryHeld", rank=3)
    assert plain.value({"memoryHeld": 2048}) == 2048
    assert plain.form(2048) == "2.0 KiB"
    assert plain.head.rank == 3
    assert plain.head.right
    made = Column(Head("sum"), "a", compute=lambda entity: entity["a"] + entity["b"])
    assert made.value({"a": 1, "b": 2}) == 3


def test_numbers_are_in_order_and_before_texts() -> None:
    assert sorted(["10", "b", "9", "1.10", "1.9"], key=text_order) == [
        "1.9",
        "1.10",
        "9",
        "10",
        "b",
    ]


def test_what_a_person_should_note() -> None:
    assert columns.is_positive(1)
    assert not columns.is_positive(0)
    assert not columns.is_positive(None)
    assert columns.is_zero(0)
    assert not columns.is_zero(False)
