"""TRANSFER, DISPOSITION and FLOW by hand: the frames that come once a message or once a batch.

Everything else on the wire goes through the table-driven codec (`performatives`); these three are
read into fields of one long-lived object and written straight into the output buffer, because at
a million messages a second no object may be made for one. Both codecs write the same octets, and
`tests/amqp/test_transfer.py` holds them to it. (Part 2, sections 2.7.4 to 2.7.6.)
"""

from __future__ import annotations

from typing import Any

from router.amqp import octets
from router.amqp.constants import Descriptor
from router.amqp.cursor import Cursor, malformed
from router.amqp.output import Output

# The compiled build keeps these in C, under the names of `constants.Descriptor`.
TRANSFER = int(Descriptor.TRANSFER)
DISPOSITION = int(Descriptor.DISPOSITION)
FLOW = int(Descriptor.FLOW)

# Delivery states by descriptor code (sections 3.4 and 4.5). UNREAD_STATE stands for a symbolic or
# unknown descriptor: such a state is passed on as it came.
NO_STATE = 0
RECEIVED = int(Descriptor.RECEIVED)
ACCEPTED = int(Descriptor.ACCEPTED)
REJECTED = int(Descriptor.REJECTED)
RELEASED = int(Descriptor.RELEASED)
MODIFIED = int(Descriptor.MODIFIED)
DECLARED = int(Descriptor.DECLARED)
TRANSACTIONAL = int(Descriptor.TRANSACTIONAL_STATE)
UNREAD_STATE = 0xFF

# What one transfer of ours needs beside its payload, at most: frame header 8, descriptor 3,
# list8 header 3, handle 5, delivery-id 5, tag 34, message-format 5 and seven single octets.
TRANSFER_OVERHEAD = 72
MAX_TAG_BYTES = 32
FLOW_BYTES = 80
DISPOSITION_BYTES = 64

# A field that was null or absent, where the field itself is an uint.
ABSENT = 0xFFFFFFFF


class TransferFrame:
    """The fields of the last transfer read (section 2.7.5); its payload is `octets[payload_at:end]`.

    `octets` is set once for all the frames that came with one read, by whoever moves the cursor.
    """

    def __init__(self) -> None:
        self.octets: Any = memoryview(b"")
        self.handle = 0
        self.has_delivery_id = False
        self.delivery_id = 0
        self.has_delivery_tag = False
        self.tag_at = 0
        self.tag_end = 0
        self.message_format = 0
        self.has_settled = False
        self.settled = False
        self.more = False
        self.rcv_settle_mode = -1
        self.state_at = 0
        self.state_end = 0
        self.resume = False
        self.aborted = False
        self.batchable = False
        self.payload_at = 0
        self.end = 0

    def read(self, cursor: Cursor) -> None:
        """Read the list after the descriptor; the payload is what lies behind it."""
        count = cursor.enter_list()
        list_end = cursor.value_end
        frame_end = cursor.end
        cursor.end = list_end
        self.has_delivery_id = False
        self.has_delivery_tag = False
        self.message_format = 0
        self.has_settled = self.settled = False
        self.more = self.resume = self.aborted = self.batchable = False
        self.rcv_settle_mode = -1
        self.state_at = self.state_end = 0
        if count < 1:
            raise malformed("a transfer without its handle")
        if count > 11:
            raise malformed("a transfer has 11 fields")
        handle = cursor.take_uint(ABSENT)
        if handle == ABSENT:
            raise malformed("a transfer without its handle")
        self.handle = handle
        if count > 1 and not self._null(cursor):
            self.delivery_id = cursor.take_uint(0)
            self.has_delivery_id = True
        if count > 2 and cursor.take_binary():
            self.has_delivery_tag = True
            self.tag_at = cursor.value_at
            self.tag_end = cursor.value_end
            if self.tag_end - self.tag_at > MAX_TAG_BYTES:
                raise malformed("a delivery-tag of more than 32 octets")
        if count > 3:
            self.message_format = cursor.take_uint(0)
        if count > 4 and not self._null(cursor):
            self.settled = cursor.take_boolean(False)
            self.has_settled = True
        if count > 5:
            self.more = cursor.take_boolean(False)
        if count > 6:
            self.rcv_settle_mode = cursor.take_ubyte(-1)
        if count > 7:
            self.state_at = cursor.at
            if self._null(cursor):
                self.state_at = 0
            else:
                cursor.skip()
                self.state_end = cursor.at
        if count > 8:
            self.resume = cursor.take_boolean(False)
        if count > 9:
            self.aborted = cursor.take_boolean(False)
        if count > 10:
            self.batchable = cursor.take_boolean(False)
        if cursor.at != list_end:
            raise malformed("a transfer's list is longer than its fields")
        self.payload_at = list_end
        self.end = frame_end
        cursor.end = frame_end

    def _null(self, cursor: Cursor) -> bool:
        """Take a null if one comes next."""
        if cursor.at < cursor.end and cursor.octets[cursor.at] == 0x40:
            cursor.at += 1
            return True
        return False


