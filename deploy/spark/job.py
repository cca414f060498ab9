"""Entry point for spark-submit: the command `trioute-spark`."""

from __future__ import annotations

from router_spark.cli import main

main(prog_name="trioute-spark")
