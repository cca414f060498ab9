"""Hand-written decoder of TRANSFER, with a cursor that checks each advance.

TRANSFER, DISPOSITION (`reading_disposition`) and FLOW (`reading_flow`) come once per message or
batch. Every other frame goes through the table-driven codec (`performatives`). These three are read
into the fields of long-lived objects, because at a million messages a second there is no time to
make an object for each. The cursor knows only the encodings that the fields of these frames can
have. Anything that reaches past the frame's end, or has a constructor that its field does not
allow, raises `AmqpError` with amqp:decode-error. (Part 1, section 1.2; part 2, section 2.7.5.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import octets
from router.errors import AmqpError, Scope

if TYPE_CHECKING:
    from router.amqp.octets import Buffer

MAX_TAG_BYTES = 32
# A transfer's seven fields from `settled` on, an octet each, all null. In the XOR of valid fields
# with NULLS, the bits of NO_FLAGS are zero: rcv-settle-mode and state can only be null, the others
# also true or false.
NULLS = 0x4040404040404040
NO_FLAGS = 0xFCFCFFFFFCFCFCFF
EACH_OCTET = 0x0101010101010101
# The bit that true leaves in each field.
SETTLED = 1 << 56
MORE = 1 << 48
RESUME = 1 << 24
ABORTED = 1 << 16
BATCHABLE = 1 << 8

# Returned where a numeric descriptor was expected and none was found.
NO_VALUE = 0xFFFFFFFFFFFFFFFF


def malformed(what: str) -> AmqpError:
    """Return the error for a frame that cannot be read."""
    return AmqpError("amqp:decode-error", what, Scope.CONNECTION)


class Cursor:
    """Position in memory that is checked at each step: `at` is the next octet, `end` the limit."""

    def __init__(self) -> None:
        self.octets: Buffer = memoryview(b"")
        self.at = 0
        self.end = 0
        # where the last variable-width value lies: [value_at, value_end)
        self.value_at = 0
        self.value_end = 0

    def move(self, view: Buffer, at: int, end: int) -> None:
        """Move to `view[at:end]`."""
        if at < 0 or end < at or end > len(view):
            raise malformed("a frame ends outside the octets that were read")
        self.octets = view
        self.at = at
        self.end = end

    def take_null(self) -> bool:
        """Step over a null if it is the next value; return whether it was."""
        if self.at < self.end and self.octets[self.at] == 0x40:
            self.at += 1
            return True
        return False

    def take_u8(self) -> int:
        """Step over one octet and return it."""
        at = self.at
        if at >= self.end:
            raise malformed("the frame ends inside a value")
        self.at = at + 1
        value: int = self.octets[at]
        return value

    def take_u32(self) -> int:
        """Step over four octets in network order and return them as a number."""
        at = self.at
        if self.end - at < 4:
            raise malformed("the frame ends inside a value")
        self.at = at + 4
        return octets.read_u32(self.octets, at)

    def take_u64(self) -> int:
        """Step over eight octets in network order and return them as a number."""
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
        """Step over a numeric descriptor and return it; return NO_VALUE if there is none.

        The cursor does not move if the next value is not described or has a symbolic descriptor.
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
        """Move to the first item of a list and return the list's count of items.

        Sets `value_end` to the end of the list.
        """
        # The short forms, here and in `take_binary`, come with every message.
        at = self.at
        left = self.end - at
        if left >= 3 and self.octets[at] == 0xC0:
            size: int = self.octets[at + 1]
            if size < 1 or size > left - 2:
                raise malformed("a list's size points past the end of the frame")
            count: int = self.octets[at + 2]
            if count >= size:
                raise malformed("the count of a list is larger than its size allows")
            self.at = at + 3
            self.value_end = at + 2 + size
            return count
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
            raise malformed(f"constructor 0x{constructor:02x} where a list is expected")
        if count > self.value_end - self.at:
            raise malformed("the count of a list is larger than its size allows")
        return count

    def take_uint(self, absent: int) -> int:
        """Step over a uint or a null; return the uint, or `absent` for a null."""
        # This and `take_boolean` run some ten times per message, so they read the octets directly.
        at = self.at
        left = self.end - at
        if left < 1:
            raise malformed("the frame ends inside a value")
        constructor = self.octets[at]
        if constructor == 0x52 and left >= 2:
            self.at = at + 2
            small: int = self.octets[at + 1]
            return small
        if constructor == 0x70 and left >= 5:
            self.at = at + 5
            return octets.read_u32(self.octets, at + 1)
        self.at = at + 1
        if constructor == 0x43:
            return 0
        if constructor == 0x52 or constructor == 0x70:
            raise malformed("the frame ends inside a value")
        if constructor != 0x40:
            raise malformed(f"constructor 0x{constructor:02x} where a uint is expected")
        return absent

    def take_ubyte(self, absent: int) -> int:
        """Step over a ubyte or a null; return the ubyte, or `absent` for a null."""
        constructor = self.take_u8()
        if constructor == 0x50:
            return self.take_u8()
        if constructor != 0x40:
            raise malformed(f"constructor 0x{constructor:02x} where a ubyte is expected")
        return absent

    def take_boolean(self, absent: bool) -> bool:
        """Step over a boolean or a null; return the boolean, or `absent` for a null."""
        at = self.at
        if at >= self.end:
            raise malformed("the frame ends inside a value")
        constructor = self.octets[at]
        self.at = at + 1
        if constructor == 0x42:
            return False
        if constructor == 0x41:
            return True
        if constructor == 0x56:
            octet = self.take_u8()
            if octet > 1:
                raise malformed(f"a boolean is 0x{octet:02x}; only 0x00 and 0x01 are allowed")
            return octet == 1
        if constructor != 0x40:
            raise malformed(f"constructor 0x{constructor:02x} where a boolean is expected")
        return absent

    def take_binary(self) -> bool:
        """Step over a binary or a null; return False for a null.

        The content of a binary is at [value_at, value_end).
        """
        at = self.at
        left = self.end - at
        if left >= 2 and self.octets[at] == 0xA0:
            size: int = self.octets[at + 1]
            if size > left - 2:
                raise malformed("a size points past the end of the frame")
            self.value_at = at + 2
            self.at = self.value_end = at + 2 + size
            return True
        constructor = self.take_u8()
        if constructor == 0xA0:
            size = self.take_u8()
        elif constructor == 0xB0:
            size = self.take_u32()
        elif constructor == 0x40:
            self.value_at = self.value_end = self.at
            return False
        else:
            raise malformed(f"constructor 0x{constructor:02x} where a binary is expected")
        self.value_at = self.at
        self.advance(size)
        self.value_end = self.at
        return True

    def take_string(self) -> bool:
        """Step over a value of any type; return whether it was a string.

        The string's content is at [value_at, value_end); its UTF-8 is not checked.
        """
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
        """Skip one value of any type, with its descriptors.

        Sizes are checked against the end of the frame. The content is not read, so this takes one
        step per descriptor and never recurses.
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


class TransferFrame:
    """Fields of the last transfer read (section 2.7.5).

    The transfer's payload is `octets[payload_at:end]`. The caller of `read` sets `octets` once for
    all frames that came in one read from the socket.
    """

    def __init__(self) -> None:
        self.octets: Buffer = memoryview(b"")
        self.handle = 0
        self.has_delivery_id = False
        self.delivery_id = 0
        self.has_delivery_tag = False
        self.tag_at = 0
        self.tag_end = 0
        self.message_format = 0
        self.settled = False
        self.more = False
        self.rcv_settle_mode = -1
        self.state_at = 0
        self.state_end = 0
        self.resume = False
        self.aborted = False
        self.batchable = False
        # it has a settle mode or a state, or resumes a delivery: most transfers do not
        self.is_unusual = False
        self.payload_at = 0
        self.end = 0

    def read(self, cursor: Cursor) -> None:
        """Read the list of fields after the descriptor; the rest of the frame is the payload."""
        count = cursor.enter_list()
        list_end = cursor.value_end
        frame_end = cursor.end
        cursor.end = list_end
        self.has_delivery_id = False
        self.has_delivery_tag = False
        self.message_format = 0
        self.settled = False
        self.more = self.resume = self.aborted = self.batchable = False
        self.rcv_settle_mode = -1
        self.state_at = self.state_end = 0
        self.is_unusual = False
        if count < 1 or count > 11:
            raise malformed(f"transfer of {count} fields; 1 to 11 are allowed")
        at = cursor.at
        self.handle = cursor.take_uint(0)
        if self.handle == 0 and cursor.octets[at] == 0x40:
            raise malformed("a transfer has no handle")
        if count > 1:
            at = cursor.at
            self.delivery_id = cursor.take_uint(0)
            self.has_delivery_id = self.delivery_id != 0 or cursor.octets[at] != 0x40
        if count > 2 and cursor.take_binary():
            self.has_delivery_tag = True
            self.tag_at = cursor.value_at
            self.tag_end = cursor.value_end
            if self.tag_end - self.tag_at > MAX_TAG_BYTES:
                raise malformed("a delivery-tag has more than 32 octets")
        if count > 3:
            self.message_format = cursor.take_uint(0)
        if count > 4 and not self._read_flags(cursor, count):
            self._read_rest(cursor, count)
        if cursor.at != list_end:
            raise malformed("a transfer's list is longer than its fields")
        self.payload_at = list_end
        self.end = frame_end
        cursor.end = frame_end

    def _read_flags(self, cursor: Cursor, count: int) -> bool:
        """Read the fields after the message-format, if they are only short booleans and nulls.

        In this usual case each field is one octet, and all together fit into a machine word.
        Returns whether the fields were read.
        """
        given = count - 4
        if cursor.end - cursor.at != given or cursor.end < 8:
            return False
        word = octets.read_u64(cursor.octets, cursor.end - 8) ^ NULLS
        # the first field begins here, whatever preceded it
        word = word << (64 - 8 * given) & NO_VALUE
        # there must be nothing but 0x40, 0x41 and 0x42, and only null where no boolean belongs
        if word & NO_FLAGS or word & word >> 1 & EACH_OCTET:
            return False
        cursor.at = cursor.end
        if word & EACH_OCTET:
            self.settled = word & SETTLED != 0
            self.more = word & MORE != 0
            self.resume = word & RESUME != 0
            self.aborted = word & ABORTED != 0
            self.batchable = word & BATCHABLE != 0
            self.is_unusual = self.resume
        return True

    def _read_rest(self, cursor: Cursor, count: int) -> None:
        """Read the fields after the message-format, in any encoding."""
        self.settled = cursor.take_boolean(False)
        if count > 5:
            self.more = cursor.take_boolean(False)
        if count > 6:
            self.rcv_settle_mode = cursor.take_ubyte(-1)
            self.is_unusual = self.rcv_settle_mode >= 0
            if self.rcv_settle_mode > 1:
                raise malformed("a transfer's rcv-settle-mode must be 0 (first) or 1 (second)")
        if count > 7:
            self.state_at = cursor.at
            if cursor.take_null():
                self.state_at = 0
            else:
                cursor.skip()
                self.state_end = cursor.at
                self.is_unusual = True
        if count > 8:
            self.resume = cursor.take_boolean(False)
            self.is_unusual = self.is_unusual or self.resume
        if count > 9:
            self.aborted = cursor.take_boolean(False)
        if count > 10:
            self.batchable = cursor.take_boolean(False)

    def with_payload(self, payload: bytes) -> TransferFrame:
        """Return a copy of the frame that has another payload, and neither a tag nor a state."""
        other = TransferFrame()
        other.octets = payload
        other.end = len(payload)
        other.handle = self.handle
        other.has_delivery_id = self.has_delivery_id
        other.delivery_id = self.delivery_id
        other.message_format = self.message_format
        other.settled = self.settled
        other.more = self.more
        other.rcv_settle_mode = self.rcv_settle_mode
        other.resume = self.resume
        other.aborted = self.aborted
        other.batchable = self.batchable
        return other
