"""What the router looks at inside a message: the header's ttl and the properties' `to`.

Nothing is decoded that is not asked for; sections before the one wanted are stepped over by size.
(Sections 3.2.1 and 3.2.4.) A message whose first frame ends before the field is treated as not
having it.
"""

from __future__ import annotations

from typing import Any

from router.amqp.constants import Descriptor
from router.amqp.reading import Cursor
from router.errors import AmqpError

HEADER = int(Descriptor.HEADER)
PROPERTIES = int(Descriptor.PROPERTIES)
ABSENT = 0xFFFFFFFF


class TimeToLive:
    """A ttl and where its octets lie, so that what is left can be written over it.

    `width` is 4 or 1; what is left always fits, because it never grows.
    """

    def __init__(self, ttl_ms: int, at: int, width: int) -> None:
        self.ttl_ms = ttl_ms
        self.at = at
        self.width = width


def find_ttl(view: Any, start: int, end: int) -> TimeToLive | None:
    """The header's ttl in `view[start:end]`; its `at` counts from `start`."""
    cursor = Cursor()
    try:
        cursor.move(view, start, end)
        if cursor.take_descriptor() != HEADER:
            return None
        if cursor.enter_list() < 3:
            return None
        cursor.skip()
        cursor.skip()
        at = cursor.at
        ttl_ms = cursor.take_uint(ABSENT)
    except AmqpError:
        return None
    if ttl_ms == ABSENT:
        return None
    return TimeToLive(ttl_ms, at + 1 - start, cursor.at - at - 1)


def find_to(view: Any, start: int, end: int) -> str | None:
    """The properties' `to` in `view[start:end]`, or None when it has no such string."""
    cursor = Cursor()
    try:
        cursor.move(view, start, end)
        descriptor = cursor.take_descriptor()
        while HEADER <= descriptor < PROPERTIES:
            cursor.skip()
            descriptor = cursor.take_descriptor()
        if descriptor != PROPERTIES or cursor.enter_list() < 3:
            return None
        cursor.skip()
        cursor.skip()
        if not cursor.take_string():
            return None
        return bytes(memoryview(view)[cursor.value_at : cursor.value_end]).decode()
    except (AmqpError, UnicodeDecodeError):
        return None
