"""What memory capacity reports: by lag, by degree, by input scale."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.result import Result, result
from mnemoscope.report import chart

__all__ = ["MemoryCapacity"]


@result
class MemoryCapacity(Result):
    """What `memory_capacity` found.

    Attributes
    ----------
    curve
        MC_k: share of the variance of u(t-k) that a linear readout recovers, k = 0, 1, ..
    total
        Sum over all lags (beyond the curve's end too, where it is exact) and all degrees.
    by_degree
        The total of each degree: entry 0 is the linear memory.
    profile
        Capacity by degree and by the longest lag of a product; its first row is `curve`.
    size
        Numbers that the readout sees: no total can exceed it.
    rank
        Of the controllability matrix, for linear networks; None for others.
    radius
        Spectral radius of a linear network; None for others.
    stderr
        Standard error of the total: zero where it is exact.
    chance
        Standard deviation of an entry of `curve` where nothing is remembered: zero where it is exact.
    scales, totals
        Input scales that were swept over, and the total at each; empty without a sweep.
    totals_by_degree
        The same by degree: one row for each scale.
    """

    measure: ClassVar[str] = "memory-capacity"
    references: ClassVar[tuple[str, ...]] = ("jaeger2001", "white2004", "dambre2012")

    curve: Float[np.ndarray, " lags"]
    total: float
    by_degree: Float[np.ndarray, " degrees"]
    profile: Float[np.ndarray, "degrees lags"]
    size: int
    rank: int | None
    radius: float | None
    stderr: float
    chance: float
    scales: Float[np.ndarray, " scales"]
    totals: Float[np.ndarray, " scales"]
    totals_by_degree: Float[np.ndarray, "scales degrees"]

    def __str__(self) -> str:
        if self.status == "exact":
            found = f"memory capacity {self.total:.10g} of at most {self.size} (exact, {self.digits} digits)"
        else:
            found = f"memory capacity {self.total:.2f} +- {self.stderr:.2f} of at most {self.size} (estimate)"
        if len(self.by_degree) > 1:
            found += ", by degree " + " + ".join(f"{part:.2f}" for part in self.by_degree)
        half = f"at least half of u(t-k) up to lag k = {self.half}" if self.half >= 0 else "less than half of u(t)"
        return f"{found}; {half}"

    @property
    def half(self) -> int:
        """The last lag up to which at least half of the variance is recovered at every lag; -1 for none."""
        below = np.flatnonzero(self.curve < 0.5)
        return int(below[0]) - 1 if below.size else len(self.curve) - 1

    def plot(self) -> chart.Chart:
        """Draw the capacity by lag, a curve for each degree; beside it the totals by input scale, if swept."""
        shown = self.profile[:, : self._end()]
        lags = np.arange(shown.shape[1])
        names = [_degree_name(d, len(shown)) for d in range(1, len(shown) + 1)]
        by_lag = chart.lines(
            {name: (lags, row) for name, row in zip(names, shown, strict=True)},
            x="lag k (steps)" if len(shown) == 1 else "longest lag of a product (steps)",
            y="share of variance recovered" if len(shown) == 1 else "capacity",
            title="Memory capacity by lag",
        )
        if not len(self.scales):
            return by_lag
        series = {name: (self.scales, self.totals_by_degree[:, d]) for d, name in enumerate(names)}
        if len(names) > 1:
            series["all"] = (self.scales, self.totals)
        return chart.beside(
            by_lag,
            chart.lines(series, x="input scale", y="capacity", title="Total by input scale", log_x=True, marks=True),
        )

    def _end(self) -> int:
        """Where drawing stops: a little after the last lag with a visible capacity."""
        visible = np.flatnonzero((self.profile > max(2e-3, 3 * self.chance)).any(axis=0))
        lags = int(self.profile.shape[1])
        return min(lags, 2 + int(1.15 * visible[-1])) if visible.size else lags


def _degree_name(degree: int, degrees: int) -> str:
    return "linear" if degree == 1 else f"degree {degree}" if degrees > 1 else ""
