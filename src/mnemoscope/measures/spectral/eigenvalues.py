"""Eigenvalues of a matrix with the error of each, and its spectral radius: exact where floats are not to be trusted.

Eigenvalues of a matrix far from normal can be so sensitive that float64 has none of their digits right. Their condition
numbers tell; then the characteristic polynomial of the matrix, whose entries are whole numbers times a power of two, is
computed exactly, and its roots are enclosed.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Complex, Float, Inexact

__all__ = [
    "BITS",
    "EXACT",
    "Eigenvalues",
    "eigenvalues",
    "enclosed_eigenvalues",
    "frobenius",
    "is_full",
    "ordered",
    "spectral_radius",
]

EXACT = 256
"""Rows up to which doubtful eigenvalues are computed exactly: five seconds for so many."""

BITS = 212
"""Of the enclosed eigenvalues: what departures from normality need, as differences of nearly equal sums."""

_EPS = float(np.finfo(float).eps)
_MARGIN = 10.0  # on the first-order error of an eigenvalue
_DOUBTFUL = 1e-9  # relative to the matrix; an error beyond this asks for exact arithmetic
_MOST_BITS = 4096  # of an entry, as a whole number: beyond, entries differ too much in size


class Eigenvalues(NamedTuple):
    """Eigenvalues, largest modulus first, by how much rounding may have moved each, and balls around them."""

    values: Complex[np.ndarray, " n"]
    errors: Float[np.ndarray, " n"]
    enclosed: list[Any] | None = None

    @property
    def radius(self) -> float:
        """Return the largest modulus."""
        return float(np.abs(self.values).max())

    @property
    def radius_error(self) -> float:
        """Return by how much the largest modulus may be off: any eigenvalue may be the one that is largest."""
        return float((np.abs(self.values) + self.errors).max()) - self.radius


def eigenvalues(W: Inexact[np.ndarray, "n n"]) -> Eigenvalues:
    """Return the eigenvalues of a matrix, exact to float64 where it is triangular, normal, or of at most 256 rows.

    The first-order error of a simple eigenvalue is the rounding error of the matrix over |y* x|, its left and right
    unit eigenvectors. Of a multiple one without enough eigenvectors it has no bound in these terms; larger matrices
    than `EXACT` are then left with an infinite error.

    Examples
    --------
    A delay line of gain 2 that feeds back so little that its radius is 0.9 still amplifies by 2^59.

    >>> W = np.diag(np.full(59, 2.0), -1)
    >>> W[0, -1] = 0.9**60 / 2.0**59
    >>> round(spectral_radius(W), 12)
    0.9
    """
    if not is_full(W):
        return Eigenvalues(ordered(np.diagonal(W).astype(complex)), np.zeros(len(W)))
    size = frobenius(W)
    unit = W / size
    rounding = len(W) * _EPS
    if float(np.linalg.norm(unit @ unit.conj().T - unit.conj().T @ unit)) <= 1e-12:
        return Eigenvalues(ordered(np.linalg.eigvals(W).astype(complex)), np.full(len(W), rounding * size))
    with warnings.catch_warnings():  # of an ill-conditioned eigenvector, which the overlap below tells
        warnings.simplefilter("ignore", RuntimeWarning)
        found, left, right = scipy.linalg.eig(W, left=True, right=True, check_finite=False)
    with np.errstate(divide="ignore"):
        errors = _MARGIN * rounding / np.abs((left.conj() * right).sum(axis=0))
    if errors.max() > _DOUBTFUL:
        exact = enclosed_eigenvalues(W)
        if exact is not None:
            values = ordered(np.array([complex(one.mid()) for one in exact]))
            return Eigenvalues(values, 4 * _EPS * np.abs(values), exact)
    order = _order(found)
    errors = np.where(errors[order] < 1e-2, errors[order] * size, math.inf)
    return Eigenvalues(found[order].astype(complex), errors)


def spectral_radius(W: Inexact[np.ndarray, "n n"]) -> float:
    """Return the largest modulus of an eigenvalue: the one home of "is it stable"."""
    if len(W) > EXACT:  # then eigenvectors would cost as much again and tell nothing that could be repaired
        return float(np.abs(np.linalg.eigvals(W)).max())
    return eigenvalues(W).radius


def enclosed_eigenvalues(W: Inexact[np.ndarray, "n n"]) -> list[Any] | None:
    """Return balls of 212 bits around the eigenvalues of the floats as they are given, each as often as it is a root.

    None where the matrix has more than `EXACT` rows or its entries differ too much in size. A complex matrix, whose
    characteristic polynomial has no whole coefficients, is left to approximate arithmetic of as many bits as agree with
    twice as many.
    """
    import flint

    if len(W) > EXACT:
        return None
    if np.iscomplexobj(W):
        return _complex(W)
    shift = _shift(W)
    if shift is None:
        return None
    whole = flint.fmpz_mat([[_times_power(x, shift) for x in row] for row in W.tolist()])
    with flint.ctx.workprec(BITS):
        scale = flint.arb(2) ** -shift
        roots: Any = whole.charpoly().complex_roots()  # pairs of a root and its multiplicity, which the stub leaves out
        return [root * scale for root, count in roots for _ in range(count)]


def _complex(W: Complex[np.ndarray, "n n"]) -> list[Any] | None:
    import flint

    before: np.ndarray | None = None
    for bits in (BITS, 2 * BITS, 4 * BITS, 8 * BITS):
        with flint.ctx.workprec(bits):
            matrix = flint.acb_mat([[flint.acb(complex(x)) for x in row] for row in W.tolist()])
            found = list(matrix.eig(algorithm="approx"))
        values = ordered(np.array([complex(one.mid()) for one in found]))
        if before is not None and np.abs(values - before).max() <= 1e-14 * np.abs(values).max():
            return found
        before = values
    return None


def _shift(W: Float[np.ndarray, "n n"]) -> int | None:
    """Return the power of two that makes every entry a whole number."""
    present = W[W != 0]
    _, exponents = np.frexp(present)
    shift = int(53 - exponents.min())
    return shift if int(exponents.max()) + shift <= _MOST_BITS else None


def _times_power(value: float, shift: int) -> int:
    above, below = value.as_integer_ratio()
    return (above << shift) // below if shift >= 0 else above // (below << -shift)


def frobenius(W: Inexact[np.ndarray, "*shape"]) -> float:
    """Return the root of the sum of squares, of very large entries too."""
    if W.size == 0:
        return 0.0
    scale = float(np.abs(W).max())
    return scale * float(np.linalg.norm(W / scale)) if scale > 0 else 0.0


def is_full(W: Inexact[np.ndarray, "n n"]) -> bool:
    """Whether a matrix has entries on both sides of its diagonal: else its eigenvalues are on it."""
    return bool(np.tril(W, -1).any() and np.triu(W, 1).any())


def ordered(values: Complex[np.ndarray, " n"]) -> Complex[np.ndarray, " n"]:
    """Return eigenvalues with the largest modulus first, and by angle among equals."""
    found: np.ndarray = values[_order(values)]
    return found


def _order(values: Complex[np.ndarray, " n"]) -> np.ndarray:
    found: np.ndarray = np.lexsort((np.angle(values).round(12), -np.abs(values).round(12)))
    return found
