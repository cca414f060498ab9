"""Serial number arithmetic: sequence numbers that wrap at 2**32 (RFC 1982, part 2 section 2.8.10).

All arithmetic on delivery-ids, transfer-ids and delivery-counts uses these functions. So the
compiled build, whose integers wrap by themselves, and the interpreted one, whose integers grow,
always agree. Like `amqp.octets`, these functions are inlined into compiled modules from
`serial.pxd`: a call would cost more than the addition, and a message needs a dozen of them.
"""

from __future__ import annotations


def add(number: int, count: int) -> int:
    """Return `number` plus `count`, which may be negative, wrapping around."""
    return (number + count) & 0xFFFFFFFF


def ahead(start: int, end: int) -> int:
    """Return how far `end` lies ahead of `start`, wrapping around: from 0 to 2**32 - 1."""
    return (end - start) & 0xFFFFFFFF


def distance(start: int, end: int) -> int:
    """Return how far `end` lies ahead of `start`: from -2**31 to 2**31 - 1, negative when behind.

    RFC 1982 leaves the order of numbers exactly 2**31 apart undefined; here that is "behind".
    """
    forward = (end - start) & 0xFFFFFFFF
    return forward - 0x100000000 if forward >= 0x80000000 else forward
