"""Figures and the HTML page: how results are drawn, knowing nothing of who asks."""

from mnemoscope.core.files import writable
from mnemoscope.report.export import export
from mnemoscope.report.figure import Curves, Drawing, Figure, Mark, Plane, Ranked, Series, Value
from mnemoscope.report.page import Cell, Column, Entry, Headline, Page, Section, Statement, Table
from mnemoscope.report.render import render, write

__all__ = [
    "Cell",
    "Column",
    "Curves",
    "Drawing",
    "Entry",
    "Figure",
    "Headline",
    "Mark",
    "Page",
    "Plane",
    "Ranked",
    "Section",
    "Series",
    "Statement",
    "Table",
    "Value",
    "export",
    "render",
    "writable",
    "write",
]
