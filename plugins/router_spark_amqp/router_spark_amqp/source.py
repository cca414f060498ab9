"""Data source `amqp`: its name, schema, readers and writers."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from router_spark_amqp.batch import AmqpBatchReader, AmqpFilteringReader
from router_spark_amqp.messages import MessageWriter
from router_spark_amqp.options import Body, Delivery, Options, need_address, parse_options
from router_spark_amqp.readers import OptionError
from router_spark_amqp.rows import RowReader
from router_spark_amqp.schema import RAW
from router_spark_amqp.sink import AmqpStreamWriter, AmqpWriter
from router_spark_amqp.spool import AmqpSpoolReader
from router_spark_amqp.stream import AmqpStreamReader


class AmqpDataSource(DataSource):
    """Spark data source (and sink) for an address of an AMQP 1.0 router or broker.

    Register it with `spark.dataSource.register(AmqpDataSource)`. See `Options` for its options.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of this data source for `format(...)`."""
        return "amqp"

    def schema(self) -> StructType:
        """Return the columns with option `format=raw`, for a query that does not specify columns.

        Raises OptionError for other formats, which need a schema.
        """
        options = parse_options(self.options)
        if options.format is not Body.RAW:
            raise OptionError(
                f"format {options.format} needs the columns of the body: call .schema(...)"
            )
        return RAW

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of a stream. Raises OptionError if options or columns are invalid."""
        options = self._checked(schema)
        if options.delivery is Delivery.SPOOL:
            return AmqpSpoolReader(options, schema)
        return AmqpStreamReader(options, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch. Raises OptionError if options or columns are invalid."""
        options = self._checked(schema)
        # Spark refuses a reader that takes filters if its own setting for that is off
        reader = AmqpFilteringReader if options.push_filters else AmqpBatchReader
        return reader(options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a batch.

        Raises OptionError if options or columns are invalid, or in mode overwrite: sent messages
        cannot be overwritten.
        """
        options = self._writing(schema)
        if overwrite:
            raise OptionError("mode overwrite is not supported; use mode append")
        return AmqpWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Return the writer of a stream. Raises OptionError if options or columns are invalid."""
        return AmqpStreamWriter(self._writing(schema), schema)

    def _writing(self, schema: StructType) -> Options:
        options = parse_options(self.options)
        MessageWriter(options, schema)
        return options

    def _checked(self, schema: StructType) -> Options:
        """Return the options of a read. Raises OptionError if they or the columns are invalid."""
        options = parse_options(self.options)
        need_address(options)
        RowReader(options, schema)
        return options
