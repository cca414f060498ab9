"""Access to raw memory: read, write and copy octets, each with its bounds checked.

Every other module of the data plane reaches the network's octets through these few functions, so
memory safety depends on this module alone. A call outside the given memory raises `IndexError`;
callers check against the frame first, so that a peer only ever sees AMQP errors.

The uncompiled build uses this file. Compiled modules use the inline functions of the same names in
`octets.pxd` instead, which copy ten times faster than this file would if it were compiled
(docs/decisions/0003-octets.md). Only this module and `engine.serial` are implemented twice; tests
check both implementations against one table.
"""

from __future__ import annotations

from struct import Struct

_U16 = Struct(">H")
_U32 = Struct(">I")
_U64 = Struct(">Q")

# Views are `memoryview` here and `unsigned char[::1]` when compiled; for reading, bytes suffice.
Buffer = bytes | bytearray | memoryview
WritableBuffer = bytearray | memoryview


def read_u16(source: Buffer, at: int) -> int:
    """Read two octets in network order at `at`."""
    _check(source, at, 2)
    value: int = _U16.unpack_from(source, at)[0]
    return value


def read_u32(source: Buffer, at: int) -> int:
    """Read four octets in network order at `at`."""
    _check(source, at, 4)
    value: int = _U32.unpack_from(source, at)[0]
    return value


def read_u64(source: Buffer, at: int) -> int:
    """Read eight octets in network order at `at`."""
    _check(source, at, 8)
    value: int = _U64.unpack_from(source, at)[0]
    return value


def mirror_u64(value: int) -> int:
    """Return a value with its eight octets in the opposite order."""
    return int.from_bytes(value.to_bytes(8, "little"), "big")


def write_u16(target: WritableBuffer, at: int, value: int) -> None:
    """Write two octets in network order at `at`."""
    _check(target, at, 2)
    _U16.pack_into(target, at, value)


def write_u32(target: WritableBuffer, at: int, value: int) -> None:
    """Write four octets in network order at `at`."""
    _check(target, at, 4)
    _U32.pack_into(target, at, value)


def write_u64(target: WritableBuffer, at: int, value: int) -> None:
    """Write eight octets in network order at `at`."""
    _check(target, at, 8)
    _U64.pack_into(target, at, value)


def copy(target: WritableBuffer, at: int, source: Buffer, start: int, count: int) -> None:
    """Copy `count` octets from `source[start]` to `target[at]`; the two ranges must not overlap."""
    _check(target, at, count)
    _check(source, start, count)
    target[at : at + count] = source[start : start + count]


def take_bytes(source: Buffer, start: int, count: int) -> bytes:
    """Return `count` octets of `source` from `start` on, as a new bytes object."""
    _check(source, start, count)
    return bytes(source[start : start + count])


def put_bytes(target: WritableBuffer, at: int, source: bytes) -> None:
    """Copy all of `source` to `target[at]` on."""
    _check(target, at, len(source))
    target[at : at + len(source)] = source


def _check(view: Buffer, at: int, count: int) -> None:
    if at < 0 or count < 0 or at + count > len(view):
        raise IndexError(f"{count} octets at {at} are outside of {len(view)}")
