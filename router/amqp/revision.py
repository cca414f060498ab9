"""Rewrite the head of a message: header and message annotations (sections 3.2.1 and 3.2.3).

The rest of the message is forwarded unchanged, as are the annotations that a change does not
concern.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from router.amqp.composite import composite_from, encode_composite
from router.amqp.constants import Descriptor, FormatCode
from router.amqp.decode import decode_value, skip_value
from router.amqp.encode import encode_value
from router.amqp.message import SectionSpan, section_of
from router.amqp.peek import find_header, take_section
from router.amqp.reading import Cursor
from router.amqp.sections import Header
from router.amqp.types import Described, Symbol, ULong, Value, ValueMap
from router.amqp.walking import malformed
from router.errors import AmqpError

MAX_DELIVERY_COUNT = 0xFFFFFFFF
DESCRIPTOR: Final = bytes((0x00, FormatCode.SMALLULONG, Descriptor.MESSAGE_ANNOTATIONS))
SMALLULONG: Final = bytes((FormatCode.SMALLULONG,))
HEAD_END: Final = bytes((Descriptor.MESSAGE_ANNOTATIONS,))


@attrs.frozen
class Entry:
    """Entry of message annotations: the decoded key, and the octets of key and value."""

    key: Value
    octets: bytes
    value_at: int
    """Position in `octets` where the value begins."""

    def value(self) -> Any:
        """Return the decoded value; raise AmqpError if it is malformed."""
        value, _ = decode_value(self.octets, self.value_at)
        return value


def encode_entry(key: str, value: object) -> bytes:
    """Return the encoding of an annotation, with its key as a symbol."""
    return encode_value(Symbol(key)) + encode_value(value)


def write_ttl(octets: bytearray, at: int, ttl_ms: int) -> None:
    """Overwrite the ttl at `octets[at]` with a shorter one, without changing its width.

    `octets[at - 1]` is the ttl's format code. Many waiting messages need only this change, so it
    is made in place.
    """
    code = octets[at - 1]
    width = 4 if code == FormatCode.UINT else 1 if code == FormatCode.SMALLUINT else 0
    octets[at : at + width] = ttl_ms.to_bytes(4, "big")[4 - width :]


def without_ttl(octets: bytes) -> bytes:
    """Return a message's first octets with null in place of the ttl that `find_header` finds."""
    found = find_header(octets, 0, len(octets))
    if found is None or not found.ttl_at:
        return octets
    cursor = Cursor()
    cursor.move(octets, 0, len(octets))
    take_section(cursor)
    at = cursor.at + 1
    end = at + (1 if octets[at - 1] == FormatCode.LIST8 else 4)
    size = int.from_bytes(octets[at:end], "big") - found.width
    return b"".join(
        (
            octets[:at],
            size.to_bytes(end - at, "big"),
            octets[end : found.ttl_at - 1],
            bytes((FormatCode.NULL,)),
            octets[found.ttl_at + found.width :],
        )
    )


def revise(
    octets: bytes, elapsed_ms: int, *, failed: bool, annotations: ValueMap | None
) -> bytes | None:
    """Return a message as it is to be sent again, `elapsed_ms` after it was last sent.

    The ttl is reduced by `elapsed_ms`, and first-acquirer becomes false. If `failed`, the
    delivery-count is incremented. `annotations` are added, and replace those with the same keys.
    Returns None if the message has expired, or if its header or annotations are malformed. The
    message must have the message-format 0.
    """
    try:
        span = _head_of(octets).get(Descriptor.HEADER)
        header = Header() if span is None else _header_at(octets, span)
        if annotations:
            merged = annotations
            octets = change_annotations(
                octets,
                lambda key: key in merged,
                [encode_entry(key, value) for key, value in merged.items()],
            )
    except AmqpError:
        return None
    if header.ttl is not None and header.ttl <= elapsed_ms:
        return None
    again = attrs.evolve(
        header,
        ttl=None if header.ttl is None else header.ttl - elapsed_ms,
        first_acquirer=False,
        delivery_count=min(header.delivery_count + failed, MAX_DELIVERY_COUNT),
    )
    if again == header:
        return octets
    return encode_composite(again) + octets[0 if span is None else span.end :]


