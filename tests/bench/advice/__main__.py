"""Advise and apply costs in random networks, until nothing is advised any more.

    .venv-test/bin/python -P tests/bench/advice/__main__.py --count 100 --seed 1

Exits with 1 if a network does not come to an end, or has become slower.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [
    str(ROOT / "tests"),
    str(ROOT / "plugins" / "router_spark"),
    str(ROOT / "plugins" / "router_telemetry"),
]

from router_spark.advising.proposing import Bounds  # noqa: E402
from router_spark.session import SessionSettings, spark_session  # noqa: E402

from bench.advice.looping import Course, loop_all  # noqa: E402
from bench.causes import scoring  # noqa: E402

SLOWER = -0.1


@click.command()
@click.option("--count", default=40, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True, type=click.IntRange(0), help="The first.")
@click.option("--rounds", default=30, show_default=True, type=click.IntRange(1), help="At most.")
@click.option("--only-measured", is_flag=True, help="Use no line that nothing was measured on.")
@click.option("--write-docs", type=click.Path(path_type=Path), help="The page with the table.")
@click.option("--details", is_flag=True, help="Say of each network what has become of it.")
def main(
    count: int,
    seed: int,
    rounds: int,
    only_measured: bool,
    write_docs: Path | None,
    details: bool,
) -> None:
    """Measure whether repeated advice converges."""

    def say(text: str) -> None:
        click.echo(text, err=True)

    settings = SessionSettings(memory="3g", shuffle_partitions=4)
    with tempfile.TemporaryDirectory() as folder, spark_session("advice", settings) as spark:
        spark.sparkContext.setLogLevel("ERROR")
        bounds = Bounds(only_measured=only_measured)
        courses = loop_all(spark, range(seed, seed + count), Path(folder), bounds, rounds, say)
    if details:
        for course in courses:
            click.echo(_words(course))
    lines = list(table(courses, seed))
    click.echo("\n".join(lines))
    if write_docs is not None:
        scoring.write_docs(write_docs, lines)
    ended = [course for course in courses if course.has_ended]
    slower = [course for course in courses if course.gain < SLOWER]
    raise SystemExit(1 if len(ended) < len(courses) or slower else 0)


def table(courses: list[Course], seed: int) -> Iterator[str]:
    """Yield the lines of the table."""
    advised = [course for course in courses if course.rounds]
    gains = sorted(course.gain for course in advised)
    rounds = [course.rounds for course in advised]
    yield f"{len(courses)} networks, seeds {seed} to {seed + len(courses) - 1}:"
    yield ""
    yield "| | |"
    yield "|---|---:|"
    yield f"| came to an end | {sum(course.has_ended for course in courses)} |"
    yield f"| had something advised | {len(advised)} |"
    if not advised:
        return
    yield f"| changes in one network: mean, most | {statistics.mean(rounds):.1f}, {max(rounds)} |"
    returns = max(course.most_returns() for course in courses)
    yield f"| times that a line came back to a cost it had left, at most | {returns} |"
    yield f"| latency less by: median | {statistics.median(gains):.0%} |"
    yield f"| least, most | {gains[0]:.0%}, {gains[-1]:.0%} |"
    yield f"| slower by more than {-SLOWER:.0%} | {sum(gain < SLOWER for gain in gains)} |"


def _words(course: Course) -> str:
    times = " ".join(f"{each:.1f}" for each in course.latencies_ms)
    changes = "; ".join(
        ",".join(f"{one}-{other}={cost}" for (one, other), cost in each) or "-"
        for each in course.advised
    )
    return f"{course.seed}: {times} ms, left alone {course.left_alone_ms:.1f} ms; {changes}"


if __name__ == "__main__":
    main()
