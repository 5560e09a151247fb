"""Numbers of networks in Vega-Lite: a ranking of dots with their intervals, or bars in groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from mnemoscope.report.axes import Scale, drawable, padded
from mnemoscope.report.figure import Bars, Ranked, Value
from mnemoscope.report.vega.layers import FAINT, SOFT, Layer, Named, Picture, Sheet, table

__all__ = ["draw_bars", "draw_ranked"]

_TOP, _STEP, _FOOT = 24.0, 13.0, 14.0
_HEIGHT, _BAR_TOP, _BAR_FOOT, _LINE = 172.0, 20.0, 30.0, 9.0
_SLANTS = (32, 60)  # degrees, of which the first that cuts no name is taken
_NAME = 96.0  # points for one, at most


def draw_ranked(drawing: Ranked, shown: Mapping[str, Named], sheet: Sheet) -> Picture:
    """Return the picture of a ranking."""
    rows, unit = _ordered(drawing), sheet.unit
    height = (_TOP + _STEP * max(1, len(rows)) + _FOOT) * unit
    bold = [shown[row.entry].subject for row in rows]
    names = (sheet.wide(shown[row.entry].name, bold=one) for row, one in zip(rows, bold, strict=True))
    left = 14 * unit + min(max(names, default=0.0), 70.0 * unit)
    right = 8 * unit + max((sheet.wide(row.text(), bold=one) for row, one in zip(rows, bold, strict=True)), default=0.0)
    known = [v for row in rows for v in (row.value, row.lower, row.upper)] + [mark.value for mark in drawing.marks]
    low, high = padded(
        (v for v in known if v is not None and drawable(v, drawing.log)), log=drawing.log, decades=drawing.decades
    )
    x = Scale(low, high, left, sheet.width - right, drawing.log)
    layers = _axis(drawing, x, height - _FOOT * unit, sheet)
    for index, row in enumerate(rows):
        layers += _row(row, shown[row.entry], x, (_TOP + _STEP * (index + 0.5)) * unit, sheet)
    return Picture(layers, sheet.width, height)


def _ordered(drawing: Ranked) -> list[Value]:
    with_number = [one for one in drawing.values if one.value is not None and one.value == one.value]
    without = [one for one in drawing.values if one.value is None or one.value != one.value]
    return sorted(with_number, key=lambda one: one.value or 0.0, reverse=drawing.better != "lower") + without


def _axis(drawing: Ranked, x: Scale, bottom: float, sheet: Sheet) -> list[Layer]:
    unit = sheet.unit
    top = (_TOP - 2) * unit
    title = drawing.title + (f" ({drawing.unit})" if drawing.unit else "")
    found = sheet.text(0, 8 * unit, sheet.short(title, sheet.width, 7.5), size=7.5)
    for value, text in x.ticks(5):
        found.append(sheet.rule((x.at(value), top, x.at(value), bottom), colour=FAINT, width=0.5))
        found += sheet.text(x.at(value), bottom + 9 * unit, text, align="center", colour=SOFT)
    for mark in drawing.marks:
        if drawable(mark.value, drawing.log):
            place = x.at(mark.value)
            late = place > (x.start + x.end) / 2
            found.append(sheet.rule((place, top, place, bottom), dash="0.6 1.8"))
            align = "right" if late else "left"
            found += sheet.text(place, (_TOP - 5) * unit, mark.label, size=6.5, align=align, colour=SOFT)
    return found


def _row(row: Value, who: Named, x: Scale, middle: float, sheet: Sheet) -> list[Layer]:
    colour, unit = who.look.light, sheet.unit
    base = middle + 2.4 * unit
    found = [sheet.marker_at(who.look, 4 * unit, middle, 0.5)]
    name = sheet.short(who.name, x.start - 13 * unit, bold=who.subject)
    found += sheet.text(11 * unit, base, name, bold=who.subject)
    found += sheet.text(sheet.width - unit, base, row.text(), align="right", bold=who.subject)
    if row.value is None or not drawable(row.value, x.log):
        return found
    if row.value < x.low:  # far to the left of the axis
        arrow = {"type": "point", "shape": "triangle-left", "size": 20 * unit**2, "filled": True, "fill": colour}
        place = {"x": {"value": x.start + 2 * unit}, "y": {"value": middle}}
        return [*found, {"data": {"values": [{}]}, "mark": {**arrow, "opacity": 1}, "encoding": place}]
    if row.lower is not None and row.upper is not None and drawable(row.lower, x.log) and drawable(row.upper, x.log):
        ends = (x.at(max(x.low, row.lower)), middle, x.at(row.upper), middle)
        found.append(sheet.rule(ends, colour=colour, width=3.4, opacity=0.28, strokeCap="round"))
    return [*found, sheet.marker_at(who.look, x.at(row.value), middle, 0.75 if who.subject else 0.6)]


def draw_bars(drawing: Bars, shown: Mapping[str, Named], sheet: Sheet) -> Picture:
    """Return the picture of bars, one for each network in every group."""
    unit = sheet.unit
    known = [v for one in drawing.series for column in (one.y, one.lower or (), one.upper or ()) for v in column]
    known += [0.0, *(mark.value for mark in drawing.marks if mark.kind == "y")]
    low, high = padded((v for v in known if v is not None and drawable(v, False)), log=False)
    y = Scale(low, high, (_HEIGHT - _BAR_TOP - _BAR_FOOT) * unit, 0.0)
    left = 5 * unit + max((sheet.wide(text) for _, text in y.ticks(5)), default=0.0)
    width = sheet.width - left - 2 * unit
    step = width / max(1, len(drawing.groups))
    abreast = drawing.abreast()
    bar = step * (0.8 if len(drawing.series) > 1 else 0.92) / abreast
    whole = all(value is None or float(value).is_integer() for one in drawing.series for value in one.y)
    lines = _legend_lines(drawing, shown, width, sheet)
    lift = _LINE * unit * max(0, len(lines) - 1)
    layers = sheet.vertical(y, width, left, drawing.y_title, whole=whole, lift=lift)
    layers += _legend(lines, width, sheet)
    for index, series in enumerate(drawing.series):
        offset = (index - (abreast - 1) / 2) * bar if abreast > 1 else 0.0
        layers += _bars_of(series.y, series.lower, series.upper, shown[series.entry], y, step, bar, offset, sheet)
    names, fall = _group_names(drawing.groups, step, left, y.start, sheet)
    layers += names
    layers += sheet.text(width, y.start + 22 * unit + fall, drawing.x_title, size=7.5, align="right")
    for mark in drawing.marks:
        if mark.kind == "y" and y.holds(mark.value):
            height = y.at(mark.value)
            layers.append(sheet.rule((0, height, width, height), dash="0.6 1.8"))
            layers += sheet.text(width, height - 3 * unit, mark.label, size=6.5, align="right", colour=SOFT)
    top, bottom = _BAR_TOP * unit + lift, _BAR_FOOT * unit + fall
    return Picture(layers, width, y.start, left=left, right=2 * unit, top=top, bottom=bottom)


def _group_names(
    groups: Sequence[str], step: float, left: float, bottom: float, sheet: Sheet
) -> tuple[list[Layer], float]:
    """Write the names of the groups, slanted where one is wider than its group; return also how far these reach."""
    found: list[Layer] = []
    places = [(index + 0.5) * step for index in range(len(groups))]
    widest = max((sheet.wide(text) for text in groups), default=0.0)
    if widest <= step:
        for at, text in zip(places, groups, strict=True):
            found += sheet.text(at, bottom + 9 * sheet.unit, text, align="center", colour=SOFT)
        return found, 0.0
    most = _NAME * sheet.unit
    flat = {angle: math.cos(math.radians(angle)) for angle in _SLANTS}
    wide = [min(sheet.wide(text), most) for text in groups]
    fits = (one for one in _SLANTS if all(w * flat[one] <= at + left for w, at in zip(wide, places, strict=True)))
    angle = next(fits, _SLANTS[-1])
    for at, text in zip(places, groups, strict=True):
        words = sheet.short(text, min(most, (at + left) / flat[angle]))
        found += sheet.text(at, bottom + 8 * sheet.unit, words, align="right", colour=SOFT, angle=-angle)
    return found, max(wide) * math.sin(math.radians(angle))


def _legend_lines(drawing: Bars, shown: Mapping[str, Named], width: float, sheet: Sheet) -> list[list[Named]]:
    """Return the networks that each line above the plot names, where there are several, as many as it has room for."""
    lines: list[list[Named]] = [[]]
    used = 0.0
    for who in [shown[one.entry] for one in drawing.series] if len(drawing.series) > 1 else []:
        wide = sheet.wide(who.name, bold=who.subject) + 16 * sheet.unit
        if lines[-1] and used + wide > width:
            lines.append([])
            used = 0.0
        lines[-1].append(who)
        used += wide
    return lines


def _legend(lines: Sequence[Sequence[Named]], width: float, sheet: Sheet) -> list[Layer]:
    """Write the names of networks above the plot, from the right."""
    found: list[Layer] = []
    unit = sheet.unit
    for number, line in enumerate(reversed(lines)):
        at, base = width, -(3 + _LINE * number) * unit
        for who in reversed(line):
            found += sheet.text(at, base, who.name, align="right", bold=who.subject)
            at -= sheet.wide(who.name, bold=who.subject) + 6 * unit
            found.append(sheet.marker_at(who.look, at, base - 2.5 * unit, 0.5))
            at -= 10 * unit
    return found


def _bars_of(
    heights: Any, lower: Any, upper: Any, who: Named, y: Scale, step: float, bar: float, offset: float, sheet: Sheet
) -> list[Layer]:
    rows, spreads = [], []
    for place, value in enumerate(heights):
        if value is None or not drawable(value, False):
            continue
        at = (place + 0.5) * step + offset
        rows.append({"left": at - bar / 2, "right": at + bar / 2, "y": value, "zero": 0.0, "name": who.name})
        if lower is not None and upper is not None and drawable(lower[place], False) and drawable(upper[place], False):
            spreads.append(sheet.rule((at, y.at(lower[place]), at, y.at(upper[place])), width=0.8))
    raw = {"type": "quantitative", "scale": None, "axis": None}
    encoding = {
        "x": {"field": "left", **raw},
        "x2": {"field": "right"},
        "y": {"field": "y", "type": "quantitative", "axis": None, "scale": sheet.scale(y)},
        "y2": {"field": "zero"},
        "tooltip": [{"field": "name", "type": "nominal"}, {"field": "y", "type": "quantitative"}],
    }
    mark = {"type": "rect", "fill": who.look.light, "fillOpacity": 0.85}
    return [{"data": table(rows), "mark": mark, "encoding": encoding}, *spreads]
