"""Generate ten million records with planted answers, run every job on them, and measure.

    .venv-test/bin/python -P tests/bench/pipeline/__main__.py --rows 10000000

Everything runs on two cores: one Spark session at `local[2]`, or two threads. Exits with 1 if an
answer is wrong.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs
import click

ROOT = Path(__file__).resolve().parents[3]
PLUGINS = [
    str(ROOT / "plugins" / name)
    for name in ("router_spark", "router_spark_amqp", "router_telemetry")
]
sys.path[:0] = [str(ROOT / "tests"), *PLUGINS]

from router_spark.session import SessionSettings, spark_session  # noqa: E402
from router_telemetry.files import ROW_GROUP  # noqa: E402

from bench import report  # noqa: E402
from bench.pipeline import amqp, engines, goals, streams  # noqa: E402
from bench.pipeline.batch import Bench, WrongAnswer, run_job, run_validate  # noqa: E402
from bench.pipeline.timing import Measured, say  # noqa: E402

from support.pipeline.answers import Answers, answers  # noqa: E402
from support.pipeline.crowds import crowd  # noqa: E402
from support.pipeline.damage import damage  # noqa: E402
from support.pipeline.jobs import JOBS  # noqa: E402
from support.pipeline.telemetry import write_world  # noqa: E402

# A router writes three files or more, however few rows there are.
LEAST_FILES = 40


def prepare(lake: Path, rows: int) -> Answers:
    """Write the lake if it is not there, and return its answers."""
    world = crowd(rows)
    if not lake.exists():
        say(f"generating about {rows:,} rows")
        partial = lake.with_name("partial")
        shutil.rmtree(partial, ignore_errors=True)
        most = min(ROW_GROUP, max(1, rows // LEAST_FILES))
        written = write_world(partial, world, most, say)
        partial.rename(lake)
        say(f"{sum(written.values()):,} rows")
    return answers(world)


@contextmanager
def workplace(folder: Path | None) -> Iterator[Path]:
    """Return a folder that is kept, or one that is gone in the end."""
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@attrs.frozen
class Sizes:
    """Size of a run."""

    rows: int
    stream_rows: int
    messages: int
    repeats: int


def runs(place: Path, sizes: Sizes, wanted: Callable[[str], bool]) -> Iterator[Measured]:
    """Measure what is wanted, one after the other."""
    lake = place / f"lake-{sizes.rows}"
    known = prepare(lake, sizes.rows)
    temporary = place / "temporary"
    shutil.rmtree(temporary, ignore_errors=True)
    with spark_session("bench", SessionSettings()) as spark:
        bench = Bench(spark, lake, known, temporary / "out", sizes.repeats)
        for name in filter(wanted, JOBS):
            yield run_job(bench, name)
        if wanted("validate"):
            yield run_validate(bench, damage(lake, temporary / "damaged"))
        if wanted("stream"):
            yield streams.run_stream(spark, temporary / "stream", sizes.stream_rows, sizes.repeats)
        if wanted("source") or wanted("sink"):
            with amqp.load(temporary / "amqp") as peers:
                if wanted("source"):
                    folder = temporary / "source"
                    yield amqp.run_source(spark, peers, folder, sizes.messages)
                if wanted("sink"):
                    yield amqp.run_sink(spark, peers, 3 * sizes.messages)
    rows = sum(each.rows for found in JOBS["traffic"].files(lake).values() for each in found)
    for name in filter(wanted, engines.ENGINES):
        yield engines.run_engine(name, lake, known, rows, sizes.repeats)
    shutil.rmtree(temporary, ignore_errors=True)


def kept_from(out: Path | None) -> dict[str, Measured]:
    """Read what an earlier run has measured."""
    if out is None or not out.exists():
        return {}
    kept = (Measured(**each) for each in json.loads(out.read_text(encoding="utf-8")))
    return {each.name: each for each in kept}


def keep(out: Path, found: Mapping[str, Measured]) -> None:
    """Write what was measured so far, so that a run that is stopped can be resumed."""
    text = json.dumps([attrs.asdict(each) for each in found.values()], indent=1)
    out.write_text(text + "\n", encoding="utf-8")


@click.command()
@click.option("--rows", default=10_000_000, show_default=True, type=click.IntRange(20_000))
@click.option("--stream-rows", default=1_000_000, show_default=True, type=click.IntRange(20_000))
@click.option("--messages", default=600_000, show_default=True, type=click.IntRange(1000))
@click.option("--repeats", default=7, show_default=True, type=click.IntRange(1))
@click.option("--only", multiple=True, type=click.Choice(list(goals.COMPONENTS)))
@click.option("--folder", type=click.Path(path_type=Path), help="Where the records are kept.")
@click.option("--out", type=click.Path(path_type=Path), help="Write what was measured as JSON.")
@click.option("--resume", is_flag=True, help="Measure only what is not in --out's file yet.")
@click.option("--write-docs", type=click.Path(path_type=Path), help="The page with the table.")
def main(
    rows: int,
    stream_rows: int,
    messages: int,
    repeats: int,
    only: tuple[str, ...],
    folder: Path | None,
    out: Path | None,
    resume: bool,
    write_docs: Path | None,
) -> None:
    """Measure the data pipeline."""
    # Spark's workers look for the source there
    os.environ["PYTHONPATH"] = os.pathsep.join([*PLUGINS, os.environ.get("PYTHONPATH", "")])
    found = kept_from(out) if resume else {}
    with workplace(folder) as place:
        try:
            sizes = Sizes(rows, stream_rows, messages, repeats)
            wanted = set(only or goals.COMPONENTS) - found.keys()
            for each in runs(place, sizes, wanted.__contains__):
                found[each.name] = each
                if out is not None:
                    keep(out, found)
        except WrongAnswer as error:
            say(str(error))
            raise SystemExit(1) from None
    text = goals.markdown([found[name] for name in goals.COMPONENTS if name in found], repeats)
    click.echo(text)
    if write_docs is not None:
        report.write_section(write_docs, text, goals.BEGIN, goals.END)


if __name__ == "__main__":
    main()
