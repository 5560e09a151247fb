"""Figures: numbers with their names, axes, marks and uncertainties, without a word of how they are drawn.

The page's JavaScript and Vega-Lite (`mnemoscope.report.vega`) draw the same descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mnemoscope.core.numbers import number

__all__ = ["Bars", "Curves", "Drawing", "Figure", "HeatMap", "Mark", "Plane", "Ranked", "Series", "Value"]

Number = float | None
"""A number that may be missing: NaN, infinite and None leave a gap, and are named as such in the data."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A line that values are compared with: a bound, the unit circle, a theorem's curve.

    Attributes
    ----------
    kind
        ``"x"``, a line at one place of the horizontal axis (of a ranking: of its axis); ``"y"``, at one of the vertical
        axis; ``"xy"``, a curve through `x` and `y`; ``"circle"``, around zero with the radius `value`.
    label
        What it is, in a few words: it is written beside the line.
    """

    kind: Literal["x", "y", "xy", "circle"]
    label: str
    value: float = 0.0
    x: Sequence[Number] = ()
    y: Sequence[Number] = ()


@dataclass(frozen=True, kw_only=True)
class Series:
    """One network's curve, `entry` being its key; a band where `lower` and `upper` are given."""

    entry: str
    x: Sequence[Number]
    y: Sequence[Number]
    lower: Sequence[Number] | None = None
    upper: Sequence[Number] | None = None


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Curves over one axis. The reader can switch each axis between linear and logarithmic.

    Attributes
    ----------
    x_title, y_title
        With units.
    log_x, log_y
        How the axes are at first.
    points
        Draw the single points too, for few values or whole numbers.
    decades
        How far a logarithmic axis reaches down from its largest value; what is smaller leaves the picture below.
    """

    series: Sequence[Series]
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    marks: tuple[Mark, ...] = ()
    points: bool = False
    decades: float = 12.0


@dataclass(frozen=True, kw_only=True)
class Value:
    """One network's number, with the interval that it is known to lie in where there is one."""

    entry: str
    value: Number
    lower: Number = None
    upper: Number = None

    def text(self) -> str:
        """Return the number in the digits that its interval allows."""
        if self.value is None or self.lower is None or self.upper is None:
            return number(self.value)
        return number(self.value, error=(self.upper - self.lower) / 2)


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """A number of every network, in order; those without a number come last, as such.

    Attributes
    ----------
    better
        Which end of the axis is the good one; the order is from good to bad.
    decades
        How far a logarithmic axis reaches down from its largest value; an arrow stands for what is smaller.
    """

    values: Sequence[Value]
    title: str
    unit: str = ""
    log: bool = False
    better: Literal["higher", "lower"] | None = None
    marks: tuple[Mark, ...] = ()
    decades: float = 12.0


@dataclass(frozen=True, kw_only=True)
class Plane:
    """Points of the complex plane: a small picture for every network, all on one scale."""

    points: Mapping[str, Sequence[complex]]
    title: str
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Bars in groups, one for each network, from zero.

    Attributes
    ----------
    groups
        What stands below each group of bars.
    series
        For each network its heights, one a group (`x` counts the groups), with intervals where they are known.
    """

    groups: Sequence[str]
    series: Sequence[Series]
    x_title: str
    y_title: str
    marks: tuple[Mark, ...] = ()

    def abreast(self) -> int:
        """Return how many bars stand side by side: one where every group has at most one."""
        rows = zip(*(one.y for one in self.series), strict=True)
        return len(self.series) if any(sum(value is not None for value in row) > 1 for row in rows) else 1


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A matrix in colours, its first row on top.

    Attributes
    ----------
    values
        Its rows.
    title
        Of the numbers that the colours stand for.
    x_labels, y_labels
        What stands at its columns and rows; 0, 1, 2, .. by default.
    diverging
        Colours around zero, for numbers of both signs.
    log
        Colours by the logarithm, for positive numbers.
    reach
        The numbers of the first and the last colour, where it is not the least and the largest.
    """

    values: Sequence[Sequence[Number]]
    x_title: str
    y_title: str
    title: str
    x_labels: Sequence[str] | None = None
    y_labels: Sequence[str] | None = None
    diverging: bool = False
    log: bool = False
    reach: tuple[float, float] | None = None
    marks: tuple[Mark, ...] = ()

    def labels(self) -> tuple[list[str], list[str]]:
        """Return what stands at the columns and at the rows."""
        width = len(self.values[0]) if len(self.values) else 0
        columns = range(width) if self.x_labels is None else self.x_labels
        rows = range(len(self.values)) if self.y_labels is None else self.y_labels
        return [str(label) for label in columns], [str(label) for label in rows]


Drawing = Curves | Ranked | Bars | Plane | HeatMap


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart with what a reader needs to trust it.

    Attributes
    ----------
    name
        A slug, of which the files are named.
    title
        The one idea of the chart.
    alt
        What it shows, for who cannot see it.
    how
        How it was computed, in a sentence or two.
    command
        What computes it again.
    references
        Keys of `mnemoscope.core.references.REFERENCES`.

    A page needs all of them; the picture of a single result, its title and drawing.
    """

    title: str
    drawing: Drawing
    name: str = ""
    alt: str = ""
    how: str = ""
    command: str = ""
    references: tuple[str, ...] = ()

    def entries(self) -> list[str]:
        """Return the keys of the networks that the figure names, each once."""
        drawing = self.drawing
        if isinstance(drawing, Ranked):
            keys = [value.entry for value in drawing.values]
        elif isinstance(drawing, Plane):
            keys = list(drawing.points)
        else:
            keys = [] if isinstance(drawing, HeatMap) else [series.entry for series in drawing.series]
        return list(dict.fromkeys(keys))

    def banded(self) -> set[str]:
        """Return the keys of the networks whose curves have bands."""
        drawing = self.drawing
        return {one.entry for one in drawing.series if one.lower is not None} if isinstance(drawing, Curves) else set()
