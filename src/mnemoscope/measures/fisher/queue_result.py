"""What the Fisher memory of a matrix network with a queue looks like: numbers, line, picture."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.result import Result, result
from mnemoscope.report.chart import Chart, lines

__all__ = ["QueueFisherMemory"]


@result
class QueueFisherMemory(Result):
    """What `queue_fisher_memory` found.

    Attributes
    ----------
    curve
        J(k): Fisher information that the last state X(n) holds about the input k steps back.
    total, relative
        The sum of J(k) over all lags of the horizon, and eps1 eps2 total / tr(W^T W).
    joint_curve, joint_total, joint_relative
        The same for the last two states (X(n), X(n-1)) together; None for the published form.
    stable
        Whether the network with its queue forgets: the spectral radius of its companion matrix is below 1.
    radius
        That spectral radius.
    bound
        N^2 tr(W^T W) / (eps1 eps2), which no total exceeds; the joint total stays below twice that.
    tail, joint_tail
        Shares of the totals that lie beyond the ends of the curves.
    self_check
        How far, relatively, trace(J^s) is from N^2 (2 N^2 for two states), at worst; None for the published form.
    diverges
        Whether the series of the published form has no limit; None for the exact form.
    growth
        By what factors the terms of the published series (row covariance, column covariance, mean) grow in the end;
        None for the exact form.
    terms
        The traces of the first two and the norm of the third, one row each, for m = 0..m_max; None for the exact form.
    m_max
        Where the published series were cut off; None for the exact form.
    method
        The arithmetic that was used.
    weights, form, noise, horizon
        As given.
    """

    measure: ClassVar[str] = "queue-fisher"
    references: ClassVar[tuple[str, ...]] = ("renanse2021", "ganguli2008")

    curve: Float[np.ndarray, " lags"]
    total: float
    relative: float
    joint_curve: Float[np.ndarray, " lags"] | None
    joint_total: float | None
    joint_relative: float | None
    stable: bool
    radius: float
    bound: float
    tail: float
    joint_tail: float | None
    self_check: float | None
    diverges: bool | None
    growth: tuple[float, float, float] | None
    terms: Float[np.ndarray, "3 m"] | None
    m_max: int | None
    method: str
    weights: tuple[float, ...]
    form: str
    noise: tuple[float, float]
    horizon: int | None

    def __str__(self) -> str:
        shown = max(1, min(self.digits or 1, 8))
        if self.growth is not None:
            limit = "diverges" if self.diverges else "converges"
            return (
                f"Published queue memory {self.total:.{shown}g} with its series cut off at m = {self.m_max}; the "
                f"series {limit}: its terms grow by {max(self.growth):.4g}"
            )
        steps = "an infinite horizon" if self.horizon is None else f"a horizon of {self.horizon}"
        verdict = "stable" if self.stable else "unstable"
        return (
            f"Fisher memory {self.total:.{shown}g} of one state and {self.joint_total:.{shown}g} of two, of at most "
            f"{self.bound:.6g} and {2 * self.bound:.6g}, over {steps}; {verdict}, radius {self.radius:.6g}, "
            f"{self.digits} digits to be trusted"
        )

    def plot(self) -> Chart:
        """Draw the curve of one state and of two by lag; of the published form its curve alone."""
        lags = np.arange(len(self.curve))
        name = "last state" if self.form == "exact" else f"published, cut off at m = {self.m_max}"
        series = {f"{name}, total {self.total:.4g}": (lags, self.curve)}
        if self.joint_curve is not None:
            series[f"last two states, total {self.joint_total:.4g}"] = (lags, self.joint_curve)
        return lines(
            series,
            x="lag k (steps)",
            y="Fisher information J(k)",
            title=f"Memory with a queue of {len(self.weights)}",
            log_y=bool(self.curve.max() > 1e3 * self.curve.min()),
            legend="what is read",
        )
