"""Run the command line: `python -m router_spark`."""

from __future__ import annotations

from router_spark.cli import main

main(prog_name="trioute-spark")
