"""Whole messages in memory: read and write their sections (part 3, section 3.2).

Messages that pass through the router are not decoded: their octets are forwarded. This module is
for messages that the router itself creates or consumes, and for tests. `section_spans` finds where
each section lies without reading its content, so that the octets of bare messages can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import attrs

from router.amqp.composite import composite_from
from router.amqp.constants import Descriptor
from router.amqp.decode import decode_value, decode_values, skip_value
from router.amqp.encode import encode_value_into
from router.amqp.field_types import ANNOTATIONS, APPLICATION_PROPERTIES
from router.amqp.octets import Buffer
from router.amqp.performatives import Header, Properties
from router.amqp.reader import DEFAULT_LIMITS, Limits
from router.amqp.sections import SECTION_NAMES, AmqpSequence, AmqpValue, Data
from router.amqp.types import Described, Symbol, ULong, ValueMap
from router.amqp.walking import malformed

__all__ = [
    "AmqpSequence",
    "AmqpValue",
    "BodySection",
    "Data",
    "Header",
    "Message",
    "Properties",
    "SectionSpan",
    "bare_message",
    "decode_message",
    "encode_message",
    "section_of",
    "section_spans",
]

T = TypeVar("T")

BodySection = Data | AmqpSequence | AmqpValue


@attrs.frozen
class Message:
    """Message of format 0.

    Sections that are absent are None. `body` is any number of Data, any number of AmqpSequence, or
    one AmqpValue. A message without a body is malformed, but some clients send such messages; their
    body is `()`.
    """

    header: Header | None = None
    delivery_annotations: ValueMap | None = None
    message_annotations: ValueMap | None = None
    properties: Properties | None = None
    application_properties: dict[str, Any] | None = None
    body: tuple[BodySection, ...] = ()
    footer: ValueMap | None = None


@attrs.frozen
class SectionSpan:
    """Position of a section: octets `[begin, end)`; the section's value begins at `value_at`."""

    descriptor: Descriptor
    begin: int
    value_at: int
    end: int


