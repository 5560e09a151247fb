"""How everything is drawn: one look, labelled axes, colours that a colour-blind reader can tell apart.

Altair is imported when something is drawn, never before.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import writable, write_atomic

if TYPE_CHECKING:
    import altair as alt

Chart = Any
"""An Altair chart of any make; Altair's own annotations do not say."""

__all__ = [
    "FORMATS",
    "HEIGHT",
    "PALETTE",
    "WIDTH",
    "Chart",
    "beside",
    "check_path",
    "heat_map",
    "lines",
    "points",
    "save",
    "styled",
    "table",
]

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#999933")
"""Okabe and Ito's colours, the strongest first."""

WIDTH, HEIGHT = 340, 220
"""Of one chart, in pixels: a column of a paper."""

FORMATS = (".svg", ".png", ".pdf", ".html", ".json")
"""What `save` writes, by the file's ending."""

_DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 1], [1, 3], [10, 4], [3, 6])


def lines(
    series: Mapping[str, tuple[Any, Any]],
    *,
    x: str,
    y: str,
    title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    legend: str = "",
    marks: bool = False,
    bands: Mapping[str, tuple[Any, Any]] | None = None,
) -> Chart:
    """Draw curves over a common axis.

    Parameters
    ----------
    series
        For every curve its name, and its (x, y) values; what is not finite, or not positive on a log axis, is left out.
    x, y
        Titles of the axes, with units.
    title
        Of the chart: what it shows, in a few words.
    legend
        Title of the legend, which is drawn for two curves or more.
    marks
        Draw the single points too.
    bands
        For some of the curves what lies below and above each of their points: their intervals, shaded.
    """
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"x": float(a), "y": float(b), "name": name}
        for name, (xs, ys) in series.items()
        for a, b in zip(np.asarray(xs).tolist(), np.asarray(ys).tolist(), strict=True)
        if np.isfinite(a) and np.isfinite(b) and (a > 0 or not log_x) and (b > 0 or not log_y)
    ]
    names = list(series)
    many = len(names) > 1
    key = alt.Legend(title=legend or None, symbolType="stroke", symbolOpacity=1) if many else None
    colour = alt.Color("name:N", sort=names, scale=alt.Scale(domain=names, range=_colours(len(names))), legend=key)
    dash = alt.StrokeDash(
        "name:N",
        sort=names,
        scale=alt.Scale(domain=names, range=[_DASHES[i % 8] for i in range(len(names))]),
        legend=key,
    )
    across = alt.X("x:Q", title=x, scale=_scale(log_x, zero=False), axis=_decades([row["x"] for row in rows], log_x))
    chart = (
        _chart(rows)
        .mark_line(point=marks, strokeWidth=2, clip=not marks)  # at the edge half of a point would be cut
        .encode(
            x=across,
            y=alt.Y("y:Q", title=y, scale=_scale(log_y), axis=_decades([row["y"] for row in rows], log_y)),
            color=colour,
            strokeDash=dash,
            order=alt.Order("x:Q"),
            tooltip=_tips(x, y, legend if many else None),
        )
    )
    return styled(_shaded(series, bands, across, y, colour) + chart if bands else chart, title)


def points(
    series: Mapping[str, tuple[Any, Any]], *, x: str, y: str, title: str = "", legend: str = "", square: bool = False
) -> Chart:
    """Draw clouds of points; `square` gives both axes one scale, as the complex plane needs it."""
    import altair as alt

    rows: list[dict[str, Any]] = [
        {"x": float(a), "y": float(b), "name": name}
        for name, (xs, ys) in series.items()
        for a, b in zip(np.asarray(xs).tolist(), np.asarray(ys).tolist(), strict=True)
        if np.isfinite(a) and np.isfinite(b)
    ]
    names = list(series)
    reach = 1.08 * max([abs(row[axis]) for row in rows for axis in ("x", "y")], default=1.0)
    scale = alt.Scale(domain=[-reach, reach], nice=False) if square else alt.Scale(zero=False)
    key = alt.Legend(title=legend or None) if len(names) > 1 else None
    chart = (
        _chart(rows)
        .mark_circle(size=26, opacity=0.8)
        .encode(
            x=alt.X("x:Q", title=x, scale=scale),
            y=alt.Y("y:Q", title=y, scale=scale),
            color=alt.Color(
                "name:N", sort=names, scale=alt.Scale(domain=names, range=_colours(len(names))), legend=key
            ),
            tooltip=_tips(x, y, legend if len(names) > 1 else None),
        )
    )
    return styled(chart, title, height=WIDTH if square else HEIGHT)


