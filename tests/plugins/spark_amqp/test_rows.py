"""Messages become rows, and rows messages, without Spark."""

from __future__ import annotations

import sys
import uuid
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from router_spark_amqp.bodies import BadBody
from router_spark_amqp.messages import MessageWriter
from router_spark_amqp.options import parse_options
from router_spark_amqp.packing import FEWEST_ROWS, shares
from router_spark_amqp.readers import OptionError
from router_spark_amqp.rows import RowReader, wire_batch
from router_spark_amqp.schema import COLUMNS, RAW
from router_spark_amqp.texts import as_text

from router.amqp.message import (
    AmqpSequence,
    AmqpValue,
    Data,
    Header,
    Message,
    Properties,
    decode_message,
    encode_message,
)
from router.amqp.types import Array, Described, Symbol, Timestamp, UInt, ULong

pytestmark = pytest.mark.spark

UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")
URL = {"url": "amqp://host/orders"}
FULL = Message(
    header=Header(durable=True, priority=7, ttl=1000, first_acquirer=True, delivery_count=3),
    delivery_annotations={Symbol("x-opt-d"): 1},
    message_annotations={Symbol("x-opt-m"): [1, b"\x01"]},
    properties=Properties(
        message_id=ULong(5),
        user_id=b"me",
        to="orders",
        subject="s",
        reply_to="r",
        correlation_id=UUID,
        content_type=Symbol("text/plain"),
        content_encoding=Symbol("gzip"),
        absolute_expiry_time=Timestamp(1_700_000_000_123),
        creation_time=Timestamp(-1),
        group_id="g",
        group_sequence=UInt(2**32 - 1),
        reply_to_group_id="rg",
    ),
    application_properties={"text": "t", "number": 5, "flag": True, "none": None},
    body=(Data(b"ab"), Data(b"c")),
    footer={Symbol("x-opt-f"): "f"},
)


