"""Composite types: attrs classes that are read, checked and written by a table of their fields.

A composite is a described list whose items are its fields in the specification's order (part 1,
section 1.4). Above each class stands its definition from the specification: the two descriptors,
the archetypes that it provides, and the table of its fields (name, type, mandatory, default,
multiple). This module works on that table, so no composite has code of its own. The decorator
refuses a class whose attributes differ from its table.

Composites are always written with all fields, nulls included, and never as list0: some
implementations access fields by position without checking how many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, cast

import attrs

from router.amqp.constants import DESCRIBED, Condition, Descriptor, FormatCode
from router.amqp.decode import decode_value
from router.amqp.encode import WRITERS, encode_value, write_list
from router.amqp.octets import Buffer
from router.amqp.reader import DEFAULT_LIMITS, Limits
from router.amqp.scalars import Writer
from router.amqp.types import Array, Described, Symbol, ULong, Value
from router.amqp.walking import malformed
from router.errors import AmqpError

Read = Callable[[object, str], Any]

_NULL = int(FormatCode.NULL)


@attrs.frozen
class FieldType:
    """Type of a composite's field: how the field's values are checked, read and written.

    `read(value, where)` checks a decoded value that is not null and returns the attribute's value.
    It raises AmqpError for an invalid value; the error's text calls the field `where`.
    `write(buffer, value)` appends the encoding of an attribute's value; it raises ValueError or
    TypeError.
    """

    name: str
    read: Read
    write: Writer
    element: type = object
    """The class of the items in the array of a multiple field."""


@attrs.frozen
class Field:
    """Row of a composite's table: the specification's `field` element (section 1.3.4)."""

    name: str
    """The attribute's name; with hyphens, it is the field's name in the specification."""
    type: FieldType
    mandatory: bool = attrs.field(default=False, kw_only=True)
    default: object = attrs.field(default=None, kw_only=True)
    multiple: bool = attrs.field(default=False, kw_only=True)

    def attribute_default(self) -> Value:
        """Return the attribute's default; attrs.NOTHING for a mandatory field."""
        if self.mandatory:
            return attrs.NOTHING
        return () if self.multiple else self.default

    def read(self, value: object, where: str) -> Value:
        """Return the attribute's value for a decoded value or null.

        `where` is what an error's text calls the field, such as `attach.handle`.
        """
        if self.multiple:
            return self._read_multiple(value, where)
        if value is None:
            if self.mandatory:
                raise invalid_field(f"{where} is missing")
            return self.default
        return self.type.read(value, where)

    def _read_multiple(self, value: object, where: str) -> tuple[Value, ...]:
        if value is None:
            values: tuple[Value, ...] = ()
        elif type(value) is Array:
            if value.descriptors:
                raise malformed(f"{where} is an array of described values")
            values = value.items
        else:
            values = (value,)
        if self.mandatory and not values:
            raise invalid_field(f"{where} is missing")
        return tuple([self.type.read(item, where) for item in values])

    def write(self, buffer: bytearray, value: Any, where: str) -> None:
        """Append the field's encoding of an attribute's value.

        `where` is what an error's text calls the field, such as `attach.handle`.
        """
        if value is None or (self.multiple and not value):
            if self.mandatory:
                raise ValueError(f"{where} is mandatory")
            buffer.append(_NULL)
        elif self.multiple:
            if isinstance(value, str):
                raise TypeError(f"{where} must be a sequence of values, not a single value")
            element = self.type.element
            WRITERS[Array](buffer, Array([element(item) for item in value], element))
        else:
            try:
                self.type.write(buffer, value)
            except TypeError as error:
                raise TypeError(f"{where}: {error}") from None
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None


class Composite:
    """Base of every composite type."""

    __slots__ = ()

    NAME: ClassVar[str]
    """The symbolic descriptor."""
    CODE: ClassVar[Descriptor]
    """The numeric descriptor."""
    PROVIDES: ClassVar[frozenset[str]]
    """The archetypes that the type can stand for (section 1.3.1)."""
    FIELDS: ClassVar[tuple[Field, ...]]
    PLACES: ClassVar[tuple[str, ...]]
    """The names of the fields in error messages, such as "open.container-id"."""


C = TypeVar("C", bound=Composite)

BY_DESCRIPTOR: dict[int | str, type[Composite]] = {}
"""The composite types by both of their descriptors."""


