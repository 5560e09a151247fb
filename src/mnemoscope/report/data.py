"""Data of the page's script: the charts' numbers as JSON that no text can break out of."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable
from typing import Any

from mnemoscope.report.figure import Bars, Curves, Figure, HeatMap, Mark, Plane, Ranked, Series
from mnemoscope.report.page import Page
from mnemoscope.report.palette import DIVERGING, SEQUENTIAL, looks
from mnemoscope.report.tables import table_csv, table_latex

__all__ = ["embedded", "page_data"]

_DIGITS = 9
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def embedded(value: Any) -> str:
    """Return JSON that can stand within a script element: no text in it can close the element or open another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return "".join(_UNSAFE.get(letter, letter) for letter in text).encode("utf-8", "replace").decode()


def page_data(page: Page) -> dict[str, Any]:
    """Return what the script needs of a page: networks with their looks, charts, and tables as text."""
    order = {entry.key: number for number, entry in enumerate(page.entries)}
    entries = [
        {"label": entry.label, "detail": entry.detail, "subject": entry.role == "subject"}
        | {"dash": look.dash, "marker": look.marker}
        for entry, look in zip(page.entries, looks(page.entries), strict=True)
    ]
    figures = {figure.name: _figure(figure, order) for section in page.sections for figure in section.figures}
    tables = {
        table.name: {"csv": table_csv(table), "tex": table_latex(table)}
        for table in (*([] if page.table is None else [page.table]), *(t for s in page.sections for t in s.tables))
    }
    scores = [
        {"dots": [{"entry": order[dot.entry], "place": _number(dot.place), "text": dot.text} for dot in score.dots]}
        | {name: _number(getattr(score, name)) for name in ("place", "lower", "upper")}
        | {"name": score.name, "value": score.value, "open": score.open_ended}
        for score in page.scores
    ]
    return {"entries": entries, "figures": figures, "tables": tables, "scores": scores}


def _figure(figure: Figure, order: dict[str, int]) -> dict[str, Any]:
    drawing = figure.drawing
    common = {"title": figure.title, "alt": figure.alt, "marks": [_mark(mark) for mark in drawing.marks]}
    if isinstance(drawing, Curves):
        return common | _curves(drawing, order)
    if isinstance(drawing, Ranked):
        return common | _ranked(drawing, order)
    if isinstance(drawing, Bars):
        return common | _bars(drawing, order)
    if isinstance(drawing, HeatMap):
        return common | _heat_map(drawing)
    return common | {"kind": "plane", "axis": drawing.title, "points": _points(drawing, order)}


def _curves(drawing: Curves, order: dict[str, int]) -> dict[str, Any]:
    series = [_series(one, order[one.entry]) for one in drawing.series]
    settings = {name: getattr(drawing, name) for name in ("x_title", "y_title", "log_x", "log_y", "points", "decades")}
    return {"kind": "curves", "series": series} | settings


def _bars(drawing: Bars, order: dict[str, int]) -> dict[str, Any]:
    series = [_series(one, order[one.entry]) for one in drawing.series]
    titles = {"x_title": drawing.x_title, "y_title": drawing.y_title}
    return {"kind": "bars", "groups": list(drawing.groups), "series": series} | titles


def _heat_map(drawing: HeatMap) -> dict[str, Any]:
    columns, rows = drawing.labels()
    return {
        "kind": "heatmap",
        "columns": columns,
        "rows": rows,
        "values": [_numbers(row) for row in drawing.values],
        "axis": drawing.title,
        "x_title": drawing.x_title,
        "y_title": drawing.y_title,
        "diverging": drawing.diverging,
        "log": drawing.log,
        "reach": drawing.reach,
        "colours": list(DIVERGING if drawing.diverging else SEQUENTIAL),
    }


def _ranked(drawing: Ranked, order: dict[str, int]) -> dict[str, Any]:
    values = [
        {"entry": order[one.entry], "text": one.text()}
        | {name: _number(getattr(one, name)) for name in ("value", "lower", "upper")}
        for one in drawing.values
    ]
    settings = {name: getattr(drawing, name) for name in ("unit", "log", "better", "decades")}
    return {"kind": "ranked", "axis": drawing.title, "values": values} | settings


def _series(series: Series, number: int) -> dict[str, Any]:
    found: dict[str, Any] = {"entry": number, "x": _numbers(series.x), "y": _numbers(series.y)}
    if series.lower is not None and series.upper is not None:
        found |= {"lower": _numbers(series.lower), "upper": _numbers(series.upper)}
    return found


def _points(drawing: Plane, order: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "entry": order[entry],
            "re": _numbers(complex(point).real for point in points),
            "im": _numbers(complex(point).imag for point in points),
        }
        for entry, points in drawing.points.items()
    ]


def _mark(mark: Mark) -> dict[str, Any]:
    return dataclasses.asdict(mark) | {"value": _number(mark.value), "x": _numbers(mark.x), "y": _numbers(mark.y)}


def _numbers(values: Iterable[Any]) -> list[Any]:
    return [_number(value) for value in values]


def _number(value: Any) -> float | str | None:
    """Return a number with the digits that a reader can use; what is not finite as text, which JSON can hold."""
    if value is None:
        return None
    plain = float(value)
    if not math.isfinite(plain):
        return "nan" if math.isnan(plain) else "inf" if plain > 0 else "-inf"
    return int(plain) if plain.is_integer() and abs(plain) < 2**53 else float(f"{plain:.{_DIGITS}g}")
