"""Errors and delivery states octet for octet."""

from __future__ import annotations

import pytest

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.outcomes import Accepted, Error, Modified, Received, Rejected, Released

VECTORS: list[tuple[Composite, str]] = [
    (Error("a:b"), "00531d c008 03 a303613a62 40 40"),
    (Error("a:b", "c", {"d": 1}), "00531d c011 03 a303613a62 a10163 c10602a301645501"),
    (Received(0, 0), "005323 c003 02 43 44"),
    (Received(3, 300), "005323 c00c 02 5203 80000000000000012c"),
    (Accepted(), "005324 c001 00"),
    (Rejected(), "005325 c002 01 40"),
    (Rejected(Error("a:b")), "005325 c00e 01 00531d c008 03 a303613a62 40 40"),
    (Released(), "005326 c001 00"),
    (Modified(), "005327 c004 03 40 40 40"),
    (Modified(True, False, {}), "005327 c006 03 41 42 c10100"),
]


@pytest.mark.parametrize(("value", "text"), VECTORS)
def test_states_are_written_and_read(value: Composite, text: str) -> None:
    octets = encode_composite(value)
    assert octets.hex() == bytes.fromhex(text).hex()
    assert decode_composite(octets) == (value, len(octets))


def test_the_outcomes_are_all_but_received() -> None:
    states = (Received, Accepted, Rejected, Released, Modified)
    assert all("delivery-state" in cls.PROVIDES for cls in states)
    assert [cls for cls in states if "outcome" not in cls.PROVIDES] == [Received]
