"""Check encoded values without decoding them into objects.

The maps of an open, begin or attach are kept as the received octets (`encoded`). This module checks
that the octets are values, by the same rules for sizes, counts, texts and nesting as `decode`. To
find duplicate keys, it remembers the keys of all maps that enclose the current position. Two keys
count as duplicates only if their encodings are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import octets
from router.amqp.constants import Condition
from router.errors import AmqpError

if TYPE_CHECKING:
    from router.amqp.octets import Buffer

DESCRIBED = 0x00
BOOLEAN = 0x56
CHAR = 0x73
BINARY_8 = 0xA0
STRING_8 = 0xA1
STRING_32 = 0xB1
SYMBOL_8 = 0xA3
SYMBOL_32 = 0xB3
MAP_8 = 0xC1
MAP_32 = 0xD1
ARRAY_8 = 0xE0
ARRAY_32 = 0xF0
# The least number of octets after a format code, by the code's high nibble: a fixed width, or a
# size, with a count for compound values, and with the format code of the items for arrays.
LEAST = bytes((0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 1, 4, 2, 8, 3, 9))
# For each octet: 1 if it is a format code (section 1.6), otherwise 0.
KNOWN = bytes(
    code
    in (
        *range(0x40, 0x46), *range(0x50, 0x57), 0x60, 0x61, *range(0x70, 0x75), *range(0x80, 0x85),
        0x94, 0x98, 0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3, 0xC0, 0xC1, 0xD0, 0xD1, 0xE0, 0xF0,
    )
    for code in range(256)
)  # fmt: skip


class Walk:
    """Position in encoded octets that are checked value by value, and the limits for the rest.

    `depth_left` is how many more lists, maps, arrays and descriptors may be nested, `items_left`
    how many more values may follow.
    """

    def __init__(self, view: Buffer, at: int, end: int, depth_left: int, items_left: int) -> None:
        if at < 0 or end < at or end > len(view):
            raise malformed(f"octets {at} to {end} are not within the given {len(view)}")
        self.view = view
        self.at = at
        self.end = end
        self.depth_left = depth_left
        self.items_left = items_left

    def step(self) -> int:
        """Check and step over a value; return its format code, or 0 if it is described.

        Raises AmqpError as `decode_value` does.
        """
        self._spend(1)
        code = self._code()
        if code != DESCRIBED:
            self._body(code)
            return code
        self._descend()
        self.step()
        self.step()
        self.depth_left += 1
        return code

    def find(self, keys: tuple[bytes, ...]) -> bool:
        """Search a map for a key with one of the encodings `keys`, and move to the key's value.

        The position must be at the map's first key. Returns whether such a key was found; if not,
        the position is after the map's last value.
        """
        while self.at < self.end:
            at = self.at
            self.step()
            if octets.take_bytes(self.view, at, self.at - at) in keys:
                return True
            self.step()
        return False

    def find_keys_beside(self, codes: bytes) -> list[int]:
        """Return the positions of a map's keys whose format codes are not in `codes`.

        The search begins at the current position and ends at the end of the map.
        """
        found = []
        while self.at < self.end:
            at = self.at
            if self.step() not in codes:
                found.append(at)
            self.step()
        return found

    def read_binaries(self) -> set[bytes]:
        """Return the remaining keys of a map, all of which must be binaries."""
        found = set()
        while self.at < self.end:
            at = self.at + (2 if self.view[self.at] == BINARY_8 else 5)
            self.step()
            found.add(octets.take_bytes(self.view, at, self.at - at))
            self.step()
        return found

    def _code(self) -> int:
        """Consume the next format code and advance past it."""
        at = self.at
        if at >= self.end:
            raise malformed("the octets end where a value should begin")
        self.at = at + 1
        code: int = self.view[at]
        return code

    def _body(self, code: int) -> None:
        """Step over the octets of a value after its format code."""
        if not KNOWN[code]:
            raise malformed(f"unknown format code 0x{code:02x}")
        category = code >> 4
        if category < 0xA:
            at = self._take(LEAST[category])
            if code == BOOLEAN and self.view[at] > 1:
                raise malformed(
                    f"a boolean is 0x{self.view[at]:02x}; only 0x00 and 0x01 are allowed"
                )
            if code == CHAR:
                self._check_character(at)
        elif category < 0xC:
            self._variable(code)
        else:
            self._compound(code)

    def _check_character(self, at: int) -> None:
        point = octets.read_u32(self.view, at)
        if point > 0x10FFFF or (point >= 0xD800 and point <= 0xDFFF):
            raise malformed(f"0x{point:x} is not a Unicode character")

    def _variable(self, code: int) -> None:
        size = self._size(code)
        at = self._take(size)
        if code == STRING_8 or code == STRING_32:
            try:
                str(octets.take_bytes(self.view, at, size), "utf-8")
            except UnicodeDecodeError as error:
                raise malformed(f"a string is not UTF-8: {error.reason}") from None
        elif (
            (code == SYMBOL_8 or code == SYMBOL_32)
            and not octets.take_bytes(self.view, at, size).isascii()
        ):  # fmt: skip
            raise malformed("a symbol is not ASCII")

    def _size(self, code: int) -> int:
        """Read a size or count: one octet if the code's high nibble is even, else four."""
        if (code >> 4) & 1:
            return octets.read_u32(self.view, self._take(4))
        size: int = self.view[self._take(1)]
        return size

    def _compound(self, code: int) -> None:
        width = 4 if (code >> 4) & 1 else 1
        self._take(2 * width)
        self.at -= 2 * width
        size = self._size(code)
        outer_end = self.end
        inner_end = self.at + size
        if size < width or inner_end > outer_end:
            raise malformed(
                f"a list, map or array has the size {size}; {outer_end - self.at} octets are left"
            )
        count = self._size(code)
        self.end = inner_end
        self._descend()
        if code == ARRAY_8 or code == ARRAY_32:
            self._array_items(count)
        elif count > inner_end - self.at:
            raise malformed(f"a list or map has {count} items in {inner_end - self.at} octets")
        elif code == MAP_8 or code == MAP_32:
            self._map_items(count)
        else:
            while count > 0:
                self.step()
                count -= 1
        if self.at != inner_end:
            raise malformed(
                f"{inner_end - self.at} octets are left over after the items of a value"
            )
        self.depth_left += 1
        self.end = outer_end

    def _map_items(self, count: int) -> None:
        if count % 2:
            raise malformed("a map has a key without a value")
        keys = set()
        left = count
        while left > 0:
            at = self.at
            self.step()
            keys.add(octets.take_bytes(self.view, at, self.at - at))
            self.step()
            left -= 2
        if 2 * len(keys) < count:
            raise malformed("a map has the same key twice")

    def _array_items(self, count: int) -> None:
        descriptors = 0
        code = self._code()
        while code == DESCRIBED:
            self._descend()
            descriptors += 1
            self.step()
            code = self._code()
        self.depth_left += descriptors
        if not KNOWN[code]:
            raise malformed(f"the items of an array have the unknown format code 0x{code:02x}")
        least = LEAST[code >> 4]
        if count * least > self.end - self.at:
            raise malformed(
                f"an array has {count} items of code 0x{code:02x} in {self.end - self.at} octets"
            )
        self._spend(count)
        if code < 0xA0 and code != BOOLEAN and code != CHAR:
            self._take(count * least)
            count = 0
        while count > 0:
            self._body(code)
            count -= 1

    def _take(self, count: int) -> int:
        """Step over `count` octets and return where they begin."""
        at = self.at
        if count > self.end - at:
            raise malformed(f"{count} more octets are needed; {self.end - at} are left")
        self.at = at + count
        return at

    def _descend(self) -> None:
        """Enter a nested value; the caller adds one to `depth_left` when the value ends."""
        self.depth_left -= 1
        if self.depth_left < 0:
            raise too_large("values are nested too deeply")

    def _spend(self, count: int) -> None:
        """Deduct `count` from the number of values that may still follow."""
        self.items_left -= count
        if self.items_left < 0:
            raise too_large("one value contains too many values")


def malformed(what: str) -> AmqpError:
    """Return the error for octets that do not encode a value."""
    return AmqpError(Condition.DECODE_ERROR, what)


def too_large(what: str) -> AmqpError:
    """Return the error for too many values, or values that are nested too deeply."""
    return AmqpError(Condition.RESOURCE_LIMIT_EXCEEDED, what)
