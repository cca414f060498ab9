"""Columns of a message with option `format=raw`, with their Spark types."""

from __future__ import annotations

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

_TEXTS = MapType(StringType(), StringType())

# The properties of a message (section 3.2.4), in the order of the specification.
PROPERTIES: dict[str, DataType] = {
    "message_id": StringType(),
    "user_id": BinaryType(),
    "to": StringType(),
    "subject": StringType(),
    "reply_to": StringType(),
    "correlation_id": StringType(),
    "content_type": StringType(),
    "content_encoding": StringType(),
    "absolute_expiry_time": TimestampType(),
    "creation_time": TimestampType(),
    "group_id": StringType(),
    "group_sequence": LongType(),
    "reply_to_group_id": StringType(),
}

# The header (section 3.2.1).
HEADER: dict[str, DataType] = {
    "durable": BooleanType(),
    "priority": IntegerType(),
    "ttl": LongType(),
    "first_acquirer": BooleanType(),
    "delivery_count": LongType(),
}

# The sections that are maps; `as_text` converts their keys and values.
MAPS: dict[str, DataType] = {
    "application_properties": _TEXTS,
    "message_annotations": _TEXTS,
    "delivery_annotations": _TEXTS,
    "footer": _TEXTS,
}

# The body and its kind, fields of the transfer, and the error if decoding has failed.
BODY: dict[str, DataType] = {
    "body": BinaryType(),
    "body_type": StringType(),
    "message_format": LongType(),
    "is_settled": BooleanType(),
    "error": StringType(),
}

COLUMNS: dict[str, DataType] = {**PROPERTIES, **HEADER, **MAPS, **BODY}

RAW = StructType([StructField(name, kind) for name, kind in COLUMNS.items()])
