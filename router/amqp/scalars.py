"""Encode values that hold no other values, alone and as an array's items (part 1, section 1.6).

`WRITERS` appends constructor and data of one value in the shortest encoding of its type.
`BLOCK_WRITERS` gives one constructor that suits all of an array's items, and their data. Arrays
never use encodings of no width (uint0, true), even where they would fit: the count of such an array
says nothing about its size, and readers mistrust it.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from router.amqp.constants import FormatCode
from router.amqp.types import (
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Float,
    Int,
    Long,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

Writer = Callable[[bytearray, Any], None]
Block = tuple[FormatCode, bytes]
BlockWriter = Callable[[Sequence[Any]], Block]
OctetsOf = Callable[[Any], bytes]

_U8 = struct.Struct(">BB")
_U16 = struct.Struct(">BH")
_U32 = struct.Struct(">BI")
_U64 = struct.Struct(">BQ")
_S8 = struct.Struct(">Bb")
_S16 = struct.Struct(">Bh")
_S32 = struct.Struct(">Bi")
_S64 = struct.Struct(">Bq")
_F32 = struct.Struct(">Bf")
_F64 = struct.Struct(">Bd")
_SIZE_32 = struct.Struct(">I")


def _write_null(buffer: bytearray, _value: None) -> None:
    buffer.append(FormatCode.NULL)


def _write_boolean(buffer: bytearray, value: bool) -> None:
    buffer.append(FormatCode.TRUE if value else FormatCode.FALSE)


def _fixed(code: FormatCode, layout: struct.Struct) -> Writer:
    pack = layout.pack

    def write(buffer: bytearray, value: object) -> None:
        buffer += pack(code, value)

    return write


def _unsigned(
    zero: FormatCode, small: FormatCode, full: FormatCode, layout: struct.Struct
) -> Writer:
    pack = layout.pack

    def write(buffer: bytearray, value: int) -> None:
        if value == 0:
            buffer.append(zero)
        elif value < 256:
            buffer += _U8.pack(small, value)
        else:
            buffer += pack(full, value)

    return write


def _signed(small: FormatCode, full: FormatCode, layout: struct.Struct) -> Writer:
    pack = layout.pack

    def write(buffer: bytearray, value: int) -> None:
        if -128 <= value <= 127:
            buffer += _S8.pack(small, value)
        else:
            buffer += pack(full, value)

    return write


_write_long = _signed(FormatCode.SMALLLONG, FormatCode.LONG, _S64)


def _write_int_as_long(buffer: bytearray, value: int) -> None:
    # A Long is known to be in range; a plain int is not.
    _write_long(buffer, Long(value))


def _write_char(buffer: bytearray, value: str) -> None:
    buffer += _U32.pack(FormatCode.CHAR, ord(value))


def _write_decimal(code: FormatCode) -> Writer:
    def write(buffer: bytearray, value: Decimal32 | Decimal64 | Decimal128) -> None:
        buffer.append(code)
        buffer += value.octets

    return write


def _write_uuid(buffer: bytearray, value: uuid.UUID) -> None:
    buffer.append(FormatCode.UUID)
    buffer += value.bytes


def _write_variable(buffer: bytearray, code8: int, code32: int, octets: bytes | bytearray) -> None:
    size = len(octets)
    if size < 256:
        buffer += _U8.pack(code8, size)
    else:
        buffer += _U32.pack(code32, size)
    buffer += octets


def _write_binary(buffer: bytearray, value: bytes | bytearray) -> None:
    _write_variable(buffer, FormatCode.VBIN8, FormatCode.VBIN32, value)


def _write_view(buffer: bytearray, value: memoryview) -> None:
    # Its length counts items, which need not be octets.
    _write_binary(buffer, value.tobytes())


def _write_string(buffer: bytearray, value: str) -> None:
    # A lone surrogate raises UnicodeEncodeError, which is a ValueError.
    _write_variable(buffer, FormatCode.STR8, FormatCode.STR32, value.encode("utf-8"))


def _write_symbol(buffer: bytearray, value: Symbol) -> None:
    _write_variable(buffer, FormatCode.SYM8, FormatCode.SYM32, value.encode("ascii"))


WRITERS: dict[type, Writer] = {
    type(None): _write_null,
    bool: _write_boolean,
    UByte: _fixed(FormatCode.UBYTE, _U8),
    UShort: _fixed(FormatCode.USHORT, _U16),
    UInt: _unsigned(FormatCode.UINT0, FormatCode.SMALLUINT, FormatCode.UINT, _U32),
    ULong: _unsigned(FormatCode.ULONG0, FormatCode.SMALLULONG, FormatCode.ULONG, _U64),
    Byte: _fixed(FormatCode.BYTE, _S8),
    Short: _fixed(FormatCode.SHORT, _S16),
    Int: _signed(FormatCode.SMALLINT, FormatCode.INT, _S32),
    Long: _write_long,
    int: _write_int_as_long,
    Float: _fixed(FormatCode.FLOAT, _F32),
    float: _fixed(FormatCode.DOUBLE, _F64),
    Decimal32: _write_decimal(FormatCode.DECIMAL32),
    Decimal64: _write_decimal(FormatCode.DECIMAL64),
    Decimal128: _write_decimal(FormatCode.DECIMAL128),
    Char: _write_char,
    Timestamp: _fixed(FormatCode.TIMESTAMP, _S64),
    uuid.UUID: _write_uuid,
    bytes: _write_binary,
    bytearray: _write_binary,
    memoryview: _write_view,
    str: _write_string,
    Symbol: _write_symbol,
}


def _packed(code: FormatCode, letter: str) -> BlockWriter:
    def write(items: Sequence[object]) -> Block:
        return code, struct.pack(f">{len(items)}{letter}", *items)

    return write


def _integers(
    small: FormatCode, small_letter: str, low: int, high: int, full: FormatCode, full_letter: str
) -> BlockWriter:
    def write(items: Sequence[int]) -> Block:
        if all(low <= item <= high for item in items):
            return small, struct.pack(f">{len(items)}{small_letter}", *items)
        return full, struct.pack(f">{len(items)}{full_letter}", *items)

    return write


def _joined(code: FormatCode, octets_of: OctetsOf) -> BlockWriter:
    def write(items: Sequence[object]) -> Block:
        return code, b"".join(map(octets_of, items))

    return write


def _variable(code8: FormatCode, code32: FormatCode, octets_of: OctetsOf) -> BlockWriter:
    def write(items: Sequence[object]) -> Block:
        parts = [octets_of(item) for item in items]
        if all(len(part) < 256 for part in parts):
            return code8, b"".join(bytes((len(part),)) + part for part in parts)
        return code32, b"".join(_SIZE_32.pack(len(part)) + part for part in parts)

    return write


BLOCK_WRITERS: dict[type, BlockWriter] = {
    type(None): lambda _items: (FormatCode.NULL, b""),
    bool: lambda items: (FormatCode.BOOLEAN, bytes(items)),
    UByte: _packed(FormatCode.UBYTE, "B"),
    UShort: _packed(FormatCode.USHORT, "H"),
    UInt: _integers(FormatCode.SMALLUINT, "B", 0, 255, FormatCode.UINT, "I"),
    ULong: _integers(FormatCode.SMALLULONG, "B", 0, 255, FormatCode.ULONG, "Q"),
    Byte: _packed(FormatCode.BYTE, "b"),
    Short: _packed(FormatCode.SHORT, "h"),
    Int: _integers(FormatCode.SMALLINT, "b", -128, 127, FormatCode.INT, "i"),
    Long: _integers(FormatCode.SMALLLONG, "b", -128, 127, FormatCode.LONG, "q"),
    Float: _packed(FormatCode.FLOAT, "f"),
    float: _packed(FormatCode.DOUBLE, "d"),
    Decimal32: _joined(FormatCode.DECIMAL32, lambda item: item.octets),
    Decimal64: _joined(FormatCode.DECIMAL64, lambda item: item.octets),
    Decimal128: _joined(FormatCode.DECIMAL128, lambda item: item.octets),
    Char: _joined(FormatCode.CHAR, lambda item: item.encode("utf-32-be")),
    Timestamp: _packed(FormatCode.TIMESTAMP, "q"),
    uuid.UUID: _joined(FormatCode.UUID, lambda item: item.bytes),
    bytes: _variable(FormatCode.VBIN8, FormatCode.VBIN32, bytes),
    str: _variable(FormatCode.STR8, FormatCode.STR32, lambda item: item.encode("utf-8")),
    Symbol: _variable(FormatCode.SYM8, FormatCode.SYM32, lambda item: item.encode("ascii")),
}
