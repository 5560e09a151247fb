"""Displays of a study: standard figures and tables, declared by the columns of its results that they show."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.report import Bars, Column, Curves, Drawing, Figure, HeatMap, Mark, Section, Series, Table

__all__ = ["BarsOf", "CurvesOf", "Display", "FigureOf", "HeatMapOf", "Row", "TableOf"]

Row = Mapping[str, Any]
Middle = Literal["mean", "median", "geometric"]


def _no_marks(rows: Sequence[Row]) -> tuple[Mark, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Display:
    """A figure or a table of a study's rows.

    Attributes
    ----------
    name
        A slug, of which files are named.
    title
        The one idea of it.
    where
        Columns and the value that a row has to have there to be shown.
    select
        From these rows to those that are shown, where values alone do not say which.
    section, text
        Title of the section it begins, with the paragraphs there; empty: it stands in the section before it.
    """

    name: str
    title: str
    where: Mapping[str, Any] = field(default_factory=dict)
    select: Callable[[list[Row]], list[Row]] = list
    section: str = ""
    text: tuple[str, ...] = ()

    def chosen(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows that are shown."""
        return self.select([row for row in rows if all(row.get(name) == value for name, value in self.where.items())])


@dataclass(frozen=True, kw_only=True)
class TableOf(Display):
    """A table of rows.

    Attributes
    ----------
    columns
        Titles, each with the column, or the function of a row, that gives the cells.
    words
        Titles of columns without numbers.
    group
        Columns that make rows one line of the table, as seeds of one size; a cell is then a range where they differ.
    """

    columns: Mapping[str, str | Callable[[Row], Any]]
    words: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    note: str = ""

    def table(self, rows: Sequence[Row]) -> Table:
        """Return the table."""
        lines: dict[Any, list[Row]] = {}
        for place, row in enumerate(self.chosen(rows)):
            lines.setdefault(tuple(row[name] for name in self.group) if self.group else place, []).append(row)
        cells = [
            [_range([_cell(row, one) for row in lines[key]]) for one in self.columns.values()] for key in sorted(lines)
        ]
        titles = [Column(title=title, numeric=title not in self.words) for title in self.columns]
        return Table(name=self.name, title=self.title, columns=titles, rows=cells, note=self.note)


@dataclass(frozen=True, kw_only=True)
class FigureOf(Display, ABC):
    """A figure: what it shows for who cannot see it, and how it was computed."""

    alt: str
    how: str
    marks: Callable[[Sequence[Row]], tuple[Mark, ...]] = _no_marks

    @abstractmethod
    def drawing(self, rows: Sequence[Row]) -> Drawing:
        """Return what is drawn of the chosen rows."""

    def figure(self, rows: Sequence[Row], command: str, references: tuple[str, ...]) -> Figure:
        """Return the figure; `command` computes it again."""
        return Figure(
            name=self.name,
            title=self.title,
            drawing=self.drawing(self.chosen(rows)),
            alt=self.alt,
            how=self.how,
            command=command,
            references=references,
        )


@dataclass(frozen=True, kw_only=True)
class CurvesOf(FigureOf):
    """Curves of one column over another, one for each value of `by`, with bands from the least to the largest value.

    A row has one number of `y`, or one for each seed; several rows at one place are taken together. Where `x` is a
    whole sequence each row is a curve, or one for each seed.
    """

    x: str
    y: str
    by: str
    x_title: str
    y_title: str
    key: str = "{}"
    middle: Middle = "mean"
    log_x: bool = False
    log_y: bool = False
    points: bool = True
    decades: float = 12.0

    def drawing(self, rows: Sequence[Row]) -> Drawing:
        """Return the curves."""
        groups = list(dict.fromkeys(row[self.by] for row in rows))
        series = [self._series(group, [row for row in rows if row[self.by] == group]) for group in groups]
        return Curves(
            series=series,
            x_title=self.x_title,
            y_title=self.y_title,
            log_x=self.log_x,
            log_y=self.log_y,
            marks=self.marks(rows),
            points=self.points,
            decades=self.decades,
        )

    def _series(self, group: Any, rows: Sequence[Row]) -> Series:
        entry = self.key.format(group)
        if rows and not np.isscalar(rows[0][self.x]):
            (row,) = rows
            return self._whole(entry, row)
        places = sorted({row[self.x] for row in rows})
        values = [
            np.concatenate(
                [np.atleast_1d(np.asarray(row[self.y], dtype=float)) for row in rows if row[self.x] == place]
            )
            for place in places
        ]
        several = any(len(one) > 1 for one in values)
        return Series(
            entry=entry,
            x=places,
            y=[_middle(one, self.middle) for one in values],
            lower=[float(one.min()) for one in values] if several else None,
            upper=[float(one.max()) for one in values] if several else None,
        )

    def _whole(self, entry: str, row: Row) -> Series:
        """Return a curve of one row: the values themselves, or the middle of the seeds with their range."""
        values = np.asarray(row[self.y], dtype=float)
        if values.ndim == 1:
            return Series(entry=entry, x=row[self.x], y=row[self.y])
        middle = [_middle(one, self.middle) for one in values.T]
        several = {"lower": values.min(0).tolist(), "upper": values.max(0).tolist()} if len(values) > 1 else {}
        return Series(entry=entry, x=row[self.x], y=middle, **several)


