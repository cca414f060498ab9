"""Requirements of the specification on encodings that no other test here shows."""

from __future__ import annotations

import pytest

from router.amqp.decode import decode_value
from router.amqp.types import Described, ULong
from router.amqp.writing import Output, write_flow


@pytest.mark.spec("1.2-2")
def test_a_descriptor_may_be_described_itself() -> None:
    value, _ = decode_value(bytes.fromhex("00 00 5301 a10161 45"))
    assert value == Described(Described(ULong(1), "a"), [])


@pytest.mark.spec("2.7.4-4", "2.7.4-8", "2.7.4-11", "2.7.4-13", "2.7.4-16")
def test_a_flow_without_a_link_leaves_unset_what_is_a_link_s() -> None:
    output = Output()
    write_flow(output, 0, 1, 2, 3, 4, False, 0, 0, 0, 0, False, True)
    # handle, delivery-count, link-credit, available, drain; echo; properties
    assert bytes(output.waiting()).endswith(bytes.fromhex("40 40 40 40 40 41 40"))
