"""Arrays have one constructor for all items, the shortest that every item allows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.constants import FormatCode
from router.amqp.decode import decode_value
from router.amqp.encode import encode_value
from router.amqp.scalars import BLOCK_WRITERS, WRITERS
from router.amqp.types import Array, Int, Long, Symbol, UInt, ULong

from support.wire import BY_TYPE, same

CHOICES: list[tuple[type, list[Any], FormatCode]] = [
    (UInt, [0, 255], FormatCode.SMALLUINT),
    (UInt, [0, 256], FormatCode.UINT),
    (ULong, [0, 255], FormatCode.SMALLULONG),
    (ULong, [0, 256], FormatCode.ULONG),
    (Int, [-128, 127], FormatCode.SMALLINT),
    (Int, [-129, 0], FormatCode.INT),
    (Long, [-128, 127], FormatCode.SMALLLONG),
    (Long, [0, 128], FormatCode.LONG),
    (bool, [True, True], FormatCode.BOOLEAN),
    (bytes, [b"", bytes(255)], FormatCode.VBIN8),
    (bytes, [b"", bytes(256)], FormatCode.VBIN32),
    (str, ["é" * 127], FormatCode.STR8),
    (str, ["é" * 128], FormatCode.STR32),
    (Symbol, [Symbol("a" * 255)], FormatCode.SYM8),
    (Symbol, [Symbol("a" * 256)], FormatCode.SYM32),
]


@pytest.mark.parametrize(("element", "items", "code"), CHOICES)
def test_the_widest_item_chooses_the_encoding(
    element: type, items: list[Any], code: FormatCode
) -> None:
    assert BLOCK_WRITERS[element](items)[0] is code


def test_every_scalar_type_can_be_in_an_array() -> None:
    assert WRITERS.keys() - BLOCK_WRITERS.keys() == {int, bytearray, memoryview}


@pytest.mark.parametrize("element", list(BY_TYPE))
def test_items_alone_and_in_an_array_are_the_same(element: type) -> None:
    @given(st.lists(BY_TYPE[element], min_size=1, max_size=4))
    def check(items: list[Any]) -> None:
        array, _ = decode_value(encode_value(Array(items, element)))
        assert isinstance(array, Array)
        alone = [decode_value(encode_value(item))[0] for item in items]
        assert same(list(array), alone)

    check()
