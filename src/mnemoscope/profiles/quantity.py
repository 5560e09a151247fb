"""Quantities: title, unit, better direction and estimation of every number of a profile.

A section declares its quantities, and everything else follows: the headline of a summary, the table of differences, the
axes of the verdict, the columns of the atlas, the rankings on the page.

A number may be **censored**: what was measured is at least so large, and something other than the network ended it, as
the window of lags ended a half-life of 209 of 512. Such a number says so in ``at_least``, in `Scalar` and in `Estimate`
alike: the words that name what cut it off, ``"window 512"``; empty for a number that is known. It is shown as
``>= 209 (window 512)``, has no interval, and is never told apart from another number that is as large or larger: two
censored numbers tie, and so does a censored one with every known one above it. It exceeds a known one only by what it
has itself: at least 209 is more than 100.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Axis", "Quantity"]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """Words of the verdict on a quantity by which a network can be good or bad at something.

    Attributes
    ----------
    name
        What a network is good or bad at, in a few words: it follows "Good at" and "Bad at".
    says
        What the number means, with ``{value}`` in place of it.
    column
        The title of a column of such numbers.
    limit
        A field of `NetworkFacts` that the number cannot exceed, and what to call it; None: no such limit.
    margin
        For a number that is counted, not estimated: the share by which two must differ to be told apart. None: it is an
        estimate, and its interval decides.
    weights
        Whether the number depends on the weights, so that training may change it.
    """

    name: str
    says: str
    column: str
    limit: tuple[str, str] | None = None
    margin: float | None = None
    weights: bool = True


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
    least
        What the number cannot be below, to which a shown interval is cut; None: no such limit.
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
