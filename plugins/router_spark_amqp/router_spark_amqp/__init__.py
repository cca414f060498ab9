"""AMQP 1.0 for Apache Spark: `spark.dataSource.register(AmqpDataSource)`, then `format("amqp")`."""

from __future__ import annotations

from router_spark_amqp.readers import OptionError
from router_spark_amqp.source import AmqpDataSource

__all__ = ["AmqpDataSource", "OptionError"]