def columns(**kinds: DataType) -> StructType:
    """Return a schema with these columns."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def rows(
    *payloads: bytes,
    schema: StructType = RAW,
    settled: bool = False,
    message_format: int = 0,
    **options: str,
) -> list[dict[str, Any]]:
    """Convert messages to rows."""
    reader = RowReader(parse_options({**URL, **options}), schema)
    batch = reader.read(wire_batch([(each, message_format, settled) for each in payloads]))
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    read: list[dict[str, Any]] = batch.to_pylist(maps_as_pydicts="strict")
    return read


def body(value: Any) -> bytes:
    """Encode a message whose body is a value, or data if `value` is bytes."""
    section = Data(value) if isinstance(value, bytes) else AmqpValue(value)
    return encode_message(Message(properties=Properties(message_id="i"), body=(section,)))


def test_a_message_with_everything() -> None:
    [row] = rows(encode_message(FULL))
    assert list(row) == list(COLUMNS)
    assert row == {
        "message_id": "5",
        "user_id": b"me",
        "to": "orders",
        "subject": "s",
        "reply_to": "r",
        "correlation_id": str(UUID),
        "content_type": "text/plain",
        "content_encoding": "gzip",
        "absolute_expiry_time": datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC),
        "creation_time": datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC),
        "group_id": "g",
        "group_sequence": 2**32 - 1,
        "reply_to_group_id": "rg",
        "durable": True,
        "priority": 7,
        "ttl": 1000,
        "first_acquirer": True,
        "delivery_count": 3,
        "application_properties": {"text": "t", "number": "5", "flag": "true", "none": None},
        "message_annotations": {"x-opt-m": '[1,"01"]'},
        "delivery_annotations": {"x-opt-d": "1"},
        "footer": {"x-opt-f": "f"},
        "body": b"abc",
        "body_type": "data",
        "message_format": 0,
        "is_settled": False,
        "error": None,
    }


def test_a_message_with_nothing() -> None:
    [row] = rows(encode_message(Message()))
    told = {name: value for name, value in row.items() if value is not None}
    assert told == {
        "durable": False,
        "priority": 4,
        "first_acquirer": False,
        "delivery_count": 0,
        "message_format": 0,
        "is_settled": False,
    }


def test_no_messages() -> None:
    assert rows() == []


@pytest.mark.parametrize(
    ("sections", "octets", "kind"),
    [
        ((AmqpValue("é"),), "é".encode(), "string"),
        ((AmqpValue(b"\x00"),), b"\x00", "binary"),
        ((AmqpValue({"a": [1, None]}),), b'{"a":[1,null]}', "value"),
        ((AmqpValue(Timestamp(0)),), b"1970-01-01T00:00:00.000Z", "value"),
        ((AmqpValue(None),), None, "value"),
        ((AmqpSequence([1, "a"]), AmqpSequence([b"\x02"])), b'[1,"a","02"]', "sequence"),
    ],
)
def test_bodies(sections: Any, octets: bytes | None, kind: str) -> None:
    [row] = rows(encode_message(Message(body=sections)))
    assert (row["body"], row["body_type"]) == (octets, kind)


def test_what_is_no_message_takes_no_others_with_it() -> None:
    good, bad = rows(body(b"good"), b"bad", settled=True)
    assert (good["body"], good["error"], good["is_settled"]) == (b"good", None, True)
    assert bad["body"] == b"bad"
    assert "where a section begins" in bad["error"]
    [other] = rows(b"xyz", message_format=9)
    assert (other["body"], other["message_format"]) == (b"xyz", 9)
    assert other["error"] == "not of message format 0"


def test_only_the_columns_that_are_wanted() -> None:
    assert rows(body(b"b"), schema=columns(body=BinaryType())) == [{"body": b"b"}]


def test_a_time_that_no_calendar_has_is_null() -> None:
    message = Message(properties=Properties(creation_time=Timestamp(2**62)), body=(Data(b""),))
    assert rows(encode_message(message))[0]["creation_time"] is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\xab", "ab"),
        (UUID, str(UUID)),
        (Array([1, 2]), "[1,2]"),
        (Described(ULong(1), "d"), "d"),
        (1.5, "1.5"),
        (Timestamp(2**62), str(2**62)),
    ],
)
def test_values_as_text(value: object, text: str) -> None:
    assert as_text(value) == text


JSON = columns(
    id=LongType(),
    at=TimestampType(),
    price=DecimalType(5, 2),
    tags=ArrayType(StringType()),
    more=MapType(StringType(), DoubleType()),
    inner=columns(a=IntegerType()),
    day=DateType(),
    raw=BinaryType(),
    flag=BooleanType(),
    _corrupt_record=StringType(),
    _amqp=columns(message_id=StringType(), priority=IntegerType()),
)


def test_json() -> None:
    text = (
        b'{"id": 1, "at": "2026-01-02T03:04:05+01:00", "price": 1.5, "tags": ["a", null],'
        b' "more": {"x": 2}, "inner": {"a": 3}, "day": "2026-01-02", "raw": "aGk=", "flag": true,'
        b' "other": 0}'
    )
    [row] = rows(body(text), schema=JSON, format="json")
    assert str(row.pop("price")) == "1.50"
    assert row == {
        "id": 1,
        "at": datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
        "tags": ["a", None],
        "more": {"x": 2.0},
        "inner": {"a": 3},
        "day": datetime(2026, 1, 2, tzinfo=UTC).date(),
        "raw": b"hi",
        "flag": True,
        "_corrupt_record": None,
        "_amqp": {"message_id": "i", "priority": 4},
    }


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no",
        b"[]",
        b'{"id": "1"}',
        b'{"id": 9223372036854775808}',
        b'{"id": true}',
        b'{"at": "soon"}',
        b'{"price": 1000}',
        b'{"price": "x"}',
        b'{"tags": {}}',
        b'{"more": []}',
        b'{"more": {"x": "y"}}',
        b'{"inner": {"a": 2147483648}}',
        b'{"day": 5}',
        b'{"raw": "?"}',
        b'{"flag": 1}',
    ],
)
def test_json_that_does_not_fit(text: bytes) -> None:
    bad, good = rows(body(text), body(b'{"id": 1}'), schema=JSON, format="json")
    assert bad.pop("_amqp") == {"message_id": "i", "priority": 4}
    assert bad.pop("_corrupt_record") == text.decode()
    assert set(bad.values()) == {None}
    assert (good["id"], good["_corrupt_record"]) == (1, None)
    with pytest.raises(BadBody, match="mode is failfast"):
        rows(body(text), schema=JSON, format="json", mode="failfast")


AVRO = """{"type": "record", "name": "r", "fields": [
    {"name": "id", "type": "long"},
    {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]}
]}"""


def test_avro() -> None:
    pytest.importorskip("fastavro")
    schema = columns(id=LongType(), at=TimestampType(), _corrupt_record=StringType())
    at = datetime(2026, 1, 2, tzinfo=UTC)
    messages = written(
        columns(id=LongType(), at=TimestampType()),
        {"id": 1, "at": at},
        {"id": 2, "at": None},
        format="avro",
        avroSchema=AVRO,
    )
    payloads = [encode_message(message) for message in messages]
    first, second, bad = rows(
        *payloads, body(b"\xff"), schema=schema, format="avro", avroSchema=AVRO
    )
    assert first == {"id": 1, "at": at, "_corrupt_record": None}
    assert second == {"id": 2, "at": None, "_corrupt_record": None}
    assert (bad["id"], bad["_corrupt_record"]) == (None, "\ufffd")


def test_avro_needs_its_library_and_a_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = columns(id=LongType())
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(OptionError, match="fastavro is missing: pip install"):
        rows(schema=schema, format="avro", avroSchema=AVRO)


def written(schema: StructType, *cells: dict[str, object], **options: str) -> list[Message]:
    """Convert rows to messages."""
    writer = MessageWriter(parse_options({**URL, **options}), schema)
    batch = pa.RecordBatch.from_pylist(list(cells), to_arrow_schema(schema, timezone="UTC"))
    return [decode_message(each) for each in writer.write(batch, iter(["id-0", "id-1"]))]


def test_what_was_read_can_be_written() -> None:
    reader = RowReader(parse_options(URL), RAW)
    batch = reader.read(wire_batch([(encode_message(FULL), 0, False)]))
    [octets] = MessageWriter(parse_options(URL), RAW).write(batch, iter(["unused"]))
    message = decode_message(octets)
    assert message.header == Header(durable=True, priority=7, ttl=1000)
    assert message.body == (Data(b"abc"),)
    assert message.application_properties == {
        "text": "t",
        "number": "5",
        "flag": "true",
        "none": None,
    }
    again = reader.read(wire_batch([(octets, 0, False)])).to_pylist()[0]
    before = batch.to_pylist()[0]
    changed = {name for name in before if before[name] != again[name]}
    assert changed == {"first_acquirer", "delivery_count", "delivery_annotations", "footer"}


def test_rows_without_an_id_get_one() -> None:
    messages = written(
        columns(message_id=StringType(), body=StringType()), {"message_id": "own"}, {"body": "x"}
    )
    properties = [message.properties for message in messages]
    assert [each and each.message_id for each in properties] == ["own", "id-1"]
    assert [message.body for message in messages] == [(AmqpValue(None),), (AmqpValue("x"),)]


def test_rows_as_json() -> None:
    [message] = written(
        columns(
            id=LongType(),
            at=TimestampType(),
            raw=BinaryType(),
            more=MapType(StringType(), IntegerType()),
            price=DecimalType(5, 2),
        ),
        {"id": 1, "at": datetime(2026, 1, 2, tzinfo=UTC), "raw": b"hi", "more": [("a", 1)]},
        format="json",
        durable="true",
    )
    assert message.header == Header(durable=True)
    assert message.properties == Properties(message_id="id-0", content_type="application/json")
    assert message.body == (
        Data(b'{"id":1,"at":"2026-01-02T00:00:00+00:00","raw":"aGk=","more":{"a":1},"price":null}'),
    )


def test_partitions_share_rows_evenly_where_it_is_worth_it() -> None:
    assert shares(0, 4) == []
    assert shares(1, 4) == [(0, 1)]
    assert shares(FEWEST_ROWS, 4) == [(0, FEWEST_ROWS)]
    assert shares(2 * FEWEST_ROWS + 1, 2) == [(0, 500), (500, 1001)]
    assert shares(4000, 4) == [(0, 1000), (1000, 2000), (2000, 3000), (3000, 4000)]
