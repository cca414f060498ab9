"""Serial number arithmetic: sequence numbers that wrap at 2**32 (RFC 1982, part 2 section 2.8.10).

All arithmetic on delivery-ids, transfer-ids and delivery-counts goes through here, so that the
compiled build, whose fields wrap by themselves, and the interpreted one, whose integers grow, can
only ever agree.
"""

from __future__ import annotations

# Typed in the .pxd: literals beyond 31 bits would be Python objects in the compiled build.
MASK = 0xFFFFFFFF
HALF = 0x80000000
WHOLE = 0x100000000


def serial_add(number: int, count: int) -> int:
    """`number` moved on by `count`, which may be negative."""
    return (number + count) & MASK


def serial_distance(start: int, end: int) -> int:
    """How far `end` lies ahead of `start`: from -2**31 to 2**31 - 1, negative when behind.

    RFC 1982 leaves the order of numbers exactly 2**31 apart undefined; here that is "behind".
    """
    distance = (end - start) & MASK
    if distance >= HALF:
        return distance - WHOLE
    return distance


def serial_ahead(start: int, end: int) -> int:
    """How far `end` lies ahead of `start` where it is known never to lie behind: 0 to 2**32 - 1."""
    return (end - start) & MASK
