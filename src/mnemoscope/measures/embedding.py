"""Latent embedding of a linear network: the one wide layer that a deep one is, or the deep one that a wide layer is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float
from torch import nn

from mnemoscope.core.arrays import positive
from mnemoscope.core.result import Result, result
from mnemoscope.measures.copying import layers_of
from mnemoscope.measures.dynamics import Dynamics, prepare
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.theory.formulas.linear import LatentEmbedding, LinearLayer, is_deep, unrolled_states
from mnemoscope.theory.formulas.linear import latent_embedding as embed

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["LatentEmbeddingOfNetwork", "latent_embedding"]

_STEPS = 50


@result
class LatentEmbeddingOfNetwork(Result):
    """One wide linear layer with the states of all layers of a network.

    Attributes
    ----------
    weight_ih, weight_hh, bias
        Of the wide layer of n L units: U_l = U^(l) .. U^(1), V_lj = U^(l) .. U^(j+1) V^(j) for j <= l.
    hidden_size, num_layers, input_size
        n, L and d of the network.
    depth
        Of the deepest linear network of layers of equal width that the wide layer is: L for a deep network; for a
        single layer the largest of the depths that divide its units and pass the rank test, 1 when none does.
    parameters, wide_parameters
        Of the network, and of a free layer as wide as its embedding; without biases.
    error
        Largest difference of the states of both after any of 50 random inputs, relative to the largest state.
    """

    measure: ClassVar[str] = "latent-embedding"
    references: ClassVar[tuple[str, ...]] = ("lizaire2026",)

    weight_ih: Float[np.ndarray, "units input"]
    weight_hh: Float[np.ndarray, "units units"]
    bias: Float[np.ndarray, " units"]
    hidden_size: int
    num_layers: int
    input_size: int
    depth: int
    parameters: int
    wide_parameters: int
    error: float

    def __str__(self) -> str:
        units = self.num_layers * self.hidden_size
        if self.num_layers > 1:
            counts = f"{self.parameters} parameters instead of {self.wide_parameters}"
            return (
                f"{self.num_layers} x {self.hidden_size} units are one layer of {units} ({counts}), to {self.error:.1e}"
            )
        if self.depth > 1:
            return f"this layer of {units} units is a network of {self.depth} x {units // self.depth}"
        return f"this layer of {units} units is no deep network of layers of equal width"

    def plot(self) -> chart.Chart:
        """Draw the recurrent matrix of the wide layer: block by block, zero above the diagonal."""
        from mnemoscope.report import chart

        return chart.heat_map(
            self.weight_hh, x="unit j", y="unit i", value="V_ij", title="Recurrent matrix", diverging=True
        )


_COST = Cost(time={"S^4": 1e-10}, memory="S^2")


@measure("latent-embedding", kinds=("recurrent",), needs=("matrix",), cost=_COST)
def latent_embedding(
    network: nn.Module | Dynamics, *, tolerance: float = 1e-4, seed: int = 0
) -> LatentEmbeddingOfNetwork:
    r"""Embed a deep linear network in one wide layer, or find the deep network that a wide layer is.

    .. math::
        h_t = V h_{t-1} + U x_t + b, \quad U_l = U^{(l)} \cdots U^{(1)}, \quad
        V_{lj} = U^{(l)} \cdots U^{(j+1)} V^{(j)} \; (j \le l)

    The state of the wide layer is that of all layers, one after the other. Few wide layers are of this form: its block
    rows depend on each other, which is what the rank test asks of a single layer.

    Parameters
    ----------
    network
        A linear network: ``linear-rnn``, or a relative of ``rnn`` with ``nonlinearity="identity"``.
    tolerance
        What may lie outside of a block row's span and count as rounding, for a single layer; 1e-9 suits float64.
    seed
        Of the inputs on which the states are compared.

    Returns
    -------
    LatentEmbeddingOfNetwork

    References
    ----------
    Depth, Proposition 1 and Theorem 6 (Lizaire et al. 2026).

    Examples
    --------
    >>> import torch
    >>> import mnemoscope as ms
    >>> network = ms.nn.LinearRNN(2, 3, num_layers=4, generator=torch.Generator().manual_seed(0))
    >>> found = latent_embedding(network)
    >>> found.weight_hh.shape, found.depth, found.error < 1e-12
    ((12, 12), 4, True)
    """
    positive("tolerance", tolerance)
    layers = layers_of(prepare(network, what="latent_embedding"))
    first, depth = layers[0], len(layers)
    width, inputs = first.weight_ih.shape
    wide = embed([one.weight_ih for one in layers], [one.weight_hh for one in layers], [one.bias for one in layers])
    units = depth * width
    return LatentEmbeddingOfNetwork(
        status="exact",
        digits=max(0, min(15, int(-np.log10(max(error := _error(layers, wide, seed), 1e-16))))),
        assumptions=("the network starts from the zero state",),
        cost="O(L^2 n^3) time to embed, O(n^4) for the rank test of a single layer; O(L^2 n^2) memory",
        weight_ih=wide.weight_ih,
        weight_hh=wide.weight_hh,
        bias=wide.bias,
        hidden_size=width,
        num_layers=depth,
        input_size=inputs,
        depth=depth if depth > 1 else _depth(first, tolerance),
        parameters=(2 * depth - 1) * width**2 + width * inputs,
        wide_parameters=units**2 + units * inputs,
        error=error,
    )


def _error(layers: list[LinearLayer], wide: LatentEmbedding, seed: int) -> float:
    """Compare the states of the deep network, layer by layer, with those of the wide layer."""
    x = np.random.default_rng(seed).standard_normal((_STEPS, layers[0].weight_ih.shape[1]))
    deep = unrolled_states(
        [one.weight_ih for one in layers], [one.weight_hh for one in layers], x, [one.bias for one in layers]
    )
    h, worst, largest = np.zeros(len(wide.bias)), 0.0, 1e-300
    for now, states in zip(x, deep, strict=True):
        h = wide.weight_hh @ h + wide.weight_ih @ now + wide.bias
        worst, largest = max(worst, float(np.abs(h - states.ravel()).max())), max(largest, float(np.abs(states).max()))
    return worst / largest


def _depth(layer: LinearLayer, tolerance: float) -> int:
    units = len(layer.weight_hh)
    depths = (depth for depth in range(units, 1, -1) if units % depth == 0)
    return next((d for d in depths if is_deep(layer.weight_ih, layer.weight_hh, units // d, tolerance=tolerance)), 1)