class DispositionFrame:
    """The fields of the last disposition read (section 2.7.6).

    `state_code` is one of the constants above; the state's own octets are
    `octets[state_at:state_end]`, and `plain` says that it carries no field at all.
    """

    def __init__(self) -> None:
        self.octets: Any = memoryview(b"")
        self.from_receiver = False
        self.first = 0
        self.last = 0
        self.settled = False
        self.state_code = NO_STATE
        self.state_at = 0
        self.state_end = 0
        self.plain = True
        self.batchable = False

    def read(self, cursor: Cursor) -> None:
        """Read the list after the descriptor."""
        count = cursor.enter_list()
        cursor.end = cursor.value_end
        if count < 2:
            raise malformed("a disposition without its role or first")
        if count > 6:
            raise malformed("a disposition has 6 fields")
        self.from_receiver = cursor.take_boolean(False)
        if cursor.octets[cursor.at] == 0x40:
            raise malformed("a disposition without its first")
        self.first = cursor.take_uint(0)
        self.last = self.first
        self.settled = False
        self.state_code = NO_STATE
        self.state_at = self.state_end = 0
        self.plain = True
        self.batchable = False
        if count > 2:
            self.last = cursor.take_uint(self.first)
        if count > 3:
            self.settled = cursor.take_boolean(False)
        if count > 4:
            self._read_state(cursor)
        if count > 5:
            self.batchable = cursor.take_boolean(False)
        if cursor.at != cursor.end:
            raise malformed("a disposition's list is longer than its fields")

    def _read_state(self, cursor: Cursor) -> None:
        start = cursor.at
        if start < cursor.end and cursor.octets[start] == 0x40:
            cursor.at = start + 1
            return
        cursor.skip()
        self.state_at = start
        self.state_end = cursor.at
        cursor.at = start
        code = cursor.take_descriptor()
        if RECEIVED <= code <= MODIFIED or code == DECLARED or code == TRANSACTIONAL:
            self.state_code = int(code)
            # list0, or a list8 that holds nothing: the outcome is its descriptor alone
            left = self.state_end - cursor.at
            self.plain = left == 1 or (left == 3 and cursor.octets[cursor.at + 2] == 0)
        else:
            self.state_code = UNREAD_STATE
            self.plain = False
        cursor.at = self.state_end


