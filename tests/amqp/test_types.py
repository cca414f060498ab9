"""The types know their ranges and keep their class."""

from __future__ import annotations

from typing import Any

import pytest

from router.amqp.types import (
    Array,
    Byte,
    Char,
    Described,
    Float,
    Int,
    Long,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

RANGES: list[tuple[Any, int, int]] = [
    (UByte, 0, 0xFF),
    (UShort, 0, 0xFFFF),
    (UInt, 0, 0xFFFF_FFFF),
    (ULong, 0, 0xFFFF_FFFF_FFFF_FFFF),
    (Byte, -0x80, 0x7F),
    (Short, -0x8000, 0x7FFF),
    (Int, -0x8000_0000, 0x7FFF_FFFF),
    (Long, -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF),
    (Timestamp, -0x8000_0000_0000_0000, 0x7FFF_FFFF_FFFF_FFFF),
]


@pytest.mark.parametrize(("kind", "lowest", "highest"), RANGES)
def test_integers_have_their_range(kind: Any, lowest: int, highest: int) -> None:
    assert kind(lowest) == lowest
    assert kind(highest) == highest
    for outside in (lowest - 1, highest + 1):
        with pytest.raises(ValueError, match=kind.__name__.lower()):
            kind(outside)


def test_integers_are_ints() -> None:
    assert UInt(5) == 5 == ULong(5)
    assert hash(UInt(5)) == hash(5)
    assert type(UInt(5) + 1) is int
    assert repr(UInt(5)) == "UInt(5)"
    assert f"{UInt(5)}" == "5"


def test_a_float_is_rounded_to_32_bits() -> None:
    assert Float(0.1) == 0.10000000149011612
    assert repr(Float(1.5)) == "Float(1.5)"
    with pytest.raises(ValueError, match="range of float"):
        Float(1e39)


def test_text_shows_its_type_to_programmers_only() -> None:
    assert (repr(Char("a")), str(Char("a"))) == ("Char('a')", "a")
    assert (repr(Symbol("a")), str(Symbol("a"))) == ("Symbol('a')", "a")


@pytest.mark.parametrize("text", ["", "ab", chr(0xD800), chr(0xDFFF)])
def test_a_char_is_one_character(text: str) -> None:
    with pytest.raises(ValueError, match="one Unicode character"):
        Char(text)


def test_a_symbol_is_ascii() -> None:
    assert Symbol("amqp:open:list") == "amqp:open:list"
    assert repr(Symbol("a")) == "Symbol('a')"
    with pytest.raises(ValueError, match="ASCII"):
        Symbol("é")


def test_an_array_knows_its_element_type() -> None:
    assert Array([UInt(1)]).element is UInt
    assert Array([1, 2]).element is Long
    assert Array([], Symbol).element is Symbol
    with pytest.raises(ValueError, match="element type"):
        Array([])


def test_an_array_is_a_sequence() -> None:
    array = Array(["a", "b"])
    assert list(array) == ["a", "b"]
    assert array[1] == "b"
    assert len(array) == 2
    assert array == Array(("a", "b"), str)
    assert array != Array(["a", "b"], str, [ULong(1)])


def test_values_with_hashable_parts_have_hashes() -> None:
    assert len({Described(ULong(1), "a"), Described(ULong(1), "a")}) == 1
    assert len({Array(["a"]), Array(["a"])}) == 1
    assert len(Map(((1, 2), (3, 4)))) == 2
