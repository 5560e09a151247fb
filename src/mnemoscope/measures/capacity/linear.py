"""Memory capacity of a linear network, exactly: from what its input reaches, never from a covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NoReturn

import flint
import numpy as np
import scipy.linalg
from jaxtyping import Bool, Complex, Float

from mnemoscope.core.errors import UserError
from mnemoscope.core.memory import require
from mnemoscope.measures.spectral.eigenvalues import spectral_radius
from mnemoscope.theory.formulas.capacity import (
    NormalForm,
    controllability_rank,
    curve_to_tail,
    independent_units,
    lattice_form,
    leading_curve,
    reachable_polynomial,
    reachable_units,
    reflection_coefficients,
    takenaka_malmquist_form,
    working_precision,
)

__all__ = [
    "LinearCapacity",
    "digits_of",
    "finite_capacity",
    "linear_capacity",
    "noisy_capacity",
    "without_rounding_modes",
]

EPS = float(np.finfo(float).eps)
MOST_DECOMPOSITIONS = 400
"""How many singular value decompositions a search may take; beyond it only the first candidates are looked at."""


def without_rounding_modes(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "r r"], Float[np.ndarray, " r"]]:
    r"""Return (W, v) without the modes that a change of the weights by rounding errors cuts off.

    A left eigenvector y with y* v = 0 belongs to a mode that v does not reach. In floats y* v is never quite zero, so a
    mode counts as cut off when y, made orthogonal to v, is a left eigenvector of a matrix whose every entry differs
    from that of W by a few units in its last place (Oettli and Prager's condition):

    .. math:: |y^* (W - \lambda I)|_j \le c\, \epsilon\, (|y|^\top |W|)_j \quad \text{for every column } j

    Weights that are exactly zero stay zero, and small weights are only changed in their own last place, so weak
    couplings count as couplings: the criterion cuts off what was meant to be zero and was rounded, and nothing else.
    """
    while len(W) > 1:  # what is taken out may leave others without their only way to the input
        modes = _cut_off(W, v)
        if not modes.shape[1]:
            break
        rest = _complement(modes)
        if not rest.shape[1]:
            break
        W, v = rest.T @ W @ rest, rest.T @ v
    return W, v


def _complement(modes: Complex[np.ndarray, "n m"]) -> Float[np.ndarray, "n r"]:
    both = np.concatenate([modes.real, modes.imag], axis=1)
    left, sizes, _ = np.linalg.svd(both, full_matrices=True)
    return np.asarray(left[:, int((sizes > 1e-6).sum()) :])


def _cut_off(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> Complex[np.ndarray, "n m"]:
    size = len(W)
    small = 100 * size * EPS * np.linalg.norm(W)
    eigenvalues, rights = np.linalg.eig(W.T)
    found: list[Complex[np.ndarray, "n m"]] = [np.zeros((size, 0), dtype=complex)]
    candidates = eigenvalues[_suspect(eigenvalues, rights, v)]
    for value in candidates[candidates.imag >= 0][:MOST_DECOMPOSITIONS]:
        # Hautus: a mode is out of reach when [W - lambda I, v] loses a row; its left null vectors are the modes.
        pencil = np.concatenate([W - value * np.eye(size), v[:, None]], axis=1)
        left, sizes, _ = np.linalg.svd(pencil, full_matrices=False)
        for y in left[:, sizes <= small].T:
            y = _cleaned(y, v)
            if _is_left_eigenvector(y, value, W):
                found.append(np.conj(y)[:, None])
    return np.concatenate(found, axis=1)


def _suspect(
    eigenvalues: Complex[np.ndarray, " n"], vectors: Complex[np.ndarray, "n n"], v: Float[np.ndarray, " n"]
) -> Bool[np.ndarray, " n"]:
    """Return which eigenvalues are near another one, or belong to a left eigenvector that is nearly orthogonal to v."""
    gaps = np.abs(eigenvalues[:, None] - eigenvalues[None, :])
    np.fill_diagonal(gaps, np.inf)
    scale = max(float(np.abs(eigenvalues).max()), EPS)
    hidden = np.abs(vectors.T @ v) <= 1e-6 * np.linalg.norm(v)
    return np.asarray((gaps.min(axis=1) <= 1e-6 * scale) | hidden)


def _cleaned(y: Complex[np.ndarray, " n"], v: Float[np.ndarray, " n"]) -> Complex[np.ndarray, " n"]:
    y = y - v * (v @ y) / (v @ v)
    return np.where(np.abs(y) <= 100 * len(y) * EPS, 0, y)


def _is_left_eigenvector(y: Complex[np.ndarray, " n"], value: complex, W: Float[np.ndarray, "n n"]) -> bool:
    left = np.conj(y)
    residual = np.abs(left @ W - value * left)
    return bool(np.all(residual <= 100 * len(y) * EPS * (np.abs(y) @ np.abs(W))))


TAIL = 1e-12
"""A curve ends where the rest of the sum is below this share of it."""
MOST_LAGS = 1 << 17
"""A curve without a given lag ends here at the latest."""
ALWAYS_EXACT = 64
"""Up to this many units the characteristic polynomial is computed exactly, without asking whether floats would do."""
MOST_EXACT = 200
"""Up to this many units it is computed exactly when the floats disagree with themselves."""
ENOUGH_DIGITS = 10
FULL_DIGITS = 14


@dataclass(frozen=True)
class LinearCapacity:
    """Curve and total of a linear network, and how they were found."""

    curve: Float[np.ndarray, " lags"]
    total: float
    rank: int
    digits: int
    radius: float
    note: str = ""


@dataclass(frozen=True)
class _Reached:
    """The part that the input reaches, in normal form, and how many digits of its curve can be trusted."""

    form: NormalForm
    digits: int
    note: str = ""


def linear_capacity(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], lag: int | None = None) -> LinearCapacity:
    """Return the capacity of ``x(t) = W x(t-1) + v u(t)`` for an input that has always been there."""
    units = reachable_units(W, v)
    radius = spectral_radius(W)
    # A lag that was asked for is kept to; otherwise the curve is long enough to hold the total.
    least, most = (len(W), MOST_LAGS) if lag is None else (lag + 1, lag + 1)
    if not units.any():
        return LinearCapacity(np.zeros(least), 0.0, 0, FULL_DIGITS, radius)
    reached = _reached(W[np.ix_(units, units)], v[units])
    rank = len(reached.form.b)
    curve, rest = curve_to_tail(reached.form, least, most, TAIL * rank)
    digits = min(reached.digits, digits_of(abs(float(curve.sum()) + rest - rank) / rank))
    return LinearCapacity(curve, float(rank), rank, digits, radius, reached.note)


def _reached(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> _Reached:
    rank = controllability_rank(W, v)
    inner, _ = without_rounding_modes(W, v)
    if len(inner) < rank:
        return _from_eigenvalues(inner, _left_out(rank - len(inner))) or _fail(W)
    if len(W) > ALWAYS_EXACT:
        found = _from_eigenvalues(inner if len(inner) == rank else _krylov_block(W, v, rank))
        if found is not None and (found.digits >= ENOUGH_DIGITS or len(W) > MOST_EXACT):
            return found
        if len(W) > MOST_EXACT:
            _fail(W)
    reflections = reflection_coefficients(reachable_polynomial(W, v))
    return _fail(W) if reflections is None else _Reached(lattice_form(reflections), FULL_DIGITS)


def _left_out(modes: int) -> str:
    return f"modes that only the rounding of the weights connects with the input are left out: {modes}"


def _from_eigenvalues(W: Float[np.ndarray, "r r"], note: str = "") -> _Reached | None:
    """Return the cascade of W's eigenvalues, or None for an unstable W.

    Eigenvalues of W and of W in rotated coordinates carry independent rounding errors: the difference of the two curves
    shows how many digits these leave.
    """
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=W.shape))[0]
    found = [np.linalg.eigvals(each).astype(complex) for each in (W, turn.T @ W @ turn)]
    if max(np.abs(each).max() for each in found) >= 1:
        return None
    forms = [takenaka_malmquist_form(each) for each in found]
    first, second = (leading_curve(form, min(4 * len(W), 1024)) for form in forms)
    return _Reached(forms[0], digits_of(float(np.abs(first - second).max())) - 1, note)


def _krylov_block(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], rank: int) -> Float[np.ndarray, "r r"]:
    """Return W on span{v, W v, .., W^(r-1) v}, in the orthonormal basis that Householder's reflections give."""
    normal = v.copy()
    normal[0] += math.copysign(float(np.linalg.norm(v)), v[0])
    normal /= np.linalg.norm(normal)
    reflected = W - 2 * np.outer(normal, normal @ W)
    reflected -= 2 * np.outer(reflected @ normal, normal)
    return np.asarray(scipy.linalg.hessenberg(reflected)[:rank, :rank])


def finite_capacity(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], horizon: int, lag: int | None = None
) -> LinearCapacity:
    """Return the capacity of a network that starts from zero and has seen `horizon` inputs: any W will do.

    MC_k is the leverage of column k of [v, .., W^(n-1) v], in balls whose precision is doubled until it is known.
    """
    radius, units = spectral_radius(W), reachable_units(W, v)
    if not units.any():
        return LinearCapacity(np.zeros(horizon), 0.0, 0, FULL_DIGITS, radius)
    W, v, note = _meant(W[np.ix_(units, units)], v[units])
    rows = independent_units(W, v)
    rank = min(len(rows), horizon)
    curve = np.ones(horizon) if rank == horizon else _leverages(W, v, rows, horizon)
    digits = digits_of(abs(float(curve.sum()) - rank) / rank)
    return LinearCapacity(curve[: None if lag is None else lag + 1], float(rank), rank, digits, radius, note)


