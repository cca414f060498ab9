"""Measure the accuracy of the job `causes` on incidents planted in simulated networks.

    .venv-test/bin/python -P tests/bench/causes/__main__.py --count 1000 --seed 1

The job explains all incidents in one run. Simulated records are kept in --folder, so that an
interrupted run can continue. The exit code is 1 if a cause is named that was not planted.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [
    str(ROOT / "tests"),
    str(ROOT / "plugins" / "router_spark"),
    str(ROOT / "plugins" / "router_telemetry"),
]

from router_spark.jobs.causes import causes  # noqa: E402
from router_spark.periods import Period  # noqa: E402
from router_spark.session import SessionSettings, spark_session  # noqa: E402

from bench.causes import scoring, simulating  # noqa: E402

from support.pipeline.scenes import BASELINE, PERIOD  # noqa: E402

Answer = tuple[int, str, str | None]


def named(folder: Path, wanted: list[simulating.Chunk], memory: str) -> list[Answer]:
    """Run the job on all incidents; return case, kind and subject of each row."""
    with spark_session("causes", SessionSettings(memory=memory, shuffle_partitions=8)) as spark:
        flows, deliveries, events = (
            spark.read.parquet(*(str(chunk.records(name)) for chunk in wanted))
            for name in ("flows", "deliveries", "events")
        )
        times = Period(*BASELINE), Period(*PERIOD)
        found = causes(flows, deliveries, events, *times, groups=["case"])
        return [(row["case"], row["kind"], row["subject"]) for row in found.collect()]


@click.command()
@click.option("--count", default=1000, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The first.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where records are kept.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1))
@click.option("--memory", default="3g", show_default=True, help="Memory of Spark's driver.")
@click.option("--write-docs", type=click.Path(path_type=Path), help="The page with the table.")
def main(
    count: int, seed: int, folder: Path | None, processes: int, memory: str, write_docs: Path | None
) -> None:
    """Measure how often `causes` is right."""
    place = ROOT / "build" / "causes" if folder is None else folder
    wanted = simulating.chunks(place, seed, count)
    simulating.simulate_all(wanted, processes)
    began = time.monotonic()
    answers = named(place, wanted, memory)
    click.echo(f"the job took {time.monotonic() - began:.0f} s", err=True)
    scores = scoring.score(simulating.planted_in(wanted), answers)
    lines = list(scoring.table(scores, seed, count))
    click.echo("\n".join(lines))
    for mistake in scores.mistakes:
        click.echo(mistake, err=True)
    if write_docs is not None:
        scoring.write_docs(write_docs, lines)
    raise SystemExit(1 if scores.total.wrong else 0)


if __name__ == "__main__":
    main()
