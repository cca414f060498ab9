"""Position in octets that are decoded, and the limits on what is built from them."""

from __future__ import annotations

import struct
from collections.abc import Callable

import attrs

from router.amqp.octets import Buffer
from router.amqp.walking import malformed, too_large

Keep = Callable[[bytes], object]
"""Function that makes, from the octets of a map, the object that stands for it."""

SIZES = {1: struct.Struct(">B"), 4: struct.Struct(">I")}
"""Layouts of the size of a value, by its width in octets."""
_SIZE_COUNT = {1: struct.Struct(">BB"), 4: struct.Struct(">II")}


@attrs.frozen
class Limits:
    """Limits on what one call of `decode_value` may build.

    The deepest values that real peers send (a source's filter in an attach, a management reply's
    rows) nest less than ten deep. The number of values is limited because each may take a hundred
    octets of memory, even if it has only one octet on the wire.
    """

    max_depth: int = 32
    """Maximum depth of nested lists, maps, arrays and descriptors."""
    max_items: int = 262_144
    """Maximum number of values, including those inside other values."""


DEFAULT_LIMITS = Limits()


class Reader:
    """Position in the octets being decoded, and how many more values and levels may follow."""

    __slots__ = ("at", "data", "depth_left", "end", "items_left", "keep")

    def __init__(
        self, data: Buffer, at: int, end: int, limits: Limits, keep: Keep | None = None
    ) -> None:
        if not 0 <= at <= end <= len(data):
            raise malformed(f"octets {at} to {end} are not within the given {len(data)}")
        self.data = data
        self.at = at
        self.end = end
        self.depth_left = limits.max_depth
        self.items_left = limits.max_items
        self.keep = keep

    def take(self, count: int) -> int:
        """Step over `count` octets and return where they begin."""
        at = self.at
        if count > self.end - at:
            raise malformed(f"{count} more octets are needed; {self.end - at} are left")
        self.at = at + count
        return at

    def descend(self) -> None:
        """Enter a nested value; the caller adds one to `depth_left` when the value ends."""
        self.depth_left -= 1
        if self.depth_left < 0:
            raise too_large("values are nested too deeply")

    def spend(self, count: int) -> None:
        """Deduct `count` from the number of values that may still be read."""
        self.items_left -= count
        if self.items_left < 0:
            raise too_large("one value contains too many values")

    def enter(self, width: int) -> tuple[int, int]:
        """Enter a list, map or array whose size and count have `width` octets each.

        The reader ends with the items from now on. Return where it ended before, and the count.
        """
        size, count = _SIZE_COUNT[width].unpack_from(self.data, self.take(2 * width))
        # The size counts the octets of the count as well.
        outer_end = self.end
        self.end = self.at + size - width
        if size < width or self.end > outer_end:
            raise malformed(
                f"a list, map or array has the size {size}; "
                f"{outer_end - self.at + width} octets are left"
            )
        self.descend()
        return outer_end, count

    def leave(self, outer_end: int, count: int) -> None:
        """Leave a list, map or array, of which `count` items were read; `enter` has begun it."""
        if self.at != self.end:
            raise malformed(
                f"{self.end - self.at} octets are left over after the {count} items of a value"
            )
        self.depth_left += 1
        self.end = outer_end

    def check_count(self, count: int) -> None:
        """Check that the rest may contain `count` items, each of at least one octet."""
        if count > self.end - self.at:
            raise malformed(f"a list or map has {count} items in {self.end - self.at} octets")
