"""Decode messages to Arrow columns, in the tasks.

A stream passes its messages to the tasks as octets. Decoding is the expensive part, so each
partition is decoded in its own task, and not in the process that has the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import attrs
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from router.amqp.message import (
    AmqpSequence,
    Data,
    Header,
    Message,
    Properties,
    decode_message,
)
from router.amqp.types import Timestamp
from router.errors import AmqpError
from router_spark_amqp.bodies import BadBody, body_reader
from router_spark_amqp.options import Body, Mode, Options
from router_spark_amqp.readers import OptionError
from router_spark_amqp.schema import COLUMNS, HEADER, MAPS, PROPERTIES
from router_spark_amqp.texts import as_text

# Columns that formats `json` and `avro` may have besides those of the body.
ENVELOPE = "_amqp"
CORRUPT = "_corrupt_record"

WIRE = pa.schema(
    [
        pa.field("payload", pa.large_binary()),
        pa.field("message_format", pa.uint32()),
        pa.field("is_settled", pa.bool_()),
    ]
)
"""Schema of encoded messages on their way to the tasks."""

# Maximum distance of a Spark timestamp, which is in microseconds, from the epoch.
_FARTHEST_MS = 2**63 // 1000

_NO_HEADER = Header()
_NO_PROPERTIES = Properties()


@attrs.frozen
class Arrived:
    """Message from a row of schema `WIRE`. If it cannot be decoded, `error` is the reason."""

    payload: bytes
    message_format: int
    is_settled: bool
    message: Message
    error: str | None


def wire_batch(messages: Iterable[tuple[bytes, int, bool]]) -> pa.RecordBatch:
    """Return tuples (payload, message format, is settled) as a record batch with schema `WIRE`."""
    columns = list(zip(*messages, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, WIRE, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=WIRE)


class RowReader:
    """Decoder of `WIRE` batches to a query's columns. Raises OptionError for unsuitable columns."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self._is_strict = options.mode is Mode.FAILFAST
        self._schema = to_arrow_schema(schema, timezone="UTC")
        self._fields = schema.fields
        is_raw = options.format is Body.RAW
        if is_raw:
            check_raw(schema)
        self._columns = [field for field in schema.fields if is_raw or field.name == ENVELOPE]
        if not is_raw:
            for field in self._columns:
                check_envelope(field)
        self._body_fields = [
            field for field in schema.fields if not is_raw and field.name not in (ENVELOPE, CORRUPT)
        ]
        self._read_body = body_reader(options, self._body_fields)

    def read(self, wire: pa.RecordBatch) -> pa.RecordBatch:
        """Decode a batch. In mode failfast, raises BadBody if a body does not match the schema."""
        arrived = [
            _arrived(*row) for row in zip(*(column.to_pylist() for column in wire), strict=True)
        ]
        columns: dict[str, list[object] | pa.Array] = {}
        if self._body_fields or not self._columns:
            columns |= self._read_bodies(arrived)
        for field in self._columns:
            if field.name == ENVELOPE:
                columns[ENVELOPE] = self._envelope(field, arrived)
            else:
                columns[field.name] = [_CELLS[field.name](each) for each in arrived]
        arrays = []
        for field in self._schema:
            cells = columns[field.name]
            is_made = isinstance(cells, pa.Array)
            arrays.append(cells if is_made else pa.array(cells, field.type, from_pandas=False))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _envelope(self, field: StructField, arrived: Sequence[Arrived]) -> pa.Array:
        inner = field.dataType
        assert isinstance(inner, StructType)
        kind = self._schema.field(ENVELOPE).type
        arrays = [
            pa.array([_CELLS[each.name](one) for one in arrived], kind.field(at).type)
            for at, each in enumerate(inner.fields)
        ]
        return pa.StructArray.from_arrays(arrays, fields=list(kind))

    def _read_bodies(self, arrived: Sequence[Arrived]) -> dict[str, list[object] | pa.Array]:
        rows: list[tuple[object, ...]] = []
        corrupt: list[object] = []
        nothing = (None,) * len(self._body_fields)
        for each in arrived:
            body = _body(each)
            try:
                if each.error is not None:
                    raise BadBody(each.error)
                rows.append(self._read_body(body))
                corrupt.append(None)
            except BadBody as error:
                if self._is_strict:
                    raise BadBody(f"{error} (mode is failfast)") from None
                rows.append(nothing)
                corrupt.append((body or b"").decode("utf-8", "replace"))
        cells = list(zip(*rows, strict=True)) or [()] * len(self._body_fields)
        columns: dict[str, list[object] | pa.Array] = {
            field.name: list(column) for field, column in zip(self._body_fields, cells, strict=True)
        }
        columns[CORRUPT] = corrupt
        return columns


