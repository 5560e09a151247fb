"""Curves in Vega-Lite: every line with its name at its end, so that no legend is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mnemoscope.report.axes import Scale, drawable, padded
from mnemoscope.report.figure import Curves, Mark, Series
from mnemoscope.report.vega.layers import COLUMN_NAMES, SOFT, Layer, Named, Picture, Sheet, table

__all__ = ["draw_curves"]

_HEIGHT, _TOP, _FOOT = 172.0, 20.0, 26.0
_DOTTED = "0.6 1.8"
_GAP = 8.5  # points from one name to the next
_NEAR = 12.0  # a line that ends so near the right edge is named beside the plot


@dataclass(frozen=True)
class _Point:
    x: float
    y: float
    lower: float | None
    upper: float | None
    part: int  # counts the pieces between gaps, so that no line crosses one

    def row(self, name: str) -> dict[str, Any]:
        """Return the point as a row of data."""
        band = {} if self.lower is None else {"lower": self.lower, "upper": self.upper}
        return {"x": self.x, "y": self.y, "part": self.part, "name": name} | band


@dataclass(frozen=True)
class _End:
    """Place where a line ends, in pixels, with the name that is written there."""

    x: float
    y: float
    name: str
    colour: str
    bold: bool


def draw_curves(drawing: Curves, shown: Mapping[str, Named], sheet: Sheet) -> Picture:
    """Return the picture."""
    lines = [(one, _points(drawing, one)) for one in drawing.series]
    lines.sort(key=lambda line: shown[line[0].entry].subject)  # the subject on top
    bounds = [(mark, _points(drawing, Series(entry="", x=mark.x, y=mark.y))) for mark in drawing.marks]
    x, y, left, right = _scales(drawing, lines, bounds, shown, sheet)
    place = _encoding(drawing, x, y, sheet)
    layers = sheet.vertical(y, x.end, left, drawing.y_title)
    layers += sheet.horizontal(x, y.start, drawing.x_title, whole=_is_whole(drawing))
    ends: list[_End] = []
    for mark, points in bounds:
        if mark.kind == "xy":
            layers.append(_line(points, mark.label, place, sheet.stroke(dash=_DOTTED)))
            ends += _end(points, x, y, mark.label, SOFT, False)
    for series, points in lines:
        who = shown[series.entry]
        if who.subject:  # the bands of many references would hide each other
            layers += _band(points, who, place)
        width = 1.7 if who.subject else 1.0
        dash = " ".join(f"{0.55 * float(part):.2f}" for part in who.look.dash.split())
        layers.append(_line(points, who.name, place, sheet.stroke(colour=who.look.light, width=width, dash=dash)))
        if drawing.points or len(points) == 1:
            inside = [point.row(who.name) for point in points if y.holds(point.y)]
            layers.append({"data": table(inside), "mark": sheet.marker(who.look, 0.45), "encoding": place})
        ends += _end(points, x, y, who.name, who.look.light, who.subject)
    layers += _straight_marks(drawing.marks, x, y, sheet)
    layers += _names(ends, x, y, right, sheet)
    unit = sheet.unit
    return Picture(layers, x.end, y.start, left=left, right=right, top=_TOP * unit, bottom=_FOOT * unit)


def _points(drawing: Curves, series: Series) -> list[_Point]:
    found, part = [], 0
    lower = [None] * len(series.x) if series.lower is None else series.lower
    upper = [None] * len(series.x) if series.upper is None else series.upper
    for x, y, low, high in zip(series.x, series.y, lower, upper, strict=True):
        if x is None or y is None or not drawable(x, drawing.log_x) or not drawable(y, drawing.log_y):
            part += 1
            continue
        known = drawable(low, drawing.log_y) and drawable(high, drawing.log_y)
        found.append(_Point(float(x), float(y), low if known else None, high if known else None, part))
    return found


def _scales(
    drawing: Curves,
    lines: Sequence[tuple[Series, list[_Point]]],
    bounds: Sequence[tuple[Mark, list[_Point]]],
    shown: Mapping[str, Named],
    sheet: Sheet,
) -> tuple[Scale, Scale, float, float]:
    """Return both axes and the room left and right of them, in pixels; the plot begins at 0, 0."""
    points = [point for _, line in lines for point in line]
    xs = [point.x for point in points] + [mark.value for mark in drawing.marks if mark.kind == "x"]
    banded = [point for series, line in lines if shown[series.entry].subject for point in line]
    ys = [point.y for point in points] + [v for point in banded for v in (point.lower, point.upper) if v is not None]
    ys += [mark.value for mark in drawing.marks if mark.kind == "y"] + [point.y for _, line in bounds for point in line]
    low, high = padded((v for v in ys if drawable(v, drawing.log_y)), log=drawing.log_y, decades=drawing.decades)
    y = Scale(low, high, (_HEIGHT - _TOP - _FOOT) * sheet.unit, 0.0, drawing.log_y)
    left = 5 * sheet.unit + max((sheet.wide(text) for _, text in y.ticks(5)), default=0.0)
    who = [shown[series.entry] for series, _ in lines]
    names = [sheet.wide(one.name, bold=one.subject) for one in who]
    names += [sheet.wide(mark.label) for mark, _ in bounds if mark.kind == "xy"]
    wide = max(names) if len(names) > 1 else 0.0
    right = min(wide + 12 * sheet.unit, sheet.names * sheet.unit)
    known = [v for v in xs if drawable(v, drawing.log_x)]
    first, last = (min(known), max(known)) if known else (1.0, 10.0)
    if first == last:
        first, last = padded(known, log=drawing.log_x)
    return (
        Scale(first, last, 0.0, sheet.width - left - min(right, COLUMN_NAMES * sheet.unit), drawing.log_x),
        y,
        left,
        right,
    )


def _encoding(drawing: Curves, x: Scale, y: Scale, sheet: Sheet) -> dict[str, Any]:
    """Return the place of a curve's points, and what is said of the one that is pointed at."""
    number = {"type": "quantitative", "axis": None}
    return {
        "x": {"field": "x", **number, "scale": sheet.scale(x)},
        "y": {"field": "y", **number, "scale": sheet.scale(y)},
        "tooltip": [
            {"field": "name", "type": "nominal", "title": "curve"},
            {"field": "x", "type": "quantitative", "title": drawing.x_title, "format": ".6~g"},
            {"field": "y", "type": "quantitative", "title": drawing.y_title, "format": ".6~g"},
        ],
    }


