"""birnn: the bilinear term of a second-order network alone, which is a weighted finite automaton."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self, Unpack

import numpy as np
import torch

from mnemoscope.core.errors import UserError, expected
from mnemoscope.nn.arithmetic import Arithmetic, ArithmeticOptions
from mnemoscope.nn.automaton import WeightedAutomaton
from mnemoscope.nn.polynomial import Operations, bilinear
from mnemoscope.nn.registry import network
from mnemoscope.nn.stack import Layer, Weights

__all__ = ["BIRNN", "Bilinear", "BilinearOptions"]


class BilinearOptions(ArithmeticOptions, total=False):
    """The options of both bilinear networks."""

    residual: bool


class Bilinear(Arithmetic):
    """A network whose state is bilinear in the state before it and the input: a subclass says by which tensor.

    Parameters
    ----------
    residual
        Whether every layer but the first adds its input to its state (in two directions, the sum of both).
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        residual: bool = False,
        **common: Unpack[ArithmeticOptions],
    ) -> None:
        if not isinstance(residual, bool):
            raise expected("residual", "True or False", residual)
        self.residual = residual
        super().__init__(input_size, hidden_size, num_layers, **common)

    @abstractmethod
    def project(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return what can be made of the inputs before the state is known."""

    @abstractmethod
    def multiply(self, ops: Operations, w: Weights, projected: Any, state: Any) -> Any:
        """Return the bilinear term."""

    def enter(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return the projected inputs, and with a residual connection what it adds."""
        projected, n = self.project(ops, w, x), self.hidden_size
        if not self._adds_input(w):
            return projected
        return projected, x if x.shape[-1] == n else ops.add(x[..., :n], x[..., n:])

    def combine(self, ops: Operations, w: Weights, a: Any, state: Any) -> Any:
        """Return the state after one step."""
        if not self._adds_input(w):
            return self.multiply(ops, w, a, state)
        projected, below = a
        return ops.add(self.multiply(ops, w, projected, state), below)

    def _adds_input(self, w: Weights) -> bool:
        return self.residual and w.layer.index > 0


@network(
    "birnn",
    family="multiplicative",
    equations=(
        "h_t = A x1 h_{t-1} x2 x_t (+ the layer's input where residual), h_0 = 1",
        "(A x1 h x2 x)_k = sum_ij A_ijk h_i x_j",
    ),
    state="n",
    references=("rabusseau2019", "lizaire2026"),
    notes=(
        "A, of shape n x d x n, is weight_bilinear_l{k}.",
        "One layer reading one-hot letters is a weighted finite automaton: to_automaton(), BIRNN.from_automaton(it).",
        "It has no biases, and without residual connections zero input makes it zero for ever.",
        "A starts as U(-1/sqrt(n), 1/sqrt(n)), as published: states grow or shrink geometrically with time.",
    ),
)
class BIRNN(Bilinear):
    """The bilinear network: a second-order network without its linear terms."""

    def declare(self, layer: Layer) -> None:
        """Create A."""
        self.parameter("weight_bilinear", self.hidden_size, layer.input_size, self.hidden_size, role="bilinear")
        super().declare(layer)

    def project(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return x: to contract the tensor with it takes n times more memory than the step does."""
        return x

    def multiply(self, ops: Operations, w: Weights, projected: Any, state: Any) -> Any:
        """Return A x1 h x2 x."""
        return bilinear(ops, w["weight_bilinear"], state, projected)

    def to_automaton(self) -> WeightedAutomaton:
        """Return the weighted automaton that this network is on one-hot letters; one layer, one direction.

        Its final weights are W_O^T, or the identity where the network gives out its state: then it weighs a word by
        a vector.
        """
        if self.num_layers > 1 or self.bidirectional:
            raise UserError(
                f"only a network of one layer and direction is an automaton, got {self.num_layers} layers"
                + (" in two directions" if self.bidirectional else "")
            )
        initial = self.initial_l0 if self.learn_initial else torch.ones(self.hidden_size)
        final = np.eye(self.hidden_size) if self.readout_size is None else _array(self.weight_out).T
        return WeightedAutomaton(_array(initial), _array(self.weight_bilinear_l0).transpose(1, 0, 2), final)

    @classmethod
    def from_automaton(cls, automaton: WeightedAutomaton) -> Self:
        """Return the network (float64) whose output after a word of one-hot letters is the automaton's weight of it."""
        letters, states, outputs = automaton.letters, automaton.states, automaton.final.shape[1]
        layer = cls(letters, states, learn_initial=True, output_size=outputs, dtype=torch.float64)
        layer.initial_l0 = automaton.initial.astype(float)
        layer.weight_bilinear_l0 = automaton.transitions.transpose(1, 0, 2).astype(float)
        layer.weight_out = automaton.final.T.astype(float)
        return layer


def _array(tensor: Any) -> np.ndarray:
    return np.asarray(tensor.detach().cpu().double().numpy())
