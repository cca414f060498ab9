"""A cursor over one frame: every advance is checked against the frame's end (part 1, section 1.2).

The hand-written frame readers take their fields through it. It knows just the encodings those
fields can have; anything else in a frame is skipped by size or sliced out for the table-driven
codec. Reading past the end, or a constructor that the field does not allow, raises `AmqpError`
with amqp:decode-error.
"""

from __future__ import annotations

from typing import Any

from router.amqp import octets
from router.errors import AmqpError, Scope

# How many octets follow a constructor of the fixed-width and empty categories, by its high nibble
# (section 1.2): 0x4 none, 0x5 one, 0x6 two, 0x7 four, 0x8 eight, 0x9 sixteen. Variable, compound
# and array categories carry their own size in one octet (even nibble) or four (odd nibble).
NO_VALUE = 0xFFFFFFFFFFFFFFFF


def malformed(what: str) -> AmqpError:
    """The error of a frame that cannot be read."""
    return AmqpError("amqp:decode-error", what, Scope.CONNECTION)


class Cursor:
    """A checked place in memory. `at` is the next octet, `end` the first that is not ours."""

    def __init__(self) -> None:
        self.octets: Any = memoryview(b"")
        self.at = 0
        self.end = 0
        # where the last variable-width value lies: [value_at, value_end)
        self.value_at = 0
        self.value_end = 0

    def move(self, view: Any, at: int, end: int) -> None:
        """Look at `view[at:end]`."""
        if at < 0 or end < at or end > len(view):
            raise malformed("a frame ends outside of what was read")
        self.octets = view
        self.at = at
        self.end = end

    def take_u8(self) -> int:
        """Take one octet."""
        at = self.at
        if at >= self.end:
            raise malformed("the frame ends inside a value")
        self.at = at + 1
        value: int = self.octets[at]
        return value

    def take_u32(self) -> int:
        """Take four octets in network order."""
        at = self.at
        if self.end - at < 4:
            raise malformed("the frame ends inside a value")
        self.at = at + 4
        return octets.read_u32(self.octets, at)

    def take_u64(self) -> int:
        """Take eight octets in network order."""
        at = self.at
        if self.end - at < 8:
            raise malformed("the frame ends inside a value")
        self.at = at + 8
        return octets.read_u64(self.octets, at)

    def advance(self, count: int) -> None:
        """Step over `count` octets."""
        if count < 0 or count > self.end - self.at:
            raise malformed("a size points past the end of the frame")
        self.at += count

    def take_descriptor(self) -> int:
        """Take a numeric descriptor after the 0x00 constructor; NO_VALUE when it is not one.

        A symbolic descriptor, or a value without a descriptor, leaves the cursor where it was.
        """
        start = self.at
        if self.end - start >= 3 and self.octets[start] == 0x00:
            code = self.octets[start + 1]
            if code == 0x53:
                self.at = start + 3
                small: int = self.octets[start + 2]
                return small
            if code == 0x80:
                self.at = start + 2
                return self.take_u64()
            if code == 0x44:
                self.at = start + 2
                return 0
        return NO_VALUE

    def enter_list(self) -> int:
        """Take a list's constructor, size and count; the cursor then stands on its first item.

        `value_end` is where the list ends. Returns the count of items.
        """
        constructor = self.take_u8()
        if constructor == 0xC0:
            size = self.take_u8()
            if size < 1 or size > self.end - self.at:
                raise malformed("a list's size points past the end of the frame")
            self.value_end = self.at + size
            count = self.take_u8()
        elif constructor == 0xD0:
            size = self.take_u32()
            if size < 4 or size > self.end - self.at:
                raise malformed("a list's size points past the end of the frame")
            self.value_end = self.at + size
            count = self.take_u32()
        elif constructor == 0x45:
            self.value_end = self.at
            count = 0
        else:
            raise malformed(f"constructor 0x{constructor:02x} where a list belongs")
        if count > self.value_end - self.at:
            raise malformed("a list counts more items than its size can hold")
        return count

    def take_uint(self, absent: int) -> int:
        """Take an uint, or `absent` for null."""
        constructor = self.take_u8()
        if constructor == 0x52:
            return self.take_u8()
        if constructor == 0x70:
            return self.take_u32()
        if constructor == 0x43:
            return 0
        if constructor != 0x40:
            raise malformed(f"constructor 0x{constructor:02x} where an uint belongs")
        return absent

    def take_ubyte(self, absent: int) -> int:
        """Take an ubyte, or `absent` for null."""
        constructor = self.take_u8()
        if constructor == 0x50:
            return self.take_u8()
        if constructor != 0x40:
            raise malformed(f"constructor 0x{constructor:02x} where an ubyte belongs")
        return absent

    def take_boolean(self, absent: bool) -> bool:
        """Take a boolean, or `absent` for null."""
        constructor = self.take_u8()
        if constructor == 0x41:
            return True
        if constructor == 0x42:
            return False
        if constructor == 0x56:
            octet = self.take_u8()
            if octet > 1:
                raise malformed("a boolean that is neither 0x00 nor 0x01")
            return octet == 1
        if constructor != 0x40:
            raise malformed(f"constructor 0x{constructor:02x} where a boolean belongs")
        return absent

    def take_binary(self) -> bool:
        """Take a binary into [value_at, value_end); False for null."""
        constructor = self.take_u8()
        if constructor == 0xA0:
            size = self.take_u8()
        elif constructor == 0xB0:
            size = self.take_u32()
        elif constructor == 0x40:
            self.value_at = self.value_end = self.at
            return False
        else:
            raise malformed(f"constructor 0x{constructor:02x} where a binary belongs")
        self.value_at = self.at
        self.advance(size)
        self.value_end = self.at
        return True

    def take_string(self) -> bool:
        """Take a string into [value_at, value_end), its UTF-8 unchecked; False for another type."""
        constructor = self.take_u8()
        if constructor == 0xA1:
            size = self.take_u8()
        elif constructor == 0xB1:
            size = self.take_u32()
        else:
            self.at -= 1
            self.skip()
            return False
        self.value_at = self.at
        self.advance(size)
        self.value_end = self.at
        return True

    def skip(self) -> None:
        """Step over one value of any type, described values with their descriptors.

        Sizes are trusted only as far as the frame reaches; nothing inside is looked at, so this
        takes one step a descriptor and never recurses.
        """
        constructor = self.take_u8()
        while constructor == 0x00:
            self._skip_plain(self.take_u8())
            constructor = self.take_u8()
        self._skip_plain(constructor)

    def _skip_plain(self, constructor: int) -> None:
        category = constructor >> 4
        if category == 0x5:
            self.advance(1)
        elif category == 0x7:
            self.advance(4)
        elif category == 0xA or category == 0xC or category == 0xE:
            self.advance(self.take_u8())
        elif category == 0xB or category == 0xD or category == 0xF:
            self.advance(self.take_u32())
        elif category == 0x8:
            self.advance(8)
        elif category == 0x9:
            self.advance(16)
        elif category == 0x6:
            self.advance(2)
        elif category != 0x4:
            raise malformed(f"unknown constructor 0x{constructor:02x}")