class FlowFrame:
    """The fields of the last flow read (section 2.7.4)."""

    def __init__(self) -> None:
        self.has_next_incoming_id = False
        self.next_incoming_id = 0
        self.incoming_window = 0
        self.next_outgoing_id = 0
        self.outgoing_window = 0
        self.has_handle = False
        self.handle = 0
        self.has_delivery_count = False
        self.delivery_count = 0
        self.has_link_credit = False
        self.link_credit = 0
        self.available = 0
        self.drain = False
        self.echo = False

    def read(self, cursor: Cursor) -> None:
        """Read the list after the descriptor."""
        count = cursor.enter_list()
        cursor.end = cursor.value_end
        if count < 4:
            raise malformed("a flow without its session windows")
        if count > 11:
            raise malformed("a flow has 11 fields")
        self.has_next_incoming_id = self._next_is_value(cursor)
        self.next_incoming_id = cursor.take_uint(0)
        self.incoming_window = self._mandatory(cursor)
        self.next_outgoing_id = self._mandatory(cursor)
        self.outgoing_window = self._mandatory(cursor)
        self.has_handle = self.has_delivery_count = self.has_link_credit = False
        self.available = 0
        self.drain = self.echo = False
        if count > 4:
            self.has_handle = self._next_is_value(cursor)
            self.handle = cursor.take_uint(0)
        if count > 5:
            self.has_delivery_count = self._next_is_value(cursor)
            self.delivery_count = cursor.take_uint(0)
        if count > 6:
            self.has_link_credit = self._next_is_value(cursor)
            self.link_credit = cursor.take_uint(0)
        if count > 7:
            self.available = cursor.take_uint(0)
        if count > 8:
            self.drain = cursor.take_boolean(False)
        if count > 9:
            self.echo = cursor.take_boolean(False)
        if count > 10:
            cursor.skip()
        if cursor.at != cursor.end:
            raise malformed("a flow's list is longer than its fields")

    def _next_is_value(self, cursor: Cursor) -> bool:
        return cursor.at < cursor.end and cursor.octets[cursor.at] != 0x40

    def _mandatory(self, cursor: Cursor) -> int:
        if not self._next_is_value(cursor):
            raise malformed("a flow without its session windows")
        return cursor.take_uint(0)


# The writers are flat on purpose and know Output's fields: a call into another compiled module costs
# as much as writing a field, and a transfer has eleven of them.


def _put_uint(output: Output, at: int, value: int) -> int:
    """Write an uint in its shortest encoding; returns where the next octet goes."""
    if value == 0:
        output.octets[at] = 0x43
        return at + 1
    if value < 256:
        octets.write_u16(output.octets, at, 0x5200 | value)
        return at + 2
    output.octets[at] = 0x70
    octets.write_u32(output.octets, at + 1, value)
    return at + 5


def _uint_bytes(value: int) -> int:
    """How many octets `_put_uint` writes."""
    if value == 0:
        return 1
    return 2 if value < 256 else 5


def write_transfer(
    output: Output,
    channel: int,
    handle: int,
    first: bool,
    delivery_id: int,
    tag: bytes | None,
    message_format: int,
    settled: bool,
    more: bool,
    aborted: bool,
    payload: Any,
    start: int,
    count: int,
) -> None:
    """Write one transfer frame with `payload[start:start + count]` behind it.

    Only a delivery's first frame carries id, tag and format. Without a `tag` the delivery-id's
    four octets are the tag: unique on its link, as section 2.6.7 asks, and nothing to allocate.
    """
    output.reserve(TRANSFER_OVERHEAD + count)
    begin = output.end
    octets.write_u32(output.octets, begin + 4, 0x02000000 | channel)
    octets.write_u32(output.octets, begin + 8, 0x005314C0)
    # one octet for the list's size, which is known at the end
    output.octets[begin + 13] = 11
    at = _put_uint(output, begin + 14, handle)
    if first:
        at = _put_uint(output, at, delivery_id)
        if tag is None:
            octets.write_u16(output.octets, at, 0xA004)
            octets.write_u32(output.octets, at + 2, delivery_id)
            at += 6
        else:
            octets.write_u16(output.octets, at, 0xA000 | len(tag))
            octets.copy(output.octets, at + 2, tag, 0, len(tag))
            at += 2 + len(tag)
        at = _put_uint(output, at, message_format)
    else:
        octets.write_u16(output.octets, at, 0x4040)
        output.octets[at + 2] = 0x40
        at += 3
    output.octets[at] = 0x41 if settled else 0x42
    output.octets[at + 1] = 0x41 if more else 0x42
    # rcv-settle-mode and state null, resume false
    octets.write_u16(output.octets, at + 2, 0x4040)
    output.octets[at + 4] = 0x42
    output.octets[at + 5] = 0x41 if aborted else 0x42
    output.octets[at + 6] = 0x42
    at += 7
    output.octets[begin + 12] = at - begin - 13
    octets.copy(output.octets, at, payload, start, count)
    at += count
    octets.write_u32(output.octets, begin, at - begin)
    output.end = at


