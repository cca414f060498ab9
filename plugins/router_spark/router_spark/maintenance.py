"""Commands that run streams or maintain files: stream, compact and register."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

import attrs
import click
from pyspark.sql import DataFrame
from router_telemetry.schema import DATASETS, DELIVERIES, EVENTS, FLOWS, Dataset

from router_spark.compacting import compact
from router_spark.errors import BadInput
from router_spark.jobs import incidents, latency, losses, paths, skew, traffic
from router_spark.periods import parse_period
from router_spark.running import say, session_options
from router_spark.session import SessionSettings, spark_session
from router_spark.streaming import Job, Stream, start


@attrs.frozen
class StreamedJob:
    """Job that can be streamed: its dataset, and a function from an hour's rows to tables."""

    dataset: Dataset
    job: Job


def _skew(flows: DataFrame) -> Mapping[str, DataFrame]:
    return {
        "addresses": skew.hot_addresses(flows, 10),
        "containers": skew.hot_containers(flows, 10),
        "links": skew.link_balance(flows),
    }


JOBS: Final[Mapping[str, StreamedJob]] = {
    "incidents": StreamedJob(EVENTS, lambda rows: {"incidents": incidents.incidents(rows)}),
    "latency": StreamedJob(DELIVERIES, lambda rows: {"hours": latency.by_hour(rows)}),
    "losses": StreamedJob(DELIVERIES, lambda rows: {"losses": losses.losses(rows)}),
    "paths": StreamedJob(DELIVERIES, lambda rows: {"paths": paths.paths(rows)}),
    "skew": StreamedJob(FLOWS, _skew),
    "totals": StreamedJob(FLOWS, lambda rows: {"totals": traffic.totals(rows)}),
}
"""Jobs that can be streamed, by name."""


@click.command("stream")
@click.argument("job", type=click.Choice(sorted(JOBS)))
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path),
    help="Write the tables, and the progress of the stream, to this folder.",
)
@click.option(
    "--every",
    "interval_s",
    type=click.FloatRange(1),
    metavar="SECONDS",
    help="Look for new files at this interval, until stopped. [default: end when all are read]",
)
@session_options
def stream_command(
    session: SessionSettings, job: str, directory: Path, out: Path, interval_s: float | None
) -> None:
    """Compute a job for each hour that gets new rows, as files appear in DIRECTORY.

    Run the command again with the same --out to continue where it ended.
    """
    streamed = JOBS[job]
    stream = Stream(directory, out, streamed.dataset, streamed.job)
    say(f"starting Spark at {session.master}")
    with spark_session(f"stream {job}", session) as spark:
        query = start(spark, stream, interval_s)
        say(f"streaming {job} from {stream.folder} to {out}")
        query.awaitTermination()
    say(f"{job}: all files have been read")


@click.command("compact")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--before",
    metavar="DAY",
    help="Merge only days before this one, such as 2026-11-25. [default: today]",
)
def compact_command(directory: Path, before: str | None) -> None:
    """Merge the files of each dataset, router and past day into one file."""
    count = 0
    for merged in compact(directory, DATASETS, _day(before)):
        count += 1
        twice = f", without {merged.duplicates:,} duplicates" if merged.duplicates else ""
        say(f"{merged.path}: {merged.rows:,} rows of {merged.files:,} files{twice}")
    say(f"compact: done, {count:,} folders")


def _day(text: str | None) -> date:
    today = datetime.now(UTC).date()
    if text is None:
        return today
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"--before {text}: not a day, such as 2026-11-25") from None
    if day > today:
        raise BadInput(f"--before {text}: is in the future; the latest allowed day is {today}")
    return day


@click.command("register")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--catalog", "name", default="default", show_default=True, help="Name of the catalogue."
)
@click.option(
    "--namespace", default="telemetry", show_default=True, help="Namespace of the tables."
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of the catalogue, such as `uri=https://...`. Other properties come from "
    "PyIceberg's own configuration.",
)
@click.option("--from", "first", metavar="TIME", help="Start of the period (ISO 8601, UTC).")
@click.option("--to", "last", metavar="TIME", help="End of the period (ISO 8601, UTC).")
def register_command(
    directory: Path,
    name: str,
    namespace: str,
    properties: tuple[str, ...],
    first: str | None,
    last: str | None,
) -> None:
    """Add new files to the tables of an Iceberg catalogue.

    Run this command in one place only.
    """
    try:
        from router_spark.registering import open_catalog, register
    except ImportError:
        raise BadInput("register needs PyIceberg: pip install 'trioute-spark[iceberg]'") from None
    settings = {}
    for text in properties:
        key, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"--property {text}: not NAME=VALUE")
        settings[key] = value
    period = parse_period(first, last)
    found = [each for each in DATASETS if (directory / each.name).is_dir()]
    if not found:
        names = ", ".join(each.name for each in DATASETS)
        raise BadInput(f"{directory}: has none of the folders {names}")
    catalog = open_catalog(name, settings)
    for dataset in found:
        added = register(catalog, namespace, directory, dataset, period)
        say(f"{added.table}: {added.files:,} files added, {added.rows:,} rows")


COMMANDS: Final[tuple[click.Command, ...]] = (stream_command, compact_command, register_command)