def _is_whole(drawing: Curves) -> bool:
    return all(v is None or (math.isfinite(v) and float(v).is_integer()) for one in drawing.series for v in one.x)


def _line(points: Sequence[_Point], name: str, place: Mapping[str, Any], style: Mapping[str, Any]) -> Layer:
    """Draw a line through points, with its gaps; what lies below the axis is cut there."""
    detail = {"detail": {"field": "part", "type": "nominal"}, "order": {"field": "x", "type": "quantitative"}}
    return {
        "data": table(point.row(name) for point in points),
        "mark": {"type": "line", "clip": True, "strokeCap": "butt", **style},
        "encoding": {**place, **detail},
    }


def _band(points: Sequence[_Point], who: Named, place: Mapping[str, Any]) -> list[Layer]:
    rows = [point.row(who.name) for point in points if point.lower is not None]
    if len(rows) < 2:
        return []
    low = {**place["y"], "field": "lower"}
    encoding = {"x": place["x"], "y": low, "y2": {"field": "upper"}, "detail": {"field": "part", "type": "nominal"}}
    mark = {"type": "area", "clip": True, "fill": who.look.light, "fillOpacity": 0.16, "line": False}
    return [{"data": table(rows), "mark": mark, "encoding": encoding}]


def _straight_marks(marks: Sequence[Mark], x: Scale, y: Scale, sheet: Sheet) -> list[Layer]:
    """Draw straight lines with their names, in rows where these would cover each other."""
    found: list[Layer] = []
    taken: list[tuple[int, float, float]] = []
    for mark in marks:
        if mark.kind == "y" and y.holds(mark.value):
            height = y.at(mark.value)
            found.append(sheet.rule((x.start, height, x.end, height), dash=_DOTTED))
            found += sheet.text(x.end, height + 8 * sheet.unit, mark.label, size=6.5, align="right", colour=SOFT)
        if mark.kind == "x" and x.holds(mark.value):
            at = x.at(mark.value)
            late = at > (x.start + x.end) / 2
            wide, side = sheet.wide(mark.label, 6.5), (-3 if late else 3) * sheet.unit
            begin = at + side - wide if late else at + side
            row = next(i for i in range(len(taken) + 1) if _is_free(i, begin, begin + wide, taken))
            taken.append((row, begin, begin + wide))
            height = (5 + 8 * row) * sheet.unit
            found.append(sheet.rule((at, y.start, at, y.end), dash=_DOTTED))
            found += sheet.text(at + side, height, mark.label, size=6.5, align="right" if late else "left", colour=SOFT)
    return found


