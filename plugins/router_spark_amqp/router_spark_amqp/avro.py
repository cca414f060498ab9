"""Decode and encode Avro bodies: one binary datum each, without a file header. Needs fastavro."""

from __future__ import annotations

import importlib
import io
import json
from types import ModuleType

from router_spark_amqp.options import Options
from router_spark_amqp.readers import OptionError


class AvroError(ValueError):
    """Error about a body or row that does not match the Avro schema."""


class Avro:
    """Codec for the schema in the option `avroSchema`.

    Raises OptionError if fastavro is missing or the schema is invalid.
    """

    def __init__(self, options: Options) -> None:
        try:
            self._library: ModuleType = importlib.import_module("fastavro")
        except ImportError:
            raise OptionError(
                "option format is avro, but fastavro is missing:"
                " pip install trioute-spark-amqp[avro]"
            ) from None
        try:
            self._schema = self._library.parse_schema(json.loads(options.avro_schema or ""))
        except (ValueError, KeyError, self._library.schema.SchemaParseException) as error:
            raise OptionError(f"option avroSchema is not an Avro schema: {error}") from None

    def read(self, body: bytes) -> object:
        """Decode a body. Raises AvroError if the body does not match the schema."""
        try:
            value: object = self._library.schemaless_reader(io.BytesIO(body), self._schema, None)
        except (ValueError, EOFError, IndexError, TypeError, OverflowError) as error:
            raise AvroError(f"a body does not match the Avro schema: {error!r}") from None
        return value

    def write(self, row: dict[str, object]) -> bytes:
        """Encode a row as a body. Raises AvroError if the row does not match the schema."""
        octets = io.BytesIO()
        try:
            self._library.schemaless_writer(octets, self._schema, row)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise AvroError(f"a row does not fit option avroSchema: {error!r}") from None
        return octets.getvalue()
