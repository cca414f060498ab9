"""Check whether message annotations contain annotations of the router itself.

Every message with annotations is checked, so only nine octets of each key are compared. The few
messages that have such annotations are rewritten by `revision`.
"""

from __future__ import annotations

from router.amqp import octets
from router.amqp.reading import TransferFrame

# The router's own keys begin with this, as Qpid Dispatch's do.
PREFIX = "x-opt-qd."

PREFIX_BYTES = len(PREFIX)
# the prefix without its last octet, which is a full stop
PREFIX_HEAD = int.from_bytes(PREFIX[:8].encode(), "big")
FULL_STOP = 0x2E

MAP8 = 0xC1
DESCRIBED = 0x00
# the result of `_step` if a value reaches beyond the end
OUTSIDE = -1


def have_no_own_keys(frame: TransferFrame, at: int, end: int) -> bool:
    """Return whether `frame.octets[at:end]` is a map without any of the router's own keys.

    The octets begin with a map's constructor. The answer is also False if the map's count or size
    does not match its entries. A string key counts as a symbol, because some peers send strings.
    """
    left = end - at
    if left < 3:
        return False
    if frame.octets[at] == MAP8:
        count = int(frame.octets[at + 2])
        at += 3
    else:
        if left < 9:
            return False
        count = octets.read_u32(frame.octets, at + 5)
        at += 9
    if count & 1:
        return False
    while count:
        if _is_own(frame, at, end):
            return False
        at = _step(frame, at, end)
        if at == OUTSIDE:
            return False
        at = _step(frame, at, end)
        if at == OUTSIDE:
            return False
        count -= 2
    return at == end


def _is_own(frame: TransferFrame, at: int, end: int) -> bool:
    """Return whether a symbol or string at `at` begins with the prefix of the router's keys."""
    if at >= end:
        return False
    constructor = frame.octets[at]
    # sym8 or str8, else sym32 or str32
    if constructor == 0xA3 or constructor == 0xA1:
        if end - at < 2 or frame.octets[at + 1] < PREFIX_BYTES:
            return False
        at += 2
    elif constructor == 0xB3 or constructor == 0xB1:
        if end - at < 5 or octets.read_u32(frame.octets, at + 1) < PREFIX_BYTES:
            return False
        at += 5
    else:
        return False
    return (
        end - at >= PREFIX_BYTES
        and octets.read_u64(frame.octets, at) == PREFIX_HEAD
        and frame.octets[at + 8] == FULL_STOP
    )


def _step(frame: TransferFrame, at: int, end: int) -> int:
    """Return where the value at `at` ends; OUTSIDE if it exceeds `end` or is of unknown type."""
    values = 1
    while values:
        if at >= end:
            return OUTSIDE
        constructor = int(frame.octets[at])
        at += 1
        if constructor == DESCRIBED:
            # its descriptor, which may be described itself, and then the value
            values += 1
            continue
        category = constructor >> 4
        if category < 4:
            return OUTSIDE
        if category < 0xA:
            # none, 1, 2, 4, 8 and 16 octets
            at += (1 << (category - 4)) >> 1
        elif category & 1:
            if end - at < 4:
                return OUTSIDE
            at += 4 + octets.read_u32(frame.octets, at)
        else:
            if end - at < 1:
                return OUTSIDE
            at += 1 + frame.octets[at]
        if at > end:
            return OUTSIDE
        values -= 1
    return at
