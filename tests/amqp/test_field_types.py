"""Restricted types and archetypes hold what the specification says of them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from router.amqp import field_types as t
from router.amqp.composite import FieldType
from router.amqp.constants import SaslCode, SenderSettleMode, TerminusExpiryPolicy
from router.amqp.encode import encode_value
from router.amqp.performatives import Accepted, DeleteOnClose, Received, Released
from router.amqp.types import Array, Described, Map, Symbol, Timestamp, UByte, UInt, ULong
from router.errors import AmqpError


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (t.SENDER_SETTLE_MODE, UByte(1), SenderSettleMode.SETTLED),
        (t.SASL_CODE, UByte(4), SaslCode.SYS_TEMP),
        (t.TERMINUS_EXPIRY_POLICY, Symbol("never"), TerminusExpiryPolicy.NEVER),
        (t.DELIVERY_TAG, bytes(32), bytes(32)),
        (t.MESSAGE_ID, uuid.UUID(int=1), uuid.UUID(int=1)),
        (t.MESSAGE_ID, ULong(1), ULong(1)),
        (t.FIELDS, {Symbol("a"): None}, {"a": None}),
        (t.FIELDS, {"a": None}, {Symbol("a"): None}),
        (t.ANNOTATIONS, {ULong(1): 2, "b": 3}, {1: 2, "b": 3}),
        (
            t.ANNOTATIONS,
            {Symbol("rejected"): Described(ULong(0x1D), None)},
            {"rejected": Described(ULong(0x1D), None)},
        ),
        (
            t.NODE_PROPERTIES,
            {Symbol("lifetime-policy"): Described(ULong(0x2B), []), Symbol("x"): 1},
            {"lifetime-policy": DeleteOnClose(), "x": 1},
        ),
        (
            t.UNSETTLED_MAP,
            {b"a": None, b"b": Described(ULong(0x24), []), b"c": Described(ULong(0x99), [])},
            {b"a": None, b"b": Accepted(), b"c": Described(ULong(0x99), [])},
        ),
        (t.OUTCOME, Described(ULong(0x26), []), Released()),
        (t.OUTCOME, Described(Symbol("x:y"), []), Described(Symbol("x:y"), [])),
        (t.DELIVERY_STATE, Described(ULong(0x23), [UInt(1), ULong(2)]), Received(1, 2)),
        (t.DELIVERY_STATE, Described(UInt(0x23), 1), Described(UInt(0x23), 1)),
    ],
)
@pytest.mark.spec("2.8.13-1", "3.5.8-1")
def test_values_are_read(kind: FieldType, value: Any, found: Any) -> None:
    read = kind.read(value, "here")
    assert read == found
    assert type(read) is type(found)


@pytest.mark.parametrize(
    ("kind", "value", "condition"),
    [
        (t.UINT, ULong(1), "amqp:decode-error"),
        (t.STRING, Symbol("a"), "amqp:decode-error"),
        (t.BOOLEAN, UByte(1), "amqp:decode-error"),
        (t.SENDER_SETTLE_MODE, UByte(3), "amqp:invalid-field"),
        (t.SENDER_SETTLE_MODE, UInt(1), "amqp:decode-error"),
        (t.TERMINUS_EXPIRY_POLICY, Symbol("sometimes"), "amqp:invalid-field"),
        (t.DELIVERY_TAG, bytes(33), "amqp:invalid-field"),
        (t.TRANSACTION_ID, bytes(256), "amqp:invalid-field"),
        (t.TRANSACTION_ID, "text", "amqp:decode-error"),
        (t.MESSAGE_ID, UInt(1), "amqp:decode-error"),
        (t.FIELDS, [], "amqp:decode-error"),
        (t.FIELDS, Map(()), "amqp:decode-error"),
        (t.FIELDS, Map(((Symbol("a"), 1), ("a", 2))), "amqp:decode-error"),
        (t.FIELDS, {None: 1}, "amqp:decode-error"),
        (t.FIELDS, {ULong(1): 1}, "amqp:decode-error"),
        (t.FIELDS, {"é": 1}, "amqp:decode-error"),
        (t.ANNOTATIONS, {UInt(1): 1}, "amqp:decode-error"),
        (t.UNSETTLED_MAP, {"a": None}, "amqp:decode-error"),
        (t.UNSETTLED_MAP, {None: None}, "amqp:decode-error"),
        (t.UNSETTLED_MAP, {b"a": Described(ULong(0x24), 1)}, "amqp:decode-error"),
        (t.UNSETTLED_MAP, {b"a": Described(ULong(0x10), ["c"])}, "amqp:decode-error"),
        (t.APPLICATION_PROPERTIES, {Symbol("a"): 1}, "amqp:decode-error"),
        (t.APPLICATION_PROPERTIES, {"a": []}, "amqp:invalid-field"),
        (t.APPLICATION_PROPERTIES, {"a": Array([1])}, "amqp:invalid-field"),
        (t.OUTCOME, Described(ULong(0x23), [UInt(1), ULong(2)]), "amqp:decode-error"),
        (t.OUTCOME, Described(ULong(0x10), ["c"]), "amqp:decode-error"),
        (t.OUTCOME, Symbol("accepted"), "amqp:decode-error"),
        (t.SOURCE, Described(Symbol("x:y"), []), "amqp:not-implemented"),
    ],
)
@pytest.mark.spec("1.3.5-1", "2.8.13-1", "3.5.3-8", "4.5.4-1")
def test_values_outside_of_the_type_are_refused(
    kind: FieldType, value: Any, condition: str
) -> None:
    with pytest.raises(AmqpError, match=r"here|accepted") as caught:
        kind.read(value, "here")
    assert caught.value.condition == condition


@pytest.mark.parametrize(
    ("kind", "value", "alike"),
    [
        (t.UINT, 5, UInt(5)),
        (t.SYMBOL, "a", Symbol("a")),
        (t.STRING, Symbol("a"), "a"),
        (t.TIMESTAMP, 5, Timestamp(5)),
        (t.SENDER_SETTLE_MODE, 1, UByte(1)),
        (t.SENDER_SETTLE_MODE, SenderSettleMode.SETTLED, UByte(1)),
        (t.TERMINUS_EXPIRY_POLICY, "never", Symbol("never")),
        (t.FIELDS, {"a": "b"}, {Symbol("a"): "b"}),
        (t.ANNOTATIONS, {"a": 1, 5: 2}, {Symbol("a"): 1, ULong(5): 2}),
        (t.APPLICATION_PROPERTIES, {Symbol("a"): 1}, {"a": 1}),
    ],
)
def test_plain_values_are_written_as_the_field_needs(
    kind: FieldType, value: Any, alike: Any
) -> None:
    buffer = bytearray()
    kind.write(buffer, value)
    assert buffer == encode_value(alike)


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (t.UINT, -1, ValueError),
        (t.UINT, 1.5, TypeError),
        (t.UINT, True, TypeError),
        (t.SYMBOL, "é", ValueError),
        (t.SENDER_SETTLE_MODE, 3, ValueError),
        (t.DELIVERY_TAG, bytes(33), ValueError),
        (t.MESSAGE_ID, 5, TypeError),
        (t.OUTCOME, Received(1, 2), TypeError),
        (t.ERROR, Described(ULong(0x1D), []), TypeError),
        (t.APPLICATION_PROPERTIES, {1: 1}, TypeError),
    ],
)
def test_wrong_values_are_not_written(kind: FieldType, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        kind.write(bytearray(), value)
