"""Charts as SVG elements of an HTML page."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, FAINT, ACCENT = "#1f2933", "#9aa5b1", "#0b69a3"
OUTCOMES = {"rejected": "#d64545", "released": "#f0b429", "modified": "#8a63d2"}
STEPS = {
    1: "a second",
    10: "ten seconds",
    60: "a minute",
    600: "ten minutes",
    3600: "an hour",
    21_600: "six hours",
    86_400: "a day",
}
"""Lengths of time steps, in seconds, with their names."""
MOST_STEPS = 60
Matrix = Mapping[tuple[str, str], float]


def heat_map(cells: Matrix, most: int = 25) -> str:
    """Draw a traffic matrix of the busiest senders (rows) and receivers (columns)."""
    senders = _busiest(cells, 0, most)
    receivers = _busiest(cells, 1, most)
    values = [[cells.get((a, b), 0.0) for b in receivers] for a in senders]
    # even a matrix of few cells needs room for its names
    size = (3.2 + 0.42 * max(6, len(receivers)), 2.0 + 0.34 * max(4, len(senders)))
    with _style():
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        shown = [[math.log10(1 + value) for value in row] for row in values]
        axes.imshow(shown, cmap="Blues", aspect="auto", vmin=0)
        darkest = max(max(row) for row in shown)
        axes.set_xticks(range(len(receivers)), receivers, rotation=50, ha="right")
        axes.set_yticks(range(len(senders)), senders)
        axes.set_xlabel("receiver")
        axes.set_ylabel("sender")
        for y, row in enumerate(values):
            for x, value in enumerate(row):
                color = "white" if shown[y][x] > 0.6 * darkest else INK
                if value > 0:
                    label = short(value)
                    axes.text(x, y, label, ha="center", va="center", fontsize=8, color=color)
        return _svg(figure)


def topology(lines: Matrix) -> str:
    """Draw routers on a circle, joined by lines that show the load in both directions together."""
    routers = sorted({name for pair in lines for name in pair})
    both: dict[tuple[str, str], float] = {}
    for (a, b), load in lines.items():
        pair = (min(a, b), max(a, b))
        both[pair] = both.get(pair, 0) + load
    heaviest = max(both.values(), default=0) or 1
    places = {
        name: (math.sin(turn), math.cos(turn))
        for name, turn in (
            (name, 2 * math.pi * number / len(routers)) for number, name in enumerate(routers)
        )
    }
    with _style():
        figure = Figure(figsize=(7, 6), layout="constrained")
        axes = figure.subplots()
        axes.set_axis_off()
        axes.set_aspect("equal")
        axes.set_xlim(-1.5, 1.5)
        axes.set_ylim(-1.25, 1.25)
        for (a, b), load in both.items():
            (x1, y1), (x2, y2) = places[a], places[b]
            axes.plot(
                [x1, x2], [y1, y2], color=ACCENT, lw=0.8 + 6 * load / heaviest, alpha=0.55, zorder=1
            )
            if len(both) <= 40:
                # not in the middle, where the lines cross
                x, y = x1 + 0.38 * (x2 - x1), y1 + 0.38 * (y2 - y1)
                axes.text(
                    x,
                    y,
                    short(load),
                    fontsize=8,
                    ha="center",
                    va="center",
                    zorder=2,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85},
                )
        for name, (x, y) in places.items():
            axes.plot([x], [y], "o", ms=11, color=INK, zorder=3)
            side = "center" if abs(x) < 0.2 else "left" if x > 0 else "right"
            axes.text(1.1 * x, 1.1 * y, name, ha=side, va="center", zorder=4)
        return _svg(figure)


def latencies(quantiles: Sequence[tuple[str, float, float, float]]) -> str:
    """Draw the p50, p95 and p99 of each router's latencies, in ms."""
    with _style():
        figure = Figure(figsize=(7.5, 1.3 + 0.32 * len(quantiles)), layout="constrained")
        axes = figure.subplots()
        names = [row[0] for row in quantiles]
        spots = range(len(names))
        axes.hlines(
            spots, [row[1] for row in quantiles], [row[3] for row in quantiles], FAINT, lw=2
        )
        for index, (label, color) in enumerate(
            (("p50", ACCENT), ("p95", "#f0b429"), ("p99", "#d64545")), 1
        ):
            values = [float(row[index]) for row in quantiles]
            axes.plot(values, spots, "o", color=color, label=label, ms=7)
        axes.set_yticks(spots, names)
        axes.set_ylim(-0.6, len(names) - 0.4)
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("milliseconds until the outcome is known where the message came in")
        axes.grid(axis="x", color="#e4e7eb")
        axes.set_axisbelow(True)
        _legend_above(axes)
        return _svg(figure)


def step_of(span_s: int) -> int:
    """Return the length of a time step, in seconds, for a chart of `span_s` seconds.

    It is the shortest length that gives at most `MOST_STEPS` steps, or a day if none does.
    """
    return next((step for step in STEPS if span_s <= MOST_STEPS * step), max(STEPS))


def losses_over_time(
    times: Sequence[datetime], counts: Mapping[str, Sequence[int]], step_s: int
) -> str:
    """Draw the number of deliveries that were not accepted in each time step, by outcome."""
    with _style():
        figure = Figure(figsize=(7.5, 3), layout="constrained")
        axes = figure.subplots()
        first = times[0] if times else datetime.fromtimestamp(0, UTC)
        places = [(each - first).total_seconds() / step_s for each in times]
        bottom = [0] * len(times)
        for name, color in OUTCOMES.items():
            axes.bar(places, counts[name], bottom=bottom, color=color, label=name)
            bottom = [low + more for low, more in zip(bottom, counts[name], strict=True)]
        last = round(max(places, default=0))
        ticks = range(0, last + 1, max(1, math.ceil((last + 1) / 8)))
        shown = "%d %b\n%H:%M" if step_s >= 60 else "%H:%M:%S"
        labels = [f"{first + timedelta(seconds=place * step_s):{shown}}" for place in ticks]
        axes.set_xticks(ticks, labels)
        axes.set_xlim(-0.6, max(last, 1) + 0.6)
        axes.set_ylabel(f"deliveries in {STEPS[step_s]}")
        axes.set_ylim(bottom=0, top=None if any(bottom) else 1)
        axes.grid(axis="y", color="#e4e7eb")
        axes.set_axisbelow(True)
        _legend_above(axes)
        return _svg(figure)


def short(value: float) -> str:
    """Return a number as a short text, such as 12k."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def _style() -> AbstractContextManager[None]:
    return mpl.rc_context(
        {
            "font.family": "sans-serif",
            "font.size": 10,
            "svg.fonttype": "none",
            # a name may contain a dollar sign
            "text.parse_math": False,
            "text.color": INK,
            "axes.labelcolor": INK,
            "axes.edgecolor": FAINT,
            "xtick.color": INK,
            "ytick.color": INK,
            "axes.spines.top": False,
            "axes.spines.right": False,
        }
    )


def _busiest(cells: Matrix, side: int, most: int) -> list[str]:
    loads: dict[str, float] = {}
    for pair, load in cells.items():
        loads[pair[side]] = loads.get(pair[side], 0) + load
    return sorted(loads, key=lambda name: (-loads[name], name))[:most]


def _legend_above(axes: Axes) -> None:
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)


def _svg(figure: Figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None}, transparent=True)
    svg = text.getvalue()
    # an element of a page has no XML declaration or document type
    return svg[svg.index("<svg") :]
