"""Random AMQP values and composites, and what tests ask about their octets.

Composites are drawn from the very tables that encode and decode them, so a field that is added is
tested from then on.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from router.amqp import field_types as t
from router.amqp.composite import BY_DESCRIPTOR, Composite, Field, FieldType
from router.amqp.constants import (
    ReceiverSettleMode,
    SaslCode,
    SenderSettleMode,
    TerminusDurability,
    TerminusExpiryPolicy,
)
from router.amqp.encode import encode_value
from router.amqp.message import AmqpSequence, AmqpValue, Data, Header, Message, Properties
from router.amqp.types import (
    Array,
    Byte,
    Char,
    Decimal32,
    Decimal64,
    Decimal128,
    Described,
    Float,
    Int,
    Long,
    Map,
    Short,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
)

# ------------------------------------------------------------------------- values


def _whole(kind: Any) -> SearchStrategy[Any]:
    small = st.integers(max(-130, kind.LOWEST), min(260, kind.HIGHEST))
    return st.one_of(small, st.integers(kind.LOWEST, kind.HIGHEST)).map(kind)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["", "é" * 127, "é" * 128, "x" * 255, "x" * 256]
)
SYMBOLS = st.text(st.characters(max_codepoint=127), max_size=12).map(Symbol)
OCTETS = st.binary(max_size=20) | st.sampled_from([b"\0" * 255, b"\0" * 256])

BY_TYPE: dict[type, SearchStrategy[Any]] = {
    type(None): st.none(),
    bool: st.booleans(),
    **{
        kind: _whole(kind)
        for kind in (UByte, UShort, UInt, ULong, Byte, Short, Int, Long, Timestamp)
    },
    Float: st.floats(width=32, allow_nan=False).map(Float),
    float: st.floats(allow_nan=False),
    Decimal32: st.binary(min_size=4, max_size=4).map(Decimal32),
    Decimal64: st.binary(min_size=8, max_size=8).map(Decimal64),
    Decimal128: st.binary(min_size=16, max_size=16).map(Decimal128),
    Char: st.characters(exclude_categories=["Cs"]).map(Char),
    uuid.UUID: st.uuids(),
    bytes: OCTETS,
    str: TEXT,
    Symbol: SYMBOLS,
}
"""Values that hold no others, by the class that decoding gives."""


# Drawn by functions, so that hypothesis names them by these and not by all that they consist of.
@st.composite
def scalars(draw: st.DrawFn, without: type = object) -> Any:
    """Draw a value that holds no others, of any type but one."""
    kinds = [kind for kind in BY_TYPE if kind is not without]
    return draw(BY_TYPE[draw(st.sampled_from(kinds))])


SCALARS = scalars()
DICT_KEYS = scalars(without=uuid.UUID)
DESCRIPTORS = st.one_of(_whole(ULong), SYMBOLS)


def _arrays(inner: SearchStrategy[Any]) -> SearchStrategy[Array]:
    elements: dict[type, SearchStrategy[Any]] = {
        **BY_TYPE,
        list: st.lists(inner, max_size=3),
        dict: st.dictionaries(DICT_KEYS, inner, max_size=3),
        Array: st.lists(SYMBOLS, max_size=3).map(lambda items: Array(items, Symbol)),
    }
    return st.sampled_from(list(elements)).flatmap(
        lambda element: st.builds(
            Array,
            st.lists(elements[element], max_size=4),
            st.just(element),
            st.lists(DESCRIPTORS, max_size=2),
        )
    )


def _maps(inner: SearchStrategy[Any]) -> SearchStrategy[Map]:
    """Return a strategy for maps that no dict can stand for, because of their keys."""
    keys = st.lists(SCALARS, max_size=2) | st.uuids()
    pairs = st.tuples(keys, inner)
    return st.lists(
        pairs, min_size=1, max_size=3, unique_by=lambda pair: encode_value(pair[0])
    ).map(lambda found: Map(tuple(found)))


def _holders(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(DICT_KEYS, inner, max_size=4),
        _arrays(inner),
        _maps(inner),
        st.builds(Described, DESCRIPTORS, inner),
    )


@functools.cache
def _nested(depth: int) -> SearchStrategy[Any]:
    return st.one_of(SCALARS, _holders(values(depth - 1))) if depth else SCALARS


@st.composite
def values(draw: st.DrawFn, depth: int = 3) -> Any:
    """Draw any value, a few levels deep, in the classes that decoding gives."""
    return draw(_nested(depth))


VALUES = values()


def same(one: Any, other: Any) -> bool:
    """Say whether two values are equal and of the same AMQP types throughout."""
    return bool(one == other) and _shape(one) == _shape(other)


def _shape(value: Any) -> Any:
    match value:
        case list():
            return [_shape(item) for item in value]
        case dict():
            return [(_shape(key), _shape(item)) for key, item in value.items()]
        case Map(pairs):
            return Map, [(_shape(key), _shape(item)) for key, item in pairs]
        case Array(items, element, descriptors):
            return element, [_shape(item) for item in (*descriptors, *items)]
        case Described(descriptor, inner):
            return Described, _shape(descriptor), _shape(inner)
        case _:
            return type(value)


def cut_short(octets: bytes) -> Iterator[bytes]:
    """Return everything that a prefix of `octets` can be, the whole excluded."""
    return (octets[:length] for length in range(len(octets)))


# --------------------------------------------------------------------- composites

COMPOSITES: list[type[Composite]] = sorted(set(BY_DESCRIPTOR.values()), key=lambda cls: cls.CODE)
"""All that the specification defines."""

_FIELDS = st.dictionaries(SYMBOLS, VALUES, max_size=2)
_EXTENSION = st.builds(Described, st.just(Symbol("example:state:list")), st.lists(SCALARS))


@st.composite
def providing(draw: st.DrawFn, archetype: str) -> Composite:
    """Draw a composite that provides an archetype."""
    classes = [cls for cls in COMPOSITES if archetype in cls.PROVIDES]
    found: Composite = draw(composites(draw(st.sampled_from(classes))))
    return found


BY_FIELD_TYPE: dict[str, SearchStrategy[Any]] = {
    **{kind.name: BY_TYPE[kind.element] for kind in (t.BOOLEAN, t.UBYTE, t.USHORT, t.UINT)},
    **{kind.name: BY_TYPE[kind.element] for kind in (t.ULONG, t.STRING, t.SYMBOL, t.BINARY)},
    t.TIMESTAMP.name: BY_TYPE[Timestamp],
    t.DELIVERY_TAG.name: st.binary(max_size=32),
    t.TRANSACTION_ID.name: st.binary(max_size=32),
    t.MESSAGE_ID.name: st.one_of(BY_TYPE[ULong], st.uuids(), OCTETS, TEXT),
    t.FIELDS.name: _FIELDS,
    t.NODE_PROPERTIES.name: st.dictionaries(SYMBOLS, providing("lifetime-policy"), max_size=2),
    t.UNSETTLED_MAP.name: st.dictionaries(
        st.binary(max_size=32), st.none() | providing("delivery-state") | _EXTENSION, max_size=3
    ),
    t.ERROR.name: providing("error"),
    t.SOURCE.name: providing("source"),
    t.TARGET.name: providing("target"),
    t.OUTCOME.name: providing("outcome") | _EXTENSION,
    t.DELIVERY_STATE.name: providing("delivery-state") | _EXTENSION,
    t.ANY.name: SCALARS,
}
"""What an attribute can be, by the name of its field's type."""

