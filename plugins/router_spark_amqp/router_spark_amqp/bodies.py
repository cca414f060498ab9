"""Convert JSON and Avro bodies to the cells of a row, checked against Spark's schema.

Bodies are read one by one, so that a body that does not match the schema does not affect others. A
value must have the type of its column, with these exceptions:

- A float column accepts integers.
- A decimal column accepts any number, rounded to its scale.
- Strings are parsed for columns of decimals, binary (base64), dates and timestamps (ISO 8601).
- A string column accepts any value except octets, as JSON, like Spark's own JSON reader.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, DecimalException
from functools import partial

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from router_spark_amqp.avro import Avro, AvroError
from router_spark_amqp.options import Body, Options
from router_spark_amqp.readers import OptionError

Cells = tuple[object, ...]
ReadCell = Callable[[object], object]

_BITS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}


class BadBody(ValueError):
    """Error about a body that does not match the schema."""


def body_reader(options: Options, fields: Sequence[StructField]) -> Callable[[bytes | None], Cells]:
    """Return a function that reads a body into cells, in the order of the fields.

    The returned function raises BadBody if a body does not match. `body_reader` raises OptionError
    if the type of a field is not supported, or the library or schema for Avro is missing or
    invalid.
    """
    cells = [(field.name, cell_reader(field.dataType, field.name)) for field in fields]

    def row(value: object) -> Cells:
        if not isinstance(value, dict):
            raise BadBody(f"a body is a {type(value).__name__}, not a record")
        return tuple(_cell(value.get(name), name, read) for name, read in cells)

    load: Callable[[bytes], object] = _load_json
    if options.format is Body.AVRO:
        load = partial(_load_avro, Avro(options))
    return lambda body: row(load(body or b""))


def _cell(value: object, name: str, read: ReadCell) -> object:
    if value is None:
        return None
    try:
        return read(value)
    except (ValueError, TypeError, OverflowError, DecimalException) as error:
        raise BadBody(f"value of {name}: {error}") from None


def _load_json(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadBody(f"a body is not JSON: {error}") from None


def _load_avro(avro: Avro, body: bytes) -> object:
    try:
        return avro.read(body)
    except AvroError as error:
        raise BadBody(str(error)) from None


def cell_reader(kind: DataType, where: str) -> ReadCell:
    """Return a function that converts a value (never None) to a cell of the type `kind` for Arrow.

    Raises OptionError if the type is not supported; the error names the column `where`.
    """
    plain = _PLAIN.get(type(kind))
    if plain is not None:
        return plain
    bits = _BITS.get(type(kind))
    if bits is not None:
        return _integer(1 << (bits - 1))
    if isinstance(kind, DecimalType):
        return _decimal(kind)
    if isinstance(kind, ArrayType):
        return _array(cell_reader(kind.elementType, where))
    if isinstance(kind, MapType) and isinstance(kind.keyType, StringType):
        return _map(cell_reader(kind.valueType, where))
    if isinstance(kind, StructType):
        return _struct([(each.name, cell_reader(each.dataType, where)) for each in kind.fields])
    raise OptionError(
        f"column {where} is {kind.simpleString()}: supported types are strings, numbers, booleans,"
        " binary, dates, timestamps, arrays, structs, and maps with string keys"
    )


def _string(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        raise TypeError("octets instead of a string")
    # JSON text, as Spark's own JSON reader gives
    return json.dumps(value, separators=(",", ":"))


def _boolean(value: object) -> object:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is not a boolean")
    return value


def _float(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)


def _binary(value: object) -> object:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not base64 text")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{value!r} is not base64: {error}") from None


def _date(value: object) -> object:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a date")
    return date.fromisoformat(value)


def _timestamp(value: object) -> object:
    """Return a value as a timestamp, which is in UTC if the value has no time zone."""
    moment = _moment(value)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def _local_timestamp(value: object) -> object:
    moment = _moment(value)
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _moment(value: object) -> datetime:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not an ISO 8601 timestamp")
    return datetime.fromisoformat(value)


def _integer(bound: int) -> ReadCell:
    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{value!r} is not a whole number")
        if not -bound <= value < bound:
            raise ValueError(f"{value} is too large for its column")
        return value

    return read


def _decimal(kind: DecimalType) -> ReadCell:
    step = Decimal(1).scaleb(-kind.scale)
    bound = Decimal(10) ** (kind.precision - kind.scale)

    def read(value: object) -> object:
        if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
            raise TypeError(f"{value!r} is not a number")
        number = Decimal(str(value)) if isinstance(value, float) else Decimal(value)
        if not number.is_finite() or abs(number) >= bound:
            raise ValueError(f"{value} is too large for its column")
        exact = number.quantize(step)
        if abs(exact) >= bound:
            raise ValueError(f"{value} is too large for its column")
        return exact

    return read


def _array(item: ReadCell) -> ReadCell:
    def read(value: object) -> object:
        if not isinstance(value, list):
            raise TypeError(f"a {type(value).__name__} instead of an array")
        return [None if each is None else item(each) for each in value]

    return read


def _map(item: ReadCell) -> ReadCell:
    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise TypeError(f"a {type(value).__name__} instead of a map")
        return [(key, None if each is None else item(each)) for key, each in value.items()]

    return read


def _struct(fields: Sequence[tuple[str, ReadCell]]) -> ReadCell:
    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise TypeError(f"a {type(value).__name__} instead of a struct")
        return {name: _cell(value.get(name), name, item) for name, item in fields}

    return read


_PLAIN: dict[type[DataType], ReadCell] = {
    StringType: _string,
    BooleanType: _boolean,
    FloatType: _float,
    DoubleType: _float,
    BinaryType: _binary,
    DateType: _date,
    TimestampType: _timestamp,
    TimestampNTZType: _local_timestamp,
}
