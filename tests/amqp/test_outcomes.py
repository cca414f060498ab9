"""Errors and delivery states octet for octet."""

from __future__ import annotations

import pytest

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.outcomes import (
    Accepted,
    Error,
    Modified,
    Received,
    Rejected,
    Released,
    check_state,
)
from router.errors import AmqpError

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


@pytest.mark.parametrize(("value", "text"), [row for row in VECTORS if type(row[0]) is not Error])
def test_states_are_fit_to_be_passed_on(value: Composite, text: str) -> None:
    check_state(bytes.fromhex(text))


def test_states_of_others_are_passed_on() -> None:
    check_state(bytes.fromhex("00a303783a79 c00301 5201"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5201",
        # an accepted with a field, a received without, a rejected without an error's condition
        "005324 c00201 40",
        "005323 c00100",
        "005325 c00701 00531d c00100",
        "005325 c00701 00531d c20301 a300",
        # a list that ends inside of an item, and octets behind the state
        "005327 c00201 a3",
        "005327 c00201 41 41",
        # a performative
        "005318 45",
        # a transactional state without its transaction
        "005334 45",
        "005334 c00100",
        "005334 c00201 40",
    ],
)
@pytest.mark.spec("2.8.14-1", "4.5.6-1")
def test_what_is_no_state_is_not_passed_on(text: str) -> None:
    with pytest.raises(AmqpError):
        check_state(bytes.fromhex(text))
