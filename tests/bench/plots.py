"""Draw results as SVG: panels side by side, each with lines over logarithmic axes."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

# Of one panel, in inches.
WIDTH, HEIGHT = 3.6, 3.0
Point = tuple[float, float]

# The same results give the same file, and text stays text.
STYLE: dict[Any, Any] = {"svg.hashsalt": "trioute", "svg.fonttype": "none", "font.size": 9}


@attrs.frozen
class Panel:
    """Lines by their names, each of points with coordinates above 0."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Sequence[Point]]


def picture(panels: Sequence[Panel]) -> str:
    """Return the text of an SVG file with these panels from left to right."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH * len(panels), HEIGHT), layout="constrained")
        for axes, panel in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            _draw(axes, panel)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None})
    return written.getvalue()


def _draw(axes: Axes, panel: Panel) -> None:
    for name, line in panel.lines.items():
        across, upwards = [x for x, _ in line], [y for _, y in line]
        axes.loglog(across, upwards, marker="o", markersize=4, label=name, gid=name)
    axes.set_title(panel.title, fontsize="medium", fontweight="bold")
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter(NullFormatter())
    axes.grid(color="#dddddd")
    axes.legend(fontsize="small", frameon=False)
