r"""Memory capacity of linear networks in closed form.

For ``x(t) = W x(t-1) + v u(t)`` with white u, MC_k is the leverage of column k of K = [v, W v, W^2 v, ..]. It depends
on the row space of K alone: the sequences with transform p(z) / a(z), a(z) = prod (1 - lambda_i z) over the eigenvalues
that v reaches. An orthonormal basis of that space gives every MC_k as a sum of squares, without any covariance.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np
from jaxtyping import Complex, Float, Inexact

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.theory.controllability import working_precision

__all__ = [
    "NormalForm",
    "capacity_from_eigenvalues",
    "delay_line_capacity",
    "lattice_form",
    "powers",
    "reflection_coefficients",
    "ring_capacity",
    "settled",
    "takenaka_malmquist_form",
]

MOST_BITS = 1 << 17
"""Precision at which reflection coefficients are given up."""


class NormalForm(NamedTuple):
    """A pair (A, b) with ``A A* + b b* = I``: the network in coordinates in which its stationary state is white.

    There ``MC_k = ||A^k b||^2``, and ``sum_{k >= L} MC_k = ||A^L||_F^2``.
    """

    A: Inexact[np.ndarray, "r r"]
    b: Inexact[np.ndarray, " r"]


def delay_line_capacity(size: int, lags: int) -> Float[np.ndarray, " lags"]:
    """Return MC_k of a delay line of N units, k = 0 .. lags-1: one for k < N, then zero, whatever its weights.

    Examples
    --------
    >>> delay_line_capacity(2, 4)
    array([1., 1., 0., 0.])
    """
    return (np.arange(positive_int("lags", lags)) < positive_int("size", size)).astype(float)


def ring_capacity(size: int, radius: float, lags: int) -> Float[np.ndarray, " lags"]:
    r"""Return MC_k of a ring: N units, each feeding the next with weight rho, the last the first; input to one unit.

    .. math:: MC_k = \rho^{2 N \lfloor k / N \rfloor} (1 - \rho^{2N})

    The columns W^k v are rho^k e_{k mod N}, so that each unit holds a geometric mixture of every N-th input. W is rho
    times an orthogonal matrix. As rho tends to 1 the total stays N while each MC_k vanishes.

    Examples
    --------
    >>> ring_capacity(2, 0.5, 4)
    array([0.9375    , 0.9375    , 0.05859375, 0.05859375])
    """
    rho = positive("radius", radius)
    if rho >= 1:
        raise expected("radius", "below 1", radius)
    turns = np.arange(positive_int("lags", lags)) // positive_int("size", size)
    return -math.expm1(2 * size * math.log(rho)) * rho ** (2.0 * size * turns)


def capacity_from_eigenvalues(eigenvalues: Any, lags: int) -> Float[np.ndarray, " lags"]:
    """Return MC_k, k = 0 .. lags-1, of every linear network whose input reaches exactly these eigenvalues.

    Parameters
    ----------
    eigenvalues
        Of the reachable part, with multiplicity, inside the unit circle; repeated ones are as good as others.
    lags
        How many.

    Examples
    --------
    >>> capacity_from_eigenvalues([0.5], 3)
    array([0.75    , 0.1875  , 0.046875])
    """
    roots = np.asarray(eigenvalues, dtype=complex).reshape(-1)
    if roots.size == 0 or not np.all(np.abs(roots) < 1):
        largest = max(np.abs(roots), default=math.nan)
        raise expected("eigenvalues", "inside the unit circle", Description(f"one of modulus {largest:.8g}"))
    return powers(takenaka_malmquist_form(roots), positive_int("lags", lags))


def takenaka_malmquist_form(eigenvalues: Complex[np.ndarray, " r"]) -> NormalForm:
    r"""Return the cascade of all-pass sections with these poles.

    Its states are the Takenaka-Malmquist functions, orthonormal in l2:

    .. math:: \phi_j(z) = \frac{\sqrt{1 - |\lambda_j|^2}}{1 - \lambda_j z}
        \prod_{i<j} \frac{z - \bar\lambda_i}{1 - \lambda_i z}
    """
    size = len(eigenvalues)
    modulus = np.abs(eigenvalues)
    gain = np.sqrt((1 - modulus) * (1 + modulus))
    A = np.zeros((size, size), dtype=complex)
    b = np.zeros(size, dtype=complex)
    through, passed = np.zeros(size, dtype=complex), 1.0 + 0.0j  # how the states and the input arrive at section j
    for j, pole in enumerate(eigenvalues):
        A[j] = gain[j] * through
        A[j, j] = pole
        b[j] = gain[j] * passed
        through *= -np.conj(pole)
        through[j] = gain[j]
        passed *= -np.conj(pole)
    return NormalForm(A, b)


class Reflections(NamedTuple):
    """Schur's parameters k_1 .. k_r of a polynomial, and 1 - k_m^2, each correct to its last digit."""

    values: Float[np.ndarray, " r"]
    complements: Float[np.ndarray, " r"]


