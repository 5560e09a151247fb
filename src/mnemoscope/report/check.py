"""Check of a page before it is drawn: names, keys and lengths."""

from __future__ import annotations

import re
from collections import Counter

from mnemoscope.core.errors import Description, UserError, choice, expected
from mnemoscope.core.references import reference
from mnemoscope.report.figure import Bars, Curves, Figure, HeatMap, Series
from mnemoscope.report.page import Page, Table

__all__ = ["check", "references"]

_SLUG = re.compile(r"[a-z0-9]+([-_][a-z0-9]+)*")


def check(page: Page) -> None:
    """Raise one line that says what is wrong with a page, if anything is.

    Names become file names and addresses within the page, so that they are slugs and no two are the same.
    """
    keys = [entry.key for entry in page.entries]
    _unique("keys of networks", keys)
    figures = [figure for section in page.sections for figure in section.figures]
    tables = [table for section in page.sections for table in section.tables]
    tables += [] if page.table is None else [page.table]
    _slugs("names of sections", [section.name for section in page.sections])
    _slugs("names of figures and tables", [*(figure.name for figure in figures), *(table.name for table in tables)])
    for figure in figures:
        _figure(figure, keys)
    for table in tables:
        _table(table)
    for score in page.scores:
        for dot in score.dots:
            choice(f"the network of the score {score.name!r}", dot.entry, keys)
    if page.first:
        choice("the figure of the first screen", page.first, [figure.name for figure in figures])
    for key in references(page):
        reference(key)


def references(page: Page) -> tuple[str, ...]:
    """Return the keys of all works that a page names, each once: its own first, then those of its figures."""
    named = [key for section in page.sections for figure in section.figures for key in figure.references]
    return tuple(dict.fromkeys([*page.references, *named]))


def _slugs(what: str, names: list[str]) -> None:
    for name in names:
        if not _SLUG.fullmatch(name):
            raise expected(what, "small letters and digits with hyphens between them", name)
    _unique(what, names)


def _unique(what: str, names: list[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise UserError(f"{what} must differ, got {name!r} {count} times")


def _figure(figure: Figure, keys: list[str]) -> None:
    for entry in figure.entries():
        choice(f"the network of figure {figure.name!r}", entry, keys)
    drawing = figure.drawing
    if isinstance(drawing, Curves | Bars):
        for series in drawing.series:
            _lengths(figure.name, series)
    if isinstance(drawing, Curves):
        columns = [(mark.label, len(mark.x), len(mark.y)) for mark in drawing.marks]
    else:
        groups = drawing.groups if isinstance(drawing, Bars) else ()
        columns = [(one.entry, len(one.y), len(groups)) for one in drawing.series] if isinstance(drawing, Bars) else []
    for curve, one, other in columns:
        if one != other:
            raise _unequal(figure.name, curve, [one, other])
    if isinstance(drawing, HeatMap):
        _matrix(figure.name, drawing)


def _matrix(name: str, drawing: HeatMap) -> None:
    columns, rows = drawing.labels()
    widths = {len(row) for row in drawing.values}
    if len(rows) != len(drawing.values) or not widths <= {len(columns)}:
        got = Description(f"{len(rows)} and {len(columns)}")
        raise expected(
            f"the matrix of figure {name!r}", "rows of one length, with a label for each row and column", got
        )


def _lengths(name: str, series: Series) -> None:
    columns = (series.x, series.y, series.lower, series.upper)
    lengths = [len(column) for column in columns if column is not None]
    if len(set(lengths)) > 1:
        raise _unequal(name, series.entry, lengths)
    if (series.lower is None) != (series.upper is None):
        raise expected(f"the band of {series.entry!r} in figure {name!r}", "given by both ends", Description("one"))


def _unequal(name: str, curve: str, lengths: list[int]) -> UserError:
    got = Description(" and ".join(map(str, lengths)) + " values")
    return expected(f"the curve {curve!r} of figure {name!r}", "columns of one length", got)


def _table(table: Table) -> None:
    for number, row in enumerate(table.rows):
        if len(row) != len(table.columns):
            got = Description(f"{len(row)} in row {number}")
            raise expected(f"table {table.name!r}", f"rows of {len(table.columns)} cells", got)
    if table.highlight is not None and not 0 <= table.highlight < len(table.rows):
        raise expected(f"the highlighted row of table {table.name!r}", "one of its rows", table.highlight)
