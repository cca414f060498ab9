"""Decode values: every encoding of every primitive type (part 1, sections 1.2 and 1.6).

The octets come from the network and may be anything. Decoding takes time and memory in proportion
to the number of octets, and gives either values or an `AmqpError`:

- every size is checked against the octets that remain before anything is read or allocated;
- a count of more items than the remaining octets can hold is refused;
- the number of values of one call is limited, because the items of an array of nulls take no
  octets, whatever their number;
- nesting is limited, so that the Python stack never overflows;
- a dict is filled only with keys whose hashes a peer cannot choose (see `types.Map`).

`_READERS` has one function for each format code. It starts after the code and leaves the reader
after the value; an array calls the same function once for each item.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from router.amqp.constants import DESCRIBED, FormatCode
from router.amqp.encode import encode_value
from router.amqp.octets import Buffer
from router.amqp.reader import DEFAULT_LIMITS, SIZES, Keep, Limits, Reader
from router.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
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
    Value,
    ValueMap,
)
from router.amqp.walking import Walk, malformed, too_large

T = TypeVar("T")

_NULL = int(FormatCode.NULL)


def decode_value(
    data: Buffer,
    at: int = 0,
    end: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
    keep: Keep | None = None,
) -> tuple[Value, int]:
    """Return the value that begins at `data[at]` and the position after it.

    Nothing at or beyond `end` is read. If `keep` is given, each map is checked and replaced by what
    `keep` makes from the map's octets; the map's content does not count against `limits`. Raises
    AmqpError with amqp:decode-error if the octets are not a value, and with
    amqp:resource-limit-exceeded if the value exceeds `limits`.
    """
    reader = Reader(data, at, len(data) if end is None else end, limits, keep)
    value = read_value(reader)
    return value, reader.at


def decode_values(
    data: Buffer, at: int = 0, end: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[Value]:
    """Return all values in `data[at:end]`, one after the other; `limits` holds for all together.

    Raises AmqpError as `decode_value` does.
    """
    reader = Reader(data, at, len(data) if end is None else end, limits)
    values = []
    while reader.at < reader.end:
        values.append(read_value(reader))
    return values


def skip_value(
    data: Buffer, at: int = 0, end: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> int:
    """Return the position after the value that begins at `data[at]`, without reading it.

    Only the size of a list, map or array is checked, not its content. Raises AmqpError as
    `decode_value` does.
    """
    reader = Reader(data, at, len(data) if end is None else end, limits)
    _skip_value(reader)
    return reader.at


def _skip_value(reader: Reader) -> None:
    code = reader.data[reader.take(1)]
    descriptors = 0
    while code == DESCRIBED:
        reader.descend()
        descriptors += 1
        _skip_value(reader)
        code = reader.data[reader.take(1)]
    reader.depth_left += descriptors
    if code not in _READERS:
        raise malformed(f"unknown format code 0x{code:02x}")
    category = code >> 4
    if category < 0xA:
        reader.take(_LEAST_WIDTHS[category])
    else:
        # The even categories have a size of one octet, the odd ones of four.
        size = SIZES[4 if category & 1 else 1]
        reader.take(size.unpack_from(reader.data, reader.take(size.size))[0])


ReadValue = Callable[[Reader], Value]


def read_value(reader: Reader) -> Value:
    """Read the next value; raise AmqpError as `decode_value` does."""
    at = reader.at
    if at >= reader.end:
        raise malformed("the octets end where a value should begin")
    reader.items_left -= 1
    if reader.items_left < 0:
        raise too_large("one value contains too many values")
    reader.at = at + 1
    code = reader.data[at]
    read = _READERS.get(code)
    if read is None:
        raise malformed(f"unknown format code 0x{code:02x}")
    return read(reader)


def _constant(value: object) -> ReadValue:
    def read(_reader: Reader) -> Value:
        return value

    return read


def _fixed(layout: str, wrap: Callable[[T], object]) -> ReadValue:
    packed = struct.Struct(layout)
    unpack_from, width = packed.unpack_from, packed.size

    def read(reader: Reader) -> Value:
        return wrap(unpack_from(reader.data, reader.take(width))[0])

    return read


def _as_is(value: float) -> float:
    return value


def _whole(kind: type[int]) -> Callable[[int], int]:
    # The unpacked number is in range, so the class need not check it again.
    return partial(int.__new__, kind)


def _boolean(octet: int) -> bool:
    if octet > 1:
        raise malformed(f"a boolean is 0x{octet:02x}; only 0x00 and 0x01 are allowed")
    return octet == 1


def _char(code_point: int) -> Char:
    if code_point > 0x10FFFF or 0xD800 <= code_point <= 0xDFFF:
        raise malformed(f"0x{code_point:x} is not a Unicode character")
    return str.__new__(Char, chr(code_point))


def _uuid(octets: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=octets)


def _variable(width: int, wrap: Callable[[Buffer], object]) -> ReadValue:
    unpack_from = SIZES[width].unpack_from

    def read(reader: Reader) -> Value:
        size = unpack_from(reader.data, reader.take(width))[0]
        at = reader.take(size)
        return wrap(reader.data[at : at + size])

    return read


def _string(octets: Buffer) -> str:
    try:
        return str(octets, "utf-8")
    except UnicodeDecodeError as error:
        raise malformed(f"a string is not UTF-8: {error.reason}") from None


def _symbol(octets: Buffer) -> Symbol:
    try:
        return str.__new__(Symbol, octets, "ascii")
    except UnicodeDecodeError:
        raise malformed("a symbol is not ASCII") from None


def _read_described(reader: Reader) -> Described:
    reader.descend()
    descriptor = read_value(reader)
    value = read_value(reader)
    reader.depth_left += 1
    return Described(descriptor, value)


def _compound(width: int, read_items: Callable[[Reader, int], object]) -> ReadValue:
    """Return a function that reads a list or map with a size and count of `width` octets each."""

    def read(reader: Reader) -> Value:
        outer_end, count = reader.enter(width)
        value = read_items(reader, count)
        reader.leave(outer_end, count)
        return value

    return read


def _map(width: int) -> ReadValue:
    """Return a function that decodes a map or, if `Reader.keep` is set, keeps it encoded."""
    build = _compound(width, _read_map_items)

    def read(reader: Reader) -> Value:
        if reader.keep is None:
            return build(reader)
        start = reader.at - 1
        limits = DEFAULT_LIMITS
        walk = Walk(reader.data, start, reader.end, reader.depth_left, limits.max_items)
        walk.step()
        reader.at = walk.at
        return reader.keep(bytes(reader.data[start : walk.at]))

    return read


def _read_list_items(reader: Reader, count: int) -> list[Value]:
    reader.check_count(count)
    data, end = reader.data, reader.end
    items: list[Value] = []
    for _ in range(count):
        at = reader.at
        if at < end and data[at] == _NULL:
            # most fields of most frames, so without a call
            reader.at = at + 1
            reader.spend(1)
            items.append(None)
        else:
            items.append(read_value(reader))
    return items


# Python mixes a secret into the hashes of text and octets, and at most a few numbers of 64 bits
# share one hash. A uuid's 128 bits are hashed as a number without secret: many share one.
_DICT_KEYS = frozenset(
    {Symbol, str, bytes, bool, type(None), UByte, UShort, UInt, ULong}
    | {Byte, Short, Int, Long, Timestamp, Char, Float, float, Decimal32, Decimal64, Decimal128}
)


def _read_map_items(reader: Reader, count: int) -> ValueMap | Map:
    if count % 2:
        raise malformed("a map has a key without a value")
    items = _read_list_items(reader, count)
    keys, values = items[::2], items[1::2]
    if _DICT_KEYS.issuperset(map(type, keys)):
        result = dict(zip(keys, values, strict=True))
        if len(result) == len(keys):
            return result
    # Each value has one shortest encoding, so equal encodings are equal keys.
    if len({encode_value(key) for key in keys}) < len(keys):
        raise malformed("a map has the same key twice")
    return Map(tuple(zip(keys, values, strict=True)))


def _read_array_items(reader: Reader, count: int) -> Array:
    read, element, descriptors = read_array_head(reader, count)
    return Array([read(reader) for _ in range(count)], element, descriptors)


def read_array_head(reader: Reader, count: int) -> tuple[ReadValue, type, list[Value]]:
    """Read what comes before the items: their descriptors and the format code that they share.

    Return the function that reads an item, the class of the items, and the descriptors.
    """
    descriptors = []
    code = reader.data[reader.take(1)]
    while code == DESCRIBED:
        reader.descend()
        descriptors.append(read_value(reader))
        code = reader.data[reader.take(1)]
    reader.depth_left += len(descriptors)
    element = _ELEMENTS.get(code)
    if element is None:
        raise malformed(f"the items of an array have the unknown format code 0x{code:02x}")
    if count * _LEAST_WIDTHS[code >> 4] > reader.end - reader.at:
        raise malformed(
            f"an array has {count} items of code 0x{code:02x} in {reader.end - reader.at} octets"
        )
    reader.spend(count)
    return _READERS[code], element, descriptors


# The fewest octets that an item in an array can have, by the high nibble of its format code: the
# width, or a size (and a count, and for arrays a format code).
_LEAST_WIDTHS = {
    0x4: 0,
    0x5: 1,
    0x6: 2,
    0x7: 4,
    0x8: 8,
    0x9: 16,
    0xA: 1,
    0xB: 4,
    0xC: 2,
    0xD: 8,
    0xE: 3,
    0xF: 9,
}

_TABLE: dict[FormatCode, tuple[type, ReadValue]] = {
    FormatCode.NULL: (type(None), _constant(None)),
    FormatCode.TRUE: (bool, _constant(True)),
    FormatCode.FALSE: (bool, _constant(False)),
    FormatCode.UINT0: (UInt, _constant(UInt(0))),
    FormatCode.ULONG0: (ULong, _constant(ULong(0))),
    FormatCode.LIST0: (list, lambda _reader: []),
    FormatCode.UBYTE: (UByte, _fixed(">B", _whole(UByte))),
    FormatCode.BYTE: (Byte, _fixed(">b", _whole(Byte))),
    FormatCode.SMALLUINT: (UInt, _fixed(">B", _whole(UInt))),
    FormatCode.SMALLULONG: (ULong, _fixed(">B", _whole(ULong))),
    FormatCode.SMALLINT: (Int, _fixed(">b", _whole(Int))),
    FormatCode.SMALLLONG: (Long, _fixed(">b", _whole(Long))),
    FormatCode.BOOLEAN: (bool, _fixed(">B", _boolean)),
    FormatCode.USHORT: (UShort, _fixed(">H", _whole(UShort))),
    FormatCode.SHORT: (Short, _fixed(">h", _whole(Short))),
    FormatCode.UINT: (UInt, _fixed(">I", _whole(UInt))),
    FormatCode.INT: (Int, _fixed(">i", _whole(Int))),
    FormatCode.FLOAT: (Float, _fixed(">f", partial(float.__new__, Float))),
    FormatCode.CHAR: (Char, _fixed(">I", _char)),
    FormatCode.DECIMAL32: (Decimal32, _fixed(">4s", Decimal32)),
    FormatCode.ULONG: (ULong, _fixed(">Q", _whole(ULong))),
    FormatCode.LONG: (Long, _fixed(">q", _whole(Long))),
    FormatCode.DOUBLE: (float, _fixed(">d", _as_is)),
    FormatCode.TIMESTAMP: (Timestamp, _fixed(">q", _whole(Timestamp))),
    FormatCode.DECIMAL64: (Decimal64, _fixed(">8s", Decimal64)),
    FormatCode.DECIMAL128: (Decimal128, _fixed(">16s", Decimal128)),
    FormatCode.UUID: (uuid.UUID, _fixed(">16s", _uuid)),
    FormatCode.VBIN8: (bytes, _variable(1, bytes)),
    FormatCode.STR8: (str, _variable(1, _string)),
    FormatCode.SYM8: (Symbol, _variable(1, _symbol)),
    FormatCode.VBIN32: (bytes, _variable(4, bytes)),
    FormatCode.STR32: (str, _variable(4, _string)),
    FormatCode.SYM32: (Symbol, _variable(4, _symbol)),
    FormatCode.LIST8: (list, _compound(1, _read_list_items)),
    FormatCode.MAP8: (dict, _map(1)),
    FormatCode.LIST32: (list, _compound(4, _read_list_items)),
    FormatCode.MAP32: (dict, _map(4)),
    FormatCode.ARRAY8: (Array, _compound(1, _read_array_items)),
    FormatCode.ARRAY32: (Array, _compound(4, _read_array_items)),
}

_ELEMENTS: dict[int, type] = {code: kind for code, (kind, _) in _TABLE.items()}
_READERS: dict[int, ReadValue] = {
    DESCRIBED: _read_described,
    **{code: read for code, (_, read) in _TABLE.items()},
}
