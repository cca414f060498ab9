"""Types of the fields of composites: primitive types, restricted types and archetypes.

The names are the specification's (parts 2 to 5). A restricted type (section 1.1.4) allows only some
values of a primitive type. An archetype (section 1.3.1) allows every composite that provides it.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Callable
from typing import Any

from router.amqp.composite import (
    Composite,
    FieldType,
    Read,
    class_of,
    composite_from,
    invalid_field,
)
from router.amqp.constants import (
    MAX_DELIVERY_TAG_BYTES,
    MAX_TRANSACTION_ID_BYTES,
    ReceiverSettleMode,
    SaslCode,
    SenderSettleMode,
    TerminusDurability,
    TerminusExpiryPolicy,
)
from router.amqp.encode import encode_value_into
from router.amqp.encoded import AnyMap, EncodedMap
from router.amqp.types import (
    Array,
    Described,
    Map,
    Symbol,
    Timestamp,
    UByte,
    UInt,
    ULong,
    UShort,
    Value,
)
from router.amqp.walking import malformed
from router.errors import AmqpError


def _wrong_type(value: object, where: str, expected: str) -> AmqpError:
    return malformed(f"{where} is of type {type(value).__name__.lower()}, not {expected}")


def _reader(kind: type, name: str) -> Read:
    def read(value: object, where: str) -> Value:
        if type(value) is not kind:
            raise _wrong_type(value, where, name)
        return value

    return read


def _exact(kind: type, name: str) -> FieldType:
    """Return the field type of a primitive whose values all have one Python class."""

    def write(buffer: bytearray, value: object) -> None:
        if not isinstance(value, kind):
            raise TypeError(f"{value!r} is not a {name}")
        encode_value_into(buffer, value)

    return FieldType(name, _reader(kind, name), write, kind)


def _converted(kind: type, name: str) -> FieldType:
    """Return the field type of a primitive; plain ints or strings are converted when written."""
    base = kind.__mro__[-2]

    def write(buffer: bytearray, value: object) -> None:
        if type(value) is not kind:
            if not isinstance(value, base) or isinstance(value, bool):
                raise TypeError(f"{value!r} is not a {name}")
            value = kind(value)
        encode_value_into(buffer, value)

    return FieldType(name, _reader(kind, name), write, kind)


BOOLEAN = _exact(bool, "boolean")
BINARY = _exact(bytes, "binary")
UBYTE = _converted(UByte, "ubyte")
USHORT = _converted(UShort, "ushort")
UINT = _converted(UInt, "uint")
ULONG = _converted(ULong, "ulong")
TIMESTAMP = _converted(Timestamp, "timestamp")
SYMBOL = _converted(Symbol, "symbol")


def _write_string(buffer: bytearray, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a string")
    # A symbol or an enumeration's member given for a string is written as one.
    encode_value_into(buffer, value if type(value) is str else str.__str__(value))


STRING = FieldType("string", _reader(str, "string"), _write_string, str)
ANY = FieldType("*", lambda value, _where: value, encode_value_into)


def _encoding(kind: FieldType, value: object) -> bytes:
    buffer = bytearray()
    kind.write(buffer, value)
    return bytes(buffer)


def _choice(source: FieldType, choices: type[enum.Enum]) -> FieldType:
    """Return a field type restricted to some values; the attribute holds the enum member."""
    members = {member.value: member for member in choices}
    # by member; a member is found by its value as well, since it equals its value
    encodings: dict[object, bytes] = {member: _encoding(source, member.value) for member in choices}

    def read(value: object, where: str) -> Value:
        member = members.get(source.read(value, where))
        if member is None:
            raise invalid_field(f"{where} cannot be {value!r}")
        return member

    def write(buffer: bytearray, value: object) -> None:
        encoding = encodings.get(value)
        if encoding is None:
            raise ValueError(f"{value!r} is not a valid {choices.__qualname__}")
        buffer += encoding

    return FieldType(source.name, read, write, source.element)


SENDER_SETTLE_MODE = _choice(UBYTE, SenderSettleMode)
RECEIVER_SETTLE_MODE = _choice(UBYTE, ReceiverSettleMode)
TERMINUS_DURABILITY = _choice(UINT, TerminusDurability)
TERMINUS_EXPIRY_POLICY = _choice(SYMBOL, TerminusExpiryPolicy)
SASL_CODE = _choice(UBYTE, SaslCode)


def _short_binary(name: str, longest: int) -> FieldType:
    def read(value: object, where: str) -> Value:
        octets = BINARY.read(value, where)
        if len(octets) > longest:
            raise invalid_field(f"{where} has {len(octets)} octets, more than {longest}")
        return octets

    def write(buffer: bytearray, value: bytes) -> None:
        if len(value) > longest:
            raise ValueError(f"{len(value)} octets are more than the {longest} of a {name}")
        BINARY.write(buffer, value)

    return FieldType(name, read, write, bytes)


DELIVERY_TAG = _short_binary("delivery-tag", MAX_DELIVERY_TAG_BYTES)
TRANSACTION_ID = _short_binary("transaction-id", MAX_TRANSACTION_ID_BYTES)

# Other names of the specification for uint and symbol, so that the tables read like it.
HANDLE = SECONDS = MILLISECONDS = SEQUENCE_NO = MESSAGE_FORMAT = UINT
TRANSFER_NUMBER = DELIVERY_NUMBER = SEQUENCE_NO
ROLE = BOOLEAN
IETF_LANGUAGE_TAG = SYMBOL
ADDRESS = STRING


def _read_message_id(value: object, where: str) -> Value:
    if type(value) not in (str, ULong, uuid.UUID, bytes):
        raise _wrong_type(value, where, "ulong, uuid, binary or string")
    return value


def _write_message_id(buffer: bytearray, value: object) -> None:
    if type(value) not in (str, ULong, uuid.UUID, bytes):
        raise TypeError(f"{value!r} is not a ulong, uuid, bytes or str")
    encode_value_into(buffer, value)


MESSAGE_ID = FieldType("message-id", _read_message_id, _write_message_id)


def _keyed_map(
    name: str,
    key_codes: bytes,
    read_key: Callable[[object, str], object],
    write_key: Callable[[Any], object],
    read_value: Read | None = None,
) -> FieldType:
    """Return the field type of a map whose keys, and perhaps values, are restricted to some types.

    `key_codes` are the format codes of the allowed keys. `read_key` and `read_value` check keys and
    values. An `EncodedMap` is checked and remains encoded.
    """

    def read(value: object, where: str) -> AnyMap:
        if type(value) is EncodedMap:
            return value.checked(key_codes, lambda key: read_key(key, where), read_value)
        if type(value) is not dict:
            raise _wrong_type(value, where, name)
        if read_value is None:
            return {read_key(key, where): item for key, item in value.items()}
        return {read_key(key, where): read_value(item, where) for key, item in value.items()}

    def write(buffer: bytearray, value: object) -> None:
        if not isinstance(value, dict):
            if type(value) is not EncodedMap:
                raise TypeError(f"{value!r} is not a dict")
            encode_value_into(buffer, value)
            return
        encode_value_into(buffer, {write_key(key): item for key, item in value.items()})

    return FieldType(name, read, write, dict)


def _read_symbol_key(key: object, where: str) -> Symbol:
    # Some clients write string keys here (rhea does in an error's info); nothing is lost by
    # reading them as the symbols that they stand for.
    if type(key) is str and key.isascii():
        return Symbol(key)
    if type(key) is not Symbol:
        raise _wrong_type(key, f"a key of {where}", "symbol")
    return key


def _read_annotation_key(key: object, where: str) -> Symbol | ULong:
    return key if type(key) is ULong else _read_symbol_key(key, where)


def _write_annotation_key(key: Any) -> Symbol | ULong:
    return ULong(key) if isinstance(key, int) else Symbol(key)


def _read_string_key(key: object, where: str) -> str:
    if type(key) is not str:
        raise _wrong_type(key, f"a key of {where}", "string")
    return key


def _write_string_key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{key!r} is not a str")
    return str.__str__(key)


def _read_simple(value: object, where: str) -> Value:
    if type(value) in (list, dict, Map, Array):
        raise invalid_field(f"a value of {where} must not be a {type(value).__name__.lower()}")
    return value


def _read_binary_key(key: object, where: str) -> bytes:
    if type(key) is not bytes:
        raise _wrong_type(key, f"a key of {where}", "binary")
    return key


def _read_node_property(value: object, where: str) -> Value:
    # The value of lifetime-policy is one of the composites of sections 3.5.10 to 3.5.13.
    if type(value) is Described:
        cls = class_of(value)
        if cls is not None and "lifetime-policy" in cls.PROVIDES:
            return composite_from(value, where)
    return value


def archetype(name: str, *, extensible: bool = False) -> FieldType:
    """Return the field type of an archetype: any composite that provides `name`.

    If `extensible`, values with an unknown descriptor are also allowed.
    """

    def read(value: object, where: str) -> Value:
        if extensible and type(value) is Described and class_of(value) is None:
            return value
        known = composite_from(value, where)
        if name not in known.PROVIDES:
            raise malformed(f"{where} is {known.NAME}, which is not of the archetype {name}")
        return known

    def write(buffer: bytearray, value: object) -> None:
        provides = name in value.PROVIDES if isinstance(value, Composite) else extensible
        if not provides:
            raise TypeError(f"{value!r} is not of the archetype {name}")
        encode_value_into(buffer, value)

    return FieldType(name, read, write)


ERROR = archetype("error")
SOURCE = archetype("source")
TARGET = archetype("target")
# Outcomes may also be defined outside of the specification; they pass through unchanged.
DELIVERY_STATE = archetype("delivery-state", extensible=True)
OUTCOME = archetype("outcome", extensible=True)


def _read_unsettled(value: object, where: str) -> Value:
    return None if value is None else DELIVERY_STATE.read(value, where)


# The format codes of map keys, by type.
_SYMBOLS = b"\xa3\xb3"
_STRINGS = b"\xa1\xb1"
_BINARIES = b"\xa0\xb0"
_ULONGS = b"\x80\x53\x44"

FIELDS = _keyed_map("fields", _SYMBOLS, _read_symbol_key, Symbol)
FILTER_SET = FIELDS
NODE_PROPERTIES = _keyed_map(
    "node-properties", _SYMBOLS, _read_symbol_key, Symbol, _read_node_property
)
ANNOTATIONS = _keyed_map(
    "annotations", _SYMBOLS + _ULONGS, _read_annotation_key, _write_annotation_key
)
APPLICATION_PROPERTIES = _keyed_map(
    "application-properties", _STRINGS, _read_string_key, _write_string_key, _read_simple
)
# Delivery states by delivery-tag (section 2.7.3).
UNSETTLED_MAP = _keyed_map("map", _BINARIES, _read_binary_key, bytes, _read_unsettled)