def check_raw(schema: StructType) -> None:
    """Raise OptionError if a column is unknown to `format=raw`, or has a wrong type."""
    for field in schema.fields:
        expected = COLUMNS.get(field.name)
        if expected is None:
            raise OptionError(
                f"format raw has no column {field.name}; its columns are {', '.join(COLUMNS)}"
            )
        if expected != field.dataType:
            raise OptionError(
                f"column {field.name} is {field.dataType.simpleString()}:"
                f" in format raw it must be {expected.simpleString()}"
            )


def check_envelope(field: StructField) -> None:
    """Raise OptionError unless column `_amqp` is a struct of columns that `format=raw` has."""
    if not isinstance(field.dataType, StructType):
        raise OptionError(
            f"column {ENVELOPE} is {field.dataType.simpleString()}:"
            " it must be a struct with columns that option format=raw produces"
        )
    check_raw(field.dataType)


def _arrived(payload: bytes, message_format: int, is_settled: bool) -> Arrived:
    if message_format:
        return Arrived(payload, message_format, is_settled, Message(), "not of message format 0")
    try:
        return Arrived(payload, message_format, is_settled, decode_message(payload), None)
    except AmqpError as error:
        return Arrived(payload, message_format, is_settled, Message(), str(error))


def _property(name: str) -> Callable[[Arrived], object]:
    def read(arrived: Arrived) -> object:
        properties = arrived.message.properties
        return None if properties is None else getattr(properties, name)

    return read


def _text_property(name: str) -> Callable[[Arrived], object]:
    plain = _property(name)
    return lambda arrived: as_text(plain(arrived))


def _time_property(name: str) -> Callable[[Arrived], object]:
    plain = _property(name)

    def read(arrived: Arrived) -> object:
        value = plain(arrived)
        if not isinstance(value, Timestamp) or not -_FARTHEST_MS < value < _FARTHEST_MS:
            return None
        return int(value) * 1000

    return read


def _header(name: str) -> Callable[[Arrived], object]:
    return lambda arrived: getattr(arrived.message.header or _NO_HEADER, name)


def _map(name: str) -> Callable[[Arrived], object]:
    def read(arrived: Arrived) -> object:
        section = getattr(arrived.message, name)
        if section is None:
            return None
        return [(as_text(key), as_text(value)) for key, value in section.items()]

    return read


def _body(arrived: Arrived) -> bytes | None:
    """Return the body as octets, or the whole payload if the message cannot be decoded.

    Data and binary values are unchanged, strings are UTF-8, and other values are converted by
    `as_text`.
    """
    body = arrived.message.body
    if arrived.error is not None:
        return arrived.payload
    if not body:
        return None
    first = body[0]
    if isinstance(first, Data):
        return first.octets if len(body) == 1 else b"".join(each.octets for each in _data(body))
    if isinstance(first, AmqpSequence):
        items = [item for each in body if isinstance(each, AmqpSequence) for item in each.items]
        return (as_text(items) or "").encode()
    if first.value is None or isinstance(first.value, bytes):
        return first.value
    text = as_text(first.value)
    return None if text is None else text.encode()


def _data(body: Sequence[object]) -> list[Data]:
    return [each for each in body if isinstance(each, Data)]


def _body_type(arrived: Arrived) -> str | None:
    body = arrived.message.body
    if not body:
        return None
    first = body[0]
    if isinstance(first, Data):
        return "data"
    if isinstance(first, AmqpSequence):
        return "sequence"
    if isinstance(first.value, str):
        return "string"
    return "binary" if isinstance(first.value, bytes) else "value"


_TIMES = ("absolute_expiry_time", "creation_time")
_PLAIN = ("user_id", "group_sequence")
_CELLS: dict[str, Callable[[Arrived], object]] = {
    **{name: _text_property(name) for name in PROPERTIES},
    **{name: _time_property(name) for name in _TIMES},
    **{name: _property(name) for name in _PLAIN},
    **{name: _header(name) for name in HEADER},
    **{name: _map(name) for name in MAPS},
    "body": _body,
    "body_type": _body_type,
    "message_format": lambda arrived: arrived.message_format,
    "is_settled": lambda arrived: arrived.is_settled,
    "error": lambda arrived: arrived.error,
}
