"""Files of a page for a paper: figures one column wide, tables, the methods and the bibliography, as files."""

from __future__ import annotations

import os
from pathlib import Path

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.report.check import check
from mnemoscope.report.page import Page
from mnemoscope.report.render import bibtex
from mnemoscope.report.tables import figure_csv, table_csv, table_latex, transposed
from mnemoscope.report.vega import paper

__all__ = ["export"]


def export(page: Page, folder: str | os.PathLike[str], *, transpose: bool = False) -> list[Path]:
    """Write a page's parts into a folder, made where it is missing, and return the files.

    Figures become ``NAME.svg`` and ``NAME.pdf`` at the width of a column, 3.35 inches, with their numbers in
    ``NAME.csv``; tables ``NAME.csv`` and ``NAME.tex``; the methods with every figure's caption ``methods.txt``, the
    references ``references.bib``. Each file is written whole or not at all. With `transpose`, the page's own table has
    its columns as rows in LaTeX.
    """
    check(page)
    place = _folder(folder)
    written = []
    if page.table is not None:
        shown = transposed(page.table) if transpose else page.table
        written += [
            write_atomic(place / f"{page.table.name}.csv", _bytes(table_csv(page.table))),
            write_atomic(place / f"{page.table.name}.tex", _bytes(table_latex(shown))),
        ]
    for section in page.sections:
        for figure in section.figures:
            svg, pdf = paper(figure, page.entries)
            written += [
                write_atomic(place / f"{figure.name}.svg", _bytes(svg)),
                write_atomic(place / f"{figure.name}.pdf", pdf),
                write_atomic(place / f"{figure.name}.csv", _bytes(figure_csv(figure, page.entries))),
            ]
        for table in section.tables:
            written += [
                write_atomic(place / f"{table.name}.csv", _bytes(table_csv(table))),
                write_atomic(place / f"{table.name}.tex", _bytes(table_latex(table))),
            ]
    written.append(write_atomic(place / "methods.txt", _bytes(_methods(page))))
    written.append(write_atomic(place / "references.bib", _bytes(bibtex(page))))
    return written


def _folder(folder: str | os.PathLike[str]) -> Path:
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"the folder {str(place)!r} cannot be made: {error.strerror or error}") from error
    return place


def _methods(page: Page) -> str:
    facts = "\n".join(f"{name}: {value}" for name, value in page.facts.items())
    captions = [
        f"{figure.name}: {figure.title}. {figure.how}" + (f"\n    {figure.command}" if figure.command else "")
        for section in page.sections
        for figure in section.figures
    ]
    parts = [page.title, page.methods, facts, page.command and f"Made by: {page.command}", "\n\n".join(captions)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