def heat_map(
    values: Any,
    *,
    x: str,
    y: str,
    value: str,
    title: str = "",
    x_ticks: Sequence[Any] | None = None,
    y_ticks: Sequence[Any] | None = None,
    diverging: bool = False,
    log: bool = False,
) -> Chart:
    """Draw a matrix as coloured cells, its first row on top.

    Parameters
    ----------
    values
        The matrix.
    x, y, value
        Titles of columns, rows, and of the colour's legend.
    x_ticks, y_ticks
        What stands at columns and rows, by default 0, 1, 2, ..
    diverging
        Colours around zero, for values of both signs.
    log
        A logarithmic colour, for positive values.
    """
    import altair as alt

    matrix = np.asarray(values, dtype=float)
    columns = list(range(matrix.shape[1])) if x_ticks is None else list(x_ticks)
    row_names = list(range(matrix.shape[0])) if y_ticks is None else list(y_ticks)
    rows = [
        {"x": columns[j], "y": row_names[i], "value": float(matrix[i, j])}
        for i in range(matrix.shape[0])
        for j in range(matrix.shape[1])
        if np.isfinite(matrix[i, j]) and (matrix[i, j] > 0 or not log)
    ]
    reach = max((abs(row["value"]) for row in rows), default=1.0)
    scale = (
        alt.Scale(scheme="blueorange", domain=[-reach, reach])
        if diverging
        else alt.Scale(scheme="viridis", type="log" if log else "linear")
    )
    chart = (
        _chart(rows)
        .mark_rect()
        .encode(
            x=alt.X("x:O", title=x, sort=columns, axis=_sparse(columns)),
            y=alt.Y("y:O", title=y, sort=row_names, axis=_sparse(row_names)),
            color=alt.Color("value:Q", title=value, scale=scale),
            tooltip=[*_tips(x, y, None, kind="O"), alt.Tooltip("value:Q", title=value, format=".6g")],
        )
    )
    return styled(chart, title, height=WIDTH)


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as the data of an Altair chart: as one text, since Altair would check every number of a list."""
    import altair as alt

    make: Any = alt
    return make.Data(values=json.dumps(list(rows)), format={"type": "json"})


def styled(chart: Chart, title: str = "", *, width: int = WIDTH, height: int = HEIGHT) -> Chart:
    """Give any Altair chart the title and the size that all of ours have."""
    return chart.properties(width=width, height=height, **({"title": title} if title else {}))


def beside(*charts: Chart, columns: int = 2) -> Chart:
    """Put charts side by side, each with its own colours."""
    import altair as alt

    side: Any = alt
    return side.concat(*charts, columns=columns).resolve_scale(color="independent", strokeDash="independent")


def check_path(path: str | os.PathLike[str]) -> Path:
    """Return a path that `save` can write to, or raise: asked before the work, not after it."""
    file = Path(path)
    if file.suffix.lower() not in FORMATS:
        raise UserError(f"a picture's name must end in {', '.join(FORMATS)}, got {str(file)!r}")
    return writable(file)


def save(chart: Chart, path: str | os.PathLike[str], *, scale: float = 2.0) -> None:
    """Write a chart to a file: SVG, PNG, PDF, an HTML page that needs no network, or its Vega-Lite JSON.

    The look (fonts, grid, sizes) is applied here and by `Result.plot` alike; a file is written whole or not at all.
    """
    import vl_convert

    path = check_path(path)
    spec = _unpacked(_themed(chart).to_dict())
    write: dict[str, Callable[[], bytes]] = {
        ".svg": lambda: vl_convert.vegalite_to_svg(spec).encode(),
        ".png": lambda: vl_convert.vegalite_to_png(spec, scale=scale),
        ".pdf": lambda: vl_convert.vegalite_to_pdf(spec),
        ".html": lambda: vl_convert.vegalite_to_html(spec, bundle=True).encode(),
        ".json": lambda: json.dumps(spec, indent=2, allow_nan=False).encode(),
    }
    write_atomic(path, write[path.suffix.lower()]())


def _unpacked(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a specification with its data as lists instead of texts, for whoever reads the file."""
    found = dict(spec)
    for name in {"concat", "layer"} & set(spec):
        found[name] = [_unpacked(part) for part in spec[name]]
    if isinstance(spec.get("data", {}).get("values"), str):
        found["data"] = {"values": json.loads(spec["data"]["values"])}
    return found


