"""Networks whose step is made of sums and products: written once, run on tensors and in exact arithmetic."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.core.ring import Ring
from mnemoscope.nn.activation import activate
from mnemoscope.nn.stack import Stack, Weights

__all__ = ["TENSORS", "Exact", "Operations", "Polynomial", "bilinear", "exact_weights"]


class Operations(Protocol):
    """Sums and products: what a `Ring` does on NumPy arrays, and torch on tensors."""

    def add(self, a: Any, b: Any, /) -> Any:
        """Return a + b, with broadcasting."""

    def mul(self, a: Any, b: Any, /) -> Any:
        """Return a * b entry by entry, with broadcasting."""

    def matmul(self, a: Any, b: Any, /) -> Any:
        """Return the matrix product."""


def bilinear(ops: Operations, core: Any, h: Any, x: Any) -> Any:
    """Return ``sum_ij core[i, j, k] h_i x_j`` for every row of `h` and `x`, one matrix product for all of them."""
    n, d, m = core.shape
    pairs = ops.mul(h[:, :, None], x[:, None, :]).reshape(h.shape[0], n * d)
    return ops.matmul(pairs, core.reshape(n * d, m))


def exact_weights(network: nn.Module, ring: Ring) -> dict[str, np.ndarray]:
    """Return the parameters of a network by name, each float as the exact number that it is."""
    found = {}
    for name, parameter in network.named_parameters():
        values = parameter.detach().cpu().double().numpy()
        if not np.isfinite(values).all():
            raise expected(name, "finite in every entry", Description("NaN or infinity"))
        found[name] = ring.array(values)
    return found


class Exact(Stack):
    """A network that can be evaluated in any ring, where its options make it a polynomial of weights and inputs.

    A subclass writes its step for any `Operations`: what the input contributes (`enter`), the pre-activation
    (`combine`) and what is carried to the next step (`carry`).
    """

    nonlinearity: str = "identity"

    @abstractmethod
    def enter(self, ops: Operations, w: Weights, x: Any) -> Any:
        """Return what the inputs, (.., d), contribute: an array, or a tuple of them, with the same leading axes."""

    @abstractmethod
    def combine(self, ops: Operations, w: Weights, a: Any, state: Any) -> Any:
        """Return the pre-activation of one step, (batch, n)."""

    def carry(self, ops: Operations, w: Weights, h: Any) -> Any:
        """Return the state after a step whose units are h: h itself."""
        return h

    def begin(self, ring: Ring, w: Weights, batch: int) -> np.ndarray:
        """Return the state of one cell before the first input, in a ring: zeros."""
        return ring.zeros((batch, self.hidden_size))

    @property
    def polynomial(self) -> bool:
        """Whether the outputs are polynomials of weights and inputs."""
        return self.nonlinearity == "identity"

    def exact_weights(self, ring: Ring) -> dict[str, np.ndarray]:
        """Return the weights by the names of the parameters, each float as the exact number that it is."""
        return exact_weights(self, ring)

    def evaluate(
        self, ring: Ring, weights: dict[str, np.ndarray], inputs: np.ndarray, state: Any = None
    ) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
        """Run sequences in a ring.

        Parameters
        ----------
        ring
            Where the sums and products are taken.
        weights
            What `exact_weights` returned, or other ring arrays of these names and shapes.
        inputs
            ``(time, batch, input_size)``.
        state
            What an earlier call returned, to go on from there; by default the start.

        Returns
        -------
        The outputs ``(time, batch, output_size)``, and the state: one array ``(batch, n)`` per layer, whose rows can
        be repeated or chosen, so that sequences with a common beginning share it.
        """
        self._require_exact(inputs)
        x, cells = inputs, []
        for index, layer in enumerate(self._layers):
            w = Weights(layer, {name: weights[full] for name, full in layer.names.items()})
            cell = self.begin(ring, w, x.shape[1]) if state is None else state[index]
            driven = _per_step(self.enter(ring, w, x.reshape(-1, x.shape[2])), *x.shape[:2])
            outputs = []
            for a in driven:
                h = self.combine(ring, w, a, cell)
                cell = self.carry(ring, w, h)
                outputs.append(h)
            x = np.stack(outputs)
            if "weight_out" in w:
                x = ring.matmul(x.reshape(-1, x.shape[2]), w["weight_out"].T).reshape(*x.shape[:2], -1)
            cells.append(cell)
        return x, tuple(cells)

    def _require_exact(self, inputs: np.ndarray) -> None:
        self.require_causal("evaluate")
        if not self.polynomial:
            raise UserError(f"evaluate needs a polynomial network, and the nonlinearity {self.nonlinearity!r} is none")
        if inputs.ndim != 3 or inputs.shape[2] != self.input_size or inputs.shape[0] == 0:
            raise expected("inputs", f"of shape (time, batch, {self.input_size}), time not zero", inputs.shape)


class Polynomial(Exact):
    """A network whose step on tensors is the same code as in a ring, with a nonlinearity after it."""

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Any:
        """Return what the input contributes, for all steps at once."""
        return self.enter(TENSORS, w, x)

    def advance(
        self, w: Weights, a: Any, state: Float[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Advance by one step."""
        z = self.combine(TENSORS, w, a, state)
        h = activate(self.nonlinearity, z, w.get("bias") if self.nonlinearity == "modrelu" else None)
        return h, self.carry(TENSORS, w, h)


class _Tensors:
    """torch's sums and products."""

    add, mul, matmul = staticmethod(torch.add), staticmethod(torch.mul), staticmethod(torch.matmul)


TENSORS = _Tensors()


def _per_step(driven: Any, time: int, batch: int) -> list[Any]:
    """Cut what `enter` made of (time * batch) rows into steps."""
    if isinstance(driven, tuple):
        return list(zip(*(_per_step(part, time, batch) for part in driven), strict=True))
    return list(driven.reshape(time, batch, *driven.shape[1:]))