def _meant(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, "r r"], Float[np.ndarray, " r"], str]:
    rank = controllability_rank(W, v)
    inner, entry = without_rounding_modes(W, v)
    if len(inner) < rank:
        return inner, entry, _left_out(rank - len(inner))
    return W, v, ""


def _leverages(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], rows: list[int], horizon: int
) -> Float[np.ndarray, " horizon"]:
    if len(W) > MOST_EXACT:
        raise UserError(
            f"memory_capacity with a horizon above the rank is computed in extended precision, up to "
            f"{MOST_EXACT} units, got {len(W)} and horizon={horizon}; a stable W needs no horizon"
        )
    bits = 256
    while True:
        need = 2 * len(rows) * horizon * (48 + bits // 8)
        require(f"horizon={horizon} at {bits} bits", need, "a shorter horizon, or none for a stable W, would fit")
        with working_precision(bits):
            found = _ball_leverages(W, v, rows, horizon)
        if found is not None:
            return found
        bits *= 2


def _ball_leverages(
    W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], rows: list[int], horizon: int
) -> Float[np.ndarray, " horizon"] | None:
    matrix, column = flint.arb_mat(W.tolist()), flint.arb_mat(v[:, None].tolist())
    columns = []
    for _ in range(horizon):
        columns.append([column[i, 0] for i in rows])
        column = matrix * column
    past = flint.arb_mat(columns)  # one row per lag
    try:
        solved = (past.transpose() * past).solve(past.transpose())
    except ZeroDivisionError:  # not yet told from singular at this precision
        return None
    zero = flint.arb(0)
    balls = [sum((columns[k][i] * solved[i, k] for i in range(len(rows))), zero) for k in range(horizon)]
    if any(ball.rad() > 1e-17 for ball in balls):
        return None
    return np.array([float(ball.mid()) for ball in balls])


