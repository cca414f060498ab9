"""The frames of an authentication octet for octet, and their secrets out of logs."""

from __future__ import annotations

import pytest

from router.amqp.composite import Composite, decode_composite, encode_composite
from router.amqp.constants import SaslCode
from router.amqp.sasl_frames import (
    SaslChallenge,
    SaslInit,
    SaslMechanisms,
    SaslOutcome,
    SaslResponse,
)

VECTORS: list[tuple[Composite, str]] = [
    (SaslMechanisms(("A", "BC")), "005340 c00a 01 e007 02 a3 0141 024243"),
    (SaslInit("A"), "005341 c006 03 a30141 40 40"),
    (SaslInit("A", b"", "h"), "005341 c009 03 a30141 a000 a10168"),
    (SaslChallenge(b"c"), "005342 c004 01 a00163"),
    (SaslResponse(b""), "005343 c003 01 a000"),
    (SaslOutcome(SaslCode.AUTH), "005344 c004 02 5001 40"),
]


@pytest.mark.parametrize(("value", "text"), VECTORS)
def test_they_are_written_and_read(value: Composite, text: str) -> None:
    octets = encode_composite(value)
    assert octets.hex() == bytes.fromhex(text).hex()
    assert decode_composite(octets) == (value, len(octets))


@pytest.mark.parametrize(
    "value",
    [
        SaslInit("PLAIN", b"secret"),
        SaslChallenge(b"secret"),
        SaslResponse(b"secret"),
        SaslOutcome(SaslCode.OK, b"secret"),
    ],
)
def test_credentials_are_not_shown(value: Composite) -> None:
    assert "secret" not in repr(value)
