"""Messages as text and as JSON, whatever AMQP can say in them."""

from __future__ import annotations

import decimal
import json
import uuid
from typing import Any

import pytest
from hypothesis import given

from router.amqp.message import AmqpSequence, AmqpValue, BodySection, Data, Message
from router.amqp.performatives import Accepted, Error, Header, Properties
from router.amqp.types import (
    Array,
    Char,
    Decimal32,
    Described,
    Float,
    Map,
    Symbol,
    Timestamp,
    UInt,
    ULong,
)
from router.cli.render import as_json, body_octets, message_as_json

from support.wire import messages

ID = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("body", "octets"),
    [
        ((), b""),
        ((Data(b"\xff\x00"),), b"\xff\x00"),
        ((Data(b"a"), Data(b"b")), b"ab"),
        ((AmqpValue("é"),), "é".encode()),
        ((AmqpValue(b"\xff"),), b"\xff"),
        ((AmqpValue(None),), b"null"),
        ((AmqpValue({"a": UInt(1)}),), b'{"a": 1}'),
        ((AmqpSequence([1, "é"]), AmqpSequence([])), '[1, "é"][]'.encode()),
    ],
)
def test_a_body_as_text(body: tuple[BodySection, ...], octets: bytes) -> None:
    assert body_octets(Message(body=body)) == octets


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (ULong(2**64 - 1), 2**64 - 1),
        (Timestamp(5), 5),
        (1.5, 1.5),
        (Float(0.5), 0.5),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (Decimal32.from_decimal(decimal.Decimal("1.5")), "1.5"),
        (Char("é"), "é"),
        (Symbol("s"), "s"),
        (b"\x01", {"base64": "AQ=="}),
        (ID, str(ID)),
        ([1, [b""]], [1, [{"base64": ""}]]),
        (Array([UInt(1), UInt(2)]), [1, 2]),
        ({"a": {Symbol("b"): 1}}, {"a": {"b": 1}}),
        ({1: "a", "b": 2}, [[1, "a"], ["b", 2]]),
        (Map((([1], 2),)), [[[1], 2]]),
        (Described(Symbol("d"), [1]), {"descriptor": "d", "value": [1]}),
        (Accepted(), {}),
        (Error("c", None, {Symbol("k"): 1}), {"condition": "c", "info": {"k": 1}}),
    ],
)
def test_a_value_as_json(value: Any, shown: Any) -> None:
    assert as_json(value) == shown
    assert type(as_json(value)) is type(shown)


def test_a_message_as_json() -> None:
    message = Message(
        header=Header(durable=True),
        message_annotations={Symbol("x-opt-a"): 1},
        properties=Properties(message_id=ID, to="q"),
        application_properties={"k": True},
        body=(Data(b"a"), Data(b"b")),
        footer={},
    )
    assert message_as_json(message) == {
        "header": {"durable": True, "priority": 4, "first_acquirer": False, "delivery_count": 0},
        "message_annotations": {"x-opt-a": 1},
        "properties": {"message_id": str(ID), "to": "q"},
        "application_properties": {"k": True},
        "data": {"base64": "YWI="},
        "footer": {},
    }


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ((), {}),
        ((AmqpValue(None),), {"value": None}),
        ((AmqpSequence([1]), AmqpSequence([2])), {"sequence": [1, 2]}),
    ],
)
def test_other_bodies_as_json(body: tuple[BodySection, ...], shown: dict[str, Any]) -> None:
    assert message_as_json(Message(body=body)) == shown


@given(messages())
def test_any_message_is_json(message: Message) -> None:
    json.dumps(message_as_json(message), ensure_ascii=False, allow_nan=False).encode()
    body_octets(message)