def _is_free(row: int, left: float, right: float, taken: Sequence[tuple[int, float, float]]) -> bool:
    return all(other != row or right + 2 < start or end + 2 < left for other, start, end in taken)


def _end(points: Sequence[_Point], x: Scale, y: Scale, name: str, colour: str, bold: bool) -> list[_End]:
    """Return where a line is last seen: at its last point, or where it falls through the floor of the plot."""
    seen = [i for i, point in enumerate(points) if y.holds(point.y)]
    if not seen or not name:
        return []
    last = points[seen[-1]]
    place = (x.at(last.x), y.at(last.y))
    if seen[-1] + 1 < len(points):
        below = points[seen[-1] + 1]
        share = (y.start - place[1]) / (y.at(below.y) - place[1])
        place = (place[0] + share * (x.at(below.x) - place[0]), y.start)
    return [_End(*place, name, colour, bold)]


def _names(ends: Sequence[_End], x: Scale, y: Scale, right: float, sheet: Sheet) -> list[Layer]:
    """Write the names of several lines at their ends, moved apart where they would lie on each other."""
    if len(ends) < 2:
        return []
    unit = sheet.unit
    found: list[Layer] = []
    late = sorted((end for end in ends if _is_beside(end, x, y, unit)), key=lambda end: end.y)
    early = sorted((end for end in ends if not _is_beside(end, x, y, unit)), key=lambda end: end.x)
    for end, place in zip(late, _apart([end.y for end in late], y.start, _GAP * unit), strict=True):
        if abs(place - end.y) > 2.5 * unit or end.x < x.end - 4 * unit:
            ends_of_rule = (end.x + 1.5 * unit, end.y, x.end + 6.5 * unit, place)
            found.append(sheet.rule(ends_of_rule, colour=end.colour, width=0.5))
        name = sheet.short(end.name, right - 9 * unit, bold=end.bold)
        found += sheet.text(x.end + 8 * unit, place + 2.4 * unit, name, colour=end.colour, bold=end.bold)
    taken: list[tuple[float, float, float]] = []
    for end in early:
        left = end.x + 3 * unit
        box = (left, left + sheet.wide(end.name, bold=end.bold))
        tries = (end.y - (4 + k * _GAP) * unit for k in range(6))
        free = next((place for place in tries if not _is_taken(taken, box, place, 7 * unit)), None)
        if free is not None:
            taken.append((*box, free))
            found += sheet.text(left, free, end.name, colour=end.colour, bold=end.bold)
    return found


def _is_beside(end: _End, x: Scale, y: Scale, unit: float) -> bool:
    falls = end.x > x.end - 0.3 * (x.end - x.start) and end.y < y.start - 1
    return end.x > x.end - _NEAR * unit or falls


def _is_taken(boxes: Sequence[tuple[float, float, float]], box: tuple[float, float], place: float, high: float) -> bool:
    return any(box[0] < right and box[1] > left and abs(place - y) < high for left, right, y in boxes)


def _apart(places: list[float], bottom: float, gap: float) -> list[float]:
    """Return places in their order, moved so that two texts never lie on each other."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + gap) if found else place)
    limit = math.inf
    for i in range(len(found) - 1, -1, -1):
        found[i] = min(found[i], bottom if limit is math.inf else limit - gap)
        limit = found[i]
    return found
