"""The rank of a polynomial network's grid in exact arithmetic."""

from __future__ import annotations

from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.measures.separation.grid import Polynomial, RingWalk, evaluate_grid, matricise
from mnemoscope.measures.separation.inputs import Templates

__all__ = ["exact_rank"]


def exact_rank(
    network: Polynomial,
    templates: Templates,
    horizon: int,
    start: tuple[int, ...],
    unit: int,
    ceiling: int,
    weights: Any = None,
) -> tuple[int, tuple[int, ...]]:
    """Return the rank of a polynomial network's grid, and the primes modulo which it was found.

    A rank modulo a prime is at most the true one. It is settled when it reaches `ceiling`, an upper bound, or when two
    primes give the largest rank seen.

    Parameters
    ----------
    network
        With `evaluate`; its own weights are taken, or `weights`.
    templates
        Rows of inputs.
    horizon, start, unit
        Steps; those of the start set; the output.
    ceiling
        What the rank cannot exceed.
    weights
        Integers, floats or fractions by the names of parameters, in place of the network's.
    """
    found: list[int] = []
    for p in PRIMES:
        field = Prime(p)
        own = network.exact_weights(field) if weights is None else {k: field.array(w) for k, w in weights.items()}
        walk = RingWalk(network, field, own, field.array(templates), unit)
        found.append(field.rank(matricise(evaluate_grid(walk, horizon), len(templates), horizon, start)))
        if found[-1] == ceiling or found.count(max(found)) == 2:
            return max(found), PRIMES[: len(found)]
    raise UserError(
        f"an exact rank was sought and ranks {found} modulo {len(PRIMES)} primes were found, of which no two agree"
    )