def reflection_coefficients(polynomial: list[Fraction]) -> Reflections | None:
    """Return Schur's parameters of a(z) = 1 + a_1 z + .. + a_r z^r, or None when a root lies in the closed unit disc.

    The step-down recursion ``a <- (a - k_m reversed(a)) / (1 - k_m^2)`` with k_m the last coefficient runs in balls,
    at a precision that is doubled until every k_m is known to all digits of a float.
    """
    bits = 128
    while bits <= MOST_BITS:
        with working_precision(bits):
            found = _step_down([flint.arb(flint.fmpq(a.numerator, a.denominator)) for a in polynomial])
        if isinstance(found, Reflections):
            return found
        if found == "unstable":
            return None
        bits *= 2
    raise expected("W", "a matrix whose distance from instability can be resolved", Description(f"{MOST_BITS} bits"))


def _step_down(a: list[Any]) -> Reflections | str:
    values, complements = [], []
    for m in range(len(a) - 1, 0, -1):
        k = a[m]
        rest = 1 - k * k
        if rest <= 0:
            return "unstable"
        # A coefficient that cannot be told from zero, as those of a delay line, is settled when its ball is tiny.
        tiny = abs(k).upper() < 1e-40
        if not (rest > 0 and _settled(rest) and (tiny or _settled(k))):
            return "unsettled"
        values.append(float(k.mid()))
        complements.append(float(rest.mid()))
        a = [(a[j] - k * a[m - j]) / rest for j in range(m)]
    return Reflections(np.array(values[::-1]), np.array(complements[::-1]))


def _settled(ball: Any) -> bool:
    return bool(ball.rel_accuracy_bits() >= 60)


def lattice_form(reflections: Reflections) -> NormalForm:
    r"""Return the normalised lattice filter with these reflection coefficients.

    Its states are the orthonormal polynomials B_m of the weight 1/|a|^2 on the unit circle, over a, where B_m is the
    m-th step-down of a with its coefficients reversed: ``b_m = k_m prod_{i>m} sqrt(1 - k_i^2)`` with k_0 = 1, and A is
    what is left of the unitary Hessenberg matrix of multiplication by z.
    """
    k, rest = reflections
    size = len(k)
    k0, cosine = np.concatenate([[1.0], k]), np.sqrt(np.concatenate([[1.0], rest]))  # index m = 0 .. r
    A = np.zeros((size, size))
    b = np.zeros(size)
    tail = 1.0  # prod of cosines between the row's m and the column's, filled from the last row upwards
    for m in range(size - 1, -1, -1):
        tail *= cosine[m + 1]
        b[m] = k0[m] * tail
    for column in range(size):
        product = 1.0
        for row in range(column, -1, -1):
            A[row, column] = -k0[row] * k0[column + 1] * product
            product *= cosine[row]
        if column + 1 < size:
            A[column + 1, column] = cosine[column + 1]
    return NormalForm(A, b)


def powers(form: NormalForm, lags: int) -> Float[np.ndarray, " lags"]:
    """Return MC_k = ||A^k b||^2 for k = 0 .. lags-1."""
    return settled(form, lags, lags, 0.0)[0]


def settled(form: NormalForm, least: int, most: int, tail: float) -> tuple[Float[np.ndarray, " lags"], float]:
    """Return MC_k for at least `least` lags, until the rest of the sum is below `tail`, and that rest.

    Columns A^k b are made by doubling, each round multiplying all of them by A^(their number), up to 256 lags a block.
    """
    A, columns = form.A, form.b[:, None]
    found = [_energy(columns)]
    lags = 1
    while lags < most and (lags < least or _energy(A).sum() > tail):
        if lags < _BLOCK:
            found.append(_energy(A @ columns))
            columns = np.concatenate([columns, A @ columns], axis=1)
            A, lags = A @ A, 2 * lags
            step = A
        else:
            columns = step @ columns
            found.append(_energy(columns))
            A, lags = step @ A, lags + _BLOCK
    curve = np.concatenate(found)
    after = np.append(np.cumsum(curve[::-1])[::-1][1:], 0.0) + _energy(A).sum()  # what is left beyond each lag
    end = min(most, max(least, 1 + int(np.argmax(after <= tail)) if (after <= tail).any() else lags))
    return curve[:end], float(after[end - 1])


_BLOCK = 256


def _energy(columns: Inexact[np.ndarray, "r lags"]) -> Float[np.ndarray, " lags"]:
    return np.asarray((np.abs(columns) ** 2).sum(axis=0))
