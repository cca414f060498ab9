"""The head of a message: its id, its content type, and delivery states as text."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from router.amqp.composite import encode_composite
from router.amqp.decode import decode_value
from router.amqp.message import AmqpValue, Header, Message, Properties, encode_message
from router.amqp.message_head import CONTENT_BYTES, bare_content, message_id_of, outcome_text
from router.amqp.performatives import Accepted, Error, Modified, Rejected
from router.amqp.types import Symbol, ULong

ID = uuid.UUID(int=7)


def message(**properties: Any) -> bytes:
    """Encode a message with a header and these properties."""
    return encode_message(
        Message(header=Header(), properties=Properties(**properties), body=(AmqpValue("x" * 900),))
    )


@pytest.mark.parametrize(
    ("message_id", "told"),
    [("m1", "m1"), (ULong(7), "7"), (ID, str(ID)), (b"\x01\xff", "01ff"), (None, None)],
)
def test_the_message_id_is_told_as_text(message_id: Any, told: str | None) -> None:
    octets = message(message_id=message_id, to="q")
    assert message_id_of(octets) == told
    # the rest need not be there
    assert message_id_of(octets[:-800]) == told


@pytest.mark.parametrize(
    "octets",
    [b"", b"nonsense", b"\0", b"\0Ss", encode_message(Message(body=(AmqpValue(1),)))],
)
def test_what_has_none_has_none(octets: bytes) -> None:
    assert message_id_of(octets) is None


def test_the_content_begins_with_the_properties() -> None:
    octets = message(message_id="m1")
    annotated = encode_message(Message(message_annotations={Symbol("x-opt-a"): 1}, body=()))
    bare = bare_content(octets[: -(900 - 700)])
    assert bare == b"" or octets.count(bare) == 1
    short = encode_message(Message(properties=Properties(to="q"), body=(AmqpValue(1),)))
    assert bare_content(short) == short[:CONTENT_BYTES]
    assert bare_content(annotated) == b""
    assert bare_content(b"nonsense") == b""


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (Accepted(), "accepted"),
        (Modified(delivery_failed=True), "modified [delivery-failed=true]"),
        (
            Rejected(Error(Symbol("x:y"), "why")),
            'rejected [error=@error(29) [condition=:x:y, description="why"]]',
        ),
    ],
)
def test_states_are_told_in_words(state: Any, told: str) -> None:
    value, _ = decode_value(encode_composite(state))
    assert outcome_text(value) == told
    assert outcome_text(3) == "3"
