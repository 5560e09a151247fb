"""Tables as text: CSV for a spreadsheet, with all digits, and LaTeX for a paper."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence

from mnemoscope.core.numbers import RAISED, defused, number
from mnemoscope.report.figure import Bars, Curves, Figure, HeatMap, Plane, Ranked
from mnemoscope.report.page import Cell, Column, Entry, Table

__all__ = ["figure_csv", "latex", "table_csv", "table_latex", "transposed"]

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\u2212": r"$-$",
    "\u00b1": r"$\pm$",
    "\u00d7": r"$\times$",
    "\u00b7": r"$\cdot$",
    "\u2264": r"$\leq$",
    "\u2265": r"$\geq$",
    "\u2248": r"$\approx$",
    "\u221e": r"$\infty$",
    "\u03bb": r"$\lambda$",
    "\u03c1": r"$\rho$",
    "\u00b5": r"$\mu$",
    "\u03bc": r"$\mu$",
    "\u2013": "--",
    "\u2014": "---",
    "\u2026": r"\dots{}",
    "\u00a0": "~",
}
_PLAIN = {mark: plain for plain, mark in RAISED.items()}
_POWER = re.compile(f"[{''.join(_PLAIN)}]+")


def latex(text: str) -> str:
    r"""Return text as LaTeX shows it, letter by letter.

    Examples
    --------
    >>> latex("50% of W_hh & more")
    '50\\% of W\\_hh \\& more'
    """
    shown = "".join(_latex_letter(letter) for letter in " ".join(text.split()))
    return _POWER.sub(lambda found: f"$^{{{''.join(_PLAIN[letter] for letter in found[0])}}}$", shown)


def _latex_letter(letter: str) -> str:
    if letter in _LATEX:
        return _LATEX[letter]
    # A control letter would break the file, and shows nothing.
    return "" if unicodedata.category(letter) in ("Cc", "Cf", "Cs") else letter


def table_latex(table: Table) -> str:
    """Return a table for a paper, in the look of the booktabs package; the highlighted row is bold."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    titles = [latex(column.title + (f" ({column.unit})" if column.unit else "")) for column in table.columns]
    rows = [
        _latex_row(row, [i == table.highlight or (i, j) in table.bold for j in range(len(row))])
        for i, row in enumerate(table.rows)
    ]
    note = [rf"  \par\smallskip\footnotesize {latex(table.note)}"] if table.note else []
    lines = [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}",
        r"  \centering",
        rf"  \caption{{{latex(table.title)}}}",
        rf"  \label{{tab:{table.name}}}",
        rf"  \begin{{tabular}}{{{align}}}",
        r"    \toprule",
        "    " + " & ".join(titles) + r" \\",
        r"    \midrule",
        *rows,
        r"    \bottomrule",
        r"  \end{tabular}",
        *note,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_row(row: Sequence[Cell], bold: Sequence[bool]) -> str:
    shown = [latex(number(cell)) for cell in row]
    cells = [rf"\textbf{{{cell}}}" if strong else cell for cell, strong in zip(shown, bold, strict=True)]
    return "    " + " & ".join(cells) + r" \\"


def transposed(table: Table) -> Table:
    """Return a table with its rows as columns: the first column names the new ones."""
    first, *others = table.columns
    columns = [first, *(Column(title=str(row[0]), numeric=True) for row in table.rows)]
    rows = [[column.title, *(row[j] for row in table.rows)] for j, column in enumerate(others, 1)]
    return dataclasses.replace(
        table, columns=columns, rows=rows, bold=frozenset((j - 1, i + 1) for i, j in table.bold), highlight=None
    )


def table_csv(table: Table) -> str:
    """Return a table as CSV, numbers with all their digits."""
    if table.machine is not None:
        return _csv(table.machine)
    titles = [column.title + (f" ({column.unit})" if column.unit else "") for column in table.columns]
    return _csv([titles, *table.rows])


def figure_csv(figure: Figure, entries: Sequence[Entry]) -> str:
    """Return what a chart shows as CSV, one point a line."""
    labels = {entry.key: entry.label for entry in entries}
    return _csv(_figure_rows(figure, labels))


def _figure_rows(figure: Figure, labels: dict[str, str]) -> Iterable[Sequence[Cell]]:
    drawing = figure.drawing
    if isinstance(drawing, Curves):
        yield ("network", drawing.x_title, drawing.y_title, "lower", "upper")
        for series in drawing.series:
            gaps = [None] * len(series.x)
            columns = (series.x, series.y, series.lower or gaps, series.upper or gaps)
            yield from ((labels[series.entry], *point) for point in zip(*columns, strict=True))
    elif isinstance(drawing, Ranked):
        yield ("network", drawing.title + (f" ({drawing.unit})" if drawing.unit else ""), "lower", "upper")
        yield from ((labels[value.entry], value.value, value.lower, value.upper) for value in drawing.values)
    elif isinstance(drawing, Bars):
        yield ("network", drawing.x_title, drawing.y_title, "lower", "upper")
        for series in drawing.series:
            gaps = [None] * len(series.y)
            heights = zip(series.y, series.lower or gaps, series.upper or gaps, strict=True)
            yield from ((labels[series.entry], group, *h) for group, h in zip(drawing.groups, heights, strict=True))
    elif isinstance(drawing, HeatMap):
        across, down = drawing.labels()
        yield (drawing.x_title, drawing.y_title, drawing.title)
        for label, row in zip(down, drawing.values, strict=True):
            yield from ((column, label, value) for column, value in zip(across, row, strict=True))
    elif isinstance(drawing, Plane):
        yield ("network", "real", "imaginary")
        for entry, points in drawing.points.items():
            yield from ((labels[entry], complex(point).real, complex(point).imag) for point in points)


def _csv(rows: Iterable[Sequence[Cell]]) -> str:
    stream = io.StringIO()
    plain = csv.writer(stream, lineterminator="\n")
    quoted = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [defused(cell) if isinstance(cell, str) else cell for cell in row]
        # The module csv does not quote a return, which a reader then takes for the end of the line.
        returns = any(isinstance(cell, str) and "\r" in cell for cell in cells)
        (quoted if returns else plain).writerow(cells)
    return stream.getvalue()
