"""Pictures of results, as SVG: panels side by side, each with lines over logarithmic axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from xml.sax.saxutils import escape

import attrs

WIDTH = 300
HEIGHT = 250
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 46, 44
COLOURS = ("#1f5fa8", "#c4541a", "#2f7d4f", "#8a3d8f")
GREY = "#6b6b6b"
Point = tuple[float, float]


@attrs.frozen
class Panel:
    """Lines by their names, each of points with coordinates above 0."""

    title: str
    x: str
    y: str
    lines: Mapping[str, Sequence[Point]]


def picture(panels: Sequence[Panel]) -> str:
    """Return the text of an SVG file with these panels from left to right."""
    size = f'width="{WIDTH * len(panels)}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<rect {size} fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * WIDTH} 0)">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


class _Axis:
    """Where values stand on a logarithmic axis from one pixel to another."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        logs = [log10(value) for value in values]
        self.low, self.high = floor(min(logs) + 1e-9), ceil(max(logs) - 1e-9)
        if self.low == self.high:
            self.high += 1
        self.start, self.end = start, end

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        part = (log10(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def marks(self) -> list[float]:
        """Return the powers of ten on the axis."""
        return [10.0**power for power in range(self.low, self.high + 1)]


def _panel(panel: Panel) -> list[str]:
    points = [point for line in panel.lines.values() for point in line]
    across = _Axis((x for x, _ in points), LEFT, WIDTH - RIGHT)
    upwards = _Axis((y for _, y in points), HEIGHT - BOTTOM, TOP)
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts = [_text(middle, 16, panel.title, "middle", weight="bold")]
    parts.append(_text(middle, HEIGHT - 8, panel.x, "middle"))
    height = (TOP + HEIGHT - BOTTOM) / 2
    turned = f"rotate(-90 13 {height:g})"
    parts.append(
        f'<text x="13" y="{height:g}" text-anchor="middle" transform="{turned}" '
        f'fill="{GREY}">{escape(panel.y)}</text>'
    )
    for value in upwards.marks():
        y = upwards.at(value)
        parts.append(_stroke((LEFT, y), (WIDTH - RIGHT, y), "#dddddd"))
        parts.append(_text(LEFT - 5, y + 4, _number(value), "end"))
    for value in across.marks():
        x = across.at(value)
        parts.append(_stroke((x, TOP), (x, HEIGHT - BOTTOM), "#dddddd"))
        parts.append(_text(x, HEIGHT - BOTTOM + 15, _number(value), "middle"))
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        path = " ".join(f"{across.at(x):.1f},{upwards.at(y):.1f}" for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{across.at(x):.1f}" cy="{upwards.at(y):.1f}" r="3" fill="{colour}"/>'
            for x, y in line
        ]
        left = LEFT + number * (WIDTH - LEFT - RIGHT) / len(panel.lines)
        parts.append(_stroke((left, 32), (left + 14, 32), colour, width=2))
        parts.append(_text(left + 19, 36, name, "start", colour))
    return parts


def _text(
    x: float, y: float, text: str, anchor: str, colour: str = GREY, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
        f'font-weight="{weight}">{escape(text)}</text>'
    )


def _stroke(start: Point, end: Point, colour: str, width: int = 1) -> str:
    return (
        f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" '
        f'stroke="{colour}" stroke-width="{width}"/>'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
