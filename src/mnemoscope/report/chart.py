"""Charts of results: named curves and matrices as figures, drawn by Vega-Lite in the page's look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mnemoscope.report.figure import Curves, Figure, HeatMap, Mark, Series
from mnemoscope.report.page import Entry
from mnemoscope.report.palette import looks
from mnemoscope.report.vega import FORMATS, Chart, beside, chart, check_path, save
from mnemoscope.report.vega.layers import table as _table

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
    "save",
    "styled",
    "table",
]

PALETTE = tuple(
    look.light for look in looks([Entry(key=str(i), label="", role="reference" if i else "subject") for i in range(10)])
)
"""Colours of curves, the strongest first."""

WIDTH, HEIGHT = 340, 220
"""Of a chart that is no figure, in pixels."""


def lines(
    series: Mapping[str, tuple[Any, Any]],
    *,
    x: str,
    y: str,
    title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    points: bool = False,
    bands: Mapping[str, tuple[Any, Any]] | None = None,
    marks: Sequence[Mark] = (),
) -> Chart:
    """Draw curves over a common axis.

    Parameters
    ----------
    series
        For every curve its name, and its (x, y) values; what is not finite, or not positive on a log axis, is a gap.
    x, y
        Titles of the axes, with units.
    title
        Of the chart: what it shows, in a few words.
    points
        Draw the single points too.
    bands
        For some of the curves what lies below and above each of their points: their intervals, shaded.
    marks
        Lines that the curves are compared with.
    """
    drawn = [
        Series(
            entry=name,
            x=_numbers(xs),
            y=_numbers(ys),
            lower=_numbers(bands[name][0]) if bands and name in bands else None,
            upper=_numbers(bands[name][1]) if bands and name in bands else None,
        )
        for name, (xs, ys) in series.items()
    ]
    drawing = Curves(
        series=drawn, x_title=x, y_title=y, log_x=log_x, log_y=log_y, points=points, marks=tuple(marks), decades=300
    )
    return chart(Figure(title=title, drawing=drawing))


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
    reach: tuple[float, float] | None = None,
) -> Chart:
    """Draw a matrix as coloured cells, its first row on top; see `mnemoscope.report.HeatMap`."""
    drawing = HeatMap(
        values=np.asarray(values, dtype=float).tolist(),
        x_title=x,
        y_title=y,
        title=value,
        x_labels=None if x_ticks is None else [str(tick) for tick in x_ticks],
        y_labels=None if y_ticks is None else [str(tick) for tick in y_ticks],
        diverging=diverging,
        log=log,
        reach=reach,
    )
    return chart(Figure(title=title, drawing=drawing))


def table(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as the data of an Altair chart: as one text, since Altair would check every number of a list."""
    import altair as alt

    make: Any = alt
    return make.Data(**_table(rows))


def styled(drawn: Chart, title: str = "", *, width: int = WIDTH, height: int = HEIGHT) -> Chart:
    """Give an Altair chart of one's own the title and the size that all of ours have."""
    return drawn.properties(width=width, height=height, **({"title": title} if title else {}))


def _numbers(values: Any) -> list[float]:
    return [float(value) for value in np.asarray(values).tolist()]
