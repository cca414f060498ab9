"""Messages between an edge router and an interior on their control link, and their encoding.

Each message is an AMQP message with one section, an amqp-value with a list. The list has a symbol
for the kind of message, and then the fields. Additional fields and messages of unknown kinds are
ignored, so that later versions can add some. Anything else that cannot be decoded raises
`AmqpError`. These messages are not part of the routing protocol: interior routers do not send them
to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

import attrs

from router.amqp.constants import Condition, Descriptor
from router.amqp.encode import encode_value
from router.amqp.types import Described, Symbol, UByte, UInt, ULong
from router.control.network.steps import Steps, decode_value_in_steps, do_all
from router.engine.connection import Connection
from router.errors import AmqpError

T = TypeVar("T")

UNKNOWN_TREATMENT: Final = 255

# Most octets of keys in one message, unless a single key is longer.
PART_BYTES: Final = 16 * 1024
# Limits for decoding: octets and keys in a message, characters in a key. Messages from this router
# never reach them, as each key counts as more than sixteen octets in `PART_BYTES`.
LONGEST_BYTES: Final = 64 * 1024
MOST_KEYS: Final = 1024
LONGEST_KEY: Final = 48 * 1024
# Keys of a message that are checked in one step.
CHECKED_AT_ONCE: Final = 64


@attrs.frozen
class UplinkUse:
    """Message from the edge: whether this connection is an active uplink or on standby."""

    is_active: bool


@attrs.frozen
class Beat:
    """Heartbeat from the edge, which the interior answers with the same message.

    Each end closes the connection after `max_age_ms` of silence.
    """

    number: int
    max_age_ms: int


@attrs.frozen
class Watch:
    """Message from the edge: addresses to watch for consumers, and addresses to stop watching."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


@attrs.frozen
class InteriorAddress:
    """State of an address beyond an uplink: whether it has consumers there, and its treatment.

    `treatment` is a constant of `router.core.model.address` such as `CLOSEST`, or
    `UNKNOWN_TREATMENT`.
    """

    key: str
    is_reached: bool
    treatment: int


@attrs.frozen
class Reached:
    """Message from the interior: the state of watched addresses."""

    places: tuple[InteriorAddress, ...]


@attrs.frozen
class Routes:
    """Message from either end: keys of link routes that now have, or no longer have, containers.

    In an edge's message, the containers are at that edge. In an interior's message, they are at any
    router except the receiving edge. The routing protocol uses the same keys.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


Message = UplinkUse | Beat | Watch | Reached | Routes

_VALUE: Final = ULong(Descriptor.AMQP_VALUE)
_USE: Final = Symbol("USE")
_BEAT: Final = Symbol("BEAT")
_WATCH: Final = Symbol("WATCH")
_REACHED: Final = Symbol("REACHED")
_ROUTES: Final = Symbol("ROUTES")
# Where the kind of a short message is, and how it is encoded there for a heartbeat.
_BEAT_AT: Final = len(b"\x00\x53\x77\xc0\x00\x00")
_BEAT_SYMBOL: Final = encode_value(_BEAT)
# A ulong and a uint have at most fourteen octets.
LONGEST_BEAT: Final = _BEAT_AT + len(_BEAT_SYMBOL) + 14


class ControlLinks(Protocol):
    """Interface to send on a router's control links, and to close their connections."""

    def send(self, connection: Connection, octets: bytes) -> None:
        """Queue an encoded message on a connection's control link, after all earlier messages."""

    def fail(self, connection: Connection, error: AmqpError) -> None:
        """Close a connection with this error at the end of the turn."""


def encode_message(message: Message) -> bytes:
    """Return the AMQP encoding of a message."""
    return encode_value(Described(_VALUE, _fields(message)))


def _fields(message: Message) -> list[object]:
    match message:
        case UplinkUse():
            return [_USE, message.is_active]
        case Beat():
            return [_BEAT, ULong(message.number), UInt(message.max_age_ms)]
        case Watch():
            return [_WATCH, list(message.added), list(message.removed)]
        case Routes():
            return [_ROUTES, list(message.added), list(message.removed)]
        case Reached():
            return [
                _REACHED,
                [[each.key, each.is_reached, UByte(each.treatment)] for each in message.places],
            ]


def decode_message(octets: bytes) -> Message | None:
    """Decode a message; return None if its kind is unknown.

    Raises `AmqpError` if the octets are not a message, or a field has the wrong type or size.
    """
    return do_all(read_message(octets))


