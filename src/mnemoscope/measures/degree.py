"""Degree of a network's states as polynomials of its inputs.

The network is evaluated on a line through the space of inputs, modulo a prime: its degree is the order of differences
that vanish. SymPy's polynomials are the check.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from math import comb, prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int64, UInt64
from torch import nn

from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.core.memory import require
from mnemoscope.core.result import Result, result
from mnemoscope.core.ring import PRIMES, Prime, Symbolic
from mnemoscope.measures.dynamics import Dynamics, prepare
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.networks.cprnn import CPBIRNN
from mnemoscope.theory.formulas.degree import birnn_degree, birnn_input_degree, cp_image_dimension

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["PolynomialDegree", "polynomial_degree"]

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


@result
class PolynomialDegree(Result):
    """The degrees of a polynomial network.

    Attributes
    ----------
    degree
        Total degree, in all inputs, of the output after the last step.
    by_input
        Its degree in x_s, s = 1 .. T.
    layers
        The degree of h_t^(l) in x_s, by layer l, step t, input s.
    totals
        The total degree of h_t^(l), by layer and step.
    bound
        C(T+L-1, L): what a second-order network of this depth can reach, and generic weights do.
    published
        T^L, the bound of the document.
    image_dimension
        Of the image of x_1 -> h_1 of the last layer; None where that map is not affine.
    image_bound
        min(d, n), for a CPBIRNN min(d, n, R).
    horizon
        T.
    method
        ``"interpolation"`` or ``"symbolic"``.
    primes
        Modulo which differences were taken.
    """

    measure: ClassVar[str] = "polynomial-degree"
    references: ClassVar[tuple[str, ...]] = ("lizaire2026",)

    degree: int
    by_input: Int64[np.ndarray, " inputs"]
    layers: Int64[np.ndarray, "layers steps inputs"]
    totals: Int64[np.ndarray, "layers steps"]
    bound: int
    published: int
    image_dimension: int | None
    image_bound: int
    horizon: int
    method: str
    primes: tuple[int, ...]

    def __str__(self) -> str:
        filled = self.image_dimension
        image = "" if filled is None else f"; h_1 fills {filled} dimension{'s' * (filled != 1)}"
        first = f"{self.by_input[0]} in the first input, {self.by_input[-1]} in the last"
        return f"degree {self.degree} after {self.horizon} steps ({first}; at most {self.bound}){image}"

    def plot(self, step: int = 1) -> chart.Chart:
        """Draw the degree in x_s by step and layer, s = `step`."""
        from mnemoscope.report import chart

        step = positive_int("step", step)
        if step > self.horizon:
            raise expected("step", f"from 1 to {self.horizon}", step)
        count = len(self.layers)
        drawn = chart.heat_map(
            self.layers[::-1, step - 1 :, step - 1],  # before step s the state knows nothing of x_s
            x="step t",
            y="layer l",
            value="degree",
            title=f"Degree of h_t^(l) in x_{step}",
            x_ticks=list(range(step, self.horizon + 1)),
            y_ticks=list(range(count, 0, -1)),
            log=True,
        )
        return drawn.properties(height=min(chart.WIDTH, 45 * count))


_COST = Cost(
    time={"D T L S^2": 4e-7, "D^2 T L": 1e-8},
    memory="D T L",
    sizes={
        "T": "horizon",
        "L": lambda given: given.get("num_layers", 1),
        "D": lambda given: math.comb(given["horizon"] + given.get("num_layers", 1) - 1, given.get("num_layers", 1)),
    },
    letters={"D": "points on a line, C(T + L - 1, L)"},
)


@measure("polynomial-degree", kinds=("recurrent",), needs=("polynomial",), cost=_COST)
def polynomial_degree(
    network: nn.Module | Dynamics, horizon: int = 4, *, method: str = "interpolation", seed: int = 0
) -> PolynomialDegree:
    r"""Return the degrees of a polynomial network's states in each of its inputs.

    In a second-order network without nonlinearity

    .. math::
        \deg h_t^{(l)} = \deg h_{t-1}^{(l)} + \deg h_t^{(l-1)},

    so that generic weights have the degree C(T-s+L-1, L-1) in :math:`x_s` and C(T+L-1, L) in all. Here the degrees of
    the network as it is are found: exactly, for the rational values of its weights.

    Parameters
    ----------
    network
        2rnn, cprnn, mirnn with nonlinearity="identity"; birnn, cpbirnn, rac; any network with `evaluate`.
    horizon
        Steps T.
    method
        "interpolation": finite differences on random lines modulo two primes, at any size; "symbolic": expanded in
        SymPy, for small sizes.
    seed
        Draws the lines.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> birnn = ms.nn.BIRNN(3, 4, num_layers=3, generator=torch.Generator().manual_seed(0))
    >>> found = polynomial_degree(birnn, horizon=5)
    >>> found.degree, found.by_input.tolist(), found.image_dimension
    (35, [15, 10, 6, 3, 1], 3)
    """
    twin: Any = prepare(network, what="polynomial_degree")
    horizon = positive_int("horizon", horizon)
    choice("method", method, ("interpolation", "symbolic"))
    if not getattr(twin, "polynomial", False):
        name = type(getattr(twin, "module", twin)).__name__
        raise UserError(
            f"polynomial_degree needs a polynomial network, got {name}; some are with nonlinearity='identity'"
        )
    each, total = symbolic_degrees(twin, horizon) if method == "symbolic" else _interpolated(twin, horizon, seed)
    image = image_rank(twin) if each[-2, 0, 0] <= 1 else None
    sizes = (twin.input_size, twin.hidden_size)
    return PolynomialDegree(
        status="exact",
        digits=16,
        assumptions=_assumptions(method),
        cost="O(D^2 L T) for the differences and O(D T L) steps of the network, D = C(T+L-1, L)",
        degree=int(total[-1, -1]),
        by_input=each[-1, -1],
        layers=each[:-1],
        totals=total[:-1],
        bound=birnn_degree(horizon, twin.num_layers),
        published=horizon**twin.num_layers,
        image_dimension=image,
        image_bound=cp_image_dimension(*sizes, twin.rank) if isinstance(twin, CPBIRNN) else min(sizes),
        horizon=horizon,
        method=method,
        primes=PRIMES[:2] if method == "interpolation" else (),
    )


def _interpolated(network: Any, horizon: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the degrees in each input and in all, each with as many points as a second-order network needs."""
    depth = network.num_layers
    total = line_degrees(network, horizon, range(1, horizon + 1), birnn_degree(horizon, depth) + 2, seed)
    each = [
        line_degrees(network, horizon, (s,), birnn_input_degree(s, horizon, depth) + 2, seed + s)
        for s in range(1, horizon + 1)
    ]
    return np.stack(each, axis=-1), total


def _assumptions(method: str) -> tuple[str, ...]:
    found = ("weights are the exact rational values of their floats",)
    if method == "symbolic":
        return found
    return (*found, "a random line does not miss the highest terms, which it does with a chance below degree / 2^60")
