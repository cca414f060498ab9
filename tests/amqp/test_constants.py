"""The constants against each other: a wrong digit here would be wrong on the wire."""

from __future__ import annotations

import pytest

from router.amqp.composite import BY_DESCRIPTOR
from router.amqp.constants import Condition, Descriptor, FormatCode
from router.amqp.sections import SECTION_NAMES

WIDTHS = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}


def test_every_format_code_of_the_specification_is_there() -> None:
    by_category = [sum(code >> 4 == category for code in FormatCode) for category in range(16)]
    assert by_category == [0, 0, 0, 0, 6, 7, 2, 5, 5, 2, 3, 3, 2, 2, 1, 1]


@pytest.mark.parametrize("code", [code for code in FormatCode if code >= 0xA0])
def test_short_and_long_encodings_come_in_pairs(code: FormatCode) -> None:
    other = FormatCode(code ^ 0x10)
    assert {code.name[-1], other.name[-1]} == {"8", "2"}
    assert code.name.rstrip("0123456789") == other.name.rstrip("0123456789")


def test_every_descriptor_is_a_composite_or_a_section() -> None:
    known = {int(code) for code in BY_DESCRIPTOR if isinstance(code, int)}
    assert known | set(SECTION_NAMES.values()) == set(Descriptor)


def test_conditions_are_named_as_on_the_wire() -> None:
    for condition in Condition:
        assert condition.value.split(":")[-1].replace("-", "_").upper() in condition.name
    assert len(Condition) == 28
