"""White coordinates and stability in extended precision, with a certificate.

For networks whose covariance is too ill-conditioned for float64. Ball arithmetic encloses the covariance; a factor of
its midpoint whitens it; and what the whitened covariance misses of the identity, again a ball, certifies the
coordinates. What is rounded to float64 at the end is well-conditioned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import flint
import numpy as np
from jaxtyping import Float

from mnemoscope.core.errors import UserError
from mnemoscope.measures.fisher.balls import Balls, balls, cholesky, floats, norm_squared, sum_of_powers
from mnemoscope.measures.fisher.white import Coordinates, Whitened
from mnemoscope.measures.spectral.eigenvalues import eigenvalues, is_full

__all__ = [
    "EXTENDED",
    "LIMIT",
    "Precise",
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


def require_stable(W: Float[np.ndarray, "n n"], prove: bool) -> float:
    """Return the spectral radius if it is below 1, else raise; `prove`: beyond what rounding may do.

    Without it floats decide, as they do beyond 256 rows, where eigenvalues are not computed exactly.
    """
    if not prove and is_full(W):
        radius = float(np.abs(np.linalg.eigvals(W)).max())
        if radius < 1 - len(W) * _UNIT:
            return radius
        raise _unstable(radius)
    return prove_stable(W)


def prove_stable(W: Float[np.ndarray, "n n"]) -> float:
    """Return the spectral radius if it is below 1 beyond doubt, else raise."""
    found = eigenvalues(W)
    if found.radius + found.radius_error >= 1:
        raise _unstable(found.radius if found.radius >= 1 else found.radius + found.radius_error)
    return found.radius


_UNIT = 2.0**-52


def _unstable(radius: float) -> UserError:
    return UserError(
        f"W must have a spectral radius below 1 for an infinite horizon, got {radius:.8g}; "
        "a finite one works: horizon=100"
    )
