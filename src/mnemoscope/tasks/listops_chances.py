"""Exact distribution of length and answer of random nested lists, by generating functions.

With q_v(z) = sum over lengths of P(length, answer v) z^length for one argument, k independent arguments have products
of these for their generating functions: the largest is at most t by (q_0 + .. + q_t)^k, sums modulo 10 are a discrete
Fourier transform, medians a multinomial sum. The functions are evaluated on a circle and transformed back.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb, factorial

import numpy as np
from jaxtyping import Complex128, Float64

__all__ = ["OPERATOR", "answer_chances", "length_chances"]

OPERATOR = 0.25
"""Probability that an argument is a list, where it may be one."""

_DIGITS = 10
_ALIASING = 1e-9
"""Weight of lengths beyond the transform's: the circle is so much below radius 1."""


@lru_cache(maxsize=16)
def length_chances(longest: int, depth: int, arguments: int) -> Float64[np.ndarray, " lengths"]:
    """Return P(length = 0, 1, .., longest - 1) of a list, its brackets and operators included."""
    z, radius = _circle(longest)
    g = z
    for level in range(depth - 1, 0, -1):
        inner = z**2 * sum(g**k for k in range(2, arguments + 1)) / (arguments - 1)
        g = inner if level == 1 else (1 - OPERATOR) * z + OPERATOR * inner
    return _kept(_coefficients(g, longest, radius))


@lru_cache(maxsize=16)
def answer_chances(shortest: int, longest: int, depth: int, arguments: int) -> Float64[np.ndarray, " digits"]:
    """Return P(answer = 0, .., 9) of a list whose length is above `shortest` and below `longest`."""
    z, radius = _circle(longest)
    q = np.repeat(z[None] / _DIGITS, _DIGITS, 0)
    for level in range(depth - 1, 0, -1):
        inner = z**2 * _answers(q, arguments)
        q = inner if level == 1 else (1 - OPERATOR) * z / _DIGITS + OPERATOR * inner
    parts = np.array([_coefficients(one, longest, radius)[shortest + 1 :].sum() for one in q])
    return _kept(parts / parts.sum())


def _kept(values: np.ndarray) -> np.ndarray:
    values.setflags(write=False)  # everybody gets the same array
    return values


def _circle(longest: int) -> tuple[Complex128[np.ndarray, " points"], float]:
    size = 1 << (2 * longest - 1).bit_length()
    radius = float(_ALIASING ** (1 / size))
    return radius * np.exp(-2j * np.pi * np.arange(size // 2 + 1) / size), radius


def _coefficients(g: np.ndarray, longest: int, radius: float) -> np.ndarray:
    found: np.ndarray = np.fft.irfft(g)[:longest] * radius ** -np.arange(longest, dtype=float)
    return np.where(found > 1e-13, found, 0.0)  # below it is rounding


def _answers(q: Complex128[np.ndarray, "10 points"], arguments: int) -> Complex128[np.ndarray, "10 points"]:
    """Return the generating function of each answer of an operator, all of them alike, on 2 to `arguments` numbers."""
    below = np.cumsum(q, 0)
    total = below[-1]
    above = total - below + q
    turned = np.fft.fft(q, axis=0)
    found = np.zeros_like(q)
    for k in range(2, arguments + 1):
        least = above**k
        found[:-1] += least[:-1] - least[1:]
        found[-1] += least[-1]
        found += np.diff(below**k, axis=0, prepend=0)
        found += np.fft.ifft(turned**k, axis=0)
        found += _medians(below, total, k)
    return found / (4 * (arguments - 1))


def _medians(below: np.ndarray, total: np.ndarray, k: int) -> np.ndarray:
    """Return the generating function of each median, rounded down, of k numbers; `below`: of one at most 0, .., 9."""
    powers = {"below": _powers(below, k), "above": _powers(total - below, k)}

    def at_least(count: int) -> np.ndarray:
        """Return the function of `count` or more of the numbers being at most 0, .., 9."""
        terms = (comb(k, a) * powers["below"][a] * powers["above"][k - a] for a in range(count, k + 1))
        return np.asarray(sum(terms))

    if k % 2:
        return np.diff(at_least(k // 2 + 1), axis=0, prepend=0)
    # The two in the middle: at most s and at most t. With s >= t that is at most t for both.
    half = k // 2
    both = at_least(half + 1)
    joint = np.repeat(both[None], _DIGITS, 0)
    for s in range(_DIGITS):
        between = _powers(below[s + 1 :] - below[s], k)
        joint[s, s + 1 :] = 0
        for a in range(half, k + 1):
            for b in range(max(half + 1 - a, 0), k - a + 1):
                ways = factorial(k) // (factorial(a) * factorial(b) * factorial(k - a - b))
                joint[s, s + 1 :] += ways * powers["below"][a][s] * between[b] * powers["above"][k - a - b][s + 1 :]
    exactly = np.diff(np.diff(joint, axis=0, prepend=0), axis=1, prepend=0)
    found = np.zeros_like(below)
    for s in range(_DIGITS):
        for t in range(s, _DIGITS):
            found[(s + t) // 2] += exactly[s, t]
    return found


def _powers(values: np.ndarray, most: int) -> list[np.ndarray]:
    found = [np.ones_like(values)]
    for _ in range(most):
        found.append(found[-1] * values)
    return found
