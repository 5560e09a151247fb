"""A ranking for a paper: a dot and its interval for every network, the number beside it."""

from __future__ import annotations

from mnemoscope.core.numbers import number
from mnemoscope.report.axes import Scale, drawable, padded
from mnemoscope.report.canvas import FAINT, SOFT, Canvas, shortened, width_of
from mnemoscope.report.figure import Ranked, Value
from mnemoscope.report.names import Named, Shown

__all__ = ["draw_ranked"]

_TOP, _STEP, _FOOT = 24.0, 13.0, 14.0


def draw_ranked(drawing: Ranked, shown: Shown) -> tuple[Canvas, float]:
    """Return the picture and its height."""
    canvas = Canvas()
    rows = _ordered(drawing)
    height = _TOP + _STEP * max(1, len(rows)) + _FOOT
    left = 14 + min(max((width_of(shown[row.entry].name) for row in rows), default=0.0), 70.0)
    right = 8 + max((width_of(number(row.value)) for row in rows), default=0.0)
    known = [v for row in rows for v in (row.value, row.lower, row.upper)] + [mark.value for mark in drawing.marks]
    low, high = padded(
        (v for v in known if v is not None and drawable(v, drawing.log)), log=drawing.log, decades=drawing.decades
    )
    x = Scale(low, high, left, canvas.width - right, drawing.log)
    _axis(canvas, drawing, x, height - _FOOT)
    for index, row in enumerate(rows):
        _row(canvas, row, shown[row.entry], x, _TOP + _STEP * (index + 0.5))
    return canvas, height


def _ordered(drawing: Ranked) -> list[Value]:
    with_number = [one for one in drawing.values if one.value is not None and one.value == one.value]
    without = [one for one in drawing.values if one.value is None or one.value != one.value]
    return sorted(with_number, key=lambda one: one.value or 0.0, reverse=drawing.better != "lower") + without


def _axis(canvas: Canvas, drawing: Ranked, x: Scale, bottom: float) -> None:
    title = drawing.title + (f" ({drawing.unit})" if drawing.unit else "")
    canvas.text(0, 8, shortened(title, canvas.width, 7.5), size=7.5)
    for value, text in x.ticks(5):
        canvas.line(x.at(value), _TOP - 2, x.at(value), bottom, stroke=FAINT, stroke_width=0.5)
        canvas.text(x.at(value), bottom + 9, text, anchor="middle", fill=SOFT)
    for mark in drawing.marks:
        if drawable(mark.value, drawing.log):
            place = x.at(mark.value)
            late = place > (x.start + x.end) / 2
            dotted = {"stroke": SOFT, "stroke_width": 0.7, "stroke_dasharray": "0.6 1.8", "stroke_linecap": "round"}
            canvas.line(place, _TOP - 2, place, bottom, **dotted)
            canvas.text(place, _TOP - 5, mark.label, size=6.5, anchor="end" if late else "start", fill=SOFT)


def _row(canvas: Canvas, row: Value, who: Named, x: Scale, middle: float) -> None:
    colour = who.look.light
    canvas.marker(who.look, 4, middle, 0.5)
    canvas.text(11, middle + 2.4, shortened(who.name, x.start - 13), bold=who.subject)
    canvas.text(canvas.width - 1, middle + 2.4, number(row.value), anchor="end", bold=who.subject)
    if row.value is None or not drawable(row.value, x.log):
        return
    if row.value < x.low:  # far to the left of the axis
        canvas.path(f"M{x.start:.2f} {middle:.2f}l4-2.5v5Z", fill=colour)
        return
    if row.lower is not None and row.upper is not None and drawable(row.lower, x.log) and drawable(row.upper, x.log):
        ends = (x.at(max(x.low, row.lower)), middle, x.at(row.upper), middle)
        canvas.line(*ends, stroke=colour, stroke_width=3.4, stroke_opacity=0.28, stroke_linecap="round")
    canvas.marker(who.look, x.at(row.value), middle, 0.75 if who.subject else 0.6)
