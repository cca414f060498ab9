"""Encode values, each in the shortest encoding that its type allows (part 1, section 1.6).

Lists, maps, arrays and described values are here, all other types in `scalars`. The same value
always gives the same octets. Values come from our own code, so errors are Python's: `TypeError` for
a value without an AMQP type, `ValueError` for a value out of its type's range.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence, Sized
from typing import TypeVar

from router.amqp import scalars
from router.amqp.constants import DESCRIBED, FormatCode
from router.amqp.scalars import Block, BlockWriter, Writer
from router.amqp.types import Array, Described, Map, ValueMap

S = TypeVar("S", bound=Sized)

_SIZE_COUNT_8 = struct.Struct(">BB")
_SIZE_COUNT_32 = struct.Struct(">II")
# A format code, a size and a count.
_HEAD_32 = 1 + _SIZE_COUNT_32.size

_EMPTY_LIST8 = bytes((FormatCode.LIST8, 1, 0))


def encode_value(value: object) -> bytes:
    """Return the encoding of one value."""
    buffer = bytearray()
    encode_value_into(buffer, value)
    return bytes(buffer)


def encode_value_into(buffer: bytearray, value: object) -> None:
    """Append the encoding of one value; if this raises an error, a part may have been appended."""
    write = WRITERS.get(type(value))
    if write is None:
        write = _writer_of_base(type(value))
    write(buffer, value)


def _writer_of_base(kind: type) -> Writer:
    for base in kind.__mro__:
        write = WRITERS.get(base)
        if write is not None:
            return write
    raise TypeError(f"{kind.__name__} has no AMQP type")


def write_list(buffer: bytearray, count: int, body: bytes | bytearray) -> None:
    """Append a list whose `count` items are encoded in `body`; list0 is never used."""
    _write_compound(buffer, FormatCode.LIST8, FormatCode.LIST32, count, body)


def write_map(buffer: bytearray, count: int, body: bytes | bytearray) -> None:
    """Append a map whose keys and values, `count` of them together, are encoded in `body`."""
    _write_compound(buffer, FormatCode.MAP8, FormatCode.MAP32, count, body)


def _write_compound(
    buffer: bytearray, code8: int, code32: int, count: int, body: bytes | bytearray
) -> None:
    buffer += _compound_head(code8, code32, count, len(body))
    buffer += body


def begin_compound(buffer: bytearray) -> int:
    """Reserve room for the code, size and count of a list or map, and return its position.

    The caller then appends the items one by one, and calls `end_list` or `end_map` to fill in the
    reserved octets. So the items are not copied.
    """
    at = len(buffer)
    buffer += bytes(_HEAD_32)
    return at


def end_list(buffer: bytearray, at: int, count: int) -> None:
    """Fill in the code, size and count of a list whose items follow `begin_compound`."""
    _end_compound(buffer, at, FormatCode.LIST32, count)


def end_map(buffer: bytearray, at: int, count: int) -> None:
    """Fill in the code, size and count of a map whose entries follow `begin_compound`.

    `count` is the number of keys and values together.
    """
    _end_compound(buffer, at, FormatCode.MAP32, count)


def _end_compound(buffer: bytearray, at: int, code: int, count: int) -> None:
    buffer[at] = code
    # the size counts the octets of the count as well
    _SIZE_COUNT_32.pack_into(buffer, at + 1, len(buffer) - at - _HEAD_32 + 4, count)


def _compound_head(code8: int, code32: int, count: int, size: int) -> bytes:
    # The size counts the octets of the count as well.
    if size < 255 and count < 256:
        return bytes((code8,)) + _SIZE_COUNT_8.pack(size + 1, count)
    return bytes((code32,)) + _SIZE_COUNT_32.pack(size + 4, count)


def _list_body(items: Sequence[object]) -> bytearray:
    body = bytearray()
    for item in items:
        encode_value_into(body, item)
    return body


def _map_body(value: ValueMap | Map) -> bytearray:
    body = bytearray()
    for key, item in value.items() if isinstance(value, dict) else value.pairs:
        encode_value_into(body, key)
        encode_value_into(body, item)
    return body


def _array_body(array: Array) -> bytearray:
    code, data = _array_block(array)
    body = bytearray()
    for descriptor in array.descriptors:
        body.append(DESCRIBED)
        encode_value_into(body, descriptor)
    body.append(code)
    body += data
    return body


def _array_block(array: Array) -> Block:
    write = BLOCK_WRITERS.get(array.element)
    if write is None:
        raise TypeError(f"{array.element.__name__} is not allowed as the type of array items")
    allowed = _ITEM_TYPES.get(array.element, (array.element,))
    for item in array.items:
        if type(item) not in allowed:
            raise TypeError(f"{item!r} in an array of {array.element.__name__}")
    try:
        return write(array.items)
    except struct.error as error:
        raise ValueError(f"in an array of {array.element.__name__}: {error}") from None


def _write_list(buffer: bytearray, value: Sequence[object]) -> None:
    if value:
        write_list(buffer, len(value), _list_body(value))
    else:
        buffer.append(FormatCode.LIST0)


def _write_map(buffer: bytearray, value: ValueMap | Map) -> None:
    write_map(buffer, 2 * len(value), _map_body(value))


def _write_array(buffer: bytearray, array: Array) -> None:
    body = _array_body(array)
    _write_compound(buffer, FormatCode.ARRAY8, FormatCode.ARRAY32, len(array), body)


def _write_described(buffer: bytearray, described: Described) -> None:
    buffer.append(DESCRIBED)
    encode_value_into(buffer, described.descriptor)
    if type(described.value) is list and not described.value:
        # Some readers of composites in the field do not know list0.
        buffer += _EMPTY_LIST8
    else:
        encode_value_into(buffer, described.value)


def _compounds(
    code8: FormatCode, code32: FormatCode, body_of: Callable[[S], bytearray], items_per_entry: int
) -> BlockWriter:
    def write(items: Sequence[S]) -> Block:
        bodies = [(len(item) * items_per_entry, body_of(item)) for item in items]
        data = bytearray()
        if all(count < 256 and len(body) < 255 for count, body in bodies):
            for count, body in bodies:
                data += _SIZE_COUNT_8.pack(len(body) + 1, count)
                data += body
            return code8, bytes(data)
        for count, body in bodies:
            data += _SIZE_COUNT_32.pack(len(body) + 4, count)
            data += body
        return code32, bytes(data)

    return write


WRITERS: dict[type, Writer] = {
    **scalars.WRITERS,
    list: _write_list,
    tuple: _write_list,
    dict: _write_map,
    Map: _write_map,
    Array: _write_array,
    Described: _write_described,
}
"""Writers of values, by Python type; `composite` adds the types that it registers."""

BLOCK_WRITERS: dict[type, BlockWriter] = {
    **scalars.BLOCK_WRITERS,
    list: _compounds(FormatCode.LIST8, FormatCode.LIST32, _list_body, 1),
    dict: _compounds(FormatCode.MAP8, FormatCode.MAP32, _map_body, 2),
    Array: _compounds(FormatCode.ARRAY8, FormatCode.ARRAY32, _array_body, 1),
}
"""Writers of an array's items, by the array's element type."""

# The allowed types of items, where types other than the element type are allowed.
_ITEM_TYPES: dict[type, tuple[type, ...]] = {
    **{kind: (kind, int) for kind in BLOCK_WRITERS if issubclass(kind, int) and kind is not bool},
    dict: (dict, Map),
}