def noisy_capacity(
    W: Float[np.ndarray, "n n"],
    v: Float[np.ndarray, " n"],
    noise: float,
    lag: int | None = None,
    horizon: int | None = None,
) -> LinearCapacity:
    """Return the capacity when every unit is read with independent noise of this variance, for u of variance one.

    ``MC_k = v^T W^kT (C + noise I)^-1 W^k v``, with square roots of C and of the sum made by QR.
    """
    radius = spectral_radius(W)
    if horizon is None and radius >= 1:
        _fail(W)
    root = _state_root(W, v) if horizon is None else _columns(W, v, horizon).T
    factor = np.linalg.qr(np.concatenate([root, math.sqrt(noise) * np.eye(len(W))]), mode="r")
    total = float((scipy.linalg.solve_triangular(factor, root.T, trans="T") ** 2).sum())
    least, most = (len(W), MOST_LAGS) if lag is None else (lag + 1, lag + 1)
    least, most = min(least, horizon or least), min(most, horizon or most)
    curve = np.zeros(0)
    first = v
    while len(curve) < least or (len(curve) < most and total - curve.sum() > TAIL * total):
        block = _columns(W, first, min(64, most - len(curve)))
        seen = scipy.linalg.solve_triangular(factor, block, trans="T")
        curve, first = np.append(curve, (seen**2).sum(axis=0)), W @ block[:, -1]
    digits = 15 - math.ceil(math.log10(float(np.linalg.cond(factor))))
    return LinearCapacity(curve, total, controllability_rank(W, v), max(0, digits), radius)


def _state_root(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> Float[np.ndarray, "r n"]:
    """Return R with R^T R = sum_k W^k v v^T W^kT, each round doubling the number of terms."""
    root, power = v[None, :], W
    while np.linalg.norm(root @ power.T) > 1e-18 * np.linalg.norm(root):
        root = np.asarray(np.linalg.qr(np.concatenate([root, root @ power.T]), mode="r"))
        power = power @ power
    return root


def _columns(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"], lags: int) -> Float[np.ndarray, "n lags"]:
    found = [v]
    for _ in range(lags - 1):
        found.append(W @ found[-1])
    return np.stack(found, axis=1)


def _fail(W: Float[np.ndarray, "n n"]) -> NoReturn:
    raise UserError(
        f"memory_capacity over an endless past needs a stable W, got spectral radius {spectral_radius(W):.8g}; "
        "horizon=n gives the capacity for the last n inputs"
    )


def digits_of(error: float) -> int:
    """Return how many digits an error leaves."""
    return FULL_DIGITS if error <= 10.0**-FULL_DIGITS else max(0, math.floor(-math.log10(error)))
