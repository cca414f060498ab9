"""Encode rows as messages: as sections with option `format=raw`, or as JSON or Avro bodies."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
from pyspark.sql.types import (
    DataType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
)

from router.amqp.message import AmqpValue, Data, Header, Message, Properties, encode_message
from router.amqp.types import Symbol, Timestamp
from router_spark_amqp.avro import Avro
from router_spark_amqp.options import Body, Options
from router_spark_amqp.readers import OptionError
from router_spark_amqp.schema import COLUMNS, PROPERTIES

Cells = dict[str, object]

JSON_TYPE = Symbol("application/json")
AVRO_TYPE = Symbol("application/avro")

# Columns of a source that a sender cannot set. A sink ignores them, so that it takes rows as read.
_TOLD_ONLY = frozenset(
    {
        "delivery_annotations",
        "delivery_count",
        "error",
        "first_acquirer",
        "footer",
        "is_settled",
        "message_format",
    }
)
_NUMBERS = (ShortType(), IntegerType(), LongType())
# Types that a sink accepts in addition to the type in a source.
_ALSO: dict[str, tuple[DataType, ...]] = {
    "body": (StringType(),),
    "user_id": (StringType(),),
    "priority": _NUMBERS,
    "ttl": _NUMBERS,
    "group_sequence": _NUMBERS,
}


class MessageWriter:
    """Encoder of a sink's rows. Raises OptionError if columns or options do not fit the format."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._options = options
        self._is_raw = options.format is Body.RAW
        if self._is_raw:
            check_columns(schema)
            if options.address is None and "to" not in schema.fieldNames():
                raise OptionError(
                    "option address is missing: give the name of a node, or a column `to` with"
                    " the address of each row"
                )
        else:
            if options.address is None:
                raise OptionError(
                    f"option address is missing: format {options.format} has no column for it"
                )
            self._encode = Avro(options).write if options.format is Body.AVRO else _to_json
        self._type = AVRO_TYPE if options.format is Body.AVRO else JSON_TYPE
        self._header = Header(durable=True) if options.durable else None

    def write(self, batch: pa.RecordBatch, ids: Iterator[str]) -> list[bytes]:
        """Encode a batch, with one of `ids` as message-id of each row that has none.

        A row with a message-id takes one of `ids` as well, which is not used.
        """
        if self._is_raw:
            return self._write_raw(batch, ids)
        return [
            encode_message(
                Message(
                    header=self._header,
                    properties=Properties(message_id=one, content_type=self._type),
                    body=(Data(self._encode(row)),),
                )
            )
            for row, one in zip(batch.to_pylist(maps_as_pydicts="lossy"), ids, strict=False)
        ]

    def _write_raw(self, batch: pa.RecordBatch, ids: Iterator[str]) -> list[bytes]:
        names = [name for name in batch.schema.names if name not in _TOLD_ONLY]
        columns = [_cells(batch.column(name)) for name in names]
        properties = [
            (at, name, _PROPERTIES.get(name, _same))
            for at, name in enumerate(names)
            if name in PROPERTIES
        ]
        rest = [(at, name) for at, name in enumerate(names) if name not in PROPERTIES]
        rows = zip(*columns, strict=True) if columns else iter([()] * batch.num_rows)
        messages = []
        for row in rows:
            fields: Cells = {
                name: read(row[at]) for at, name, read in properties if row[at] is not None
            }
            one = next(ids)
            if "message_id" not in fields:
                fields["message_id"] = one
            others: Cells = {name: row[at] for at, name in rest if row[at] is not None}
            messages.append(encode_message(self._message(fields, others)))
        return messages

    def _message(self, properties: Cells, others: Cells) -> Message:
        header = self._header
        if not _HEADER_NAMES.isdisjoint(others):
            header = _header(others, is_durable=self._options.durable)
        return Message(
            header=header,
            message_annotations=_annotations(others.get("message_annotations")),
            properties=Properties(**properties),  # type: ignore[arg-type]
            application_properties=_texts(others.get("application_properties")),
            body=(_body(others),),
        )


def check_columns(schema: StructType) -> None:
    """Raise OptionError if a column is unknown to `format=raw`, or has a wrong type."""
    for field in schema.fields:
        expected = COLUMNS.get(field.name)
        if expected is None:
            raise OptionError(
                f"format raw has no column {field.name}; its columns are {', '.join(COLUMNS)}"
            )
        allowed = (expected, *_ALSO.get(field.name, ()))
        if not any(_alike(field.dataType, each) for each in allowed):
            kinds = " or ".join(dict.fromkeys(each.simpleString() for each in allowed))
            raise OptionError(
                f"column {field.name} is {field.dataType.simpleString()}: it must be {kinds}"
            )


def _alike(kind: DataType, expected: DataType) -> bool:
    """Return whether two types are equal, ignoring whether map values may be null."""
    if isinstance(kind, MapType) and isinstance(expected, MapType):
        return kind.keyType == expected.keyType and kind.valueType == expected.valueType
    return kind == expected


def _cells(column: pa.Array) -> list[object]:
    if pa.types.is_timestamp(column.type):
        # Spark has microseconds, AMQP milliseconds
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    cells: list[object] = column.to_pylist()
    return cells


def _same(value: object) -> object:
    return value


def _octets(value: object) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]


def _whole(value: object) -> int:
    assert isinstance(value, int)
    return value


_PROPERTIES: dict[str, Callable[[object], object]] = {
    "user_id": _octets,
    "content_type": lambda value: Symbol(str(value)),
    "content_encoding": lambda value: Symbol(str(value)),
    "absolute_expiry_time": lambda value: Timestamp(_whole(value)),
    "creation_time": lambda value: Timestamp(_whole(value)),
}

_HEADER_NAMES = frozenset({"durable", "priority", "ttl"})


def _header(cells: Cells, *, is_durable: bool) -> Header:
    ttl = cells.get("ttl")
    return Header(
        durable=bool(cells.get("durable", is_durable)),
        priority=_whole(cells.get("priority", 4)),
        ttl=None if ttl is None else _whole(ttl),
    )


def _texts(value: object) -> dict[str, object] | None:
    """Return a map as a dictionary; Arrow represents a map as pairs."""
    return None if value is None else dict(value)  # type: ignore[call-overload]


def _annotations(value: object) -> dict[object, object] | None:
    pairs = _texts(value)
    return None if pairs is None else {Symbol(key): each for key, each in pairs.items()}


def _body(cells: Cells) -> Data | AmqpValue:
    """Return an amqp-value section for a string or null, and a data section for octets.

    Octets whose `body_type` is `string` are sent as a string.
    """
    body = cells.get("body")
    if body is None:
        return AmqpValue(None)
    if isinstance(body, str):
        return AmqpValue(body)
    octets = _octets(body)
    return AmqpValue(octets.decode()) if cells.get("body_type") == "string" else Data(octets)


def _to_json(row: Cells) -> bytes:
    return json.dumps(row, separators=(",", ":"), ensure_ascii=False, default=_json_value).encode()


def _json_value(value: object) -> str:
    if isinstance(value, datetime):
        return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")
