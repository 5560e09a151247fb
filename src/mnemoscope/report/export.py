"""The page for a paper: figures one column wide, tables, the methods and the bibliography, as files."""

from __future__ import annotations

import os
from pathlib import Path

from mnemoscope.core.errors import UserError
from mnemoscope.core.files import write_atomic
from mnemoscope.report.check import check
from mnemoscope.report.draw_curves import draw_curves
from mnemoscope.report.draw_plane import draw_plane
from mnemoscope.report.draw_ranked import draw_ranked
from mnemoscope.report.figure import Curves, Figure, Ranked
from mnemoscope.report.names import named
from mnemoscope.report.page import Page
from mnemoscope.report.render import bibtex
from mnemoscope.report.tables import figure_csv, table_csv, table_latex

__all__ = ["export"]


def export(page: Page, folder: str | os.PathLike[str]) -> list[Path]:
    """Write a page's parts into a folder, made where it is missing, and return the files.

    Figures become ``NAME.svg`` and ``NAME.pdf`` at the width of a column, 3.35 inches, with their numbers in
    ``NAME.csv``; tables ``NAME.csv`` and ``NAME.tex``; the methods with every figure's caption ``methods.txt``, the
    references ``references.bib``. Each file is written whole or not at all.
    """
    check(page)
    place = _folder(folder)
    written = []
    for section in page.sections:
        for figure in section.figures:
            svg, pdf = _drawn(figure, page)
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


def _drawn(figure: Figure, page: Page) -> tuple[str, bytes]:
    """Return a figure as SVG and as PDF."""
    import vl_convert

    drawing, shown = figure.drawing, named(page.entries)
    if isinstance(drawing, Curves):
        canvas, height = draw_curves(drawing, shown)
    elif isinstance(drawing, Ranked):
        canvas, height = draw_ranked(drawing, shown)
    else:
        canvas, height = draw_plane(drawing, shown)
    # The converter takes a pixel for a point, whatever the unit says.
    return canvas.svg(height), bytes(vl_convert.svg_to_pdf(canvas.svg(height, inches=False)))


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
