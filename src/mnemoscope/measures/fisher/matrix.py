"""Fisher memory of a matrix network: how much its last state says about the inputs of the past."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import UserError, choice
from mnemoscope.measures.fisher.arguments import Given, given, spectral_radius, unstable
from mnemoscope.measures.fisher.matrix_published import published
from mnemoscope.measures.fisher.matrix_result import MatrixFisherMemory
from mnemoscope.measures.fisher.part import Gathered
from mnemoscope.measures.fisher.precision import Settled, cut_off, digits, settle
from mnemoscope.measures.registry import measure

__all__ = ["MatrixFisherMemory", "matrix_fisher_memory"]

FORMS = ("exact", "published")

COST = (
    "N x N state, K lags, T the horizon or 1/(1 - radius): O(N^3 + N^2 K) time, O(N^2) memory when U and V are normal; "
    "O(N^4 log T + N^3 K) time, O(N^3) memory when one is; else O(N^6 log T + N^4 K) time, O(N^4) memory up to N = 32 "
    "and O(N^6 + N^5 log T + N^4 K) time above"
)

_SPATIAL = 256  # state numbers up to which J^s is handed out: larger ones nobody reads


@measure("matrix-fisher", kinds=(), needs=("matrix",), matrices={"U": "u", "V": "v", "W": "w"})
def matrix_fisher_memory(
    U: Any,
    V: Any,
    W: Any,
    noise: tuple[float, float] = (1.0, 1.0),
    horizon: int | None = None,
    form: str = "exact",
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
        Left recurrent matrix, N x N: the state is multiplied by its transpose.
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
    network = given(U, V, W, noise, horizon)
    choice("form", form, FORMS)
    if form == "published":
        return _published_result(network)
    radius = spectral_radius(network.U) * spectral_radius(network.V)
    if horizon is None and unstable(radius):
        raise UserError(
            f"rho(U) rho(V) must be below 1 for horizon=None, got {radius:.6g}: there is no stationary state; "
            "give a finite horizon"
        )
    settled = settle(network.U, network.V, network.W, (), (1,), network.horizon)
    return _exact_result(network, radius, settled, _beside(network))


def _exact_result(network: Given, radius: float, settled: Settled, other: Gathered | None) -> MatrixFisherMemory:
    found, unit = settled.found, network.unit
    spatial = _spatial(settled, network)
    best = None if spatial is None else _best(spatial, network.W.shape)
    total = float(found.totals[0])
    return MatrixFisherMemory(
        status="exact",
        digits=digits(settled.error),
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
        self_check=settled.self_check,
        method=settled.method,
        form="exact",
        noise=network.noise,
        horizon=network.horizon,
    )


def _published_result(network: Given) -> MatrixFisherMemory:
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
        digits=digits(error),
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


def _beside(network: Given) -> Gathered | None:
    """Return the published form where it exists."""
    if network.horizon is None and any(unstable(spectral_radius(one)) for one in (network.U, network.V)):
        return None
    try:
        return published(network.U, network.V, network.W, network.horizon)[0]
    except ArithmeticError:
        return None


def _spatial(settled: Settled, network: Given) -> Float[np.ndarray, "nn nn"] | None:
    if network.W.size > _SPATIAL:
        return None
    total = np.zeros((network.W.size, network.W.size))
    for group, part in zip(settled.groups, settled.parts, strict=True):
        places = group.places
        total += np.einsum("gia,gab,gjb->ij", places, part.spatial(), places.conj(), optimize=True).real
    return total / network.noise[0] / network.noise[1]


def _best(spatial: Float[np.ndarray, "nn nn"], shape: tuple[int, ...]) -> tuple[Float[np.ndarray, "n m"], float]:
    values, vectors = np.linalg.eigh((spatial + spatial.T) / 2)
    return vectors[:, -1].reshape(shape, order="F"), float(values[-1])