_CHOICES: list[tuple[FieldType, Any]] = [
    (t.SENDER_SETTLE_MODE, SenderSettleMode),
    (t.RECEIVER_SETTLE_MODE, ReceiverSettleMode),
    (t.TERMINUS_DURABILITY, TerminusDurability),
    (t.TERMINUS_EXPIRY_POLICY, TerminusExpiryPolicy),
    (t.SASL_CODE, SaslCode),
]


@functools.cache
def _attributes(field: Field) -> SearchStrategy[Any]:
    chosen = [st.sampled_from(list(choices)) for kind, choices in _CHOICES if kind is field.type]
    single = chosen[0] if chosen else BY_FIELD_TYPE[field.type.name]
    if field.multiple:
        return st.lists(single, min_size=int(field.mandatory), max_size=3).map(tuple)
    if field.mandatory or field.default is not None:
        return single
    return st.none() | single


@st.composite
def composites(draw: st.DrawFn, cls: type[Composite]) -> Any:
    """Draw an instance of a composite type with any values in all of its fields."""
    return cls(**{field.name: draw(_attributes(field)) for field in cls.FIELDS})


# ----------------------------------------------------------------------- messages

_ANNOTATIONS = st.none() | st.dictionaries(SYMBOLS | BY_TYPE[ULong], VALUES, max_size=2)
_BODIES = st.one_of(
    st.lists(st.builds(Data, OCTETS), max_size=3),
    st.lists(st.builds(AmqpSequence, st.lists(VALUES, max_size=3)), max_size=2),
    st.tuples(st.builds(AmqpValue, VALUES)),
)


@st.composite
def messages(draw: st.DrawFn) -> Message:
    """Draw a message with any sections."""
    return Message(
        header=draw(st.none() | composites(Header)),
        delivery_annotations=draw(_ANNOTATIONS),
        message_annotations=draw(_ANNOTATIONS),
        properties=draw(st.none() | composites(Properties)),
        application_properties=draw(st.none() | st.dictionaries(TEXT, SCALARS, max_size=2)),
        body=tuple(draw(_BODIES)),
        footer=draw(_ANNOTATIONS),
    )
