"""A coordinator's types octet for octet, and with the descriptors that clients use."""

from __future__ import annotations

import pytest

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.constants import TransactionCapability
from router.amqp.encode import encode_value
from router.amqp.outcomes import Accepted
from router.amqp.transactions import (
    Coordinator,
    Declare,
    Declared,
    Discharge,
    TransactionalState,
)
from router.amqp.types import Described, Symbol

VECTORS: list[tuple[Composite, str]] = [
    (Coordinator(), "005330 c002 01 40"),
    (
        Coordinator((TransactionCapability.LOCAL_TRANSACTIONS,)),
        "005330 c01d 01 e01a 01 a3 17" + b"amqp:local-transactions".hex(),
    ),
    (Declare(), "005331 c002 01 40"),
    (Discharge(b"t", True), "005332 c005 02 a00174 41"),
    (Declared(b"t"), "005333 c004 01 a00174"),
    (TransactionalState(b"t"), "005334 c005 02 a00174 40"),
    (TransactionalState(b"t", Accepted()), "005334 c00a 02 a00174 005324c00100"),
]


@pytest.mark.parametrize(("value", "text"), VECTORS)
def test_they_are_written_and_read(value: Composite, text: str) -> None:
    octets = encode_composite(value)
    assert octets.hex() == bytes.fromhex(text).hex()
    assert decode_composite(octets) == (value, len(octets))


def test_symbolic_descriptors_are_read() -> None:
    declare = encode_value(Described(Symbol("amqp:declare:list"), [None]))
    assert decode_composite(declare)[0] == Declare()
    discharge = encode_value(Described(Symbol("amqp:discharge:list"), [b"t", False]))
    assert decode_composite(discharge)[0] == Discharge(b"t", False)
