"""Encode and decode control messages: AMQP messages with one section, an amqp-value with a list.

The list begins with the opcode, a symbol; the fields follow in the order of the message's class.
Additional items are reserved for later versions and ignored. Everything else is checked: decoding
returns a message or raises `AmqpError`, with time and memory in proportion to the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, Final, Generic, TypeVar

import attrs

from router.amqp.constants import Descriptor
from router.amqp.encode import encode_value
from router.amqp.octets import Buffer
from router.amqp.stepwise import OCTETS_A_STEP
from router.amqp.types import Array, Described, Symbol, UInt, ULong
from router.control.network import messages as m
from router.control.network.digests import BUCKETS
from router.control.network.link_state_codec import LinkStateCodec
from router.control.network.steps import (
    OCTETS_AN_ADDRESS,
    Steps,
    decode_value_in_steps,
    do_all,
)
from router.errors import AmqpError, Scope

T = TypeVar("T")
R = TypeVar("R", bound=attrs.AttrsInstance)
M = TypeVar("M", bound=m.Message)

MAX_CONTROL_BYTES: Final = 1 << 18
"""Largest control message; nearly all are below `CHUNK_BYTES`."""
CHUNK_BYTES: Final = 32_768
"""Approximate size of each part of data that is sent in several messages."""
MAX_ID_BYTES: Final = 255
"""Longest id of a router, in UTF-8."""
MAX_KEY_BYTES: Final = 8192
"""Longest key of an address, in UTF-8."""
MAX_LINKS: Final = 16_384
"""Most neighbours of a router."""
MOST_ITEMS: Final = 8192
"""Most routers, rows, wishes or addresses in a message."""
MAX_COST: Final = 2**31 - 1
MAX_NUMBER: Final = 2**63 - 1
"""Largest instance and sequence number."""
MAX_OPTIONS_BYTES: Final = 4096
TEXTS_A_STEP: Final = 64
RECORDS_A_STEP: Final = 16
"""Most texts and records of a message that are checked in one step."""
MALFORMED: Final = "trioute:malformed-control-message"


@attrs.frozen
class FieldCodec(Generic[T]):
    """Codec of one field of a message; `read` raises ValueError or AmqpError for a bad value.

    Fields that may be long have `read_in_steps`, which does the same.
    """

    write: Callable[[T], object]
    read: Callable[[object], T]
    read_in_steps: Callable[[object], Steps[T]] | None = None


AnyCodec = FieldCodec[Any]
"""Codec of a field of any type."""


@attrs.frozen
class MessageCodec:
    """Codec of one class of messages, for the items of the list after the opcode."""

    kind: type
    write: Callable[[object], list[object]]
    read_in_steps: Callable[[object], Steps[m.Message]]


def _ulong(value: object) -> int:
    if type(value) is not ULong:
        raise ValueError("is not a ulong")
    return int(value)


def _number(value: object) -> int:
    if type(value) is not ULong or value > MAX_NUMBER:
        raise ValueError(f"is not a ulong up to {MAX_NUMBER}")
    return int(value)


def _boolean(value: object) -> bool:
    if type(value) is not bool:
        raise ValueError("is not a boolean")
    return value


def _uint(least: int, most: int) -> FieldCodec[int]:
    def read(value: object) -> int:
        if type(value) is not UInt or not least <= value <= most:
            raise ValueError(f"is not a uint from {least} to {most}")
        return int(value)

    return FieldCodec(UInt, read)


def _text(most: int) -> FieldCodec[str]:
    def read(value: object) -> str:
        if type(value) is not str or not 0 < len(value) <= len(value.encode()) <= most:
            raise ValueError(f"is not a string of 1 to {most} octets")
        return value

    return FieldCodec(str, read)


def _items(value: object, kind: type) -> tuple[Any, ...]:
    if type(value) is not Array or value.element is not kind or value.descriptors:
        raise ValueError(f"is not an array of {kind.__name__.lower()}")
    return value.items


def _few(items: Sized) -> None:
    if len(items) > MOST_ITEMS:
        raise ValueError(f"has {len(items)} items, more than {MOST_ITEMS}")


def _texts(most: int) -> FieldCodec[tuple[str, ...]]:
    one = _text(most)

    def read(value: object) -> Steps[tuple[str, ...]]:
        items = _items(value, str)
        _few(items)
        for number, each in enumerate(items, 1):
            one.read(each)
            if number % TEXTS_A_STEP == 0:
                yield TEXTS_A_STEP // 4
        return items

    return _long(lambda value: Array(value, str), read)


def _long(
    write: Callable[[T], object], read_in_steps: Callable[[object], Steps[T]]
) -> FieldCodec[T]:
    """Return the codec of a field that may be long."""
    return FieldCodec(write, lambda value: do_all(read_in_steps(value)), read_in_steps)


def _read_digests(value: object) -> tuple[int, ...]:
    items = _items(value, ULong)
    if len(items) != BUCKETS:
        raise ValueError(f"has {len(items)} items, not {BUCKETS}")
    return tuple(map(int, items))


def _read_terms(value: object) -> bytes:
    if type(value) is not bytes:
        raise ValueError("is not a binary")
    return value


def _read_links(value: object) -> dict[str, int]:
    if type(value) is not dict or len(value) > MAX_LINKS:
        raise ValueError(f"is not a map with at most {MAX_LINKS} entries")
    return {_ID.read(key): _COST.read(cost) for key, cost in value.items()}


def _read_options(value: object) -> m.Options:
    if type(value) is not dict or any(type(key) is not Symbol for key in value):
        raise ValueError("is not a map with symbols as keys")
    if value and len(encode_value(value)) > MAX_OPTIONS_BYTES:
        raise ValueError(f"has more than {MAX_OPTIONS_BYTES} octets")
    return value


def _record(kind: type[R], *fields: AnyCodec, optional: int = 0) -> FieldCodec[R]:
    """Return a codec for objects of a class, which are encoded as lists of their fields.

    Additional items are ignored. The last `optional` fields may be missing, and have their
    defaults.
    """
    names = _names(kind, fields)
    return _long(_writer(names, fields), _reader(kind, names, fields, optional))


def _names(kind: type[attrs.AttrsInstance], fields: tuple[AnyCodec, ...]) -> list[str]:
    return [each.name for each in attrs.fields(kind)[: len(fields)]]


def _writer(names: list[str], fields: tuple[AnyCodec, ...]) -> Callable[[object], list[object]]:
    def write(value: object) -> list[object]:
        return [
            field.write(getattr(value, name)) for name, field in zip(names, fields, strict=True)
        ]

    return write


def _reader(
    kind: type[R], names: list[str], fields: tuple[AnyCodec, ...], optional: int
) -> Callable[[object], Steps[R]]:
    least = len(fields) - optional

    def read(value: object) -> Steps[R]:
        if type(value) is not list or len(value) < least:
            raise ValueError(f"is not a list of {', '.join(names[:least])}")
        found = yield from _read_fields(names, fields, value)
        return kind(*found)

    return read


def _read_fields(
    names: list[str], fields: tuple[AnyCodec, ...], values: list[object]
) -> Steps[list[object]]:
    found = []
    for name, field, value in zip(names, fields, values, strict=False):
        try:
            if field.read_in_steps is None:
                found.append(field.read(value))
            else:
                found.append((yield from field.read_in_steps(value)))
        except ValueError as error:
            raise ValueError(f"{name} {error}") from None
    return found


def _several(one: FieldCodec[T]) -> FieldCodec[tuple[T, ...]]:
    def read(value: object) -> Steps[tuple[T, ...]]:
        if type(value) is not list:
            raise ValueError("is not a list")
        _few(value)
        found = []
        for number, each in enumerate(value, 1):
            found.append(one.read(each))
            if number % RECORDS_A_STEP == 0:
                yield RECORDS_A_STEP
        return tuple(found)

    return _long(lambda value: [one.write(each) for each in value], read)


_NUMBER: Final[FieldCodec[int]] = FieldCodec(ULong, _number)
_DIGEST: Final[FieldCodec[int]] = FieldCodec(ULong, _ulong)
_BOOLEAN: Final[FieldCodec[bool]] = FieldCodec(bool, _boolean)
_ID: Final = _text(MAX_ID_BYTES)
_COST: Final = _uint(1, MAX_COST)
_COUNT: Final = _uint(0, 2**32 - 1)
_DIGESTS: Final[FieldCodec[tuple[int, ...]]] = FieldCodec(
    lambda value: Array([ULong(each) for each in value], ULong), _read_digests
)
_LINKS: Final[FieldCodec[dict[str, int]]] = FieldCodec(
    lambda value: {key: UInt(cost) for key, cost in value.items()}, _read_links
)
_OPTIONS: Final[FieldCodec[m.Options]] = FieldCodec(
    lambda value: {Symbol(key): each for key, each in value.items()}, _read_options
)
_IDS: Final = _texts(MAX_ID_BYTES)
_KEYS: Final = _texts(MAX_KEY_BYTES)
_TERMS: Final[FieldCodec[bytes]] = FieldCodec(bytes, _read_terms)

_STATE: Final = _record(m.LinkState, _ID, _NUMBER, _NUMBER, _LINKS, _NUMBER, _DIGEST, _OPTIONS)
_AGED: Final = _record(m.Aged, _STATE, _COUNT)
_ROW: Final = _record(m.Row, _ID, _NUMBER, _NUMBER, _NUMBER, _DIGEST)
_WISH: Final = _record(m.TableRequest, _ID, _NUMBER, _NUMBER)

_KINDS: Final[dict[str, MessageCodec]] = {}


def _anything(_: object) -> None:
    return


def register(
    kind: type[M],
    *fields: AnyCodec,
    optional: int = 0,
    check: Callable[[M], None] = _anything,
) -> None:
    """Register a class of messages by its `opcode`, with the codec of each field.

    The last `optional` fields may be missing when a message is read. `check` raises ValueError if
    the fields are inconsistent.
    """
    names = _names(kind, fields)
    read_fields = _reader(kind, names, fields, optional)

    def read(value: object) -> Steps[M]:
        message = yield from read_fields(value)
        check(message)
        return message

    _KINDS[kind.opcode] = MessageCodec(kind, _writer(names, fields), read)


def _fit(message: m.MobileUpdate | m.MobileTable) -> None:
    if len(message.keys) != len(message.terms):
        raise ValueError(
            f"the field keys has {len(message.keys)} items, "
            f"but terms has {len(message.terms)} octets"
        )
    allowed = m.TERMS | {m.REMOVED} if isinstance(message, m.MobileUpdate) else m.TERMS
    if not allowed.issuperset(message.terms):
        raise ValueError(
            f"the field terms has 0x{min(set(message.terms) - allowed):02x}, "
            "which encodes no treatment"
        )
    if isinstance(message, m.MobileUpdate):
        if message.base >= message.seq:
            raise ValueError(f"seq is {message.seq}, not greater than base, {message.base}")
    elif message.part >= message.parts:
        raise ValueError(f"part is {message.part}, not less than parts, {message.parts}")


def _older(message: m.Withdrawal) -> None:
    if message.winner >= message.instance:
        raise ValueError(
            f"the winner {message.winner} is not older than the instance {message.instance}"
        )


_PART: Final = _uint(0, 2**20)
_ORIGIN: Final = (_ID, _NUMBER)

register(
    m.Hello,
    *(_ID, _NUMBER, _NUMBER),
    *(_uint(0, MAX_COST), _COUNT, _COUNT, _COUNT),
    optional=4,
)
register(m.Summary, _DIGESTS)
register(m.Rows, _BOOLEAN, _several(_ROW))
register(m.LinkStateUpdate, _several(_AGED))
register(m.LinkStateRequest, _IDS)
register(m.Withdrawal, _ID, _NUMBER, _NUMBER, check=_older)
register(m.MobileUpdate, *_ORIGIN, _NUMBER, _NUMBER, _DIGEST, _KEYS, _TERMS, check=_fit)
register(m.MobileTable, *_ORIGIN, _NUMBER, _DIGEST, _PART, _PART, _KEYS, _TERMS, check=_fit)
register(m.MobileRequest, _several(_WISH))

_HEAD: Final = bytes((0x00, 0x53, Descriptor.AMQP_VALUE))


_HEARSAY: Final = LinkStateCodec(_STATE.read, _STATE.write)


def encode_control(message: m.Message) -> bytes:
    """Return a control message encoded as a whole AMQP message."""
    if type(message) is m.LinkStateUpdate:
        return _HEARSAY.encode(message)
    kind = _KINDS[message.opcode]
    return _HEAD + encode_value([Symbol(message.opcode), *kind.write(message)])


def decode_control(octets: Buffer) -> m.Message:
    """Decode a control message from a whole AMQP message.

    Raises AmqpError at connection scope for any error in the message.
    """
    return do_all(read_control(octets))


def read_control(octets: Buffer) -> Steps[m.Message]:
    """Decode a control message in steps, with the result and errors of `decode_control`."""
    if len(octets) > MAX_CONTROL_BYTES:
        raise _malformed(f"it has {len(octets)} octets; at most {MAX_CONTROL_BYTES} are allowed")
    update = yield from _HEARSAY.decode(octets)
    if update is not None:
        return update
    section, end = yield from decode_value_in_steps(octets)
    if type(section) is not Described or section.descriptor != Descriptor.AMQP_VALUE:
        raise _malformed("its section is not an amqp-value")
    if end != len(octets):
        raise _malformed(f"{len(octets) - end} octets follow the amqp-value")
    body = section.value
    if type(body) is not list or not body or type(body[0]) is not Symbol:
        raise _malformed("its value is not a list that begins with an opcode")
    kind = _KINDS.get(body[0])
    if kind is None:
        raise _malformed(f"unknown opcode {body[0][:32]}")
    try:
        message = yield from kind.read_in_steps(body[1:])
    except ValueError as error:
        raise _malformed(f"{body[0]}: {error}") from None
    # the work of the last steps
    yield 1 + min(len(octets), OCTETS_A_STEP) // OCTETS_AN_ADDRESS
    return message


def _malformed(what: str) -> AmqpError:
    return AmqpError(MALFORMED, f"a control message is malformed: {what}", Scope.CONNECTION)
