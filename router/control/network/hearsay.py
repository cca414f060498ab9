"""What routers say of their links, read and written once, however often it is heard.

Every router says it over each of its connections: a router hears the same octets from all its
neighbours, and passes them on to most of them. So what was read is remembered by its octets, and
how it is written is kept with it. Only how old it is differs each time.

Messages that are laid out in any other way than most are left to the general reader, and so is
everything that is wrong with them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

import attrs

from router.amqp.constants import Descriptor, FormatCode
from router.amqp.decode import Buffer, decode_value
from router.amqp.encode import encode_value, write_list
from router.amqp.types import Symbol, UInt
from router.control.network.messages import Aged, LinkState, LinkStateUpdate
from router.control.network.steps import Steps
from router.errors import AmqpError

MOST_REMEMBERED: Final = 4096
"""Of so many things that were said; the oldest is forgotten for another one."""
MOST_STATES: Final = 8192
"""No message has more of them; the general reader says so."""
AT_ONCE: Final = 64
"""After so much work, in addresses, others may have a turn."""
COST: Final = 5
OCTETS: Final = 16
"""Each router is as much work as so many addresses, and each of so many octets that were not heard
before as one more.
"""
LARGEST_BYTES: Final = 2048
"""What is longer is not remembered."""

_OPCODE: Final = encode_value(Symbol(LinkStateUpdate.opcode))
_HEAD: Final = bytes((0x00, 0x53, Descriptor.AMQP_VALUE))
_LIST0, _LIST8, _LIST32 = map(int, (FormatCode.LIST0, FormatCode.LIST8, FormatCode.LIST32))
_UINT0, _UINT8, _UINT32 = map(int, (FormatCode.UINT0, FormatCode.SMALLUINT, FormatCode.UINT))
_U32: Final = struct.Struct(">I")
_U32_TWICE: Final = struct.Struct(">II")


class _OtherError(Exception):
    """It is laid out in another way, or wrong."""


class Hearsay:
    """`read` makes a `LinkState` of a decoded value, and raises ValueError where it is none;
    `write` gives the value that is encoded.
    """

    def __init__(self, read: Callable[[Any], LinkState], write: Callable[[LinkState], Any]) -> None:
        self._read = read
        self._write = write
        self._known: dict[bytes, LinkState] = {}
        # octets of the last one that were not known
        self._decoded = 0

    def encode(self, message: LinkStateUpdate) -> bytes:
        """The octets of the whole AMQP message."""
        body = bytearray()
        for aged in message.states:
            octets = aged.state.octets or encode_value(self._write(aged.state))
            write_list(body, 2, octets + encode_value(UInt(aged.age_ms)))
        whole = bytearray(_OPCODE)
        if message.states:
            write_list(whole, len(message.states), body)
        else:
            whole.append(_LIST0)
        found = bytearray(_HEAD)
        write_list(found, 2, whole)
        return bytes(found)

    def decode(self, octets: Buffer) -> Steps[LinkStateUpdate | None]:
        """What a whole AMQP message says, or None where that is for the general reader; it is read
        bit by bit.
        """
        data = bytes(octets)
        try:
            if not data.startswith(_HEAD):
                return None
            at, end, count = _list_at(data, len(_HEAD))
            if count != 2 or end != len(data) or not data.startswith(_OPCODE, at):
                return None
            at, inner_end, count = _list_at(data, at + len(_OPCODE))
            if inner_end != end or count > MOST_STATES:
                return None
            found = []
            spent = 0
            for _ in range(count):
                self._decoded = 0
                at, aged = self._aged_at(data, at, end)
                found.append(aged)
                spent += COST + self._decoded // OCTETS
                if spent >= AT_ONCE:
                    yield spent
                    spent = 0
        except (_OtherError, IndexError, struct.error):
            return None
        return LinkStateUpdate(tuple(found)) if at == end else None

    def _aged_at(self, data: bytes, at: int, end: int) -> tuple[int, Aged]:
        """The place behind it, and what is there."""
        at, aged_end, count = _list_at(data, at)
        _, state_end, _ = _list_at(data, at)
        if count != 2 or aged_end > end or state_end > aged_end:
            raise _OtherError
        state = self._state_of(data[at:state_end])
        code = data[state_end]
        if code == _UINT32:
            (age_ms,) = _U32.unpack_from(data, state_end + 1)
            width = 5
        elif code == _UINT8:
            age_ms, width = data[state_end + 1], 2
        elif code == _UINT0:
            age_ms, width = 0, 1
        else:
            raise _OtherError
        if state_end + width != aged_end:
            raise _OtherError
        return aged_end, Aged(state, age_ms)

    def _state_of(self, octets: bytes) -> LinkState:
        known = self._known
        state = known.get(octets)
        if state is None:
            try:
                value, _ = decode_value(octets)
                state = self._read(value)
            except (AmqpError, ValueError):
                raise _OtherError from None
            state = attrs.evolve(state, octets=encode_value(self._write(state)))
            self._decoded += len(octets)
            if len(octets) <= LARGEST_BYTES:
                if len(known) >= MOST_REMEMBERED:
                    # to clear it would take long
                    del known[next(iter(known))]
                known[octets] = state
        return state


def _list_at(data: bytes, at: int) -> tuple[int, int, int]:
    """Where the items of a list begin and end, and how many there are said to be."""
    code = data[at]
    if code == _LIST8:
        return at + 3, at + 2 + data[at + 1], data[at + 2]
    if code == _LIST32:
        size, count = _U32_TWICE.unpack_from(data, at + 1)
        return at + 9, at + 5 + size, count
    if code == _LIST0:
        return at + 1, at + 1, 0
    raise _OtherError
