"""Decode and encode link state once, no matter how often it is received.

A router receives the same link state from all its neighbours, and passes it on to most of them. So
decoded link state is cached, with its encoding, by the octets received. The age, which differs each
time, is not a part of these octets.

Messages with an unusual layout are left to the general decoder, and so are malformed ones.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import attrs

from router.amqp.constants import Descriptor, FormatCode
from router.amqp.decode import decode_value
from router.amqp.encode import encode_value, write_list
from router.amqp.octets import Buffer
from router.amqp.types import Symbol, UInt
from router.control.network.messages import Aged, LinkState, LinkStateUpdate
from router.control.network.steps import Steps
from router.errors import AmqpError

MOST_REMEMBERED: Final = 4096
"""Most link states in the cache; the oldest is dropped for a new one."""
MOST_STATES: Final = 8192
"""Most link states in a message; if there are more, the general decoder reports an error."""
AT_ONCE: Final = 8
"""Least work in one step, in addresses."""
COST: Final = 5
OCTETS: Final = 4
"""Work of each link state, in addresses; and octets to decode, if it is not cached, per address."""
LARGEST_BYTES: Final = 2048
"""Largest link state that is cached."""

_OPCODE: Final = encode_value(Symbol(LinkStateUpdate.opcode))
_HEAD: Final = bytes((0x00, 0x53, Descriptor.AMQP_VALUE))
_LIST0, _LIST8, _LIST32 = map(int, (FormatCode.LIST0, FormatCode.LIST8, FormatCode.LIST32))
_UINT0, _UINT8, _UINT32 = map(int, (FormatCode.UINT0, FormatCode.SMALLUINT, FormatCode.UINT))
_U32: Final = struct.Struct(">I")
_U32_TWICE: Final = struct.Struct(">II")


class _UnusualLayoutError(Exception):
    """Error for a message with an unusual layout, or for a malformed message."""


class LinkStateCodec:
    """Codec of link state messages, with a cache.

    `read` makes a `LinkState` from a decoded value, and raises ValueError if that is impossible;
    `write` returns the value to encode.
    """

    def __init__(
        self, read: Callable[[object], LinkState], write: Callable[[LinkState], object]
    ) -> None:
        self._read = read
        self._write = write
        self._known: dict[bytes, LinkState] = {}
        # octets of the last link state that was not cached
        self._decoded = 0

    def encode(self, message: LinkStateUpdate) -> bytes:
        """Return the whole AMQP message for a link state update."""
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
        """Decode a whole AMQP message in steps; return None if it needs the general decoder."""
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
        except (_UnusualLayoutError, IndexError, struct.error):
            return None
        if spent:
            yield spent
        return LinkStateUpdate(tuple(found)) if at == end else None

    def _aged_at(self, data: bytes, at: int, end: int) -> tuple[int, Aged]:
        """Read the link state and age at `at`; return the position after the age, and an `Aged`."""
        at, aged_end, count = _list_at(data, at)
        _, state_end, _ = _list_at(data, at)
        if count != 2 or aged_end > end or state_end > aged_end:
            raise _UnusualLayoutError
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
            raise _UnusualLayoutError
        if state_end + width != aged_end:
            raise _UnusualLayoutError
        return aged_end, Aged(state, age_ms)

    def _state_of(self, octets: bytes) -> LinkState:
        known = self._known
        state = known.get(octets)
        if state is None:
            try:
                value, _ = decode_value(octets)
                state = self._read(value)
            except (AmqpError, ValueError):
                raise _UnusualLayoutError from None
            state = attrs.evolve(state, octets=encode_value(self._write(state)))
            self._decoded += len(octets)
            if len(octets) <= LARGEST_BYTES:
                if len(known) >= MOST_REMEMBERED:
                    # clearing the whole cache would take long
                    del known[next(iter(known))]
                known[octets] = state
        return state


def _list_at(data: bytes, at: int) -> tuple[int, int, int]:
    """Return where the items of the list at `at` begin and end, and their declared count."""
    code = data[at]
    if code == _LIST8:
        return at + 3, at + 2 + data[at + 1], data[at + 2]
    if code == _LIST32:
        size, count = _U32_TWICE.unpack_from(data, at + 1)
        return at + 9, at + 5 + size, count
    if code == _LIST0:
        return at + 1, at + 1, 0
    raise _UnusualLayoutError
