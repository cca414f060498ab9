"""Python values for AMQP's primitive types (part 1, section 1.6).

Where Python has a type that says it all, that type is used: None, bool, float (double), str,
bytes, uuid.UUID, list, dict. Where AMQP knows more types than Python does, a subclass carries the
difference, so that a value which was read is written again as the type that it was. A plain int
is written as a long.

The subclasses compare and hash as what they extend: `UInt(5) == 5 == ULong(5)`.
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
]


class _RangedInt(int):
    """An int within the range of its AMQP type; raises ValueError outside of it."""

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
    """An integer of 8 bits without sign."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**8 - 1


class UShort(_RangedInt):
    """An integer of 16 bits without sign."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**16 - 1


class UInt(_RangedInt):
    """An integer of 32 bits without sign."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**32 - 1


class ULong(_RangedInt):
    """An integer of 64 bits without sign."""

    __slots__ = ()
    LOWEST = 0
    HIGHEST = 2**64 - 1


class Byte(_RangedInt):
    """An integer of 8 bits with sign."""

    __slots__ = ()
    LOWEST = -(2**7)
    HIGHEST = 2**7 - 1


class Short(_RangedInt):
    """An integer of 16 bits with sign."""

    __slots__ = ()
    LOWEST = -(2**15)
    HIGHEST = 2**15 - 1


class Int(_RangedInt):
    """An integer of 32 bits with sign."""

    __slots__ = ()
    LOWEST = -(2**31)
    HIGHEST = 2**31 - 1


class Long(_RangedInt):
    """An integer of 64 bits with sign; a plain int is written the same way."""

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
    """A binary32 number: the double given is rounded to what 32 bits can say.

    Raises ValueError where it is too large for them.
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
    """One Unicode character; a surrogate is not one."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if len(value) != 1 or "\ud800" <= value <= "\udfff":
            raise ValueError(f"{value!r} is not one Unicode character")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Char({str(self)!r})"


class Symbol(str):
    """A name of ASCII characters from a constrained domain."""

    __slots__ = ()

    def __new__(cls, value: str) -> Self:
        if not value.isascii():
            raise ValueError(f"{value!r} is not a symbol: only ASCII characters are allowed")
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"Symbol({str(self)!r})"


@attrs.frozen
class Described:
    """A value with a descriptor that says what it means (section 1.1.2).

    The descriptor is a ULong or a Symbol; others can be read and written, but are reserved.
    """

    descriptor: Any
    value: Any


@attrs.frozen
class Map:
    """A map that a dict cannot stand for: pairs in the order of the wire.

    Maps are read as dicts, except where a key has no hash (a list), where two keys are different
    on the wire and equal in Python (uint 1 and ulong 1), or where a key's hash is one that a peer
    could make collide at will (uuid, described).
    """

    pairs: tuple[tuple[Any, Any], ...]

    def __len__(self) -> int:
        return len(self.pairs)


def _element_type(items: tuple[Any, ...]) -> type:
    if not items:
        raise ValueError("an array without items needs its element type")
    return Long if type(items[0]) is int else type(items[0])


@attrs.frozen(init=False)
class Array:
    """Items of one type, written with one constructor for all of them (section 1.6.24).

    `element` is the class of the items, one of those named in this module's docstring or defined
    here; without it the first item decides. `descriptors` holds what stands before every item of
    an array of described values, outermost first; the items themselves are the bare values.
    The items of an array of arrays are Arrays, each with an element type of its own.
    """

    items: tuple[Any, ...]
    element: type
    descriptors: tuple[Any, ...]

    def __init__(
        self,
        items: Iterable[Any],
        element: type | None = None,
        descriptors: Iterable[Any] = (),
    ) -> None:
        kept = tuple(items)
        self.__attrs_init__(
            kept, _element_type(kept) if element is None else element, tuple(descriptors)
        )

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def __getitem__(self, index: int) -> Any:
        return self.items[index]
