"""Hand-written encoders of TRANSFER, DISPOSITION and FLOW, into a connection's output buffer.

They are the counterparts of `reading`. They write the same octets as the table-driven codec, which
`tests/amqp/test_writing.py` checks, without making an object for each message. (Part 2, sections
2.7.4 to 2.7.6.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.amqp import codes, octets

if TYPE_CHECKING:
    from router.amqp.octets import Buffer

# The most octets that a transfer needs in addition to its payload: frame header 8, descriptor 3,
# list8 header 3, handle 5, delivery-id 5, tag 34, message-format 5 and seven single octets.
TRANSFER_OVERHEAD = 72
FLOW_BYTES = 80
DISPOSITION_BYTES = 64

# A transfer from its fifth octet on: data offset, type, a channel of 0, its descriptor, and the
# constructor of a list8. In the compiled build these constants are C integers (writing.pxd).
TRANSFER_HEAD = 0x02000000005314C0
# Its fields from `settled` on: false, but rcv-settle-mode and state are null; one octet is unused.
NO_FLAGS = 0x4242404042424200
# Subtracting one of these changes a false to true.
SETTLED = 1 << 56
MORE = 1 << 48
ABORTED = 1 << 16
BATCHABLE = 1 << 8

# The first allocation; most turns of a lightly used connection fit into it.
FIRST_BYTES = 4096
# A buffer that a stalled receiver made larger than this is freed as soon as it is empty.
KEEP_BYTES = 1048576


class Output:
    """Output buffer: the octets to be sent are `octets[begin:end]`."""

    def __init__(self) -> None:
        self.octets = memoryview(bytearray(0))
        self.begin = 0
        self.end = 0

    def reserve(self, count: int) -> None:
        """Make sure that `count` octets can be written at `end`."""
        if len(self.octets) - self.end < count:
            self._grow(count)

    def _grow(self, count: int) -> None:
        held = self.end - self.begin
        size = max(len(self.octets), FIRST_BYTES)
        # Growing by half as much again keeps appending linear; compacting alone would let a
        # nearly full buffer shift itself for every frame.
        while size < held + held // 2 + count:
            size *= 2
        target = memoryview(bytearray(size))
        octets.copy(target, 0, self.octets, self.begin, held)
        self.octets = target
        self.begin = 0
        self.end = held

    def size(self) -> int:
        """Return the number of octets written and not yet sent."""
        return self.end - self.begin

    def capacity(self) -> int:
        """Return the number of octets of memory that the buffer takes."""
        return len(self.octets)

    def waiting(self) -> memoryview:
        """Return a view of the octets to send; do not keep it across a write."""
        return memoryview(self.octets)[self.begin : self.end]

    def sent(self, count: int) -> None:
        """Drop the first `count` octets, which the socket has accepted."""
        self.begin += count
        if self.begin == self.end:
            self.begin = self.end = 0
            if len(self.octets) > KEEP_BYTES:
                self.octets = memoryview(bytearray(0))

    def trim(self) -> None:
        """Free the buffer's memory if no octets wait to be sent."""
        if self.begin == self.end:
            self.clear()

    def clear(self) -> None:
        """Discard all octets and free the buffer's memory."""
        self.begin = self.end = 0
        self.octets = memoryview(bytearray(0))

    def append(self, data: bytes) -> None:
        """Append a frame that was encoded elsewhere."""
        count = len(data)
        self.reserve(count)
        octets.copy(self.octets, self.end, data, 0, count)
        self.end += count


# The writers are flat on purpose and know Output's fields: a call costs as much as writing a field,
# and a transfer has eleven of them.


def _put_uint(output: Output, at: int, value: int) -> int:
    """Write a uint in its shortest encoding; return the position after it."""
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
    """Return how many octets `_put_uint` writes."""
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
    tag_size: int,
    tag_word: int,
    message_format: int,
    settled: bool,
    more: bool,
    aborted: bool,
    payload: Buffer,
    start: int,
    count: int,
    batchable: bool = False,
) -> None:
    """Write one transfer frame, followed by `payload[start:start + count]`.

    Only a delivery's first frame has the delivery-id, tag and message-format. If `tag` is None, the
    last `tag_size` octets of `tag_word` are the tag. If `tag_size` is 0 as well, the tag is 0xFE
    followed by the delivery-id.
    """
    output.reserve(TRANSFER_OVERHEAD + count)
    begin = output.end
    head = channel  # widened to eight octets
    octets.write_u64(output.octets, begin + 4, TRANSFER_HEAD | head << 32)
    output.octets[begin + 13] = 11
    at = _put_uint(output, begin + 14, handle)
    if first:
        at = _put_uint(output, at, delivery_id)
        if tag is None and tag_size == 0:
            octets.write_u16(output.octets, at, 0xA005)
            output.octets[at + 2] = 0xFE
            octets.write_u32(output.octets, at + 3, delivery_id)
            at += 7
        elif tag is None:
            octets.write_u16(output.octets, at, 0xA000 | tag_size)
            # the octets beyond the tag are overwritten by later fields
            octets.write_u64(output.octets, at + 2, tag_word << (64 - 8 * tag_size))
            at += 2 + tag_size
        else:
            octets.write_u16(output.octets, at, 0xA000 | len(tag))
            octets.put_bytes(output.octets, at + 2, tag)
            at += 2 + len(tag)
        at = _put_uint(output, at, message_format)
    else:
        octets.write_u16(output.octets, at, 0x4040)
        output.octets[at + 2] = 0x40
        at += 3
    flags = NO_FLAGS
    if settled:
        flags -= SETTLED
    if more:
        flags -= MORE
    if aborted:
        flags -= ABORTED
    if batchable:
        flags -= BATCHABLE
    octets.write_u64(output.octets, at, flags)
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
    state: Buffer,
    start: int,
    count: int,
) -> None:
    """Write one disposition.

    Its state is already encoded in `state[start:start + count]`. If `count` is 0, it is a state
    with the descriptor `state_code` and no fields, or null if `state_code` is NO_STATE.
    """
    output.reserve(DISPOSITION_BYTES + count)
    begin = output.end
    octets.write_u32(output.octets, begin + 4, 0x02000000 | channel)
    octets.write_u16(output.octets, begin + 8, 0x0053)
    output.octets[begin + 10] = codes.DISPOSITION
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
    elif state_code == codes.NO_STATE:
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
    """Write one flow, with a link's state if `has_link`, otherwise for the session alone."""
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
        output.octets[at] = 0x40
    output.octets[at + 1] = 0x41 if echo else 0x42
    output.octets[at + 2] = 0x40
    at += 3
    output.octets[begin + 12] = at - begin - 13
    octets.write_u32(output.octets, begin, at - begin)
    output.end = at
