"""The complex plane for a paper: a small picture for every network, all on one scale."""

from __future__ import annotations

import math

from mnemoscope.report.canvas import FAINT, SOFT, Canvas, shortened
from mnemoscope.report.figure import Plane
from mnemoscope.report.names import Named, Shown

__all__ = ["draw_plane"]

_GAP, _TITLE = 8.0, 12.0


def draw_plane(drawing: Plane, shown: Shown) -> tuple[Canvas, float]:
    """Return the picture and its height."""
    canvas = Canvas()
    clouds = {key: [complex(z) for z in points if _finite(z)] for key, points in drawing.points.items()}
    radii = [mark.value for mark in drawing.marks if mark.kind == "circle"]
    reach = 1.08 * (max([*(abs(z) for points in clouds.values() for z in points), *radii], default=1.0) or 1.0)
    columns = min(3, max(1, len(clouds)))
    side = min((canvas.width - _GAP * (columns - 1)) / columns, 150.0)
    for index, (key, points) in enumerate(sorted(clouds.items(), key=lambda cloud: not shown[cloud[0]].subject)):
        left, top = (index % columns) * (side + _GAP), (index // columns) * (side + _TITLE + _GAP)
        _panel(canvas, shown[key], points, radii, reach, (left, top + _TITLE, side))
    rows = -(-max(1, len(clouds)) // columns)
    return canvas, rows * (side + _TITLE + _GAP) - _GAP + 1


def _panel(
    canvas: Canvas, who: Named, points: list[complex], radii: list[float], reach: float, box: tuple[float, float, float]
) -> None:
    left, top, side = box
    x, y, unit = left + side / 2, top + side / 2, side / 2 / reach
    canvas.marker(who.look, left + 4, top - 5.5, 0.5)
    canvas.text(left + 10, top - 3, shortened(who.name, side - 10), bold=who.subject)
    canvas.line(left, y, left + side, y, stroke=FAINT, stroke_width=0.5)
    canvas.line(x, top, x, top + side, stroke=FAINT, stroke_width=0.5)
    for radius in radii:
        canvas.circle(x, y, radius * unit, fill="none", stroke=SOFT, stroke_width=0.6, stroke_dasharray="0.6 1.8")
    for z in points:
        canvas.circle(x + z.real * unit, y - z.imag * unit, 1.2, fill=who.look.light)


def _finite(value: complex) -> bool:
    point = complex(value)
    return math.isfinite(point.real) and math.isfinite(point.imag)
