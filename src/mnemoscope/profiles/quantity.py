"""Quantities: title, unit, better direction and estimation of every number of a profile.

A section declares its quantities, and everything else follows: the headline of a summary, the rows of the scorecard and
of a comparison, the columns of the atlas, the rankings on the page.

A number may be **censored**: what was measured is at least so large, and something other than the network ended it, as
the window of lags ended a half-life of 209 of 512. Such a number says so in ``at_least``, in `Scalar` and in `Estimate`
alike: the words that name what cut it off, ``"window 512"``; empty for a number that is known. It is shown as
``>= 209 (window 512)``, has no interval, and is never told apart from another number that is as large or larger: two
censored numbers tie, and so does a censored one with every known one above it. It exceeds a known one only by what it
has itself: at least 209 is more than 100.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Axis", "Quantity"]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Row of the scorecard: words of the verdict on a quantity by which a network can be strong or weak at something.

    Attributes
    ----------
    name
        What a network is strong or weak at, in a few words: it follows "strong at" and "weak at".
    says
        What the number means, with ``{value}`` in place of it.
    column
        The title of a column of such numbers.
    place
        Where it stands on the scorecard, from above.
    limit
        A field of `NetworkFacts` that the number cannot exceed, and what to call it; None: no such limit.
    margin
        The share by which two numbers must differ to matter: those that surely differ by less are level.
    counted
        Whether the number is counted, not estimated, so that it has no error.
    weights
        Whether the number depends on the weights, so that training may change it.
    remedy
        What to try where the number is weak.
    about, asks
        What several axes are about, ``"memory"``, and what this one asks of it: where two of them disagree, a
        comparison says why they can.
    """

    name: str
    says: str
    column: str
    place: int = 99
    limit: tuple[str, str] | None = None
    margin: float = 0.05
    counted: bool = False
    weights: bool = True
    remedy: str = ""
    about: str = ""
    asks: str = ""


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """One number of a section.

    Attributes
    ----------
    name
        Its key among the section's numbers.
    title
        What it is called: ``"linear memory capacity"``.
    unit
        ``"steps"``, ``"nats per step"``; empty for a pure number.
    better
        Which numbers are better: higher ones, lower ones, or those nearer to zero; None: neither.
    least, most
        What the number cannot be below and above, which its interval respects; None: no such limit.
    floor
        How far above `least` (or from zero) a number counts as nothing: differences below it do not matter.
    how
        How it was estimated, in a sentence or two.
    meaning
        What the number says, as the headline of its section; empty: its title.
    log
        Whether rankings are drawn on a logarithmic scale.
    top
        Whether it stands at the top of the page.
    compared
        Whether `mnemoscope compare` lists its differences.
    axis
        What the verdict says of it; None: it is not judged.
    section
        The name of its section, which the section itself fills in.
    """

    name: str
    title: str
    unit: str = ""
    better: Literal["higher", "lower", "zero"] | None = None
    least: float | None = None
    most: float | None = None
    floor: float = 0.0
    how: str = ""
    meaning: str = ""
    log: bool = False
    top: bool = False
    compared: bool = False
    axis: Axis | None = None
    section: str = ""

    def goodness(self, value: float) -> float:
        """Return a number of which more is better: the value, its negative, or minus its distance from zero."""
        if self.better == "zero":
            return -abs(value)
        return -value if self.better == "lower" else value

    def score(self, value: float) -> float:
        """Return a number of which more is better, on a scale where equal ratios are equal steps.

        ln(x - least + floor), or its negative; the negative of ln(|x| + floor) where near zero is better. What has no
        least value stays as it is.
        """
        if self.better == "zero":
            return -_logarithm(abs(value) + self.floor)
        sign = -1.0 if self.better == "lower" else 1.0
        return sign * (value if self.least is None else _logarithm(value - self.least + self.floor))


_SMALLEST = 1e-300


def _logarithm(value: float) -> float:
    return math.log(max(value, _SMALLEST))
