"""Pictures of the plane in Vega-Lite: points of the complex plane, one panel a network, and matrices in colours."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.report.figure import HeatMap, Plane
from mnemoscope.report.palette import DIVERGING, SEQUENTIAL
from mnemoscope.report.vega.layers import FAINT, SOFT, Layer, Named, Picture, Sheet, table

__all__ = ["draw_heat_map", "draw_plane"]

_GAP, _TITLE = 8.0, 12.0
_TICKS = 12
"""Rows or columns of a matrix that have a label, at the most."""


def draw_plane(drawing: Plane, shown: Mapping[str, Named], sheet: Sheet) -> Picture:
    """Return the picture: a small panel for every network, all on one scale."""
    clouds = {key: [complex(z) for z in points if _finite(z)] for key, points in drawing.points.items()}
    radii = [(mark.value, mark.label) for mark in drawing.marks if mark.kind == "circle"]
    ends = [max(abs(z.real), abs(z.imag)) for points in clouds.values() for z in points] + [r for r, _ in radii]
    reach = 1.08 * (max(ends, default=1.0) or 1.0)
    unit = sheet.unit
    columns = min(3 if len(clouds) > 4 else 2, max(1, len(clouds)))
    side = min((sheet.width - _GAP * unit * (columns - 1)) / columns, 150.0 * unit)
    layers: list[Layer] = []
    for index, (key, points) in enumerate(sorted(clouds.items(), key=lambda cloud: not shown[cloud[0]].subject)):
        left, top = (index % columns) * (side + _GAP * unit), (index // columns) * (side + (_TITLE + _GAP) * unit)
        rings = radii if index == 0 else [(radius, "") for radius, _ in radii]  # named once
        layers += _panel(shown[key], points, rings, reach, (left, top + _TITLE * unit, side), sheet)
    rows = -(-max(1, len(clouds)) // columns)
    return Picture(layers, sheet.width, rows * (side + (_TITLE + _GAP) * unit) - (_GAP - 1) * unit)


def _panel(
    who: Named,
    points: Sequence[complex],
    radii: Sequence[tuple[float, str]],
    reach: float,
    box: tuple[float, float, float],
    sheet: Sheet,
) -> list[Layer]:
    left, top, side = box
    unit = sheet.unit
    x, y, scale = left + side / 2, top + side / 2, side / 2 / reach
    found = [sheet.marker_at(who.look, left + 4 * unit, top - 5.5 * unit, 0.5)]
    name = sheet.short(who.name, side - 10 * unit, bold=who.subject)
    found += sheet.text(left + 10 * unit, top - 3 * unit, name, bold=who.subject)
    for ends in ((left, y, left + side, y), (x, top, x, top + side)):
        found.append(sheet.rule(ends, colour=FAINT, width=0.5))
    for radius, label in radii:
        turn = np.linspace(0, 2 * math.pi, 121).tolist()
        rim = [{"x": x + radius * scale * math.cos(t), "y": y - radius * scale * math.sin(t), "turn": t} for t in turn]
        mark = {"type": "line", **sheet.stroke(colour=SOFT, width=0.6, dash="0.6 1.8")}
        order = {"order": {"field": "turn", "type": "quantitative"}}
        found.append({"data": table(rim), "mark": mark, "encoding": {**_PIXELS, **order}})
        if label and radius * scale > 12 * unit:
            found += sheet.text(x, y + radius * scale - 3 * unit, label, size=6.5, align="center", colour=SOFT)
    dots = [{"x": x + z.real * scale, "y": y - z.imag * scale, "re": z.real, "im": z.imag} for z in points]
    tips = [{"field": name, "type": "quantitative", "format": ".6~g"} for name in ("re", "im")]
    mark = {"type": "circle", "size": 5.8 * unit**2, "fill": who.look.light, "opacity": 1}
    return [*found, {"data": table(dots), "mark": mark, "encoding": {**_PIXELS, "tooltip": tips}}]


_RAW = {"type": "quantitative", "scale": None, "axis": None}
_PIXELS: dict[str, Any] = {"x": {"field": "x", **_RAW}, "y": {"field": "y", **_RAW}}


def _finite(value: complex) -> bool:
    point = complex(value)
    return math.isfinite(point.real) and math.isfinite(point.imag)


def draw_heat_map(drawing: HeatMap, shown: Mapping[str, Named], sheet: Sheet) -> Picture:
    """Return the picture of a matrix, its first row on top, with the scale of its colours beside it."""
    unit = sheet.unit
    matrix = np.asarray(drawing.values, dtype=float)
    columns, lines = drawing.labels()
    left = 10 * unit + max((sheet.wide(text) for text in lines), default=0.0)
    width = sheet.width - left - 44 * unit
    height = min(width, 15 * unit * max(2, len(lines))) if len(lines) < 12 else width
    widest = max((sheet.wide(text) for text in columns), default=0.0)
    fall = 0.64 * widest if widest * min(len(columns), _TICKS) > width else 0.0  # slanted by 40 degrees
    rows = [
        {"x": j, "y": i, "column": columns[j], "row": lines[i], "value": float(matrix[i, j])}
        for i, j in np.argwhere(np.isfinite(matrix) & ((matrix > 0) | (not drawing.log))).tolist()
    ]
    colour = {
        "field": "value",
        "type": "quantitative",
        "scale": _colours(rows, drawing),
        "legend": {
            "title": sheet.short(drawing.title, 60 * unit),
            "labelFontSize": 7 * unit,
            "titleFontSize": 7 * unit,
            "titleFontWeight": "normal",
            "gradientLength": min(height, 70 * unit),
            "gradientThickness": 8 * unit,
            "offset": 6 * unit,
            "tickCount": 4,
        },
    }
    tips = [{"field": name, "type": "nominal"} for name in ("column", "row")]
    encoding = {
        "x": {"field": "x", "type": "ordinal", **_band(columns, drawing.x_title, sheet, slanted=fall > 0)},
        "y": {"field": "y", "type": "ordinal", **_band(lines, drawing.y_title, sheet)},
        "color": colour,
        "tooltip": [*tips, {"field": "value", "type": "quantitative", "format": ".6~g", "title": drawing.title}],
    }
    layers: list[Layer] = [{"data": table(rows), "mark": {"type": "rect"}, "encoding": encoding}]
    return Picture(layers, width, height, left=left + 8 * unit, right=48 * unit, top=8 * unit, bottom=26 * unit + fall)


def _colours(rows: Sequence[Mapping[str, Any]], drawing: HeatMap) -> dict[str, Any]:
    reach = max((abs(row["value"]) for row in rows), default=1.0) or 1.0
    if drawing.diverging:
        return {"range": list(DIVERGING), "domain": [-reach, reach], "interpolate": "rgb", "nice": False}
    ends = {"domain": list(drawing.reach)} if drawing.reach else {}
    kind = "log" if drawing.log else "linear"
    return {"range": list(SEQUENTIAL), "type": kind, "interpolate": "rgb", "zero": False, "nice": False} | ends


def _band(labels: Sequence[str], title: str, sheet: Sheet, *, slanted: bool = False) -> dict[str, Any]:
    every = max(1, -(-len(labels) // _TICKS))
    unit = sheet.unit
    axis = {
        "values": list(range(0, len(labels), every)),
        "labelExpr": f"{json.dumps(list(labels))}[datum.value]",
        "labelAngle": -40 if slanted else 0,
        "labelFontSize": 7 * unit,
        "labelColor": SOFT,
        "titleFontSize": 7.5 * unit,
        "titleFontWeight": "normal",
        "titlePadding": 4 * unit,
        "domain": False,
        "ticks": False,
    }
    return {"title": title, "scale": {"domain": list(range(len(labels)))}, "axis": axis}
