"""Fisher memory of a vector network: the information of its last state about past inputs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.arrays import positive, square, vector
from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.fisher.conventions import trusted_digits
from mnemoscope.measures.fisher.precision import Measured, Request, vector_memory
from mnemoscope.measures.fisher.white import Coordinates, directions, interference, responses
from mnemoscope.measures.registry import Cost, measure

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["FisherMemory", "fisher_memory"]

COST = "O(N^3 log T + N^2 K) time, O(N^2 + K) memory for K lags, T the horizon or 1/(1 - spectral radius)"


@result
class FisherMemory(Result):
    """Result of `fisher_memory`.

    Attributes
    ----------
    curve
        J(k): Fisher information that the last state holds about the input k steps back.
    total
        J_tot, the sum of J(k) over all lags of the horizon, also those after the end of `curve`.
    matrix
        J_kl over the first lags; its diagonal is the curve, the rest is interference between inputs.
    interference
        Frobenius norm of the off-diagonal part of `matrix` over that of the whole, between 0 and 1.
    spatial
        J^s, N x N: the total of any input direction u is u^T J^s u.
    best_direction, worst_direction, best_total, worst_total
        The unit inputs that are remembered best and worst, and their totals.
    bound
        N ||v||^2 / noise, which no total exceeds.
    self_check
        |trace(J^s) - N / noise|, relative to N / noise: zero in exact arithmetic.
    digits
        Decimal digits to be trusted of the total, and of the curve relative to its largest value.
    lag_digits
        Decimal digits to be trusted of each J(k) by itself, as long as it is above 1e-12 of the largest.
    precision
        Bits of the arithmetic that whitened the noise: 53 is float64.
    noise, horizon
        As given.
    """

    measure: ClassVar[str] = "fisher"
    references: ClassVar[tuple[str, ...]] = ("ganguli2008", "kerg2019")

    curve: Float[np.ndarray, " lags"]
    total: float
    matrix: Float[np.ndarray, "some some"]
    interference: float
    spatial: Float[np.ndarray, "n n"]
    best_direction: Float[np.ndarray, " n"]
    best_total: float
    worst_direction: Float[np.ndarray, " n"]
    worst_total: float
    bound: float
    self_check: float
    lag_digits: int
    precision: int
    noise: float
    horizon: int | None

    def __str__(self) -> str:
        horizon = "an infinite horizon" if self.horizon is None else f"horizon {self.horizon}"
        shown = max(1, min(self.digits or 1, 8))
        return (
            f"Fisher memory {self.total:.{shown}g} of at most {self.bound:.6g} over {horizon}, "
            f"{self.digits} digits trusted"
        )

    def plot(self) -> Chart:
        """Draw the curve by lag (down to 1e-9 of its largest value), and beside it how inputs at two lags overlap."""
        from mnemoscope.report.chart import beside, heat_map, lines

        seen = self.curve[self.curve > 1e-9 * self.curve.max()]
        lags = np.flatnonzero(self.curve > 1e-9 * self.curve.max())
        by_lag = lines(
            {"J(k)": (lags, seen)},
            x="lag k (steps)",
            y="Fisher information J(k)",
            title=f"Memory curve, total {self.total:.5g}",
            log_y=bool(seen.size and seen.max() > 1e2 * seen.min()),
        )
        pairs = heat_map(
            self.overlap(32),
            x="lag l (steps)",
            y="lag k (steps)",
            value="overlap",
            title=f"Overlap of two inputs, interference {self.interference:.3g}",
            diverging=True,
        )
        return beside(by_lag, pairs)

    def overlap(self, lags: int) -> Float[np.ndarray, "some some"]:
        """Return J_kl / sqrt(J(k) J(l)) over the first lags: 1 on the diagonal, and where two inputs look the same.

        Lags of which nothing is left are left out.
        """
        size = np.sqrt(self.matrix.diagonal()[:lags])
        size = size[: int(np.count_nonzero(size))]
        overlaps: Float[np.ndarray, "some some"] = self.matrix[: len(size), : len(size)] / np.outer(size, size)
        return overlaps


_COST = Cost(
    time={"S^3 log(T)": 1.2e-9, "S^2 T": 1e-9},
    memory="S^2",
    sizes={"T": lambda given: given["horizon"] or given["lags"] or 1000},
    letters={"S": "units", "T": "lags"},
)


@measure("fisher", kinds=(), needs=("matrix",), matrices={"W": "matrix", "v": "input"}, cost=_COST)
def fisher_memory(
    W: Any,
    v: Any,
    noise: float = 1.0,
    horizon: int | None = None,
    lags: int | None = None,
    matrix_lags: int = 256,
    precision: int | None = None,
) -> FisherMemory:
    r"""Measure how much the state of a noisy linear network says about each past input.

    For :math:`h_t = W h_{t-1} + v s_t + z_t` with :math:`z_t \sim N(0, \epsilon I_N)`, the last state is Gaussian with

    .. math::
        C = \epsilon \sum_k W^k W^{kT}, \quad J_{kl} = v^T W^{kT} C^{-1} W^l v, \quad J(k) = J_{kk}, \quad
        J_{tot} = v^T J^s v, \quad J^s = \sum_k W^{kT} C^{-1} W^k, \quad \mathrm{tr}\, J^s = N / \epsilon

    C is never formed. Its square root comes from QR doubling in float64; where that leaves fewer than ten digits, the
    noise is whitened in extended precision instead (for N up to 200, or when `precision` asks for it).

    Parameters
    ----------
    W
        Recurrent matrix, N x N.
    v
        Input weights, N.
    noise
        Variance epsilon of the noise that enters every unit at every step.
    horizon
        n: n steps from a zero state, so n noise terms and lags 0..n-1; None: the stationary state.
    lags
        Length of the curve; None: all of a horizon, and of an infinite one until the rest is below 1e-12 of the total
        (at least N). The total does not depend on it.
    matrix_lags
        Most lags that `matrix` and `interference` cover.
    precision
        Bits: 53 for float64 whatever it leaves, more for extended precision at once; None: chosen.

    Returns
    -------
    FisherMemory
        With ``.curve``, ``.total``, ``.spatial``, ``.digits`` and more.

    References
    ----------
    Ganguli, Huh and Sompolinsky (2008); Kerg et al. (2019), corrected as the documentation says.

    Examples
    --------
    A delay line of four units with gain 1 keeps 1 / (k + 1) of an input for four steps:

    >>> import numpy as np
    >>> found = fisher_memory(np.eye(4, k=-1), [1, 0, 0, 0])
    >>> found.curve.round(6).tolist()
    [1.0, 0.5, 0.333333, 0.25]
    >>> print(found)
    Fisher memory 2.0833333 of at most 4 over an infinite horizon, 14 digits trusted
    """
    W = square("W", W)
    v = _input("v", v, len(W))
    noise = positive("noise", noise)
    horizon = None if horizon is None else positive_int("horizon", horizon)
    lags = None if lags is None else positive_int("lags", lags)
    matrix_lags = positive_int("matrix_lags", matrix_lags)
    precision = None if precision is None else positive_int("precision", precision)
    length = float(np.abs(v).max())
    scale = 2.0 ** math.frexp(length)[1] if length else 1.0  # squares of very large or small weights stay in range
    # The curve of a finite horizon is computed whole: its total is the sum.
    asked = lags if horizon is None else horizon
    found = vector_memory(Request(Coordinates(W, v / scale, np.eye(len(W))), horizon, asked, precision))
    return _result(found, v, scale, noise, horizon, lags, matrix_lags)


def _result(
    found: Measured,
    v: Float[np.ndarray, " n"],
    scale: float,
    noise: float,
    horizon: int | None,
    lags: int | None,
    matrix_lags: int,
) -> FisherMemory:
    shown = responses(found.white, min(matrix_lags, len(found.curve[:lags])))
    matrix = shown.T @ shown
    space = directions(found.white, found.root)
    weight = scale / noise * scale
    bound = len(v) * float(np.linalg.norm(v / scale)) ** 2 * weight
    if not max(bound, len(v) / noise) < math.inf:
        raise UserError(
            f"N |v|^2 / noise must be below 1.8e308, got noise={noise:g} and weights up to {np.abs(v).max():g}"
        )
    return FisherMemory(
        status="exact",
        digits=trusted_digits(found.error),
        assumptions=(
            "the network is linear: h = W h + v s + z",
            "independent Gaussian noise of equal variance enters every unit at every step",
            "only the last state is read",
        ),
        cost=COST,
        curve=found.curve[:lags] * weight,
        total=found.total * weight,
        matrix=matrix * weight,
        interference=interference(matrix),
        spatial=space.spatial / noise,
        best_direction=space.best,
        best_total=space.best_total / noise,
        worst_direction=space.worst,
        worst_total=space.worst_total / noise,
        bound=bound,
        self_check=found.self_check,
        lag_digits=trusted_digits(found.lag_error),
        precision=found.bits,
        noise=noise,
        horizon=horizon,
    )


def _input(name: str, value: Any, size: int) -> Float[np.ndarray, " n"]:
    """Return one column of input weights; several are a mistake that has a remedy."""
    shape = tuple(getattr(value, "shape", ()))
    if len(shape) == 2 and 1 not in shape:
        raise UserError(
            f"{name} must be a vector of length {size}, got an array of shape {shape}; choose a column or a "
            "combination of columns, or let network_fisher_memory choose the best"
        )
    return vector(name, value, size)
