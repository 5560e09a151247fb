"""Tables as text: CSV for a spreadsheet, LaTeX for a paper, and the short form of a number."""

from __future__ import annotations

import csv
import io
import math
import unicodedata
from collections.abc import Iterable, Sequence

from mnemoscope.report.figure import Curves, Figure, Plane, Ranked
from mnemoscope.report.page import Cell, Entry, Table

__all__ = ["RAISED", "figure_csv", "latex", "number", "raised", "table_csv", "table_latex"]

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
RAISED = dict(zip("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻", strict=True))
"""Digits as they stand in a power."""


def number(value: Cell, digits: int = 4) -> str:
    """Return a number as a reader wants it: few digits, groups of thousands, powers of ten where it is far from one.

    Examples
    --------
    >>> number(16640), number(0.123456), number(3.2e-7), number(None), number(float("inf"))
    ('16,640', '0.1235', '3.2×10⁻⁷', '–', '∞')
    """
    if value is None or isinstance(value, str):
        return "\u2013" if value is None else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "∞" if value > 0 else "\u2212∞"
    text = _finite(value, digits)
    return "\u2212" + text[1:] if text.startswith("-") else text


def _finite(value: float, digits: int) -> str:
    if isinstance(value, int) and abs(value) < 10**9:
        return f"{value:,}"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if 1e-3 <= abs(rounded) < 1e6:
        places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        text = f"{rounded:,.{places}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}\u00d710{raised(int(exponent))}"


def raised(power: int) -> str:
    """Return a whole number as it stands in a power: ``⁻³``."""
    return "".join(RAISED[letter] for letter in str(power))


def latex(text: str) -> str:
    r"""Return text as LaTeX shows it, letter by letter.

    Examples
    --------
    >>> latex("50% of W_hh & more")
    '50\\% of W\\_hh \\& more'
    """
    return "".join(_latex_letter(letter) for letter in " ".join(text.split()))


def _latex_letter(letter: str) -> str:
    if letter in _LATEX:
        return _LATEX[letter]
    if letter in RAISED.values():
        plain = next(key for key, raised in RAISED.items() if raised == letter)
        return f"$^{{{plain}}}$"
    # A control letter would break the file, and shows nothing.
    return "" if unicodedata.category(letter) in ("Cc", "Cf", "Cs") else letter


def table_latex(table: Table) -> str:
    """Return a table for a paper, in the look of the booktabs package; the highlighted row is bold."""
    align = "".join("r" if column.numeric else "l" for column in table.columns)
    titles = [latex(column.title + (f" ({column.unit})" if column.unit else "")) for column in table.columns]
    rows = [_latex_row(row, bold=i == table.highlight) for i, row in enumerate(table.rows)]
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


def _latex_row(row: Sequence[Cell], *, bold: bool) -> str:
    cells = [latex(number(cell)) for cell in row]
    if bold:
        cells = [rf"\textbf{{{cell}}}" for cell in cells]
    return "    " + " & ".join(cells) + r" \\"


def table_csv(table: Table) -> str:
    """Return a table as CSV, numbers with all their digits."""
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
    elif isinstance(drawing, Plane):
        yield ("network", "real", "imaginary")
        for entry, points in drawing.points.items():
            yield from ((labels[entry], complex(point).real, complex(point).imag) for point in points)


def _csv(rows: Iterable[Sequence[Cell]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
