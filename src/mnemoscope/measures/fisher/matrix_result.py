"""What the Fisher memory of a matrix network looks like: numbers, line, picture."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.result import Result, result
from mnemoscope.report.chart import Chart, lines

__all__ = ["MatrixFisherMemory"]


@result
class MatrixFisherMemory(Result):
    """What `matrix_fisher_memory` found.

    Attributes
    ----------
    curve
        J(k): Fisher information that the last state holds about the input k steps back.
    total
        J_tot, the sum of J(k) over all lags of the horizon, also those after the end of `curve`.
    relative
        eps1 eps2 total / tr(W^T W): the total over what a single input brings.
    published_curve, published_total, published_relative
        The same by the document's separable covariance; None where it does not exist (a spectral radius of U or V of 1
        or more over an infinite horizon).
    spatial
        J^s, N^2 x N^2: the total of any source W is vec(W)^T J^s vec(W), columns stacked; None above 256 state numbers
        and for the published form.
    best_input, best_total
        The source of Frobenius norm 1 that is remembered best, and its total; None with `spatial`.
    bound
        N^2 tr(W^T W) / (eps1 eps2), which no total exceeds (Theorem 3).
    radius
        rho(U) rho(V), the spectral radius of the network.
    tail
        Share of the total that lies beyond the end of `curve`.
    self_check
        |trace(J^s) - N^2 / (eps1 eps2)|, relatively, at worst over independent parts: zero in exact arithmetic; None
        for the published form, which has no such law.
    method
        The arithmetic that was used: closed form, square root or covariance in float64, extended precision.
    form, noise, horizon
        As given.
    """

    measure: ClassVar[str] = "matrix-fisher"
    references: ClassVar[tuple[str, ...]] = ("renanse2021", "ganguli2008")

    curve: Float[np.ndarray, " lags"]
    total: float
    relative: float
    published_curve: Float[np.ndarray, " some"] | None
    published_total: float | None
    published_relative: float | None
    spatial: Float[np.ndarray, "nn nn"] | None
    best_input: Float[np.ndarray, "n m"] | None
    best_total: float | None
    bound: float
    radius: float
    tail: float
    self_check: float | None
    method: str
    form: str
    noise: tuple[float, float]
    horizon: int | None

    def __str__(self) -> str:
        steps = "an infinite horizon" if self.horizon is None else f"a horizon of {self.horizon}"
        shown = max(1, min(self.digits or 1, 8))
        other = ""
        if self.form == "exact" and self.published_total is not None:
            other = f" (published formula: {self.published_total:.{min(shown, 6)}g})"
        name = "Fisher memory" if self.form == "exact" else "Published Fisher memory"
        return (
            f"{name} {self.total:.{shown}g}{other} of at most {self.bound:.6g} over {steps}, "
            f"{self.relative:.6g} of an input's information, {self.digits} digits to be trusted"
        )

    def plot(self) -> Chart:
        """Draw the curve by lag, the exact and the published form together."""
        series = {f"{self.form}, total {self.total:.4g}": (np.arange(len(self.curve)), self.curve)}
        if self.form == "exact" and self.published_curve is not None:
            length = min(len(self.published_curve), len(self.curve))
            name = f"published, total {self.published_total:.4g}"
            series[name] = (np.arange(length), self.published_curve[:length])
        return lines(
            series,
            x="lag k (steps)",
            y="Fisher information J(k)",
            title="Memory curve of a matrix network",
            log_y=bool(self.curve.max() > 1e3 * self.curve.min()),
            legend="covariance",
        )
