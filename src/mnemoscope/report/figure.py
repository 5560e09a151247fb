"""What a chart shows: numbers with their names, without a word of how they are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = ["Curves", "Drawing", "Figure", "Mark", "Plane", "Ranked", "Series", "Value"]

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


Drawing = Curves | Ranked | Plane


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
    """

    name: str
    title: str
    drawing: Drawing
    alt: str
    how: str
    command: str
    references: tuple[str, ...] = ()
