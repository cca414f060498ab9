"""Python types for AMQP's primitive types (part 1, section 1.6).

Python's own types are used where they suffice: None, bool, float (double), str, bytes, uuid.UUID,
list, dict. Where AMQP has more types than Python, there is a subclass for each, so that a decoded
value is encoded again as the same type. A plain int is encoded as a long.

The subclasses compare and hash like their base types: `UInt(5) == 5 == ULong(5)`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Self

import attrs

from router.amqp.decimals import Decimal32, Decimal64, Decimal128

__all__ = [
    "Array",
    "Byte",
    "Char",
    "Decimal32",
    "Decimal64",
    "Decimal128",
    "Described",
    "Float",
    "Int",
    "Long",
    "Map",
    "Short",
    "Symbol",
    "Timestamp",
    "UByte",
    "UInt",
    "ULong",
    "UShort",
    "Value",
    "ValueMap",
]


Value = object
"""Decoded value of any AMQP type; its users check the type with `isinstance`."""
ValueMap = dict[Any, Any]
"""Map that was decoded, or is to be encoded, with keys and values of any AMQP type."""


class _RangedInt(int):
    """Integer within the range of its AMQP type; any other value raises ValueError."""

    __slots__ = ()
    LOWEST: ClassVar[int]
    HIGHEST: ClassVar[int]

    def __new__(cls, value: int = 0) -> Self:
        self = super().__new__(cls, value)
        if not cls.LOWEST <= self <= cls.HIGHEST:
            raise ValueError(f"{int(self)} is not in the range of {cls.__name__.lower()}")
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int(self)})"

    __str__ = int.__repr__


class UByte(_RangedInt):
    """Unsigned integer of 8 bits."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**8 - 1


class UShort(_RangedInt):
    """Unsigned integer of 16 bits."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**16 - 1


class UInt(_RangedInt):
    """Unsigned integer of 32 bits."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**32 - 1


class ULong(_RangedInt):
    """Unsigned integer of 64 bits."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**64 - 1


class Byte(_RangedInt):
    """Signed integer of 8 bits."""

    __slots__ = ()
    LOWEST = -(2**7)
    HIGHEST = 2**7 - 1


class Short(_RangedInt):
    """Signed integer of 16 bits."""

    __slots__ = ()
    LOWEST = -(2**15)
    HIGHEST = 2**15 - 1


class Int(_RangedInt):
    """Signed integer of 32 bits."""

    __slots__ = ()
    LOWEST = -(2**31)
    HIGHEST = 2**31 - 1


class Long(_RangedInt):
    """Signed integer of 64 bits; a plain int is encoded like a Long."""

    __slots__ = ()
    LOWEST = -(2**63)
    HIGHEST = 2**63 - 1


class Timestamp(_RangedInt):
    """Milliseconds since the Unix epoch, UTC."""

    __slots__ = ()
    LOWEST = -(2**63)
    HIGHEST = 2**63 - 1


_BINARY32 = struct.Struct(">f")


class Float(float):
    """Float of 32 bits: a given double is rounded to the nearest such value.

    Raises ValueError if the double is too large.
    """

    __slots__ = ()

    def __new__(cls, value: float = 0.0) -> Self:
        try:
            rounded = _BINARY32.unpack(_BINARY32.pack(value))[0]
        except OverflowError:
            raise ValueError(f"{value} is not in the range of float") from None
        return super().__new__(cls, rounded)

    def __repr__(self) -> str:
        return f"Float({float(self)})"

    __str__ = float.__repr__


class Char(str):
    """Unicode character, which is never a surrogate."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if len(value) != 1 or "\ud800" <= value <= "\udfff":
            raise ValueError(f"{value!r} is not one Unicode character")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


class Symbol(str):
    """Name from a constrained domain, in ASCII characters."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if not value.isascii():
            raise ValueError(f"{value!r} is not a symbol: only ASCII characters are allowed")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Symbol({str(self)!r})"


@attrs.frozen
class Described:
    """Value with a descriptor that says what it means (section 1.1.2).

    The descriptor is a ULong or a Symbol. Descriptors of other types are reserved by the
    specification, but can be decoded and encoded.
    """

    descriptor: Value
    value: Value


@attrs.frozen
class Map:
    """Map that a dict cannot represent: pairs in the order of the wire.

    Maps are decoded as dicts, with three exceptions: a key has no hash (a list), two keys differ on
    the wire but are equal in Python (uint 1 and ulong 1), or a peer could choose keys whose hashes
    collide (uuid, described).
    """

    pairs: tuple[tuple[Value, Value], ...]

    def __len__(self) -> int:
        return len(self.pairs)


def _element_type(items: tuple[Value, ...]) -> type:
    if not items:
        raise ValueError("an array without items needs its element type")
    return Long if type(items[0]) is int else type(items[0])


@attrs.frozen(init=False)
class Array:
    """Array: items of one type, written with one constructor for all of them (section 1.6.24).

    `element` is the Python class of the items; by default it is the class of the first item. In an
    array of described values, `descriptors` has the descriptors that all items share, outermost
    first, and the items have none. The items of an array of arrays are Arrays, each with its own
    element type.
    """

    items: tuple[Value, ...]
    element: type
    descriptors: tuple[Value, ...]

    def __init__(
        self,
        items: Iterable[object],
        element: type | None = None,
        descriptors: Iterable[object] = (),
    ) -> None:
        kept = tuple(items)
        self.__attrs_init__(
            kept, _element_type(kept) if element is None else element, tuple(descriptors)
        )

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Value]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Value:
        return self.items[index]


DecodedMap = dict[Any, Any]
"""Decoded AMQP map: its keys and values are of any of the types here, and checked where used."""

Octets = bytes | bytearray | memoryview
"""Octets in any form that has the buffer protocol."""