def section_spans(
    data: Buffer, at: int = 0, end: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> list[SectionSpan]:
    """Return where each section lies, in order, without reading its content.

    Raises AmqpError if the octets are not sections, if the order or count of the sections is not
    allowed (section 3.2), or if there are more than `limits.max_items` sections.
    """
    end = len(data) if end is None else end
    spans: list[SectionSpan] = []
    while at < end:
        if data[at] != 0x00:
            raise malformed(f"format code 0x{data[at]:02x} where a section begins")
        descriptor, value_at = decode_value(data, at + 1, end, limits)
        after = skip_value(data, value_at, end, limits)
        spans.append(SectionSpan(section_of(descriptor), at, value_at, after))
        if len(spans) > limits.max_items:
            raise malformed("too many sections in one message")
        at = after
    _check_order(spans)
    return spans


def section_of(descriptor: object) -> Descriptor:
    """Return the section that a descriptor names; raise AmqpError if it names no section."""
    if type(descriptor) is ULong and Descriptor.HEADER <= descriptor <= Descriptor.FOOTER:
        return Descriptor(descriptor)
    if type(descriptor) is Symbol and descriptor in SECTION_NAMES:
        return SECTION_NAMES[descriptor]
    raise malformed(f"{descriptor!r} where a section's descriptor belongs")


def _check_order(spans: Sequence[SectionSpan]) -> None:
    repeatable = (Descriptor.DATA, Descriptor.AMQP_SEQUENCE)
    body = (*repeatable, Descriptor.AMQP_VALUE)
    for before, after in pairwise(spans):
        descriptors = before.descriptor, after.descriptor
        again = descriptors[0] == descriptors[1]
        if again and descriptors[0] in repeatable:
            continue
        mixed = descriptors[0] in body and descriptors[1] in body
        if again or mixed or descriptors[0] > descriptors[1]:
            raise malformed(
                f"section {descriptors[1].name.lower()} must not follow "
                f"section {descriptors[0].name.lower()}"
            )


def bare_message(data: Buffer, at: int = 0, end: int | None = None) -> tuple[int, int]:
    """Return where the bare message begins and ends: from properties to the end of the body.

    The two positions are equal if the message has none of these sections. Raises AmqpError as
    `section_spans` does.
    """
    bare = [
        span
        for span in section_spans(data, at, end)
        if Descriptor.PROPERTIES <= span.descriptor <= Descriptor.AMQP_VALUE
    ]
    return (bare[0].begin, bare[-1].end) if bare else (at, at)


def decode_message(
    data: Buffer, at: int = 0, end: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> Message:
    """Return the message in `data[at:end]`.

    Raises AmqpError if the octets are not a message.
    """
    fields: dict[str, Any] = {}
    body: list[BodySection] = []
    spans = section_spans(data, at, end, limits)
    for span, section in zip(spans, decode_values(data, at, end, limits), strict=True):
        # each section begins with a descriptor, which `section_spans` has checked
        assert isinstance(section, Described)
        value = section.value
        name = span.descriptor.name.lower()
        if span.descriptor in (Descriptor.HEADER, Descriptor.PROPERTIES):
            fields[name] = composite_from(Described(ULong(span.descriptor), value), name)
        elif span.descriptor is Descriptor.APPLICATION_PROPERTIES:
            fields[name] = APPLICATION_PROPERTIES.read(value, name)
        elif span.descriptor is Descriptor.DATA:
            body.append(Data(_expect(bytes, value, name)))
        elif span.descriptor is Descriptor.AMQP_SEQUENCE:
            body.append(AmqpSequence(_expect(list, value, name)))
        elif span.descriptor is Descriptor.AMQP_VALUE:
            body.append(AmqpValue(value))
        else:
            fields[name] = ANNOTATIONS.read(value, name)
    return Message(body=tuple(body), **fields)


def _expect(kind: type[T], value: object, name: str) -> T:
    if type(value) is not kind:
        raise malformed(f"{name} must not contain a value of type {type(value).__name__.lower()}")
    return value


def encode_message(message: Message) -> bytes:
    """Return the octets of a message.

    Raises ValueError or TypeError if a section cannot be written, or if the body's sections cannot
    be combined.
    """
    if len({type(section) for section in message.body}) > 1 or (
        len(message.body) > 1 and isinstance(message.body[0], AmqpValue)
    ):
        raise ValueError("a body has sections of one kind only, and at most one amqp-value")
    buffer = bytearray()
    if message.header is not None:
        encode_value_into(buffer, message.header)
    _write_map(buffer, Descriptor.DELIVERY_ANNOTATIONS, message.delivery_annotations)
    _write_map(buffer, Descriptor.MESSAGE_ANNOTATIONS, message.message_annotations)
    if message.properties is not None:
        encode_value_into(buffer, message.properties)
    _write_map(buffer, Descriptor.APPLICATION_PROPERTIES, message.application_properties)
    for section in message.body:
        encode_value_into(buffer, _described(section))
    _write_map(buffer, Descriptor.FOOTER, message.footer)
    return bytes(buffer)


def _write_map(buffer: bytearray, descriptor: Descriptor, value: ValueMap | None) -> None:
    if value is None:
        return
    buffer += bytes((0x00, 0x53, descriptor))
    if descriptor is Descriptor.APPLICATION_PROPERTIES:
        APPLICATION_PROPERTIES.write(buffer, value)
    else:
        ANNOTATIONS.write(buffer, value)


def _described(section: BodySection) -> Described:
    match section:
        case Data(octets):
            return Described(ULong(Descriptor.DATA), octets)
        case AmqpSequence(items):
            return Described(ULong(Descriptor.AMQP_SEQUENCE), items)
        case AmqpValue(value):
            return Described(ULong(Descriptor.AMQP_VALUE), value)
