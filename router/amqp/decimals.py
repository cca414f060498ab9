"""Decimal numbers of 32, 64 and 128 bits (part 1, sections 1.6.13 to 1.6.15).

A router carries such numbers and does not calculate with them, so their value is kept as the
received octets, and a `decimal.Decimal` is made on request. The encoding is IEEE 754-2008's binary
integer decimal: sign, then exponent, then the digits as one binary integer. If the two bits after
the sign are both set, the exponent starts after them and the integer has an implied 0b100 in front.
If the two bits after those are set as well, it is an infinity or a NaN.
"""

from __future__ import annotations

import decimal
from typing import ClassVar, Self

import attrs

_SPECIAL = 0b11110
_INFINITY = 0b11110
_NAN = 0b11111


@attrs.frozen
class _BinaryIntegerDecimal:
    octets: bytes = attrs.field(converter=bytes)

    WIDTH: ClassVar[int]
    """Octets."""
    DIGITS: ClassVar[int]
    BIAS: ClassVar[int]
    EXPONENT_BITS: ClassVar[int]

    @octets.validator
    def _check_width(self, _attribute: object, octets: bytes) -> None:
        if len(octets) != self.WIDTH:
            raise ValueError(f"{type(self).__name__} has {self.WIDTH} octets, not {len(octets)}")

    def to_decimal(self) -> decimal.Decimal:
        """Return the number; a NaN loses its payload, and a number not in canonical form is 0."""
        bits = int.from_bytes(self.octets, "big")
        width = 8 * self.WIDTH
        sign = bits >> (width - 1)
        top = (bits >> (width - 6)) & 0b11111
        if top >= _SPECIAL:
            if top == _INFINITY:
                return decimal.Decimal("-Infinity" if sign else "Infinity")
            signalling = (bits >> (width - 7)) & 1
            return decimal.Decimal(("-" if sign else "") + ("sNaN" if signalling else "NaN"))
        exponent_mask = (1 << self.EXPONENT_BITS) - 1
        if top >= 0b11000:
            digit_bits = width - 3 - self.EXPONENT_BITS
            digits = (0b100 << digit_bits) | (bits & ((1 << digit_bits) - 1))
        else:
            digit_bits = width - 1 - self.EXPONENT_BITS
            digits = bits & ((1 << digit_bits) - 1)
        exponent = ((bits >> digit_bits) & exponent_mask) - self.BIAS
        if digits >= 10**self.DIGITS:
            digits = 0
        return decimal.Decimal((sign, tuple(map(int, str(digits))), exponent))

    @classmethod
    def from_decimal(cls, value: decimal.Decimal) -> Self:
        """Return the encoding of `value`; raise ValueError if it cannot be encoded exactly."""
        width = 8 * cls.WIDTH
        sign = int(value.is_signed()) << (width - 1)
        if value.is_infinite():
            return cls._from_bits(sign | _INFINITY << (width - 6))
        if value.is_nan():
            return cls._from_bits(sign | _NAN << (width - 6) | int(value.is_snan()) << (width - 7))
        # clamp lets a large exponent with few digits be written as more digits, and the traps
        # turn everything that would lose a digit into an error.
        context = decimal.Context(
            prec=cls.DIGITS,
            Emax=2**cls.EXPONENT_BITS * 3 // 8,
            Emin=1 - 2**cls.EXPONENT_BITS * 3 // 8,
            clamp=1,
            traps=[decimal.Inexact, decimal.Overflow, decimal.InvalidOperation],
        )
        try:
            fitted = context.create_decimal(value)
        except decimal.DecimalException:
            raise ValueError(f"{value} does not fit into {cls.__name__}") from None
        _, digit_tuple, exponent = fitted.as_tuple()
        assert isinstance(exponent, int)
        digits = int("".join(map(str, digit_tuple)))
        biased = exponent + cls.BIAS
        digit_bits = width - 1 - cls.EXPONENT_BITS
        if digits < 1 << digit_bits:
            return cls._from_bits(sign | biased << digit_bits | digits)
        digit_bits -= 2
        digits &= (1 << digit_bits) - 1
        return cls._from_bits(sign | 0b11 << (width - 3) | biased << digit_bits | digits)

    @classmethod
    def _from_bits(cls, bits: int) -> Self:
        return cls(bits.to_bytes(cls.WIDTH, "big"))


class Decimal32(_BinaryIntegerDecimal):
    """Decimal number of seven digits in four octets."""

    __slots__ = ()
    WIDTH = 4
    DIGITS = 7
    BIAS = 101
    EXPONENT_BITS = 8


class Decimal64(_BinaryIntegerDecimal):
    """Decimal number of sixteen digits in eight octets."""

    __slots__ = ()
    WIDTH = 8
    DIGITS = 16
    BIAS = 398
    EXPONENT_BITS = 10


class Decimal128(_BinaryIntegerDecimal):
    """Decimal number of thirty-four digits in sixteen octets."""

    __slots__ = ()
    WIDTH = 16
    DIGITS = 34
    BIAS = 6176
    EXPONENT_BITS = 14
