"""Run the command line: `python -m router_telemetry`."""

from __future__ import annotations

from router_telemetry.cli import main

main(prog_name="python -m router_telemetry")