def is_beat(octets: bytes) -> bool:
    """Return whether octets begin like a `Beat` in the encoding of `encode_message`."""
    return octets.startswith(_BEAT_SYMBOL, _BEAT_AT) and len(octets) <= LONGEST_BEAT


def read_message(octets: bytes) -> Steps[Message | None]:
    """Decode a message in steps, with the result and errors of `decode_message`."""
    if len(octets) > LONGEST_BYTES:
        raise _malformed(f"it has {len(octets)} octets; at most {LONGEST_BYTES} are allowed")
    value, end = yield from decode_value_in_steps(octets)
    if end != len(octets):
        raise _malformed("octets follow the amqp-value")
    if not isinstance(value, Described) or value.descriptor not in (_VALUE, "amqp:amqp-value:*"):
        raise _malformed("the section is not an amqp-value")
    return (yield from _read(value.value))


def _read(value: object) -> Steps[Message | None]:
    if not isinstance(value, list) or not value or not isinstance(value[0], Symbol):
        raise _malformed("the value is not a list that begins with a symbol")
    kind, fields = value[0], value[1:]
    match kind:
        case "USE":
            return UplinkUse(_field(fields, 0, bool))
        case "BEAT":
            return Beat(int(_field(fields, 0, ULong)), int(_field(fields, 1, UInt)))
        case "WATCH":
            return Watch((yield from _keys(fields, 0)), (yield from _keys(fields, 1)))
        case "ROUTES":
            return Routes((yield from _keys(fields, 0)), (yield from _keys(fields, 1)))
        case "REACHED":
            return Reached(tuple(_place(each) for each in _several(fields, 0)))
    return None


def _field(fields: list[object], at: int, kind: type[T]) -> T:
    value = fields[at] if at < len(fields) else None
    if not isinstance(value, kind):
        raise _malformed(f"field {at + 1} is not of type {kind.__name__.lower()}")
    return value


def _key(fields: list[object], at: int) -> str:
    key = _field(fields, at, str)
    if isinstance(key, Symbol) or not key or len(key) > LONGEST_KEY:
        raise _malformed(f"a key is not a string of 1 to {LONGEST_KEY} characters")
    return key


def _keys(fields: list[object], at: int) -> Steps[tuple[str, ...]]:
    keys = _several(fields, at)
    found = []
    for number in range(len(keys)):
        found.append(_key(keys, number))
        if len(found) % CHECKED_AT_ONCE == 0:
            yield CHECKED_AT_ONCE // 4
    return tuple(found)


def _several(fields: list[object], at: int) -> list[object]:
    found = _field(fields, at, list)
    if len(found) > MOST_KEYS:
        raise _malformed(f"it has {len(found)} keys; at most {MOST_KEYS} are allowed")
    return found


def _place(value: object) -> InteriorAddress:
    if not isinstance(value, list):
        raise _malformed("an address state is not a list")
    return InteriorAddress(_key(value, 0), _field(value, 1, bool), int(_field(value, 2, UByte)))


def _malformed(why: str) -> AmqpError:
    return AmqpError(
        Condition.DECODE_ERROR, f"a control message on an edge connection is malformed: {why}"
    )


def watches(changes: Iterable[tuple[str, bool]]) -> Iterator[Watch]:
    """Yield messages of limited size that add (True) and remove (False) watched keys.

    Of several changes to one key, only the last is included.
    """
    for part in _parts(dict(changes).items()):
        added = tuple(key for key, is_watched in part if is_watched)
        yield Watch(added, tuple(key for key, is_watched in part if not is_watched))


def routes(changes: Iterable[tuple[str, bool]]) -> Iterator[Routes]:
    """Yield messages of limited size that announce which link routes, by key, have containers."""
    for part in _parts(dict(changes).items()):
        added = tuple(key for key, has_some in part if has_some)
        yield Routes(added, tuple(key for key, has_some in part if not has_some))


def reached(places: Iterable[InteriorAddress]) -> Iterator[Reached]:
    """Yield messages of limited size with the state of watched addresses."""
    for part in _parts((each.key, each) for each in places):
        yield Reached(tuple(place for _, place in part))


def _parts(items: Iterable[tuple[str, T]]) -> Iterator[list[tuple[str, T]]]:
    part: list[tuple[str, T]] = []
    size = 0
    for key, item in items:
        # an entry takes some octets in addition to its key
        size += len(key.encode()) + 16
        if part and size > PART_BYTES:
            yield part
            part, size = [], len(key.encode()) + 16
        part.append((key, item))
    if part:
        yield part
