"""Options that are wrong are told of in one line: which, what is wrong with it, what is allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql.types import DataType, IntegerType, StringType, StructField, StructType
from router_spark_amqp.messages import MessageWriter
from router_spark_amqp.options import (
    OPTIONS,
    Body,
    Delivery,
    Mode,
    Options,
    need_address,
    parse_options,
)
from router_spark_amqp.readers import OptionError
from router_spark_amqp.rows import RowReader

pytestmark = pytest.mark.spark

ROOT = Path(__file__).resolve().parents[3]
URL = {"url": "amqp://host/orders"}


def columns(**kinds: DataType) -> StructType:
    """Return a schema with these columns."""
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def test_mechanisms_are_those_of_the_client() -> None:
    options = parse_options({**URL, "saslMechanisms": "scram-sha-256, PLAIN"})
    assert options.url.mechanisms == ("SCRAM-SHA-256", "PLAIN")
    assert parse_options(URL).url.mechanisms == ()
    with pytest.raises(OptionError, match="option saslMechanisms has GSSAPI: each must be one of"):
        parse_options({**URL, "saslMechanisms": "PLAIN GSSAPI"})


def test_names_have_no_case_and_all_of_them_are_read() -> None:
    options = parse_options(
        {
            "URL": "amqp://me:secret@host:7/behind",
            "Address": "orders",
            "FORMAT": "JSON",
            "mode": "failfast",
            "avroschema": "{}",
            "maxrowsperbatch": "5",
            "credit": "7",
            "maxbytes": "8",
            "partitions": "3",
            "delivery": "spool",
            "spooldirectory": "/spool",
            "connecttimeoutseconds": "1.5",
            "reconnecttimeoutseconds": "2",
            "idleseconds": "0.5",
            "inflight": "9",
            "outcometimeoutseconds": "3",
            "durable": "True",
            "checkpointLocation": "is Spark's",
        }
    )
    assert options == Options(
        url=options.url,
        address="orders",
        format=Body.JSON,
        mode=Mode.FAILFAST,
        avro_schema="{}",
        max_rows_per_batch=5,
        credit=7,
        max_bytes=8,
        partitions=3,
        delivery=Delivery.SPOOL,
        spool_directory=Path("/spool"),
        connect_timeout_s=1.5,
        reconnect_timeout_s=2.0,
        idle_s=0.5,
        in_flight=9,
        outcome_timeout_s=3.0,
        durable=True,
    )
    assert (options.url.user, options.url.password, options.url.port) == ("me", "secret", 7)


def test_the_address_may_be_in_the_url_and_the_password_need_not() -> None:
    options = parse_options({**URL, "user": "me", "password": "secret"})
    assert options.address == "orders"
    assert (options.url.user, options.url.password) == ("me", "secret")


def test_there_is_credit_for_two_batches() -> None:
    assert parse_options({**URL, "maxRowsPerBatch": "50"}).stream_credit == 100
    assert parse_options({**URL, "maxRowsPerBatch": "50", "credit": "60"}).stream_credit == 60


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "option url is missing: it must be amqp://"),
        ({"url": "http://x/"}, "option url: http://"),
        (
            {"url": "amqp://h:none"},
            "option url: 'none' is not a port number (1 to 65535); it must be amqp://",
        ),
        ({**URL, "maxRows": "5"}, "there is no option maxrows; the options are address, avroSc"),
        ({**URL, "format": "xml"}, "option format is 'xml': it must be one of raw, json, avro"),
        ({**URL, "mode": "drop"}, "option mode is 'drop': it must be one of permissive,"),
        ({**URL, "delivery": "x"}, "option delivery is 'x': it must be one of hold, spool"),
        ({**URL, "credit": "-1"}, "option credit is '-1': it must be a whole number from 1"),
        ({**URL, "maxBytes": "1.5"}, "option maxBytes is '1.5': it must be a whole number"),
        ({**URL, "durable": "yes"}, "option durable is 'yes': it must be true or false"),
        ({**URL, "address": ""}, "option address is empty"),
        (
            {**URL, "connectTimeoutSeconds": "nan"},
            "option connectTimeoutSeconds is 'nan': it must be above 0",
        ),
        ({**URL, "spoolDirectory": "x"}, "option spoolDirectory is 'x': it must be an absolut"),
        ({**URL, "spoolDirectory": "/x"}, "option spoolDirectory requires delivery=spool"),
        ({**URL, "delivery": "spool"}, "option spoolDirectory is missing: delivery spool needs"),
        ({**URL, "credit": "5"}, "option credit is 5: it must be at least 10000 (maxRows"),
        ({**URL, "format": "avro"}, "option avroSchema is missing"),
        ({**URL, "password": "x"}, "option user is missing"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)) as told:
        parse_options(given)
    assert "\n" not in str(told.value)


def test_a_source_needs_an_address() -> None:
    with pytest.raises(OptionError, match="option address is missing"):
        need_address(parse_options({"url": "amqp://host"}))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (columns(bdy=StringType()), "format raw has no column bdy; its columns are message_"),
        (columns(priority=StringType()), "column priority is string: in format raw it must be int"),
    ],
)
def test_a_column_that_no_message_has(schema: StructType, said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        RowReader(parse_options(URL), schema)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (columns(bdy=StringType()), "format raw has no column bdy"),
        (columns(body=IntegerType()), "column body is int: it must be binary or string"),
        (
            columns(priority=StringType()),
            "column priority is string: it must be int or",
        ),
    ],
)
def test_a_column_that_cannot_be_sent(schema: StructType, said: str) -> None:
    with pytest.raises(OptionError, match=re.escape(said)):
        MessageWriter(parse_options(URL), schema)


def test_a_sink_has_an_address_or_a_column_of_them() -> None:
    anywhere = parse_options({"url": "amqp://host"})
    MessageWriter(anywhere, columns(to=StringType(), body=StringType()))
    with pytest.raises(OptionError, match="option address is missing: give the"):
        MessageWriter(anywhere, columns(body=StringType()))


def test_every_option_is_documented() -> None:
    text = (ROOT / "docs/how-to/spark-amqp.md").read_text(encoding="utf-8")
    missing = [name for name in OPTIONS if f"| `{name}` |" not in text]
    assert missing == []
