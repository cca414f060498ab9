"""Decode a long value in steps, so that other work can be done in between.

Long lists and arrays are decoded in steps here, and everything else by `decode`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Final, TypeVar

from router.amqp.constants import DESCRIBED, FormatCode
from router.amqp.decode import read_array_head, read_value
from router.amqp.octets import Buffer
from router.amqp.reader import DEFAULT_LIMITS, Limits, Reader
from router.amqp.types import Array, Described, Value

T = TypeVar("T")

Steps = Generator[int, None, T]
"""Generator that yields the number of octets that each step has decoded, and returns the value."""

OCTETS_A_STEP: Final = 2048
"""About how many octets are decoded in a step, which takes some tens of microseconds."""


class _SteppingReader(Reader):
    """Reader that also knows where the present step began."""

    __slots__ = ("step_begin",)

    def __init__(self, data: Buffer, limits: Limits) -> None:
        super().__init__(data, 0, len(data), limits)
        self.step_begin = 0

    def is_step_done(self) -> bool:
        """Return whether so much has been decoded that the step should end."""
        return self.at - self.step_begin >= OCTETS_A_STEP

    def end_step(self) -> int:
        """Begin the next step; return how many octets this one has decoded."""
        count = self.at - self.step_begin
        self.step_begin = self.at
        return count


def decode_in_steps(data: Buffer, limits: Limits = DEFAULT_LIMITS) -> Steps[tuple[Value, int]]:
    """Decode the value at the start of `data` in steps; return it and the position after it.

    A step is longer than `OCTETS_A_STEP` only by one string, map or short list. Raises AmqpError as
    `decode_value` does.
    """
    reader = _SteppingReader(data, limits)
    value = yield from _read(reader)
    return value, reader.at


def _read(reader: _SteppingReader) -> Steps[Value]:
    code = reader.data[reader.at] if reader.at < reader.end else None
    if code == DESCRIBED:
        _skip_code(reader)
        reader.descend()
        descriptor = read_value(reader)
        value = yield from _read(reader)
        reader.depth_left += 1
        return Described(descriptor, value)
    # the forms with a size of one octet are short
    if code == FormatCode.LIST32:
        return (yield from _read_compound(reader, _read_list_items))
    if code == FormatCode.ARRAY32:
        return (yield from _read_compound(reader, _read_array_items))
    return read_value(reader)


def _skip_code(reader: Reader) -> None:
    reader.take(1)
    reader.spend(1)


def _read_compound(
    reader: _SteppingReader, read_items: Callable[[_SteppingReader, int], Steps[Value]]
) -> Steps[Value]:
    _skip_code(reader)
    outer_end, count = reader.enter(4)
    value = yield from read_items(reader, count)
    reader.leave(outer_end, count)
    return value


def _read_list_items(reader: _SteppingReader, count: int) -> Steps[list[Value]]:
    reader.check_count(count)
    items = []
    for _ in range(count):
        items.append((yield from _read(reader)))
        if reader.is_step_done():
            yield reader.end_step()
    return items


def _read_array_items(reader: _SteppingReader, count: int) -> Steps[Array]:
    read, element, descriptors = read_array_head(reader, count)
    items = []
    for _ in range(count):
        items.append(read(reader))
        if reader.is_step_done():
            yield reader.end_step()
    return Array(items, element, descriptors)
