"""Figures and the HTML page: descriptions, and the two ways they are drawn, knowing nothing of networks."""

from mnemoscope.core.files import writable
from mnemoscope.report.export import export
from mnemoscope.report.figure import Bars, Curves, Drawing, Figure, HeatMap, Mark, Plane, Ranked, Series, Value
from mnemoscope.report.page import Cell, Column, Dot, Entry, Headline, Page, Score, Section, Statement, Table
from mnemoscope.report.render import render, write

__all__ = [
    "Bars",
    "Cell",
    "Column",
    "Curves",
    "Dot",
    "Drawing",
    "Entry",
    "Figure",
    "Headline",
    "HeatMap",
    "Mark",
    "Page",
    "Plane",
    "Ranked",
    "Score",
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