def change_annotations(
    octets: bytes, is_dropped: Callable[[str], bool], added: Sequence[bytes] = ()
) -> bytes:
    """Return the message without the annotations that `is_dropped` selects, and with those `added`.

    `added` are entries encoded by `encode_entry`, which follow the remaining ones. If no annotation
    is left, the section is omitted. Raises AmqpError if the message annotations are not a map.
    """
    return _change(octets, is_dropped, added)[0]


def take_annotations(
    octets: bytes, is_taken: Callable[[str], bool]
) -> tuple[bytes, tuple[Entry, ...]]:
    """Return the message without the annotations that `is_taken` selects, and those annotations.

    Raises AmqpError if the message annotations are not a map.
    """
    return _change(octets, is_taken, ())


def _change(
    octets: bytes, is_dropped: Callable[[str], bool], added: Sequence[bytes]
) -> tuple[bytes, tuple[Entry, ...]]:
    head = _head_of(octets)
    span = head.get(Descriptor.MESSAGE_ANNOTATIONS)
    if span is None:
        begin = end = max((each.end for each in head.values()), default=0)
        descriptor, code = DESCRIPTOR, int(FormatCode.MAP8)
        entries: list[Entry] = []
    else:
        begin, end = span.begin, span.end
        descriptor, code = octets[begin : span.value_at], octets[span.value_at]
        entries = _entries(octets, span)
    items = []
    dropped = []
    for entry in entries:
        if isinstance(entry.key, str) and is_dropped(entry.key):
            dropped.append(entry)
        else:
            items.append(entry.octets)
    if not dropped and not added:
        return octets, ()
    items.extend(added)
    section = descriptor + _encode_map(code, items) if items else b""
    return octets[:begin] + section + octets[end:], tuple(dropped)


def _entries(octets: bytes, span: SectionSpan) -> list[Entry]:
    """Return the entries of a map, in order, without reading the content of their values."""
    at, end = span.value_at, span.end
    wide = octets[at] == FormatCode.MAP32
    if not wide and octets[at] != FormatCode.MAP8:
        raise malformed("the message annotations are not a map")
    at += 9 if wide else 3
    if at > end:
        raise malformed("the message annotations are too short for a map")
    count = int.from_bytes(octets[at - 4 : at] if wide else octets[at - 1 : at], "big")
    if count % 2:
        raise malformed("the message annotations have a key without a value")
    entries = []
    for _ in range(count // 2):
        key, value_at = decode_value(octets, at, end)
        after = skip_value(octets, value_at, end)
        entries.append(Entry(key, octets[at:after], value_at - at))
        at = after
    if at != end:
        raise malformed("the message annotations are longer than their entries")
    return entries


def _encode_map(code: int, items: Sequence[bytes]) -> bytes:
    """Encode a map of encoded entries; a map8 becomes a map32 if the entries do not fit."""
    body = b"".join(items)
    count = 2 * len(items)
    if code == FormatCode.MAP8 and len(body) < 255 and count < 256:
        return bytes((FormatCode.MAP8, len(body) + 1, count)) + body
    sizes = (len(body) + 4).to_bytes(4, "big") + count.to_bytes(4, "big")
    return bytes((FormatCode.MAP32,)) + sizes + body


def _head_of(octets: bytes) -> dict[Descriptor, SectionSpan]:
    """Return where the sections before the bare message lie, in order.

    These sections must be complete, but the bare message need not be.
    """
    found: dict[Descriptor, SectionSpan] = {}
    at = 0
    while at < len(octets):
        if octets[at] != 0x00:
            raise malformed(f"format code 0x{octets[at]:02x} where a section begins")
        if octets[at + 1 : at + 2] == SMALLULONG and octets[at + 2 : at + 3] > HEAD_END:
            # nearly all bare messages begin like this
            break
        try:
            descriptor, value_at = decode_value(octets, at + 1)
        except AmqpError:
            break
        kind = section_of(descriptor)
        if kind > Descriptor.MESSAGE_ANNOTATIONS:
            break
        end = skip_value(octets, value_at)
        found[kind] = SectionSpan(kind, at, value_at, end)
        at = end
    return found


def _header_at(octets: bytes, span: SectionSpan) -> Header:
    value, _ = decode_value(octets, span.value_at, span.end)
    header = composite_from(Described(ULong(Descriptor.HEADER), value), "the message's header")
    assert isinstance(header, Header)
    return header
