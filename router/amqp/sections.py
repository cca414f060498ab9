"""Sections of a message (part 3, section 3.2)."""

from __future__ import annotations

import uuid
from typing import Any

import attrs

from router.amqp import field_types as t
from router.amqp.composite import Composite, Field, composite
from router.amqp.constants import Descriptor
from router.amqp.types import ULong

MessageId = ULong | uuid.UUID | bytes | str


@composite(
    "amqp:header:list",
    Descriptor.HEADER,
    "section",
    Field("durable", t.BOOLEAN, default=False),
    Field("priority", t.UBYTE, default=4),
    Field("ttl", t.MILLISECONDS),
    Field("first_acquirer", t.BOOLEAN, default=False),
    Field("delivery_count", t.UINT, default=0),
)
@attrs.frozen
class Header(Composite):
    """Header: delivery details that every node may change (section 3.2.1)."""

    durable: bool = False
    priority: int = 4
    ttl: int | None = None
    first_acquirer: bool = False
    delivery_count: int = 0


@composite(
    "amqp:properties:list",
    Descriptor.PROPERTIES,
    "section",
    Field("message_id", t.MESSAGE_ID),
    Field("user_id", t.BINARY),
    Field("to", t.ADDRESS),
    Field("subject", t.STRING),
    Field("reply_to", t.ADDRESS),
    Field("correlation_id", t.MESSAGE_ID),
    Field("content_type", t.SYMBOL),
    Field("content_encoding", t.SYMBOL),
    Field("absolute_expiry_time", t.TIMESTAMP),
    Field("creation_time", t.TIMESTAMP),
    Field("group_id", t.STRING),
    Field("group_sequence", t.SEQUENCE_NO),
    Field("reply_to_group_id", t.STRING),
)
@attrs.frozen
class Properties(Composite):
    """Properties: standard fields of the bare message, which no router changes (section 3.2.4)."""

    message_id: MessageId | None = None
    user_id: bytes | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: MessageId | None = None
    content_type: str | None = None
    content_encoding: str | None = None
    absolute_expiry_time: int | None = None
    creation_time: int | None = None
    group_id: str | None = None
    group_sequence: int | None = None
    reply_to_group_id: str | None = None


@attrs.frozen
class Data:
    """Body section that holds octets (section 3.2.6)."""

    octets: bytes


@attrs.frozen
class AmqpSequence:
    """Body section that holds a sequence of values (section 3.2.7)."""

    items: list[Any]


@attrs.frozen
class AmqpValue:
    """Body section that holds one value, which may be None (section 3.2.8)."""

    value: Any


SECTION_NAMES: dict[str, Descriptor] = {
    Header.NAME: Descriptor.HEADER,
    "amqp:delivery-annotations:map": Descriptor.DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": Descriptor.MESSAGE_ANNOTATIONS,
    Properties.NAME: Descriptor.PROPERTIES,
    "amqp:application-properties:map": Descriptor.APPLICATION_PROPERTIES,
    "amqp:data:binary": Descriptor.DATA,
    "amqp:amqp-sequence:list": Descriptor.AMQP_SEQUENCE,
    "amqp:amqp-value:*": Descriptor.AMQP_VALUE,
    "amqp:footer:map": Descriptor.FOOTER,
}
"""The sections by symbolic descriptor."""