@dataclass(frozen=True, kw_only=True)
class BarsOf(FigureOf):
    """Bars of one column in groups, one for each value of `by`, with lines from the least to the largest value."""

    group: str
    y: str
    by: str
    x_title: str
    y_title: str
    key: str = "{}"
    middle: Middle = "mean"

    def drawing(self, rows: Sequence[Row]) -> Drawing:
        """Return the bars."""
        groups = list(dict.fromkeys(row[self.group] for row in rows))
        keys = list(dict.fromkeys(row[self.by] for row in rows))
        series = [self._series(key, groups, rows) for key in keys]
        names = [str(group) for group in groups]
        return Bars(groups=names, series=series, x_title=self.x_title, y_title=self.y_title, marks=self.marks(rows))

    def _series(self, key: Any, groups: Sequence[Any], rows: Sequence[Row]) -> Series:
        own = [row for row in rows if row[self.by] == key]
        values = {group: [row[self.y] for row in own if row[self.group] == group] for group in groups}
        nothing = [np.zeros(0)]
        found = [np.concatenate([np.atleast_1d(one) for one in values[group]] or nothing) for group in groups]
        several = any(len(one) > 1 for one in found)
        return Series(
            entry=self.key.format(key),
            x=range(len(groups)),
            y=[_middle(one, self.middle) if len(one) else None for one in found],
            lower=[float(one.min()) if len(one) else None for one in found] if several else None,
            upper=[float(one.max()) if len(one) else None for one in found] if several else None,
        )


@dataclass(frozen=True, kw_only=True)
class HeatMapOf(FigureOf):
    """Colours of one column over two others; of one row whose value is a whole matrix, its cells.

    The matrix of a row may be one of blocks: the numbers of its cells are then multiplied by `x`, a column.
    """

    x: str
    y: str
    value: str
    x_title: str
    y_title: str
    value_title: str
    log: bool = False

    def drawing(self, rows: Sequence[Row]) -> Drawing:
        """Return the matrix; a place without a row stays empty."""
        if rows and not np.isscalar(rows[0][self.value]):
            return self._whole(rows[0])
        across, down = (_ordered(row[name] for row in rows) for name in (self.x, self.y))
        cells = {(row[self.y], row[self.x]): row[self.value] for row in rows}
        return HeatMap(
            values=[[cells.get((i, j)) for j in across] for i in down],
            x_title=self.x_title,
            y_title=self.y_title,
            title=self.value_title,
            x_labels=[str(label) for label in across],
            y_labels=[str(label) for label in down],
            log=self.log,
        )

    def _whole(self, row: Row) -> HeatMap:
        values = row[self.value]
        return HeatMap(
            values=values,
            x_title=self.x_title,
            y_title=self.y_title,
            title=self.value_title,
            x_labels=[str(k * row[self.x]) for k in range(len(values[0]))],
            y_labels=[str(k * row[self.y]) for k in range(len(values))],
            log=self.log,
        )


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Return the different values: numbers in their order, words as they come."""
    found = list(dict.fromkeys(values))
    return found if any(isinstance(value, str) for value in found) else sorted(found)


def sections(
    displays: Sequence[Display], rows: Sequence[Row], command: str, references: tuple[str, ...], cut: str = ""
) -> list[Section]:
    """Return the displays as sections of a page; `cut`: what was left out, said with every figure."""
    found: list[dict[str, Any]] = []
    for display in displays:
        if display.section or not found:
            title = display.section or display.title
            found.append({"name": f"section-{display.name}", "title": title, "text": display.text})
        if isinstance(display, TableOf):
            found[-1].setdefault("tables", []).append(display.table(rows))
        elif isinstance(display, FigureOf):
            figure = display.figure(rows, command, references)
            how = f"{figure.how} Cut here: {cut}." if cut else figure.how
            found[-1].setdefault("figures", []).append(replace(figure, how=how))
    return [Section(**one) for one in found]


def _middle(values: np.ndarray, middle: Middle) -> float:
    """Return the middle of several values; geometric where they differ by orders of magnitude."""
    if middle == "geometric":
        return float(np.exp(np.mean(np.log(np.maximum(values, 1e-300)))))
    return float(np.median(values) if middle == "median" else np.mean(values))


def _cell(row: Row, one: str | Callable[[Row], Any]) -> Any:
    return one(row) if callable(one) else row.get(one)


def _range(values: Sequence[Any]) -> Any:
    """Return the one value, or the least and the largest of several."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else f"{number(min(found))} to {number(max(found))}"
