"""Targets of the components and figures of the prototype: the table of the page."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Final

import attrs

from bench import machine
from bench.layout import table
from bench.pipeline.timing import Measured

BEGIN: Final = "<!-- pipeline: begin (written by tests/bench, do not edit) -->"
END: Final = "<!-- pipeline: end -->"
VERSIONS: Final = ("pyspark", "pyarrow", "duckdb", "polars")


@attrs.frozen
class Component:
    """A row of the table; `target` is in rows or messages a second, or None."""

    title: str
    target: float | None = None
    prototype: str = "–"


COMPONENTS: Final[Mapping[str, Component]] = {
    "traffic": Component("`traffic`", 2e6, "2.0 to 4.8 M (a plain `groupBy`)"),
    "paths": Component("`paths`", 1e6, "1.1 M"),
    "latency": Component("`latency`"),
    "offsets": Component("`offsets`"),
    "losses": Component("`losses`"),
    "incidents": Component("`incidents`"),
    "skew": Component("`skew`"),
    "capacity": Component("`capacity`"),
    "causes": Component("`causes`"),
    "validate": Component("`validate`"),
    "stream": Component("stream with deduplication (`losses`)", 40e3, "38 to 44 k"),
    "source": Component("AMQP source", 5e3, "1.9 k"),
    "sink": Component("AMQP sink", 15e3, "11 to 15 k"),
    "DuckDB": Component("DuckDB, the counting of `traffic`", None, "40 M"),
    "Polars": Component("Polars, the counting of `traffic`", None, "22 M"),
}


def short(rate: float) -> str:
    """Return a rate in millions or thousands."""
    if rate >= 1e6:
        return f"{rate / 1e6:.2f} M"
    return f"{rate / 1e3:.1f} k" if rate < 100e3 else f"{rate / 1e3:.0f} k"


def markdown(found: list[Measured], repeats: int) -> str:
    """Return the machine, the day and the table."""
    rows = []
    for each in found:
        component = COMPONENTS[each.name]
        target, verdict = "–", ""
        if component.target is not None:
            target = f"≥ {short(component.target)}"
            verdict = " met" if each.warm_rate >= component.target else " missed"
        rows.append(
            [
                component.title,
                target,
                component.prototype,
                f"{short(each.warm_rate)}{verdict}",
                short(each.cold_rate),
                f"{each.rows:,}",
                f"{each.load:.1f}",
            ]
        )
    facts = machine.facts()
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in VERSIONS)
    on = (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}, "
        f"Linux {facts['kernel']}, Python {facts['python']}, {versions}; "
        f"{datetime.now(UTC):%Y-%m-%d}. Medians of {repeats} runs after the first one."
    )
    heads = ["", "target", "prototype", "measured", "first run", "rows", "load average"]
    return f"{on}\n\n**Rows or messages a second**\n\n{table(heads, rows)}"
