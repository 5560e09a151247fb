"""First-order networks: h_t = phi(V h_{t-1} + U x_t + b)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import torch
import torch.nn.functional as F
from jaxtyping import Float, Inexact
from torch import Tensor, nn

from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.nn.activation import NONLINEARITIES, activate
from mnemoscope.nn.exchange import add_biases
from mnemoscope.nn.initialisers import uniform, zeros
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.maps.functions import cayley, exponential
from mnemoscope.nn.maps.skew import SKEW_INITS, block_skew, random_orthogonal
from mnemoscope.nn.members import map_members
from mnemoscope.nn.ops.recurrence import Plan, alive_at_steps, can_fuse, last_alive, recurrence
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights
from mnemoscope.nn.state import State

__all__ = ["FirstOrder", "FirstOrderOptions", "free_matrix"]


class FirstOrderOptions(StackOptions, total=False):
    """The options that every first-order network takes."""

    nonlinearity: str
    activation: str
    init: str
    checkpoint_every: int | None


_OWN = ("forward", "run", "unroll", "fuse", "weights")
"""What a subclass must not have changed for its members to run as one batched recurrence."""


class FirstOrder(Stack):
    """h_t = phi(V h_{t-1} + U x_t + b): a subclass says which matrices V are.

    Parameters
    ----------
    nonlinearity
        phi: ``"tanh"``, ``"relu"``, ``"modrelu"`` (sign(z) relu(|z| + b), the bias within it and no other) or
        ``"identity"``. Over the complex field tanh and relu act on real and imaginary parts. Under an orthogonal V
        a state that is carried on from batch to batch is bounded by tanh, and by modrelu once its b is negative.
    activation
        Where phi is: ``"recurrent"``, in the recurrence; ``"depth"``, on the way up only: the state is
        h_t = V h_{t-1} + U x_t + b and the output phi(h_t).
    init
        How V starts: ``henaff`` or ``cayley`` (2 x 2 rotations), ``random`` (a uniform rotation, or drawn parameters
        of the network's own map), ``identity``, ``glorot`` or ``uniform``; of these, the ones that its map can take.
    checkpoint_every
        Steps between two states that are kept for the backward pass, which computes the others again: memory for
        time, least near sqrt(T). By default all states are kept.
    """

    starts_at_zero: ClassVar[bool] = True
    nonlinearity_default: ClassVar[str] = "modrelu"
    init_default: ClassVar[str] = "random"
    inits: ClassVar[tuple[str, ...]] = SKEW_INITS

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        nonlinearity: str | None = None,
        activation: str = "recurrent",
        init: str | None = None,
        checkpoint_every: int | None = None,
        **common: Unpack[StackOptions],
    ) -> None:
        self.checkpoint_every = None if checkpoint_every is None else positive_int("checkpoint_every", checkpoint_every)
        self.nonlinearity = choice(
            "nonlinearity", self.nonlinearity_default if nonlinearity is None else nonlinearity, NONLINEARITIES
        )
        self.activation = choice("activation", activation, ("recurrent", "depth"))
        self.init = choice("init", self.init_default if init is None else init, self.inits)
        super().__init__(input_size, hidden_size, num_layers, **common)
        self.register_load_state_dict_pre_hook(add_biases)  # type: ignore[no-untyped-call]

    @property
    def saturates(self) -> bool:
        """Whether phi bounds the state; else it may grow for as long as it is carried on."""
        return self.nonlinearity == "tanh" and self.activation == "recurrent"

    def make_transition(self) -> Transition | None:
        """Return the map that makes V, or None when V itself is the parameter."""
        return None

    def declare(self, layer: Layer) -> None:
        """Create U, V and b."""
        n, input_size, parts = self.hidden_size, layer.input_size, 2 if self.field == "complex" else 1
        transition = self.make_transition()
        bound = 1 / math.sqrt(n) if transition is None else math.sqrt(6 / (n + input_size))
        self.parameter("weight_ih", parts * n, input_size, init=uniform(bound), role="input")
        if transition is None:
            self.parameter("weight_hh", n, n, init=self._start_matrix, role="recurrent")
        else:
            self.constrain("weight_hh", transition)
        if self.bias and self.nonlinearity == "modrelu":
            self.parameter("bias", n, init=uniform(0.01), role="bias")
        elif self.bias:
            self.parameter("bias", parts * n, init=uniform(bound) if transition is None else zeros, role="bias")

    def _start_matrix(self, matrix: Tensor, generator: torch.Generator | None) -> None:
        matrix.copy_(free_matrix(self.hidden_size, self.init, generator))

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Inexact[Tensor, "*time batch n"]:
        """Return U x + b, as a complex vector over the complex field."""
        bias = None if self.nonlinearity == "modrelu" else w.get("bias")
        a = F.linear(x, w["weight_ih"], bias)
        return torch.complex(*a.chunk(2, dim=-1)) if self.field == "complex" else a

    def advance(
        self, w: Weights, a: Inexact[Tensor, "batch n"], state: Inexact[Tensor, "batch n"]
    ) -> tuple[Float[Tensor, "batch features"], Inexact[Tensor, "batch n"]]:
        """Advance by one step."""
        h = self.multiply(w, state) + a
        y = activate(self.nonlinearity, h, w.get("bias") if self.nonlinearity == "modrelu" else None)
        h = y if self.activation == "recurrent" else h
        return (torch.cat([y.real, y.imag], dim=-1) if self.field == "complex" else y), h

    def multiply(self, w: Weights, h: Inexact[Tensor, "batch n"]) -> Inexact[Tensor, "batch n"]:
        """Return V h."""
        product: Tensor = h @ w["weight_hh"].mT
        return product

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Tensor | None, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch features"], Tensor]:
        """Run whole sequences through the fused recurrence; the plain loop where that cannot be used."""
        if not can_fuse(w):
            like = {"device": x.device, "dtype": x.dtype}
            return super().unroll(w, x, self.start(w, x.shape[1], **like) if state is None else state, lengths)
        additive = None if self.nonlinearity == "modrelu" else w.get("bias")
        phi = self.nonlinearity if self.activation == "recurrent" else "identity"
        states, last = self.fuse(w, x, w["weight_ih"], additive, phi, state, lengths)
        return (states if self.activation == "recurrent" else self._activate(w, states)), last

    def fuse(
        self, w: Weights, x: Tensor, u: Tensor | None, b: Tensor | None, phi: str, state: Any, lengths: Any
    ) -> tuple[Float[Tensor, "time batch features"], Tensor]:
        """Return all states and the last; over the complex field all of them as [Re, Im]."""
        v, c = w["weight_hh"], w.get("bias") if phi == "modrelu" else None
        if v.shape[-2:] != (self.hidden_size, self.hidden_size):
            raise expected("weight_hh", f"of {self.hidden_size} rows and columns", tuple(v.shape))
        phi = "identity" if phi == "modrelu" and c is None else phi
        if self.field == "complex":
            state = None if state is None else torch.cat([state.real, state.imag], dim=-1)
            phi = "complex-modrelu" if phi == "modrelu" else phi
        plan = Plan(phi, alive_at_steps(lengths, x.shape[-3]), self.checkpoint_every)
        states = recurrence(x, u, b, v, state, c, plan)
        last = states.select(-3, -1) if lengths is None else last_alive(states, lengths)
        return states, torch.complex(*last.chunk(2, dim=-1)) if self.field == "complex" else last

    def _activate(
        self, w: Weights, states: Float[Tensor, "time batch features"]
    ) -> Float[Tensor, "time batch features"]:
        bias = w["bias"][..., None, None, :] if "bias" in w else None
        if self.field == "real":
            return activate(self.nonlinearity, states, bias)
        activated = activate(self.nonlinearity, torch.complex(*states.chunk(2, dim=-1)), bias)
        return torch.cat([activated.real, activated.imag], dim=-1)

    def _run_batched(self, weights: Mapping[str, Tensor], x: Tensor, hx: Any = None) -> tuple[Tensor, State] | None:
        if not self._batches(x, hx):
            return None
        self._check_input(x[0])
        x = x.flatten(3)
        if hx is not None:
            self._check_state(hx[0], x[0])
            hx = hx.movedim(0, 1)
        stacked = [self._stack(weights, layer) for layer in self._layers]
        output, state = self.run(x, hx, None, stacked)
        return output, state.movedim(0, 1)

    def _batches(self, x: Tensor, hx: Any) -> bool:
        """Say whether the members' axis can go through `run` itself."""
        plain = all(getattr(type(self), name) is getattr(FirstOrder, name) for name in _OWN)
        hooked = self._forward_hooks or self._forward_pre_hooks
        drops = self.dropout and self.training
        if not plain or hooked or drops or self.batch_first or torch.is_autocast_enabled(x.device.type):
            return False
        return (hx is None or isinstance(hx, Tensor)) and can_fuse({"weight_hh": self._like})

    def _stack(self, weights: Mapping[str, Tensor], layer: Layer) -> Weights:
        """Return the members' weights of one layer and direction, each map computed once for all."""
        return Weights(layer, {name: self._stacked(weights, full) for name, full in layer.names.items()})

    def _stacked(self, weights: Mapping[str, Tensor], name: str) -> Tensor:
        if name not in self._maps:
            return weights[name]
        prefix = f"parametrizations.{name}."
        own = {key.removeprefix(prefix): w for key, w in weights.items() if key.startswith(prefix)}
        matrix: Tensor = map_members(self._maps[name], own)
        return matrix


class StructuredOptions(FirstOrderOptions, total=False):
    """The options of the networks whose V h can be computed without building V."""

    product: str


class Structured(FirstOrder):
    """A first-order network whose V h can be computed without building V.

    Parameters
    ----------
    product
        ``"dense"``: V is built once per pass and multiplied, which is faster on most machines up to a few hundred
        units; ``"structured"``: V h is computed from the factors of V.
    """

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        product: str = "dense",
        **common: Unpack[FirstOrderOptions],
    ) -> None:
        self.product = choice("product", product, ("dense", "structured"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def _batches(self, x: Tensor, hx: Any) -> bool:
        return self.product == "dense" and super()._batches(x, hx)

    def _gather(self, layer: Layer, maps: bool = True) -> Weights:
        full = layer.names["weight_hh"]
        factors_alone = full in self._maps and len(self._maps[full]) == 1  # else the map is removed, or not the last
        if self.product == "dense" or not maps or not factors_alone:
            return super()._gather(layer, maps)
        found = super()._gather(layer, maps=False)
        found |= {"factors": tuple(self._parameters_of(full)), "transition": self.transition(full)}
        return found

    def multiply(self, w: Weights, h: Inexact[Tensor, "batch n"]) -> Inexact[Tensor, "batch n"]:
        """Return V h."""
        if "weight_hh" in w:
            return super().multiply(w, h)
        wide = torch.float32 if h.dtype.itemsize < 4 else h.dtype  # as the maps: computed in float32, rounded once
        factors = (p.float() if p.dtype.itemsize < 4 else p for p in w["factors"])
        product: Tensor = w["transition"].multiply(h.to(wide), *factors).to(h.dtype)
        return product


def free_matrix(size: int, init: str, generator: torch.Generator | None = None) -> Float[Tensor, "n n"]:
    """Return an initial matrix by name.

    ``henaff``: 2 x 2 rotations by angles U(-pi, pi); ``cayley``: by angles U(0, pi/2); ``random``: a uniform rotation;
    ``identity``; ``glorot``: N(0, 1/n); ``uniform``: U(-1/sqrt(n), 1/sqrt(n)).
    """
    if init == "henaff":
        return exponential(block_skew(size, "henaff", generator))
    if init == "cayley":
        return cayley(block_skew(size, "cayley", generator))
    if init == "random":
        return random_orthogonal(size, generator)
    if init == "identity":
        return torch.eye(size)
    matrix = torch.empty(size, size)
    if init == "glorot":
        return nn.init.normal_(matrix, 0.0, size**-0.5, generator=generator)
    return nn.init.uniform_(matrix, -(size**-0.5), size**-0.5, generator=generator)
