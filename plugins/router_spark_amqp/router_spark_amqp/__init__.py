"""AMQP 1.0 data source for Apache Spark.

Register it with `spark.dataSource.register(AmqpDataSource)`, then use `format("amqp")`.
"""

from __future__ import annotations

from router_spark_amqp.readers import OptionError
from router_spark_amqp.source import AmqpDataSource

__all__ = ["AmqpDataSource", "OptionError"]
