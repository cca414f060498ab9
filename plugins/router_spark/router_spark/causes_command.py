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
    "--baseline-from", metavar="TIME", required=True, help="Start of the baseline (ISO 8601, UTC)."
)
@click.option(
    "--baseline-to", metavar="TIME", help="End of the baseline (ISO 8601, UTC). [default: --from]"
)
@run_options
def causes_command(run: Run, baseline_from: str, baseline_to: str | None) -> None:
    """Name the causes of a drop in acceptance or a rise in latency.

    The period from --from to --to is compared with an earlier baseline.
    """
    if run.period.start is None or run.period.end is None:
        raise BadInput("--from and --to are required: they give the period to explain")
    end = parse_time("--baseline-to", baseline_to) or run.period.start
    baseline = Period(parse_time("--baseline-from", baseline_from), end)
    if baseline.start is None or not baseline.start < end <= run.period.start:
        raise BadInput(
            f"--baseline-from {baseline_from}: the baseline, {baseline}, must end "
            f"by --from, and begin before it ends"
        )
    run_job(
        run,
        "causes",
        (FLOWS, DELIVERIES, EVENTS),
        lambda flows, deliveries, events: {
            "causes": causes.causes(flows, deliveries, events, baseline, run.period)
        },
        # events before the baseline tell the costs of lines
        read=attrs.evolve(run.period, start=None),
    )
