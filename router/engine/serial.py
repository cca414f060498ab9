"""Serial number arithmetic: sequence numbers that wrap at 2**32 (RFC 1982, part 2 section 2.8.10).

All arithmetic on delivery-ids, transfer-ids and delivery-counts goes through here, so that the
compiled build, whose fields wrap by themselves, and the interpreted one, whose integers grow, can
only ever agree.
"""

from __future__ import annotations


def serial_add(number: int, count: int) -> int:
    """`number` moved on by `count`, which may be negative."""
    return (number + count) & 0xFFFFFFFF


def serial_distance(start: int, end: int) -> int:
    """How far `end` lies ahead of `start`: from -2**31 to 2**31 - 1, negative when behind.

    RFC 1982 leaves the order of numbers exactly 2**31 apart undefined; here that is "behind".
    """
    distance = (end - start) & 0xFFFFFFFF
    if distance >= 0x80000000:
        return distance - 0x100000000
    return distance