def _themed(chart: Chart) -> Chart:
    return (
        chart.configure_axis(
            grid=True,
            gridColor="#e6e6e6",
            domainColor="#888",
            tickColor="#888",
            labelFontSize=11,
            titleFontSize=12,
            titleFontWeight="normal",
            labelColor="#333",
            titleColor="#222",
        )
        .configure_title(fontSize=13, anchor="start", fontWeight=600, color="#222", offset=8)
        .configure_legend(labelFontSize=11, titleFontSize=11, symbolStrokeWidth=2, labelLimit=220, symbolSize=260)
        .configure_view(stroke=None)
    )


def _chart(rows: list[dict[str, Any]]) -> Chart:
    import altair as alt

    make: Any = alt
    return make.Chart(table(rows))


def _shaded(
    series: Mapping[str, tuple[Any, Any]], bands: Mapping[str, tuple[Any, Any]], x: alt.X, y: str, colour: alt.Color
) -> Chart:
    """Draw the intervals of curves, pale, in their colours."""
    import altair as alt

    rows = [
        {"x": float(a), "low": float(low), "high": float(high), "name": name}
        for name, band in bands.items()
        for a, low, high in zip(series[name][0], *band, strict=True)
    ]
    return _chart(rows).mark_area(opacity=0.12).encode(x=x, y=alt.Y("low:Q", title=y), y2="high:Q", color=colour)


def _decades(values: list[float], log: bool) -> Any:
    """Label a logarithmic axis by powers of ten, and between them where these are too few; whole numbers as such."""
    import altair as alt

    if not log or not values:
        whole = bool(values) and all(value.is_integer() for value in values)
        return alt.Axis(tickMinStep=1, tickCount=6) if whole else alt.Undefined
    ticks = _log_ticks(min(values), max(values))
    return alt.Axis(values=ticks, format=".4~e" if min(ticks) < 1e-3 or max(ticks) > 1e4 else ".4~r")


def _log_ticks(low: float, high: float) -> list[float]:
    """Return three to eight numbers between two positive ones, as round as there are; the ends where none is."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for multiples in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
        # By division where the power is negative: 3 * 10**-1 is not 0.3.
        inside = [
            tick
            for k in range(first, last + 1)
            for m in multiples
            if low <= (tick := m * 10.0**k if k >= 0 else m / 10.0**-k) <= high
        ]
        if len(inside) >= 3:
            return inside[:: -(-len(inside) // 8)]
    return np.linspace(low, high, 4).tolist() if high > low else [low]


def _scale(log: bool, *, zero: bool = True) -> alt.Scale:
    import altair as alt

    return alt.Scale(type="log", nice=False) if log else alt.Scale(zero=zero, nice=zero)


def _sparse(ticks: Sequence[Any]) -> alt.Axis:
    import altair as alt

    every = max(1, -(-len(ticks) // 10))
    return alt.Axis(values=list(ticks[::every]), labelAngle=0, grid=False)


def _tips(x: str, y: str, name: str | None, kind: str = "Q") -> list[alt.Tooltip]:
    import altair as alt

    form: dict[str, Any] = {"format": ".6g"} if kind == "Q" else {}
    found = [alt.Tooltip(f"x:{kind}", title=x, **form), alt.Tooltip(f"y:{kind}", title=y, **form)]
    return found if name is None else [alt.Tooltip("name:N", title=name or "curve"), *found]


def _colours(count: int) -> list[str]:
    return [PALETTE[i % len(PALETTE)] for i in range(count)]
