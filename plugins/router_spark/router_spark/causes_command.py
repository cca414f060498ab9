"""Command for the job `causes`, which compares two periods."""

from __future__ import annotations

import attrs
import click
from router_telemetry.schema import DELIVERIES, EVENTS, FLOWS

from router_spark.errors import BadInput
from router_spark.jobs import causes
from router_spark.periods import Period, parse_time
from router_spark.running import Run, run_job, run_options


@click.command("causes")
@click.option(
    "--baseline-from", metavar="TIME", required=True, help="When all began to be well (ISO 8601)."
)
@click.option(
    "--baseline-to", metavar="TIME", help="When it ended, if not at --from (ISO 8601, UTC)."
)
@run_options
def causes_command(run: Run, baseline_from: str, baseline_to: str | None) -> None:
    """Name who is to blame for a drop in acceptance or a rise in latency.

    The time from --from to --to is compared with a baseline before it.
    """
    if run.period.start is None or run.period.end is None:
        raise BadInput("--from and --to are needed: the time that is to be explained")
    end = parse_time("--baseline-to", baseline_to) or run.period.start
    baseline = Period(parse_time("--baseline-from", baseline_from), end)
    if baseline.start is None or not baseline.start < end <= run.period.start:
        raise BadInput(
            f"--baseline-from {baseline_from}: the baseline, {baseline}, has to end "
            f"by --from, and to begin before it ends"
        )
    run_job(
        run,
        "causes",
        (FLOWS, DELIVERIES, EVENTS),
        lambda flows, deliveries, events: {
            "causes": causes.causes(flows, deliveries, events, baseline, run.period)
        },
        # events before the baseline have the costs of lines
        read=attrs.evolve(run.period, start=None),
    )
