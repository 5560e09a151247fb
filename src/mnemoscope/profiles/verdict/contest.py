"""Contest of networks: which of two numbers is clearly better, decided for all comparisons of a page together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from mnemoscope.core.comparisons import Pool, benjamini_hochberg, pool, two_sided
from mnemoscope.core.intervals import LEVEL, student
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.row import Estimate, Row

__all__ = ["Contest", "Standing", "number_of"]

Standing = Literal["better", "worse", "level", "open"]
"""Of a network against another: clearly better, clearly worse, surely about equal, or not told apart."""

_TURNED: dict[Standing, Standing] = {"better": "worse", "worse": "better", "level": "level", "open": "open"}


class _Side(NamedTuple):
    """A number on the scale of `Quantity.score`: mean and variance over seeds; of one value, its own error."""

    score: float
    variance: float
    seeds: int
    error: float | None


class _Test(NamedTuple):
    """A difference, its standard error and degrees of freedom; no error where nobody knows it."""

    difference: float
    error: float | None
    freedom: float

    @property
    def chance(self) -> float:
        return 1.0 if self.error is None else two_sided(self.difference, self.error, self.freedom)

    def within(self, margin: float) -> bool:
        """Say whether the difference surely is below a margin: two one-sided tests at 5%."""
        if self.error is None:
            return False
        wide = special.ndtri(LEVEL) if math.isinf(self.freedom) else student(self.freedom, 2 * LEVEL - 1)
        return abs(self.difference) + float(wide) * self.error <= margin


class Contest:
    """All comparisons of one page: their variances borrow from each other, and they share one level.

    The rules, which docs/profile.md shows: two numbers are compared on the logarithmic scale of `Quantity.score`, by
    Student's t with variances drawn towards those of all networks (`mnemoscope.core.comparisons.pool`). A difference is
    clear when Benjamini and Hochberg's rule accepts it among all of the page, and level when it surely is below the
    axis's margin. A number that is known only from below is level with another such, clearly better than what it
    clearly exceeds, and otherwise not told apart.

    Parameters
    ----------
    pairs
        The networks that are compared, each a pair of rows of different keys.
    quantities
        What they are compared by; each has an `Axis`.
    """

    def __init__(self, pairs: Iterable[tuple[Row, Row]], quantities: Sequence[Quantity]) -> None:
        known = list(pairs)
        rows = list({row.key: row for row in itertools.chain.from_iterable(known)}.values())
        self._standings: dict[tuple[str, str, str, str], Standing] = {}
        tests: list[tuple[Row, Row, Quantity, _Test]] = []
        for quantity in quantities:
            sides = {row.key: _side(number, quantity) for row in rows if (number := number_of(row, quantity))}
            shared = pool([each.variance for each in sides.values()], [each.seeds - 1 for each in sides.values()])
            for one, other in known:
                if one.key in sides and other.key in sides and _alike(one, other, quantity):
                    tests.append((one, other, quantity, _tested(one, other, quantity, sides, shared)))
        clear = benjamini_hochberg([test.chance for *_, test in tests])
        for (one, other, quantity, test), accepted in zip(tests, clear, strict=True):
            self._standings[self._key(one, other, quantity)] = _standing(one, other, quantity, test, accepted)

    def standing(self, one: Row, other: Row, quantity: Quantity) -> Standing | None:
        """Return how a network stands against another; None when they cannot be compared by this number."""
        found = self._standings.get(self._key(one, other, quantity))
        if found is not None:
            return found
        turned = self._standings.get(self._key(other, one, quantity))
        return None if turned is None else _TURNED[turned]

    @staticmethod
    def _key(one: Row, other: Row, quantity: Quantity) -> tuple[str, str, str, str]:
        return one.key, other.key, quantity.section, quantity.name


def number_of(row: Row, quantity: Quantity) -> Estimate | None:
    """Return a network's number where its section has one, or None."""
    return row.number(quantity) if row.section(quantity.section).done else None


def _alike(one: Row, other: Row, quantity: Quantity) -> bool:
    """Say whether two numbers were found in the same way."""
    return one.section(quantity.section).version == other.section(quantity.section).version


def _side(number: Estimate, quantity: Quantity) -> _Side:
    scores = [quantity.score(value) for value in number.known]
    if len(scores) > 1:
        return _Side(float(np.mean(scores)), float(np.var(scores, ddof=1)), len(scores), None)
    error = None
    if number.lower is not None and number.upper is not None:
        ends = quantity.score(number.upper) - quantity.score(number.lower)
        error = abs(ends) / (2 * float(special.ndtri((1 + LEVEL) / 2)))
    assert number.value is not None
    return _Side(quantity.score(number.value), 0.0, 1, error)


def _tested(one: Row, other: Row, quantity: Quantity, sides: dict[str, _Side], shared: Pool) -> _Test:
    a, b = sides[one.key], sides[other.key]
    gap = a.score - b.score
    if quantity.axis is not None and quantity.axis.counted:
        return _Test(gap, 0.0, math.inf)
    if a.seeds == b.seeds == 1:
        known = a.error is not None and b.error is not None
        return _Test(gap, math.hypot(a.error or 0.0, b.error or 0.0) if known else None, math.inf)
    parts, freedoms = [], []
    for side, against in ((a, b), (b, a)):
        variance, freedom = shared.moderated(side.variance, side.seeds - 1)
        if side.seeds == 1:
            parts.append((side.error or 0.0) ** 2)
            freedoms.append(math.inf)
        else:
            # One set of weights against several: it must lie outside what these draw, not away from their mean alone.
            parts.append(variance * (1 / side.seeds + (1 if against.seeds == 1 else 0)))
            freedoms.append(freedom)
    blurred = [each.blur for each in (number_of(one, quantity), number_of(other, quantity)) if each is not None]
    parts += [blur**2 for blur in blurred]
    freedoms += [math.inf] * len(blurred)
    total = sum(parts)
    used = sum(part**2 / freedom for part, freedom in zip(parts, freedoms, strict=True) if freedom < math.inf)
    return _Test(gap, math.sqrt(total), total**2 / used if used else math.inf)


def _standing(one: Row, other: Row, quantity: Quantity, test: _Test, accepted: bool) -> Standing:
    mine, yours = number_of(one, quantity), number_of(other, quantity)
    assert mine is not None
    assert yours is not None
    assert quantity.axis is not None
    if mine.at_least and yours.at_least:
        return "level"
    found = _told(mine, yours, quantity, test, accepted)
    if mine.at_least or yours.at_least:
        # At least so many steps is at least so good; where less is better, at least so bad.
        possible: Standing = "better" if bool(mine.at_least) == (quantity.better == "higher") else "worse"
        return found if found == possible else "open"
    return found


def _told(mine: Estimate, yours: Estimate, quantity: Quantity, test: _Test, accepted: bool) -> Standing:
    assert quantity.axis is not None
    if test.within(math.log1p(quantity.axis.margin)):
        return "level"
    if not accepted:
        return "open"
    # Means on a logarithmic scale are not logarithms of means: what the seeds say must be what a reader sees.
    assert mine.value is not None
    assert yours.value is not None
    seen = quantity.goodness(mine.value) - quantity.goodness(yours.value)
    if seen * test.difference <= 0:
        return "open"
    return "better" if test.difference > 0 else "worse"
