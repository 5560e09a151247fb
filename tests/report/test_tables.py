"""Tables as CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import math
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.report.sample import page

from mnemoscope.core.numbers import defused
from mnemoscope.report import Column, Table
from mnemoscope.report.tables import figure_csv, latex, table_csv, table_latex


@given(st.text())
def test_latex_has_no_special_letter_left(text):
    made = latex(text)
    for command in (r"\\text[a-z]+\{\}", r"\\[{}$&#%_]", r"\$[^$]*\$", r"\\dots\{\}"):
        made = re.sub(command, "", made)
    assert not set('\\{}$&#%_^<>|"\n\x00') & set(made)


def test_latex_of_a_hostile_name():
    assert latex(r"\input{/etc/passwd} a_b & 50%") == r"\textbackslash{}input\{/etc/passwd\} a\_b \& 50\%"


TABLE = Table(
    name="one",
    title="A & B",
    columns=[Column(title="Name", numeric=False), Column(title="Time", numeric=True, unit="µs")],
    rows=[["x_1", 1.5], ['say "hi", twice\n', None], ["z", math.inf]],
    note="100% sure",
    highlight=0,
)


def test_latex_table():
    lines = table_latex(TABLE).splitlines()
    assert r"  \begin{tabular}{lr}" in lines
    assert r"    Name & Time ($\mu$s) \\" in lines
    assert r"    \textbf{x\_1} & \textbf{1.5} \\" in lines
    assert r"    say \textquotedbl{}hi\textquotedbl{}, twice & -- \\" in lines
    assert r"    z & $\infty$ \\" in lines
    assert r"  \caption{A \& B}" in lines
    assert r"  \par\smallskip\footnotesize 100\% sure" in lines
    made = table_latex(TABLE)
    assert [made.count(f"\\begin{{{what}}}") - made.count(f"\\end{{{what}}}") for what in ("table", "tabular")] == [
        0,
        0,
    ]


def test_csv_table():
    rows = list(csv.reader(io.StringIO(table_csv(TABLE))))
    assert rows == [["Name", "Time (µs)"], ["x_1", "1.5"], ['say "hi", twice\n', ""], ["z", "inf"]]


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=("Cs",))), min_size=2, max_size=2), min_size=1))
def test_csv_gives_back_what_was_put_in(rows):
    columns = [Column(title="a", numeric=False), Column(title="b", numeric=False)]
    made = table_csv(Table(name="t", title="t", columns=columns, rows=rows))
    assert list(csv.reader(io.StringIO(made, newline="")))[1:] == [[defused(cell) for cell in row] for row in rows]


def test_csv_of_figures():
    figures = {one.name: one for section in page().sections for one in section.figures}
    entries = page().entries
    curve = list(csv.reader(io.StringIO(figure_csv(figures["fisher-curve"], entries))))
    series = figures["fisher-curve"].drawing.series[0]
    assert curve[0] == ["network", "lag k (steps)", "Fisher memory J(k)", "lower", "upper"]
    assert len(curve) == 1 + 9 * 128
    assert [float(cell) for cell in curve[6][1:]] == [5, series.y[5], series.lower[5], series.upper[5]]
    plane = list(csv.reader(io.StringIO(figure_csv(figures["eigenvalues"], entries))))
    first = figures["eigenvalues"].drawing.points["mine"][0]
    assert plane[:2] == [["network", "real", "imaginary"], ["nnrnn", str(first.real), str(first.imag)]]
    ranked = list(csv.reader(io.StringIO(figure_csv(figures["gradient-rate"], entries))))
    assert ranked[0] == ["network", "Rate (nats per step back)", "lower", "upper"]
    assert ranked[3][:2] == ["irnn", "nan"]
