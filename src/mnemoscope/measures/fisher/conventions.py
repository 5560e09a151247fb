"""Conventions of every Fisher memory: horizons, ends of curves, and trusted digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

__all__ = ["DOUBLINGS", "TAIL", "doublings", "trusted_digits"]

TAIL = 1e-12
"""A curve of an infinite horizon ends where what follows is below this share of the total."""

DOUBLINGS = 64
"""A sum that has not converged after 2^64 steps is not going to, in any arithmetic used here."""


def doublings(terms: int | None) -> Iterator[bool]:
    """Yield how a sum of n terms, sum_k P^k M P^k*, is built from its first term: by doublings, some with one more.

    With S_m the sum of m terms, S_2m = S_m + P^m S_m P^m* and S_(m+1) = M + P S_m P*. The binary digits of n after the
    first say which: each doubles m, and adds one where it is 1 (True). An infinite sum (None) is doubled until its user
    sees it converge, `DOUBLINGS` times at most.

    Examples
    --------
    >>> list(doublings(13))  # 1 -> 2 + 1 -> 6 -> 12 + 1
    [True, False, True]
    """
    if terms is None:
        yield from [False] * DOUBLINGS
    else:
        yield from (digit == "1" for digit in format(terms, "b")[1:])


def trusted_digits(error: float) -> int:
    """Return how many decimal digits a relative error leaves: 0 to 15."""
    if not math.isfinite(error):
        return 0
    return 15 if error <= 1e-15 else max(0, math.floor(-math.log10(error)))
