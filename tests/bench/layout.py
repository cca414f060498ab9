"""Layout that all tables of the benchmark share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a table in Markdown; all columns but the first contain numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine_line(result: Mapping[str, Any]) -> str:
    """On which machine what was measured, and how often."""
    facts = result["machine"]
    versions = [f"{s['label']} {s['version']}" for s in result["systems"] if s["version"]]
    return (
        f"{facts['processor']}, {facts['cores']} cores, {facts['memory']}, "
        f"Linux {facts['kernel']}, Python {facts['python']}, Trio {facts['trio']}, "
        f"{facts['compiler']}. "
        + "".join(f"{v}. " for v in versions)
        + f"Medians of {result['repeats']} runs that took turns."
    )
