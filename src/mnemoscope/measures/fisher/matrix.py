"""Fisher memory of a matrix network: the information of its last state about past inputs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import UserError, choice
from mnemoscope.core.result import Result, result
from mnemoscope.measures.fisher.blocks import TotalMemory
from mnemoscope.measures.fisher.conventions import trusted_digits
from mnemoscope.measures.fisher.engine import (
    MatrixNetwork,
    Measured,
    cut_off,
    matrix_memory,
    matrix_network,
    unstable,
)
from mnemoscope.measures.fisher.published import published
from mnemoscope.measures.fisher.resting import matrices_of
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral.eigenvalues import spectral_radius

if TYPE_CHECKING:
    from mnemoscope.report.chart import Chart

__all__ = ["MatrixFisherMemory", "matrix_fisher_memory"]


@result
class MatrixFisherMemory(Result):
    """Result of `matrix_fisher_memory`.

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
        from mnemoscope.report.chart import lines

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
        )


FORMS = ("exact", "published")

COST = (
    "N x N state, K lags, T the horizon or 1/(1 - radius): O(N^3 + N^2 K) time, O(N^2) memory when U and V are normal; "
    "O(N^4 log T + N^3 K) time, O(N^3) memory when one is; else O(N^6 log T + N^4 K) time, O(N^4) memory up to N = 32 "
    "and O(N^6 + N^5 log T + N^4 K) time above"
)

_SPATIAL = 256  # state numbers up to which J^s is handed out: larger ones nobody reads


_COST = Cost(
    time={"S^3 log(T)": 2.6e-9, "S^2 T": 2e-9},
    memory="S^2",
    sizes={"T": lambda given: given["horizon"] or 1000},
    letters={"S": "numbers in the matrix, less where U and V fall apart into blocks", "T": "lags"},
)


@measure("matrix-fisher", kinds=("recurrent",), needs=("matrix",), matrices={"U": "u", "V": "v", "W": "w"}, cost=_COST)
def matrix_fisher_memory(
    U: Any,
    V: Any = None,
    W: Any = None,
    noise: tuple[float, float] = (1.0, 1.0),
    horizon: int | None = None,
    form: str = "exact",
    channel: int = 0,
) -> MatrixFisherMemory:
    r"""Measure how much the matrix state of a noisy linear network says about each past input.

    For :math:`X_t = U^T X_{t-1} V + W s_t + Z_t`, the entries of :math:`Z_t` independent with variance
    :math:`\epsilon_1 \epsilon_2`, the column-stacked state is a vector network with step :math:`K = V^T \otimes U^T`:

    .. math::
        C = \epsilon_1 \epsilon_2 \sum_k (V^{kT} V^k) \otimes (U^{kT} U^k), \quad
        J(k) = w^T K^{kT} C^{-1} K^k w, \quad w = \mathrm{vec}\, W, \quad
        \mathrm{tr}\, J^s = N^2 / (\epsilon_1 \epsilon_2)

    The document takes :math:`(\sum_k V^{kT} V^k) \otimes (\sum_k U^{kT} U^k)` for the covariance, which adds the cross
    terms; that is `form` ``"published"``, and the exact result carries its curve and total beside its own.

    Where U and V fall apart into blocks in unitary frames (normal matrices: into numbers) only pairs of blocks are
    solved; C is never formed below 1024 coupled state numbers, where its square root comes from QR doubling, and is
    formed above, where that takes minutes. Where fewer than ten digits are left (nine above 1024), ball arithmetic
    takes over up to 256 coupled state numbers, and the square root above 1024.

    Parameters
    ----------
    U
        Left recurrent matrix, N x N: the state is multiplied by its transpose. Or a network, matrixrnn, matrixlstm, ntm
        or matntm, instead of all three: its own matrices where it is linear or rests at zero, else the Jacobian of its
        state at rest, with noise in every number of the state.
    V
        Right recurrent matrix, N x N (M x M for an N x M state).
    W
        Where the scalar signal enters, of the shape of the state.
    noise
        Variances epsilon_1 of rows and epsilon_2 of columns; only their product matters.
    horizon
        n: n steps from a zero state, so n noise terms and lags 0..n-1; None: the stationary state.
    form
        "exact", or "published" for the document's separable covariance.
    channel
        Which number of a network's input the signal is, counted row by row.

    Returns
    -------
    MatrixFisherMemory
        With ``.curve``, ``.total``, ``.relative``, ``.published_total``, ``.digits`` and more.

    References
    ----------
    Renanse, Sharma and Chandra (2021), corrected as the documentation says; Ganguli, Huh and Sompolinsky (2008).

    Examples
    --------
    Normal matrices keep exactly what one input brings; the published formula says less.

    >>> import numpy as np
    >>> found = matrix_fisher_memory(np.diag([0.9, 0.5]), np.diag([0.8, 0.3]), np.eye(2))
    >>> round(found.relative, 12), round(found.published_relative, 6)
    (1.0, 0.420118)
    >>> found.curve[:3].round(6).tolist()
    [1.4591, 0.271655, 0.129919]
    """
    U, V, W, queue, words = matrices_of(U, V, W, channel, "matrix_fisher_memory")
    if queue is not None:
        raise UserError("matrix_fisher_memory takes no network with a queue: queue_fisher_memory measures matrix-queue")
    network = matrix_network(U, V, W, noise, horizon)
    choice("form", form, FORMS)
    if form == "published":
        return _said(_published_result(network), words)
    radius = spectral_radius(network.U) * spectral_radius(network.V)
    if horizon is None and unstable(radius):
        raise UserError(
            f"rho(U) rho(V) must be below 1 for horizon=None, got {radius:.6g}: there is no stationary state; "
            "give a finite horizon"
        )
    measured = matrix_memory(network.U, network.V, network.W, (), (1,), network.horizon)
    return _said(_exact_result(network, radius, measured, _beside(network)), words)