def composite(
    name: str, code: Descriptor, provides: str, *fields: Field
) -> Callable[[type[C]], type[C]]:
    """Return a decorator that registers a class with its table; it goes above `attrs.frozen`.

    The arguments are the specification's `descriptor`, `provides` (separated by commas) and `field`
    elements. Raises TypeError if the class's attributes and its table differ.
    """

    def decorate(cls: type[C]) -> type[C]:
        attributes = {each.name: each.default for each in attrs.fields(cast(Any, cls))}
        table = {field.name: field.attribute_default() for field in fields}
        if list(attributes.items()) != list(table.items()):
            raise TypeError(
                f"{cls.__name__} has attributes {attributes}, which do not match its fields {table}"
            )
        title = name.split(":")[1]
        cls.NAME = name
        cls.CODE = code
        cls.PROVIDES = frozenset(provides.split(", ")) if provides else frozenset()
        cls.FIELDS = fields
        cls.PLACES = tuple([f"{title}.{field.name.replace('_', '-')}" for field in fields])
        BY_DESCRIPTOR[int(code)] = BY_DESCRIPTOR[name] = cls
        WRITERS[cls] = _writer(cls)
        return cls

    return decorate


def _writer(cls: type[Composite]) -> Writer:
    start = bytes((DESCRIBED,)) + encode_value(ULong(cls.CODE))
    # most fields of most composites are null
    rows = [
        (field.name, field, not field.mandatory, where)
        for field, where in zip(cls.FIELDS, cls.PLACES, strict=True)
    ]

    def write(buffer: bytearray, value: Composite) -> None:
        body = bytearray()
        for name, field, may_be_null, where in rows:
            item = getattr(value, name)
            if item is None and may_be_null:
                body.append(_NULL)
            else:
                field.write(body, item, where)
        buffer += start
        write_list(buffer, len(rows), body)

    return write


def encode_composite(value: Composite) -> bytes:
    """Return a composite's encoding: descriptor, and a list of all its fields.

    Raises ValueError or TypeError, naming the field, if an attribute does not suit its type.
    """
    buffer = bytearray()
    encode_composite_into(buffer, value)
    return bytes(buffer)


def encode_composite_into(buffer: bytearray, value: Composite) -> None:
    """Append the encoding of a composite, as `encode_composite` returns it."""
    WRITERS[type(value)](buffer, value)


def decode_composite(
    data: Buffer, at: int = 0, end: int | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Composite, int]:
    """Return the composite that begins at `data[at]` and the position after it.

    Raises AmqpError: amqp:decode-error, amqp:resource-limit-exceeded (see `decode_value`),
    amqp:invalid-field, or amqp:not-implemented for a descriptor that is not known.
    """
    value, after = decode_value(data, at, end, limits)
    return composite_from(value, "a composite"), after


def composite_from(value: object, where: str) -> Composite:
    """Return the composite that a decoded value describes; null fields get their defaults.

    `where` is what an error's text calls the value.
    """
    if type(value) is not Described:
        raise malformed(f"{where} is a {type(value).__name__}, not a described list")
    cls = class_of(value)
    if cls is None:
        raise AmqpError(
            Condition.NOT_IMPLEMENTED, f"{where} has the unknown descriptor {value.descriptor!r}"
        )
    fields = cls.FIELDS
    items = value.value
    if type(items) is not list:
        raise malformed(f"{cls.NAME} is a {type(items).__name__}, not a list")
    if len(items) > len(fields):
        raise malformed(f"{cls.NAME} has {len(items)} fields; at most {len(fields)} are allowed")
    items = items + [None] * (len(fields) - len(items))
    # attrs sets the defaults of the other fields
    return cls(
        **{
            field.name: field.read(item, place)
            for field, item, place in zip(fields, items, cls.PLACES, strict=True)
            if item is not None or field.mandatory
        }
    )


def class_of(described: Described) -> type[Composite] | None:
    """Return the composite type of a value's descriptor, or None if the descriptor is unknown."""
    descriptor = described.descriptor
    if type(descriptor) is ULong or type(descriptor) is Symbol:
        return BY_DESCRIPTOR.get(descriptor)
    return None


def invalid_field(what: str) -> AmqpError:
    """Return the error for a field that has the right type and an invalid value."""
    return AmqpError(Condition.INVALID_FIELD, what)