def write_disposition(
    output: Output,
    channel: int,
    from_receiver: bool,
    first: int,
    last: int,
    settled: bool,
    state_code: int,
    state: Any,
    start: int,
    count: int,
) -> None:
    """Write one disposition; the state is its code alone, or with `count` the octets given."""
    output.reserve(DISPOSITION_BYTES + count)
    begin = output.end
    octets.write_u32(output.octets, begin + 4, 0x02000000 | channel)
    octets.write_u16(output.octets, begin + 8, 0x0053)
    output.octets[begin + 10] = DISPOSITION
    # list8 while everything fits: the count, role, settled and batchable take an octet each
    wide = count + _uint_bytes(first) + _uint_bytes(last) + 4 > 255
    if wide:
        output.octets[begin + 11] = 0xD0
        octets.write_u32(output.octets, begin + 16, 6)
        at = begin + 20
    else:
        output.octets[begin + 11] = 0xC0
        output.octets[begin + 13] = 6
        at = begin + 14
    output.octets[at] = 0x41 if from_receiver else 0x42
    at = _put_uint(output, at + 1, first)
    at = _put_uint(output, at, last)
    output.octets[at] = 0x41 if settled else 0x42
    at += 1
    if count:
        octets.copy(output.octets, at, state, start, count)
        at += count
    elif state_code == NO_STATE:
        output.octets[at] = 0x40
        at += 1
    else:
        octets.write_u16(output.octets, at, 0x0053)
        output.octets[at + 2] = state_code
        octets.write_u16(output.octets, at + 3, 0xC001)
        output.octets[at + 5] = 0x00
        at += 6
    output.octets[at] = 0x42
    at += 1
    if wide:
        octets.write_u32(output.octets, begin + 12, at - begin - 16)
    else:
        output.octets[begin + 12] = at - begin - 13
    octets.write_u32(output.octets, begin, at - begin)
    output.end = at


def write_flow(
    output: Output,
    channel: int,
    next_incoming_id: int,
    incoming_window: int,
    next_outgoing_id: int,
    outgoing_window: int,
    has_link: bool,
    handle: int,
    delivery_count: int,
    link_credit: int,
    available: int,
    drain: bool,
    echo: bool,
) -> None:
    """Write one flow, of the session alone or with a link's state."""
    output.reserve(FLOW_BYTES)
    begin = output.end
    octets.write_u32(output.octets, begin + 4, 0x02000000 | channel)
    octets.write_u32(output.octets, begin + 8, 0x005313C0)
    output.octets[begin + 13] = 11
    at = _put_uint(output, begin + 14, next_incoming_id)
    at = _put_uint(output, at, incoming_window)
    at = _put_uint(output, at, next_outgoing_id)
    at = _put_uint(output, at, outgoing_window)
    if has_link:
        at = _put_uint(output, at, handle)
        at = _put_uint(output, at, delivery_count)
        at = _put_uint(output, at, link_credit)
        at = _put_uint(output, at, available)
        output.octets[at] = 0x41 if drain else 0x42
    else:
        octets.write_u32(output.octets, at, 0x40404040)
        at += 4
        output.octets[at] = 0x42
    output.octets[at + 1] = 0x41 if echo else 0x42
    output.octets[at + 2] = 0x40
    at += 3
    output.octets[begin + 12] = at - begin - 13
    octets.write_u32(output.octets, begin, at - begin)
    output.end = at
