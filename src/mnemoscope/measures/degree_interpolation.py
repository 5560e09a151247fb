"""Degrees of a polynomial network by evaluating it on lines, modulo a prime; and by SymPy, as a check."""

from __future__ import annotations

from collections.abc import Collection
from math import comb, prod
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt64

from mnemoscope.core.errors import UserError
from mnemoscope.core.memory import require
from mnemoscope.core.prime import PRIMES, Prime
from mnemoscope.core.ring import Symbolic
from mnemoscope.theory.formulas.degree import birnn_degree, birnn_input_degree

__all__ = ["image_rank", "line_degrees", "symbolic_degrees"]

Values = UInt64[np.ndarray, "points quantities"]
_ENTRIES = 1 << 20  # of a batch's largest array
_MONOMIALS = 20_000  # what SymPy expands in seconds


def line_degrees(
    network: Any, horizon: int, steps: Collection[int], points: int, seed: int
) -> Int64[np.ndarray, "layers_and_output steps"]:
    """Return the degree in the inputs of `steps` (from 1, together) of every layer's state and of the output, by step.

    The inputs of these steps move along a random line, x = a + z b, and all others are fixed. At z = 0, 1, 2, .. the
    finite differences of order k vanish for all k above the degree. The units of a state are added up with random
    weights. All of it is modulo a prime; what it says is never too large, so the larger of two primes' is taken.

    Parameters
    ----------
    network
        With `evaluate` and `exact_weights`.
    horizon
        Steps.
    steps
        Which inputs move.
    points
        What to begin with; it is doubled until the highest difference vanishes.
    seed
        Draws the lines.
    """
    found = []
    for p in PRIMES[:2]:
        field, count = Prime(p), points
        while (degrees := _degrees(field, _along(network, field, horizon, steps, count, seed))).max() == count - 1:
            count *= 2
        found.append(degrees.reshape(network.num_layers + 1, horizon))
    return np.asarray(np.maximum(found[0], found[1]))


def image_rank(network: Any) -> int:
    """Return the dimension of the image of x_1 -> h_1 of the last layer, an affine map, exactly."""
    ranks = []
    for p in PRIMES[:2]:
        field = Prime(p)
        corners = np.concatenate([np.zeros((1, network.input_size)), np.eye(network.input_size)])
        _, state = network.evaluate(field, network.exact_weights(field), field.array(corners)[None])
        ranks.append(field.rank(field.sub(state[-1][1:], state[-1][:1])))
    return max(ranks)


def symbolic_degrees(
    network: Any, horizon: int
) -> tuple[Int64[np.ndarray, "layers_and_output steps inputs"], Int64[np.ndarray, "layers_and_output steps"]]:
    """Return the degrees in each input, and in all, of every layer's state and of the output, expanded by SymPy."""
    import sympy

    ring, d, layers = Symbolic(), network.input_size, network.num_layers
    _require_few(horizon, layers, d)
    letters = np.array(sympy.symbols(f"x:{horizon * d}"), dtype=object).reshape(horizon, 1, d)
    each = np.zeros((layers + 1, horizon, horizon), dtype=np.int64)
    total = np.zeros((layers + 1, horizon), dtype=np.int64)
    weights, state = network.exact_weights(ring), None
    for t in range(horizon):
        outputs, state = network.evaluate(ring, weights, letters[t : t + 1], state)
        for row, units in enumerate([*state, outputs[0]]):
            for unit in units[0]:
                powers = np.array(sympy.Poly(unit, *letters.ravel()).monoms()).reshape(-1, horizon, d).sum(axis=2)
                each[row, t] = np.maximum(each[row, t], powers.max(axis=0))
                total[row, t] = max(total[row, t], powers.sum(axis=1).max())
    return each, total


def _along(network: Any, field: Prime, horizon: int, steps: Collection[int], points: int, seed: int) -> Values:
    """Return each layer's state and the output, mixed to one number, by step: (points, (layers + 1) * horizon)."""
    quantities = (network.num_layers + 1) * horizon
    fits = f"horizon={max(1, horizon // 2)} might fit"
    require(f"polynomial_degree at horizon {horizon}", 8 * 4 * points * quantities, fits)
    rng = np.random.default_rng(seed)
    base, direction = rng.integers(0, field.p, (2, horizon, network.input_size), dtype=np.uint64)
    mixing = rng.integers(0, field.p, max(network.hidden_size, network.output_size), dtype=np.uint64)
    weights = network.exact_weights(field)
    batch = max(1, _ENTRIES // (network.hidden_size * max(network.hidden_size, network.input_size)))
    values = np.empty((points, network.num_layers + 1, horizon), dtype=np.uint64)
    for start in range(0, points, batch):
        z = np.arange(start, min(start + batch, points), dtype=np.uint64)[:, None]
        state = None
        for t in range(horizon):
            x = np.broadcast_to(base[t], (len(z), network.input_size))
            x = field.add(x, field.mul(z, direction[t])) if t + 1 in steps else np.ascontiguousarray(x)
            outputs, state = network.evaluate(field, weights, x[None], state)
            for row, units in enumerate([*state, outputs[0]]):
                values[z[:, 0], row, t] = field.matmul(units, mixing[: units.shape[1]])
    return values.reshape(points, quantities)


def _degrees(field: Prime, values: Values) -> Int64[np.ndarray, " quantities"]:
    """Return the highest order whose finite difference does not vanish; 0 for constants."""
    degrees = np.zeros(values.shape[1], dtype=np.int64)
    differences = values
    for order in range(1, len(values)):
        differences = field.sub(differences[1:], differences[:-1])
        moved = differences[0] != 0
        if not moved.any() and not differences.any():
            break
        degrees[moved] = order
    return degrees


def _require_few(horizon: int, layers: int, size: int) -> None:
    monomials = prod(
        comb(size + birnn_input_degree(s, horizon, layers), size) for s in range(1, horizon + 1)
    )  # of degree up to that in each input
    if monomials > _MONOMIALS:
        raise UserError(
            f'method="symbolic" would expand up to {monomials} monomials of degree {birnn_degree(horizon, layers)}, '
            f'{_MONOMIALS} are allowed; method="interpolation" has no such limit'
        )
