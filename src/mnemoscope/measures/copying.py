"""Copy capacity of a linear network: the lags that it copies exactly, and those that its size would allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import nn

from mnemoscope.core.errors import UserError
from mnemoscope.core.result import Result, result
from mnemoscope.core.ring import Real
from mnemoscope.measures.dynamics import Dynamics, prepare
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.theory.formulas.copying import copy_frontier, copy_limit, copy_parameters
from mnemoscope.theory.formulas.linear import (
    LinearLayer,
    copied_lags,
    impulse_response,
    linear_layers,
    transfer_degrees,
)

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["CopyCapacity", "copy_capacity"]

_WHAT = "copy_capacity"


@result
class CopyCapacity(Result):
    """Lags that a deep linear network copies.

    Attributes
    ----------
    lags
        At which it copies all its inputs exactly: some affine readout of its output is x_{t-p} at every step.
    inputs
        Which inputs it copies at the lags 0, 1, .., L(n - 1); no size-n network copies any beyond.
    errors
        Mean squared error, per input, of the best linear readout at each of these lags, for `horizon` steps of white
        inputs of variance 1 from the zero state: 0 is a copy, 1 is no trace.
    limit
        The longest lag that some network of this size copies for all inputs, floor(L(n - d) / d); None when n < d.
    reach
        The longest lag at which this network's transfer function N(z) / q(z) leaves room for a copy of any input,
        deg N - deg q; negative: none.
    numerator_degree, denominator_degree
        Of N = prod_l adj(I - z V_l) U_l, at most L(n - 1), and of q = prod_l det(I - z V_l).
    parameters
        (2L - 1) n^2 + (L + d) n, whether or not the network has biases.
    cheapest_hidden_size, cheapest_num_layers, cheapest_parameters
        The network with the fewest parameters that copies `limit`; None where that is 0 or None.
    hidden_size, num_layers, input_size
        n, L and d.
    horizon
        Of `errors`, in steps.
    """

    measure: ClassVar[str] = "copy-capacity"
    references: ClassVar[tuple[str, ...]] = ("lizaire2026",)

    lags: Int[np.ndarray, " copied"]
    inputs: Bool[np.ndarray, "lags input"]
    errors: Float[np.ndarray, " lags"]
    limit: int | None
    reach: int
    numerator_degree: int
    denominator_degree: int
    parameters: int
    cheapest_hidden_size: int | None
    cheapest_num_layers: int | None
    cheapest_parameters: int | None
    hidden_size: int
    num_layers: int
    input_size: int
    horizon: int

    def __str__(self) -> str:
        size = f"{self.num_layers} x {self.hidden_size} units, {self.parameters} parameters"
        limit = "none" if self.limit is None else str(self.limit)
        best = f"smallest error {self.errors.min():.4g} at lag {int(self.errors.argmin())}"
        copied = f"copies lag {_ranges(self.lags)} exactly" if len(self.lags) else f"copies no lag exactly ({best})"
        inputs = f"{self.input_size} input{'s' * (self.input_size > 1)}"
        return f"{copied}; longest that its size allows: {limit} ({size}, {inputs})"

    def plot(self) -> chart.Chart:
        """Draw the error of the best readout by lag, beside the networks that copy as far as this size allows."""
        from mnemoscope.report import chart

        past = np.arange(len(self.errors))
        series = {"best readout": (past, self.errors)}
        if len(self.lags):
            series["copied exactly"] = (self.lags, self.errors[self.lags])
        if self.limit is not None:
            series["limit of the size"] = (np.array([self.limit, self.limit]), np.array([0.0, 1.0]))
        errors = chart.lines(
            series, x="lag (steps)", y="mean squared error per input", title="What is copied", points=True
        )
        if not self.limit:
            return errors
        sizes = sorted(copy_frontier(self.limit, self.input_size), key=lambda size: size[1])
        costs = {f"copies lag {self.limit}": ([s[1] for s in sizes], [s[2] for s in sizes])}
        costs["this network"] = ([self.num_layers], [self.parameters])
        many = [size[2] for size in sizes]
        frontier = chart.lines(
            costs,
            x="layers",
            y="parameters",
            title="Parameters against depth",
            log_y=max(many) > 10 * min(many),
            points=True,
        )
        return chart.beside(errors, frontier)


_COST = Cost(time={"S^3": 1.1e-7}, memory="S^2")


@measure("copy-capacity", kinds=("recurrent",), needs=(), cost=_COST)
def copy_capacity(network: nn.Module | Dynamics, horizon: int | None = None) -> CopyCapacity:
    r"""Return the lags that a deep linear network copies exactly, from its transfer function.

    With z for a delay of one step the last layer's states are H(z) x,

    .. math::
        H(z) = \prod_{l=L}^{1} (I - z V_l)^{-1} U_l = N(z) / q(z),

    and input j is copied at lag p when a readout has :math:`w H(z) = z^p e_j^\top`. No network of L layers with n units
    copies lag p of all d inputs unless p d <= L(n - d), which `mnemoscope.theory.copy_weights` attains.

    Parameters
    ----------
    network
        A first-order network over the real numbers with nonlinearity "identity": linear-rnn, or rnn and its relatives.
    horizon
        Steps of white inputs behind the errors; None: L(n - 1) + L n + 1, as many as the exact answer takes.

    References
    ----------
    Lizaire et al., On the Role of Depth in the Expressivity of RNNs, Theorems 1 and 2; the bound for several inputs is
    ours.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> from mnemoscope.theory.formulas.copying import copy_weights
    >>> layer = ms.nn.LinearRNN(1, 3, 2, dtype=torch.float64)
    >>> weights = copy_weights(lag=4, hidden_size=3, num_layers=2).weights
    >>> _ = layer.load_state_dict({name: torch.as_tensor(value) for name, value in weights.items()})
    >>> print(copy_capacity(layer))
    copies lag 2-4 exactly; longest that its size allows: 4 (2 x 3 units, 36 parameters, 1 input)
    """
    twin = prepare(network, what=_WHAT)
    layers = layers_of(twin)
    n, depth, d = len(layers[0].bias), len(layers), layers[0].weight_ih.shape[1]
    inputs = copied_lags(layers)
    degrees = transfer_degrees(layers)
    steps = _steps(horizon, len(inputs), n * depth)
    limit = copy_limit(n, depth, d) if n >= d else None
    cheapest = copy_frontier(limit, d)[0] if limit else (None, None, None)
    return CopyCapacity(
        status="exact",
        digits=16,
        assumptions=(
            "weights are the exact rational values of their floats",
            "no minor vanishes modulo two primes near 2^61",
            "errors are float64, of the best readout of white inputs",
        ),
        cost="O(L^2 n^3) time, O(L n^2) memory",
        lags=np.flatnonzero(inputs.all(axis=1)),
        inputs=inputs,
        errors=_errors(layers, len(inputs), steps),
        limit=limit,
        reach=degrees.numerator - degrees.denominator,
        numerator_degree=degrees.numerator,
        denominator_degree=degrees.denominator,
        parameters=copy_parameters(n, depth, d),
        cheapest_hidden_size=cheapest[0],
        cheapest_num_layers=cheapest[1],
        cheapest_parameters=cheapest[2],
        hidden_size=n,
        num_layers=depth,
        input_size=d,
        horizon=steps,
    )


def layers_of(network: Recurrent) -> list[LinearLayer]:
    """Return the layers of a linear network, or say that it is none."""
    name = type(getattr(network, "module", network)).__name__
    if not isinstance(network, FirstOrder):
        raise UserError(f"{_WHAT} needs a linear network (linear-rnn, or a relative of rnn), got {name}")
    if network.nonlinearity != "identity" or network.field != "real":
        have = f"nonlinearity={network.nonlinearity!r} over the {network.field} field"
        raise UserError(f"{_WHAT} needs nonlinearity='identity' over the real field, got {name} with {have}")
    depth = network.num_layers
    u, v = ([getattr(network, f"{kind}_l{k}") for k in range(depth)] for kind in ("weight_ih", "weight_hh"))
    return linear_layers(u, v, [getattr(network, f"bias_l{k}") for k in range(depth)] if network.bias else None)


def _steps(horizon: int | None, lags: int, units: int) -> int:
    if horizon is None:
        return lags + units
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < lags:
        raise UserError(
            f"horizon must be an integer of at least {lags}, one more than the longest lag, got {horizon!r}"
        )
    return int(horizon)


def _errors(layers: list[LinearLayer], lags: int, steps: int) -> Float[np.ndarray, " lags"]:
    """Return 1 - the mean squared length of the unit vectors of a lag within the row space of the impulse response."""
    with np.errstate(over="ignore", invalid="ignore"):
        answers = impulse_response(Real(), layers, steps)[:, :, :-1]
    if not np.isfinite(answers).all():
        raise UserError(f"{_WHAT} needs states that stay finite, and this network's overflow within {steps} steps")
    rows = np.moveaxis(answers, 1, 0).reshape(answers.shape[1], -1)
    size = np.linalg.norm(rows, axis=1, keepdims=True)
    _, values, right = np.linalg.svd(rows / np.where(size > 0, size, 1.0), full_matrices=False)
    seen = right[values > 1e-12 * values.max(initial=1e-300)]
    shares = (seen**2).sum(axis=0).reshape(steps, -1)[:lags].mean(axis=1)
    return np.asarray(np.clip(1 - shares, 0.0, 1.0))


def _ranges(lags: Int[np.ndarray, " copied"]) -> str:
    """Write 2, 3, 4, 7 as 2-4, 7."""
    runs = np.split(lags, np.flatnonzero(np.diff(lags) > 1) + 1)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
