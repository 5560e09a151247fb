"""Curves for a paper: every line with its name at its end, so that no legend is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mnemoscope.report.axes import Scale, drawable, padded
from mnemoscope.report.canvas import FAINT, SOFT, Canvas, shortened, width_of
from mnemoscope.report.ends import End, name_ends
from mnemoscope.report.figure import Curves, Mark, Series
from mnemoscope.report.names import Shown

__all__ = ["draw_curves"]

_HEIGHT, _TOP, _FOOT = 172.0, 20.0, 26.0
_DOTTED = {"stroke": SOFT, "stroke_width": 0.7, "stroke_dasharray": "0.6 1.8", "stroke_linecap": "round"}


@dataclass(frozen=True)
class _Point:
    x: float
    y: float
    lower: float | None
    upper: float | None
    part: int  # counts the pieces between gaps, so that no line crosses one


def draw_curves(drawing: Curves, shown: Shown) -> tuple[Canvas, float]:
    """Return the picture and its height."""
    canvas = Canvas()
    lines = [(one, _points(drawing, one)) for one in drawing.series]
    lines.sort(key=lambda line: shown[line[0].entry].subject)  # the subject on top
    bounds = [(mark, _mark_points(drawing, mark)) for mark in drawing.marks if mark.kind == "xy"]
    x, y = _scales(drawing, lines, bounds, shown)
    _axes(canvas, drawing, x, y)
    ends, taken = [], list[tuple[int, float, float]]()
    for mark in drawing.marks:
        _straight(canvas, mark, x, y, taken)
    for mark, points in bounds:
        canvas.path(_path(points, x, y), **_DOTTED)
        ends += _end(points, x, y, mark.label, SOFT, False)
    for series, points in lines:
        who = shown[series.entry]
        if who.subject:  # the bands of many references would hide each other
            _band(canvas, points, x, y, who.look.light)
        width = 1.7 if who.subject else 1.0
        dash = " ".join(f"{float(part) * 0.55:.2f}" for part in who.look.dash.split())
        canvas.path(_path(points, x, y), stroke=who.look.light, stroke_width=width, stroke_dasharray=dash)
        if drawing.points:
            for point in points:
                if y.holds(point.y):
                    canvas.marker(who.look, x.at(point.x), y.at(point.y), 0.45)
        ends += _end(points, x, y, who.name, who.look.light, who.subject)
    name_ends(canvas, ends, x, y)
    return canvas, _HEIGHT


def _points(drawing: Curves, series: Series) -> list[_Point]:
    found, part = [], 0
    lower = series.lower or [None] * len(series.x)
    upper = series.upper or [None] * len(series.x)
    for x, y, low, high in zip(series.x, series.y, lower, upper, strict=True):
        if x is None or y is None or not drawable(x, drawing.log_x) or not drawable(y, drawing.log_y):
            part += 1
            continue
        known = drawable(low, drawing.log_y) and drawable(high, drawing.log_y)
        found.append(_Point(float(x), float(y), low if known else None, high if known else None, part))
    return found


def _mark_points(drawing: Curves, mark: Mark) -> list[_Point]:
    return _points(drawing, Series(entry="", x=mark.x, y=mark.y))


def _scales(
    drawing: Curves,
    lines: Sequence[tuple[Series, list[_Point]]],
    bounds: Sequence[tuple[Mark, list[_Point]]],
    shown: Shown,
) -> tuple[Scale, Scale]:
    points = [point for _, line in lines for point in line]
    marked = [mark for mark in drawing.marks if mark.kind in ("x", "y")]
    xs = [point.x for point in points] + [mark.value for mark in marked if mark.kind == "x"]
    ys = [point.y for point in points]
    subject = [
        point for series, line in lines if shown[series.entry].subject for point in line
    ]  # whose bands are drawn
    ys += [v for point in subject for v in (point.lower, point.upper) if v is not None]
    ys += [mark.value for mark in marked if mark.kind == "y"] + [point.y for _, line in bounds for point in line]
    low, high = padded((v for v in ys if drawable(v, drawing.log_y)), log=drawing.log_y, decades=drawing.decades)
    y = Scale(low, high, _HEIGHT - _FOOT, _TOP, drawing.log_y)
    left = 5 + max((width_of(text) for _, text in y.ticks(5)), default=0.0)
    names = [shown[series.entry].name for series, _ in lines] + [mark.label for mark, _ in bounds]
    right = min(max((width_of(name) for name in names), default=0.0) + 12, 80.0)
    known = [v for v in xs if drawable(v, drawing.log_x)]
    first, last = (min(known), max(known)) if known else (1.0, 10.0)
    if first == last:
        first, last = padded(known, log=drawing.log_x)
    return Scale(first, last, left, Canvas.width - right, drawing.log_x), y


def _axes(canvas: Canvas, drawing: Curves, x: Scale, y: Scale) -> None:
    for value, text in y.ticks(5):
        canvas.line(x.start, y.at(value), x.end, y.at(value), stroke=FAINT, stroke_width=0.5)
        canvas.text(x.start - 4, y.at(value) + 2.4, text, anchor="end", fill=SOFT)
    canvas.line(x.start, y.start, x.end, y.start, stroke="#888888", stroke_width=0.6)
    whole = all(v is None or float(v).is_integer() for series in drawing.series for v in series.x)
    for value, text in x.ticks(5, whole=whole):
        canvas.line(x.at(value), y.start, x.at(value), y.start + 2.5, stroke="#888888", stroke_width=0.6)
        canvas.text(x.at(value), y.start + 10, text, anchor="middle", fill=SOFT)
    canvas.text(0, 8, shortened(drawing.y_title, canvas.width, 7.5), size=7.5)
    canvas.text(x.end, _HEIGHT - 5, shortened(drawing.x_title, canvas.width, 7.5), size=7.5, anchor="end")


def _path(points: Sequence[_Point], x: Scale, y: Scale) -> str:
    """Return a path through the points, ending at the floor where the line falls below it."""
    pieces: list[str] = []
    before: _Point | None = None
    for point in points:
        joined = before is not None and before.part == point.part
        if y.holds(point.y):
            pieces.append(f"{'L' if joined and pieces else 'M'}{x.at(point.x):.2f} {y.at(point.y):.2f}")
        elif joined and before is not None and y.holds(before.y):
            where, _ = _crossing(before, point, x, y)
            pieces.append(f"L{where:.2f} {y.start:.2f}")
        before = point if y.holds(point.y) else None
    return "".join(pieces)


def _crossing(inside: _Point, below: _Point, x: Scale, y: Scale) -> tuple[float, float]:
    top, bottom = y.at(inside.y), y.at(below.y)
    share = (y.start - top) / (bottom - top)
    return x.at(inside.x) + share * (x.at(below.x) - x.at(inside.x)), y.start


def _band(canvas: Canvas, points: Sequence[_Point], x: Scale, y: Scale, colour: str) -> None:
    ends = [(x.at(p.x), p.lower, p.upper) for p in points if p.lower is not None and p.upper is not None]
    inside = [(at, max(low, y.low), high) for at, low, high in ends if high >= y.low]
    if len(inside) > 1:
        up = [f"{at:.2f} {y.at(high):.2f}" for at, _, high in inside]
        down = [f"{at:.2f} {y.at(low):.2f}" for at, low, _ in reversed(inside)]
        canvas.path(f"M{'L'.join([*up, *down])}Z", fill=colour, fill_opacity=0.16)


def _straight(canvas: Canvas, mark: Mark, x: Scale, y: Scale, taken: list[tuple[int, float, float]]) -> None:
    """Draw a line with its name; `taken` are the rows, and from where to where, of names that stand there already."""
    if mark.kind == "y" and y.holds(mark.value):
        canvas.line(x.start, y.at(mark.value), x.end, y.at(mark.value), **_DOTTED)
        canvas.text(x.end, y.at(mark.value) + 8, mark.label, size=6.5, anchor="end", fill=SOFT)
    if mark.kind == "x" and x.holds(mark.value):
        place = x.at(mark.value)
        late = place > (x.start + x.end) / 2
        canvas.line(place, y.start, place, y.end, **_DOTTED)
        anchor = "end" if late else "start"
        wide = width_of(mark.label, 6.5)
        left = place - 3 - wide if late else place + 3
        row = next(i for i in range(len(taken) + 1) if _is_free(i, left, left + wide, taken))
        taken.append((row, left, left + wide))
        canvas.text(place + (-3 if late else 3), y.end + 5 + 8 * row, mark.label, size=6.5, anchor=anchor, fill=SOFT)


def _is_free(row: int, left: float, right: float, taken: Sequence[tuple[int, float, float]]) -> bool:
    return all(other != row or right + 2 < start or end + 2 < left for other, start, end in taken)


def _end(points: Sequence[_Point], x: Scale, y: Scale, name: str, colour: str, bold: bool) -> list[End]:
    seen = [i for i, point in enumerate(points) if y.holds(point.y)]
    if not seen:
        return []
    last = points[seen[-1]]
    place = (x.at(last.x), y.at(last.y))
    if seen[-1] + 1 < len(points):
        place = _crossing(last, points[seen[-1] + 1], x, y)
    return [End(*place, name, colour, bold)]
