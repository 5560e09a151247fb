"""White coordinates and stability in extended precision, with a certificate.

For networks whose covariance is too ill-conditioned for float64. Ball arithmetic encloses the covariance; a factor of
its midpoint whitens it; and what the whitened covariance misses of the identity, again a ball, certifies the
coordinates. What is rounded to float64 at the end is well-conditioned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flint
import numpy as np
from jaxtyping import Complex, Float
from scipy.linalg import eig

from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.balls import Balls, balls, cholesky, floats, norm_squared, sum_of_powers
from mnemoscope.measures.fisher.white import Coordinates, Whitened

__all__ = [
    "EXTENDED",
    "LIMIT",
    "Precise",
    "certified_radius",
    "change",
    "compose",
    "prove_stable",
    "require_stable",
    "whiten_precisely",
]

EXTENDED = 256
"""Bits that are tried first."""

LIMIT = 200
"""The largest N for which extended precision is chosen without being asked for."""

_RESIDUAL = 2.0**-64  # of the certified coordinates: far below float64's rounding
_SETTLED, _DECIDED = 8, 48  # doublings until the root of the norm has settled, and after which W counts as unstable


class Precise(NamedTuple):
    """White coordinates that are right to float64's rounding, with a factor of sum_k B^kT B^k and the total."""

    white: Whitened
    root: Float[np.ndarray, "n n"]
    total: float


def whiten_precisely(network: Coordinates, horizon: int | None, bits: int) -> tuple[Precise, int]:
    """Return the network in white coordinates, and the bits that this took: doubled until they are certified."""
    while bits <= _most_bits(len(network.v)):
        with flint.ctx.workprec(bits):
            found = _attempt(network, horizon)
        if found is not None:
            return found, bits
        bits *= 2
    raise _too_strong(horizon)


def change(network: Coordinates, lower: Balls, bits: int) -> Coordinates | None:
    """Return a network in the coordinates L^-1 h, each entry rounded once; None where the bits do not certify L^-1."""
    with flint.ctx.workprec(bits):
        identity = balls(np.eye(len(network.v)))
        inverse = lower.solve(identity, algorithm="approx", nonstop=True)
        if not norm_squared(inverse * lower - identity) < _RESIDUAL**2:
            return None
        return Coordinates(
            floats(inverse * balls(network.W) * lower),
            floats(inverse * balls(network.v[:, None]))[:, 0],
            floats(inverse * balls(network.noise)),
        )


def compose(lower: Balls | None, further: Float[np.ndarray, "n n"], bits: int) -> Balls:
    """Return the product of two changes of coordinates."""
    with flint.ctx.workprec(bits):
        return balls(further) if lower is None else (lower * balls(further)).mid()


def certified_radius(W: Float[np.ndarray, "n n"]) -> float:
    """Return a number below 1 if W is proved to be stable, else about its spectral radius, at least 1.

    For matrices so far from normal that float64's eigenvalues say nothing: W is stable when a power has a norm below 1,
    unstable when a power's trace exceeds N, and the 2^j-th root of the norm of W^(2^j) tends to the spectral radius.
    """
    root = 1.0
    with flint.ctx.workprec(2 * EXTENDED):
        power = balls(W)
        for doublings in range(_DECIDED):
            square = norm_squared(power)
            root = float((square.mid().log() / 2 ** (doublings + 1)).exp()) if square.mid() > 0 else 0.0
            if square < 0.25:
                return root
            if doublings >= _SETTLED and abs(power.trace()) > len(W):
                break
            power = power * power
    return max(1.0, root)


def _attempt(network: Coordinates, horizon: int | None) -> Precise | None:
    """Return the white coordinates at the precision in force, or None when it does not certify them."""
    transition, identity = balls(network.W), balls(np.eye(len(network.v)))
    covariance = sum_of_powers(transition, horizon, _RESIDUAL**2)
    lower = None if covariance is None else cholesky(covariance.mid())
    if lower is None:
        return None
    inverse = lower.solve(identity, algorithm="approx")
    misses: tuple[Any, ...] = (inverse * covariance * inverse.transpose() - identity, inverse * lower - identity)
    if not all(norm_squared(miss) < _RESIDUAL**2 for miss in misses):
        return None
    step = (inverse * transition * lower).mid()
    source = inverse * balls(network.v[:, None])
    gram = sum_of_powers(step.transpose(), horizon, _RESIDUAL**2)
    root = None if gram is None else cholesky(gram.mid())
    if root is None:
        return None
    total = norm_squared(root.transpose() * source)
    white = Whitened(floats(lower), floats(step), floats(source)[:, 0], floats(inverse))
    if not np.isfinite(floats(root)).all():  # then the source is too weak to be held
        raise _too_strong(horizon)
    return Precise(white, floats(root).T, float(total.mid()))


def _most_bits(size: int) -> int:
    """Return the highest precision that is tried for N = `size`."""
    return max(2 * EXTENDED, min(2**16, 2**20 // size))


def _too_strong(horizon: int | None) -> UserError:
    where = "" if horizon is None else f" over horizon={horizon}; a shorter horizon would do"
    return UserError("W amplifies its noise so much that its information cannot be held" + where)


_UNIT = 2.0**-52
_MARGIN = 100.0  # between the first-order error of an eigenvalue and its distance from the circle


def require_stable(W: Float[np.ndarray, "n n"], prove: bool) -> float:
    """Return the spectral radius if it is below 1, else raise; `prove` spends extended precision on doubtful cases."""
    radius = _radius(np.linalg.eigvals(W)) if _is_full(W) else float(np.abs(W.diagonal()).max())
    if radius < 1 - len(W) * _UNIT:
        return radius
    if prove and not _is_normal(W):
        return prove_stable(W)
    raise _unstable(radius)


def prove_stable(W: Float[np.ndarray, "n n"]) -> float:
    """Return the spectral radius if it is below 1 beyond doubt, else raise.

    Beyond doubt: W is triangular, or its eigenvalues' condition numbers say so, or extended precision proves it.
    """
    if not _is_full(W):
        radius, error = float(np.abs(W.diagonal()).max()), 0.0
    else:
        values, left, right = eig(W, left=True, right=True, check_finite=False)
        overlap = float(np.abs(np.einsum("ij,ij->j", left.conj(), right)).min())
        radius, error = _radius(values), _MARGIN * len(W) * _UNIT * float(np.linalg.norm(W)) / max(overlap, 1e-300)
    proved = radius if abs(radius - 1) > error else certified_radius(W)
    if proved >= 1:
        raise _unstable(radius if radius >= 1 else proved)
    return proved


def _radius(values: Complex[np.ndarray, " n"]) -> float:
    return float(np.abs(values).max())


def _is_full(W: Float[np.ndarray, "n n"]) -> bool:
    return bool(np.tril(W, -1).any() and np.triu(W, 1).any())


def _is_normal(W: Float[np.ndarray, "n n"]) -> bool:
    """Whether W is normal but for rounding, so that float64's eigenvalues are right."""
    return bool(np.linalg.norm(W @ W.T - W.T @ W) <= 1e-12 * np.linalg.norm(W) ** 2)


def _unstable(radius: float) -> UserError:
    return UserError(
        f"W must have a spectral radius below 1 for an infinite horizon, got {radius:.8g}; "
        "a finite one works: horizon=100"
    )
