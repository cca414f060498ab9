"""Decimal numbers against the encodings that IEEE 754-2008 gives them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from router.amqp.decimals import Decimal32, Decimal64, Decimal128

VECTORS: list[tuple[Any, str, str]] = [
    (Decimal32, "32800000", "0"),
    (Decimal32, "b2800000", "-0"),
    (Decimal32, "32800001", "1"),
    (Decimal32, "b2800001", "-1"),
    (Decimal32, "32000001", "0.1"),
    (Decimal32, "00000001", "1E-101"),
    (Decimal32, "2f8f4240", "1.000000"),
    (Decimal32, "6cb8967f", "9999999"),
    (Decimal32, "77f8967f", "9.999999E+96"),
    (Decimal32, "78000000", "Infinity"),
    (Decimal32, "f8000000", "-Infinity"),
    (Decimal32, "7c000000", "NaN"),
    (Decimal32, "fe000000", "-sNaN"),
    (Decimal64, "31c0000000000001", "1"),
    (Decimal64, "6c7386f26fc0ffff", "9999999999999999"),
    (Decimal64, "77fb86f26fc0ffff", "9.999999999999999E+384"),
    (Decimal128, "30400000000000000000000000000001", "1"),
    (Decimal128, "5fffed09bead87c0378d8e63ffffffff", "9.999999999999999999999999999999999E+6144"),
]


@pytest.mark.parametrize(("kind", "octets", "number"), VECTORS)
def test_numbers_are_read_and_written(kind: Any, octets: str, number: str) -> None:
    value = kind(bytes.fromhex(octets))
    assert str(value.to_decimal()) == number
    assert kind.from_decimal(Decimal(number)) == value


def test_a_large_exponent_is_written_with_more_digits() -> None:
    assert Decimal32.from_decimal(Decimal("1E+96")).to_decimal() == Decimal("1.000000E+96")


def test_more_digits_than_the_format_has_are_read_as_zero() -> None:
    assert Decimal32(bytes.fromhex("6cbfffff")).to_decimal() == 0


@pytest.mark.parametrize("number", ["12345678", "1E+97", "1E-102", "9.9999999"])
def test_what_does_not_fit_exactly_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="does not fit into Decimal32"):
        Decimal32.from_decimal(Decimal(number))


def test_the_width_is_checked() -> None:
    with pytest.raises(ValueError, match="Decimal64 has 8 octets, not 4"):
        Decimal64(bytes(4))


@pytest.mark.parametrize("kind", [Decimal32, Decimal64, Decimal128])
def test_any_octets_are_a_number(kind: Any) -> None:
    @given(st.binary(min_size=kind.WIDTH, max_size=kind.WIDTH))
    def check(octets: bytes) -> None:
        number = kind(octets).to_decimal()
        again = kind.from_decimal(number).to_decimal()
        assert str(again) == str(number)

    check()
