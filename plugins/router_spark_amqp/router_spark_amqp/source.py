"""The data source `amqp`: its name, its columns, and who reads and writes."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from router_spark_amqp.batch import AmqpBatchReader
from router_spark_amqp.messages import MessageWriter
from router_spark_amqp.options import Body, Delivery, Options, need_address, parse_options
from router_spark_amqp.readers import OptionError
from router_spark_amqp.rows import RowReader
from router_spark_amqp.schema import RAW
from router_spark_amqp.sink import AmqpStreamWriter, AmqpWriter
from router_spark_amqp.spool import AmqpSpoolReader
from router_spark_amqp.stream import AmqpStreamReader


class AmqpDataSource(DataSource):
    """Reads from and writes to an address of an AMQP 1.0 router or broker.

    Register it with `spark.dataSource.register(AmqpDataSource)`. See `Options` for its options.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "amqp"

    def schema(self) -> StructType:
        """The columns of a message, where the query names none."""
        options = parse_options(self.options)
        if options.format is not Body.RAW:
            raise OptionError(
                f"format {options.format} needs the columns of the body: say .schema(...)"
            )
        return RAW

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """What reads a stream."""
        options = self._checked(schema)
        if options.delivery is Delivery.SPOOL:
            return AmqpSpoolReader(options, schema)
        return AmqpStreamReader(options, schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads a batch."""
        return AmqpBatchReader(self._checked(schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """What writes a batch; what was sent before cannot be overwritten."""
        options = self._writing(schema)
        if overwrite:
            raise OptionError("mode overwrite cannot be had: allowed is append")
        return AmqpWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """What writes a stream."""
        return AmqpStreamWriter(self._writing(schema), schema)

    def _writing(self, schema: StructType) -> Options:
        options = parse_options(self.options)
        MessageWriter(options, schema)
        return options

    def _checked(self, schema: StructType) -> Options:
        """The options, after what is wrong with them or with the columns was said."""
        options = parse_options(self.options)
        need_address(options)
        RowReader(options, schema)
        return options