def _said(found: MatrixFisherMemory, words: tuple[str, ...]) -> MatrixFisherMemory:
    """Return a result with what was done to a network to get its matrices."""
    return replace(found, assumptions=(*words, *found.assumptions))


def _exact_result(
    network: MatrixNetwork, radius: float, measured: Measured, other: TotalMemory | None
) -> MatrixFisherMemory:
    found, unit = measured.found, network.unit
    spatial = _spatial(measured, network)
    best = None if spatial is None else _best(spatial, network.W.shape)
    total = float(found.totals[0])
    return MatrixFisherMemory(
        status="exact",
        digits=trusted_digits(measured.error),
        assumptions=(
            "the network is linear: X = U^T X V + W s + Z",
            "independent Gaussian noise of equal variance enters every entry of the state at every step",
            "only the last state is read",
            *cut_off(float(found.tails[0])),
        ),
        cost=COST,
        curve=found.curves[0] * unit,
        total=total * unit,
        relative=total / network.energy,
        published_curve=None if other is None else other.curves[0] * unit,
        published_total=None if other is None else float(other.totals[0]) * unit,
        published_relative=None if other is None else float(other.totals[0]) / network.energy,
        spatial=spatial,
        best_input=None if best is None else best[0],
        best_total=None if best is None else best[1],
        bound=network.W.size * network.energy * unit,
        radius=radius,
        tail=float(found.tails[0]),
        self_check=measured.self_check,
        method=measured.method,
        form="exact",
        noise=network.noise,
        horizon=network.horizon,
    )


def _published_result(network: MatrixNetwork) -> MatrixFisherMemory:
    radii = spectral_radius(network.U), spectral_radius(network.V)
    if network.horizon is None and any(map(unstable, radii)):
        raise UserError(
            f"form='published' needs rho(U) and rho(V) below 1 for horizon=None, got {radii[0]:.6g} and "
            f"{radii[1]:.6g}; form='exact' needs their product below 1 only, or give a finite horizon"
        )
    try:
        found, error = published(network.U, network.V, network.W, network.horizon)
    except ArithmeticError as reason:
        raise UserError(f"float64 cannot hold the published covariance of this network: {reason}") from reason
    total = float(found.totals[0])
    curve = found.curves[0] * network.unit
    return MatrixFisherMemory(
        status="exact",
        digits=trusted_digits(error),
        assumptions=(
            "the document's separable covariance, which is not that of the state: at most the exact value",
            "it changes when (U, V) becomes (c U, V / c), which is the same network",
            *cut_off(float(found.tails[0])),
        ),
        cost=COST,
        curve=curve,
        total=total * network.unit,
        relative=total / network.energy,
        published_curve=curve,
        published_total=total * network.unit,
        published_relative=total / network.energy,
        spatial=None,
        best_input=None,
        best_total=None,
        bound=network.W.size * network.energy * network.unit,
        radius=radii[0] * radii[1],
        tail=float(found.tails[0]),
        self_check=None,
        method="closed form or square roots of both factors in float64",
        form="published",
        noise=network.noise,
        horizon=network.horizon,
    )


def _beside(network: MatrixNetwork) -> TotalMemory | None:
    """Return the published form where it exists."""
    if network.horizon is None and any(unstable(spectral_radius(one)) for one in (network.U, network.V)):
        return None
    try:
        return published(network.U, network.V, network.W, network.horizon)[0]
    except ArithmeticError:
        return None


def _spatial(measured: Measured, network: MatrixNetwork) -> Float[np.ndarray, "nn nn"] | None:
    if network.W.size > _SPATIAL:
        return None
    total = np.zeros((network.W.size, network.W.size))
    for group, part in zip(measured.groups, measured.parts, strict=True):
        places = group.places
        total += np.einsum("gia,gab,gjb->ij", places, part.spatial(), places.conj(), optimize=True).real
    return total / network.noise[0] / network.noise[1]


def _best(spatial: Float[np.ndarray, "nn nn"], shape: tuple[int, ...]) -> tuple[Float[np.ndarray, "n m"], float]:
    values, vectors = np.linalg.eigh((spatial + spatial.T) / 2)
    return vectors[:, -1].reshape(shape, order="F"), float(values[-1])
