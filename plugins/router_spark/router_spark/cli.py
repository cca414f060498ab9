"""Command line of the analysis: one command for each job."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click
from pyspark.sql import SparkSession, functions as sf
from router_telemetry.schema import DELIVERIES, FLOWS

from router_spark import maintenance
from router_spark.advise_command import advise_command
from router_spark.causes_command import causes_command
from router_spark.commands import COMMANDS
from router_spark.errors import BadInput
from router_spark.footers import Footer
from router_spark.periods import Period
from router_spark.reading import checked_files, read_rows
from router_spark.reporting import previous_period, report_page, write_page
from router_spark.running import Run, Tables, run_options, say, with_session
from router_spark.session import spark_session
from router_spark.validating import all_sequences, check_files, move_away, torn_files
from router_spark.writing import check_out

FAULTS: Final = {"lost": "lost rows", "duplicates": "duplicate rows"}
"""Faults that `validate` reports, by the column with their number."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trioute-spark")
def main() -> None:
    """Analyse what routers have written to DIRECTORY: flows, deliveries and events.

    Without --out, a job prints its results.
    """


@main.command()
@click.option(
    "--quarantine",
    type=click.Path(path_type=Path),
    help="Move torn files to this folder.",
)
@run_options
def validate(run: Run, quarantine: Path | None) -> None:
    """Find torn files (which cannot be read), lost rows and duplicates.

    Exits with 1 if any are found, except for torn files that were moved to --quarantine.
    """
    check_out(run.out, overwrite=run.overwrite)
    if quarantine is not None and quarantine.resolve().is_relative_to(run.directory.resolve()):
        raise BadInput(f"--quarantine {quarantine}: is inside {run.directory}, which jobs read")
    checked = check_files(run.directory, run.period)
    for each in checked:
        say(f"{each.dataset.name}: {len(each.whole):,} whole files, {len(each.torn):,} torn files")
        for torn in each.torn if quarantine is not None else ():
            say(f"moved {move_away(torn, run.directory, Path(str(quarantine)))}")
    faults: list[str] = []
    if quarantine is None and any(each.torn for each in checked):
        faults.append("torn files")

    def compute(spark: SparkSession) -> Tables:
        rows = all_sequences(spark, checked).persist()
        counted = rows.agg(sf.sum("lost").alias("lost"), sf.sum("duplicates").alias("duplicates"))
        (found,) = counted.collect()
        faults.extend(f"{found[name]:,} {what}" for name, what in FAULTS.items() if found[name])
        return {"files": torn_files(spark, checked), "rows": rows}

    with_session(run, "validate", compute)
    if faults:
        say(f"found {', '.join(faults)}")
        raise SystemExit(1)


@main.command()
@click.option(
    "--page",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write the page to.",
)
@run_options
def report(run: Run, page: Path) -> None:
    """Write a page that shows the traffic, latencies and losses of the network."""
    datasets = (FLOWS, DELIVERIES)
    files = [checked_files(run.directory, each, run.period) for each in datasets]
    earlier = previous_period(run.period)
    before = None if earlier is None else _files_before(run.directory, earlier)
    say(f"starting Spark at {run.session.master}")
    with spark_session("report", run.session) as spark:
        flows, deliveries = (
            read_rows(spark, found, each, run.period)
            for found, each in zip(files, datasets, strict=True)
        )
        earlier_flows = None
        if earlier is not None and before:
            earlier_flows = read_rows(spark, before, FLOWS, earlier)
        say("running report")
        write_page(report_page(flows, deliveries, earlier_flows, run.period), page)
    say(f"wrote {page}")


def _files_before(directory: Path, period: Period) -> list[Footer]:
    try:
        return checked_files(directory, FLOWS, period)
    except BadInput as error:
        say(f"nothing to compare with: {error.message}")
        return []


for command in (*COMMANDS, causes_command, advise_command, *maintenance.COMMANDS):
    main.add_command(command)
