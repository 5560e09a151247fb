r"""Memory capacity of linear networks in closed form, and what their input reaches, exactly.

For ``x(t) = W x(t-1) + v u(t)`` with white u, MC_k is the leverage of column k of K = [v, W v, W^2 v, ..]. It depends
on the row space of K alone: the sequences with transform p(z) / a(z), a(z) = prod (1 - lambda_i z) over the eigenvalues
that v reaches. An orthonormal basis of that space gives every MC_k as a sum of squares, without any covariance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, NamedTuple

import flint
import numpy as np
from jaxtyping import Bool, Complex, Float, Inexact

from mnemoscope.core.arrays import positive, square, vector
from mnemoscope.core.errors import Description, expected, positive_int

__all__ = [
    "capacity_from_eigenvalues",
    "controllability_rank",
    "delay_line_capacity",
    "reachable_units",
    "ring_capacity",
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
    return leading_curve(takenaka_malmquist_form(roots), positive_int("lags", lags))


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
        # A coefficient that cannot be told from zero, as those of a delay line, is known when its ball is tiny.
        tiny = abs(k).upper() < 1e-40
        if not (rest > 0 and _resolved(rest) and (tiny or _resolved(k))):
            return "unresolved"
        values.append(float(k.mid()))
        complements.append(float(rest.mid()))
        a = [(a[j] - k * a[m - j]) / rest for j in range(m)]
    return Reflections(np.array(values[::-1]), np.array(complements[::-1]))


def _resolved(ball: Any) -> bool:
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


def leading_curve(form: NormalForm, lags: int) -> Float[np.ndarray, " lags"]:
    """Return MC_k = ||A^k b||^2 for k = 0 .. lags-1."""
    return curve_to_tail(form, lags, lags, 0.0)[0]


def curve_to_tail(form: NormalForm, least: int, most: int, tail: float) -> tuple[Float[np.ndarray, " lags"], float]:
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


PRIME = (1 << 61) - 1
"""Ranks are computed modulo this Mersenne prime: too low only if it divides a minor, a chance of about N / 2^61."""


def controllability_rank(W: Any, v: Any) -> int:
    """Return the rank of [v, W v, W^2 v, ..], exactly.

    Every float is the rational number m 2^e that it stands for; the rank is that of these rationals, modulo a large
    prime, so that neither the size of the powers nor their near dependence matters.

    Parameters
    ----------
    W
        The recurrent matrix.
    v
        The input vector.

    Examples
    --------
    >>> W = np.diag([0.5, 0.5, 0.3])
    >>> controllability_rank(W, [1.0, 1.0, 1.0])
    2
    """
    W = square("W", W)
    return len(independent_units(W, vector("v", v, len(W))))


def reachable_units(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Return which units a path of non-zero weights connects with the input."""
    found: Bool[np.ndarray, " n"] = v != 0
    while True:
        further = found | (W[:, found] != 0).any(axis=1)
        if np.array_equal(further, found):
            return found
        found = further


def reachable_polynomial(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> list[Fraction]:
    """Return a_0 = 1, a_1, .., a_r of det(I - z W), W restricted to what v reaches: exact.

    The sequences c^T W^k v, for all readouts c, are the Taylor coefficients of p(z) / a(z) with deg p < r.
    """
    units = reachable_units(W, v)
    W, v = W[np.ix_(units, units)], v[units]
    pivots = independent_units(W, v)
    rank = len(pivots)
    integers, exponent = _integers(W)
    if rank == len(W):
        coefficients = [int(c) for c in integers.charpoly().coeffs()]
    else:
        coefficients = _minimal(integers, _integers(v[:, None])[0], pivots)
    return [Fraction(c, 1 << (exponent * j)) for j, c in enumerate(reversed(coefficients))]


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Compute with balls of this precision inside, and leave flint's own setting as it was."""
    before = flint.ctx.prec
    flint.ctx.prec = bits
    try:
        yield
    finally:
        flint.ctx.prec = before


def _minimal(W: Any, v: Any, pivots: list[int]) -> list[int]:
    """Return the monic q of least degree with q(W) v = 0, lowest coefficient first: integers, as W and v are."""
    columns = [v]
    for _ in pivots:
        columns.append(W * columns[-1])
    rows = [[column[i, 0] for column in columns] for i in pivots]
    left = flint.fmpz_mat([row[:-1] for row in rows])
    right = flint.fmpz_mat([[-row[-1]] for row in rows])
    found = flint.fmpq_mat(left).solve(flint.fmpq_mat(right))
    return [int(found[i, 0].p) // int(found[i, 0].q) for i in range(len(pivots))] + [1]


def independent_units(W: Float[np.ndarray, "n n"], v: Float[np.ndarray, " n"]) -> list[int]:
    """Return units whose rows of [v, W v, ..] are a basis of its row space."""
    size = len(W)
    matrix, column = _modular(W), _modular(v[:, None])
    entries: list[Any] = []
    for _ in range(size):
        entries.extend(column.entries())
        column = matrix * column
    # The rows of this transposed matrix are the columns W^k v: its pivots are units.
    reduced, rank = flint.nmod_mat(size, size, entries, PRIME).rref()
    found, unit = [], 0
    for k in range(rank):
        while int(reduced[k, unit]) == 0:
            unit += 1
        found.append(unit)
    return found


def _modular(array: Float[np.ndarray, "rows columns"]) -> Any:
    """Return the rationals m 2^e that floats are, modulo 2^61 - 1: there a power of two is a rotation of 61 bits."""
    fractions, exponents = np.frexp(array)
    mantissas = np.abs(fractions * 2.0**53).astype(np.uint64)
    turn = ((exponents.astype(np.int64) - 53) % 61).astype(np.uint64)
    rotated = ((mantissas << turn) & np.uint64(PRIME)) | (mantissas >> (np.uint64(61) - turn))
    residues = np.where((array < 0) & (rotated != 0), np.uint64(PRIME) - rotated, rotated)
    return flint.nmod_mat(array.shape[0], array.shape[1], residues.ravel().tolist(), PRIME)


def _integers(array: Float[np.ndarray, "rows columns"]) -> tuple[Any, int]:
    """Return the integers 2^e array, and the least e >= 0 that makes them integers."""
    ratios = [[x.as_integer_ratio() for x in row] for row in array.tolist()]
    exponent = max(bottom.bit_length() - 1 for row in ratios for _, bottom in row)
    return flint.fmpz_mat([[top * ((1 << exponent) // bottom) for top, bottom in row] for row in ratios]), exponent
