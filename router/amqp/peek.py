"""Read single fields of a message that passes through.

These are the header's durable, ttl and priority, and the properties' `to`, subject and
absolute-expiry-time (sections 3.2.1 and 3.2.4). Only the field asked for is decoded; sections
before it are skipped by size. A message whose first frame ends before the field is treated as not
having it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp.constants import Descriptor
from router.amqp.reading import Cursor
from router.amqp.sections import SECTION_NAMES
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.amqp.octets import Buffer

HEADER = int(Descriptor.HEADER)
PROPERTIES = int(Descriptor.PROPERTIES)
FOOTER = int(Descriptor.FOOTER)
ABSENT = 0xFFFFFFFF
# the result of a cursor if there is no descriptor
NO_VALUE = 0xFFFFFFFFFFFFFFFF

PRIORITY = 4
HIGHEST_PRIORITY = 9
# fields of the properties, by their number
USER_ID = 1
TO = 2
SUBJECT = 3
ABSOLUTE_EXPIRY_TIME = 8

UBYTE = 0x50
TIMESTAMP = 0x83
NULL = 0x40
SYMBOL8 = 0xA3
SYMBOL32 = 0xB3
BINARY8 = 0xA0
BINARY32 = 0xB0


class HeaderPeek:
    """Header fields of a waiting message.

    `priority` is 0 to 9, and 4 if the header has none. The encoded ttl has `width` octets (4, 1 or
    0) and begins `ttl_at` octets after the beginning of the message, so that a shorter ttl can be
    written over it. `ttl_at` is 0 if there is no ttl.
    """

    def __init__(self) -> None:
        self.priority = PRIORITY
        self.ttl_ms = 0
        self.ttl_at = 0
        self.width = 0


def find_header(view: Buffer, start: int, end: int) -> HeaderPeek | None:
    """Return the fields of the header in `view[start:end]`, or None if there is no header.

    Fields of a wrong type count as absent, and so do those after the end of an incomplete list.
    """
    cursor = Cursor()
    found = HeaderPeek()
    try:
        cursor.move(view, start, end)
        if take_section(cursor) != HEADER:
            return None
        count = cursor.enter_list()
        # the count may promise more than the list holds
        cursor.end = cursor.value_end
        if count < 2:
            return found
        cursor.skip()
        if cursor.at < cursor.end and cursor.octets[cursor.at] == UBYTE:
            found.priority = min(cursor.take_ubyte(PRIORITY), HIGHEST_PRIORITY)
        else:
            cursor.skip()
        if count < 3:
            return found
        at = cursor.at
        ttl_ms = cursor.take_uint(ABSENT)
        if cursor.octets[at] != NULL:
            found.ttl_ms = ttl_ms
            found.ttl_at = at + 1 - start
            found.width = cursor.at - at - 1
    except AmqpError:
        pass
    return found


def is_durable(view: Buffer, start: int, end: int) -> bool:
    """Return whether the header in `view[start:end]` says that the message is durable."""
    cursor = Cursor()
    try:
        cursor.move(view, start, end)
        if take_section(cursor) != HEADER:
            return False
        count = cursor.enter_list()
        # the count may promise more than the list holds
        cursor.end = cursor.value_end
        return count > 0 and bool(cursor.take_boolean(False))
    except AmqpError:
        return False


def find_absolute_expiry(view: Buffer, start: int, end: int) -> int | None:
    """Return the absolute-expiry-time in `view[start:end]`, in ms since 1970; None if absent."""
    cursor = Cursor()
    try:
        cursor.move(view, start, end)
        if not _enter_properties(cursor, ABSOLUTE_EXPIRY_TIME):
            return None
        at = cursor.at + 1
        if cursor.take_u8() != TIMESTAMP:
            return None
        cursor.advance(8)
        return int.from_bytes(memoryview(view)[at : at + 8], "big", signed=True)
    except AmqpError:
        return None


def _enter_properties(cursor: Cursor, number: int) -> bool:
    """Move to field `number` of the properties, counted from 0; return whether it is present."""
    return _skip_head(cursor) == PROPERTIES and _enter_field(cursor, number)


def _skip_head(cursor: Cursor) -> int:
    """Move to the value of the first section after header and annotations; return its code."""
    descriptor = take_section(cursor)
    while HEADER <= descriptor < PROPERTIES:
        cursor.skip()
        descriptor = take_section(cursor)
    return descriptor


def _enter_field(cursor: Cursor, number: int) -> bool:
    """Move to field `number` of the list at the cursor; return whether it is present."""
    if cursor.enter_list() <= number:
        return False
    # the count may promise more than the list holds
    cursor.end = cursor.value_end
    for _ in range(number):
        cursor.skip()
    return True


def take_section(cursor: Cursor) -> int:
    """Read a section's numeric or symbolic descriptor and return its code.

    Returns NO_VALUE if there is no descriptor, or if its symbol names no section.
    """
    code: int = cursor.take_descriptor()
    at = cursor.at
    if code != NO_VALUE or cursor.end - at < 3 or cursor.octets[at] != 0x00:
        return code
    constructor = cursor.octets[at + 1]
    if constructor not in (SYMBOL8, SYMBOL32):
        return code
    cursor.at = at + 2
    size = cursor.take_u8() if constructor == SYMBOL8 else cursor.take_u32()
    name_at = cursor.at
    cursor.advance(size)
    name = bytes(memoryview(cursor.octets)[name_at : cursor.at])
    return int(SECTION_NAMES.get(name.decode("latin-1"), NO_VALUE))


def find_to(view: Buffer, start: int, end: int) -> str | None:
    """Return `to` of the properties in `view[start:end]`; None if absent or not a string."""
    return _find_text(view, start, end, TO)


def find_subject(view: Buffer, start: int, end: int) -> str | None:
    """Return the subject of the properties in `view[start:end]`; None if absent or not a string."""
    return _find_text(view, start, end, SUBJECT)


def find_user_id(view: Buffer, start: int, end: int, *, is_whole: bool) -> bytes | None:
    """Return the user-id of the properties in `view[start:end]`; empty octets if there is none.

    Return None if it cannot be told: the sections are malformed, or `is_whole` is False and the
    octets end before it.
    """
    cursor = Cursor()
    try:
        cursor.move(view, start, end)
        descriptor = NO_VALUE if start == end else _skip_head(cursor)
        if descriptor != PROPERTIES:
            # without a later section here, the properties may be in the next frame
            return b"" if is_whole or PROPERTIES < descriptor <= FOOTER else None
        if not _enter_field(cursor, USER_ID):
            return b""
        constructor = cursor.take_u8()
        if constructor == NULL:
            return b""
        if constructor not in (BINARY8, BINARY32):
            return None
        size = cursor.take_u8() if constructor == BINARY8 else cursor.take_u32()
        at = cursor.at
        cursor.advance(size)
        return bytes(memoryview(view)[at : cursor.at])
    except AmqpError:
        return None


def _find_text(view: Buffer, start: int, end: int, number: int) -> str | None:
    cursor = Cursor()
    try:
        cursor.move(view, start, end)
        if not _enter_properties(cursor, number):
            return None
        if not cursor.take_string():
            return None
        return bytes(memoryview(view)[cursor.value_at : cursor.value_end]).decode()
    except (AmqpError, UnicodeDecodeError):
        return None
