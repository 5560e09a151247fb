"""Layers, directions, dropout and packing: what all networks made of cells share, written once."""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from copy import deepcopy
from functools import partial
from typing import Any, ClassVar, Self, TypedDict

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import Description, UserError, expected, nearest, positive_int
from mnemoscope.nn.initialisers import Initialiser, uniform
from mnemoscope.nn.maps.base import Transition
from mnemoscope.nn.members import map_members
from mnemoscope.nn.ops.scan import mask_of, scan
from mnemoscope.nn.options import option_defaults, public_class
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State, check_state

__all__ = ["Stack", "StackOptions", "Weights"]

Weights = dict[str, Any]
"""The weights of one layer and direction by name, ``"weight_ih"``; every map computed."""


class StackOptions(TypedDict, total=False):
    """The options that every network made of cells takes."""

    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    device: torch.device | str | None
    dtype: torch.dtype | None
    generator: torch.Generator | None


class Stack(Recurrent):
    """A stack of layers of one cell, each in one or two directions.

    A network is a subclass that declares its weights (`declare`), prepares its input (`drive`) and advances its
    state (`advance`). It sets its own options as attributes before it calls this constructor.

    Parameters
    ----------
    input_size
        Numbers per step of the input, d.
    hidden_size
        Units per layer, n.
    num_layers
        Layers; layer l reads the outputs of layer l-1.
    bias
        Whether the cells have biases.
    batch_first
        Whether batched input and output are (batch, time, features).
    dropout
        Probability with which outputs between layers are dropped in training.
    bidirectional
        Whether every layer also reads the sequence from its end; outputs are then concatenated.
    device, dtype
        Of the parameters.
    generator
        Draws the initial parameters; by default torch's global generator.
    """

    starts_at_zero: ClassVar[bool] = False
    """Whether `unroll` takes None for a state of zeros, which is then never made."""

    _suffixes: list[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse options that the network does not have, with the nearest that it has, and missing sizes."""
        known = option_defaults(cls)
        for name in kwargs:
            if name not in known:
                near = nearest(name, known)
                hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known))}"
                raise UserError(f"{cls.__name__} has no option {name!r}; {hint}")
        missing = [name for name in ("input_size", "hidden_size")[len(args) :] if name not in kwargs]
        if missing:
            raise UserError(f"{cls.__name__}(input_size, hidden_size, ..) needs {' and '.join(missing)}")
        return super().__new__(cls)

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.input_size = positive_int("input_size", input_size)
        self.hidden_size = positive_int("hidden_size", hidden_size)
        self.num_layers = positive_int("num_layers", num_layers)
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise expected("dropout", "a probability between 0 and 1", dropout)
        for name, value in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            if not isinstance(value, bool):
                raise expected(name, "True or False", value)
        if device is not None:
            try:
                torch.device(device)
            except (RuntimeError, TypeError):
                raise expected("device", "a device such as 'cpu' or 'cuda:0'", device) from None
        if generator is not None and not isinstance(generator, torch.Generator):
            raise expected("generator", "a torch.Generator or None", generator)
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.causal = not bidirectional
        self.future = "it is bidirectional"
        self._factory: dict[str, Any] = {"device": device, "dtype": self._real_dtype(dtype)}
        self._initialisers: dict[str, Initialiser] = {}
        self._names: list[str] = []
        self._suffixes = []
        width = self.input_size
        for layer in range(self.num_layers):
            for direction in ("", "_reverse") if bidirectional else ("",):
                self._suffixes.append(f"_l{layer}{direction}")
                self.declare(width)
            width = self.output_size
        self.reset_parameters(generator)

    # What a network says ------------------------------------------------------------------------

    @abstractmethod
    def declare(self, input_size: int) -> None:
        """Create the parameters of one layer and direction with `parameter` and `constrain`."""

    @abstractmethod
    def advance(self, w: Weights, a: Any, state: Any) -> tuple[Float[Tensor, "batch features"], Any]:
        """Return output and state of one cell after one driven input."""

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Any:
        """Return what the input contributes, for all steps at once: ``U x + b``."""
        return F.linear(x, w["weight_ih"], w.get("bias"))

    def start(self, batch: int, **factory: Any) -> Any:
        """Return the state of one cell before the first input: zeros."""
        return torch.zeros(batch, self.hidden_size, **factory)

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch features"], Any]:
        """Run one cell over whole sequences; `lengths` (descending) says where they end, None: all are full."""
        return scan(partial(self.advance, w), self.drive(w, x), state, mask_of(lengths, x))

    # Parameters ---------------------------------------------------------------------------------

    def parameter(self, name: str, *shape: int, init: Initialiser | None = None) -> None:
        """Create the parameter `name` of the layer being declared, by default uniform on +-1/sqrt(n)."""
        own = self._file(name)
        self.register_parameter(own, nn.Parameter(torch.empty(*shape, **self._factory)))
        self._initialisers[own] = init or uniform(1 / math.sqrt(self.hidden_size))

    def constrain(self, name: str, transition: Transition) -> None:
        """Create the matrix `name` of the layer being declared as a function of unconstrained parameters."""
        transition.to(**self._factory)
        transition.attach(self, self._file(name))

    def _file(self, name: str) -> str:
        if name not in self._names:
            self._names.append(name)
        return name + self._suffixes[-1]

    @torch.no_grad()
    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew; with a generator on the CPU, so that they are the same on every device."""
        if self._like.is_meta:
            return
        for suffix in self._suffixes:
            for name in self._names:
                transition = self.transition(name + suffix)
                if transition is None:
                    parameter = getattr(self, name + suffix)
                    drawn = torch.empty_like(parameter, device=generator.device) if generator else parameter
                    self._initialisers[name + suffix](drawn, generator)
                    parameter.copy_(drawn)
                else:
                    transition.reset(self._parameters_of(name + suffix), generator)

    def transition(self, name: str = "weight_hh_l0") -> Transition | None:
        """Return the map that makes the matrix `name`, or None when the matrix itself is the parameter."""
        found = self._maps[name][0] if name in self._maps else None
        return found if isinstance(found, Transition) else None

    @property
    def _maps(self) -> Any:
        return self._modules.get("parametrizations", {})

    def _parameters_of(self, name: str) -> list[Tensor]:
        return list(self._maps[name].parameters(recurse=False))

    def _transitions(self) -> Iterator[tuple[Transition, list[Tensor]]]:
        for suffix in self._suffixes:
            for name in self._names:
                transition = self.transition(name + suffix)
                if transition is not None:
                    yield transition, self._parameters_of(name + suffix)

    def weights(self, dtype: torch.dtype | None = None) -> list[Weights]:
        """Return the weights of every layer and direction, each map computed once.

        Give them to `step` to save computing the maps at every step. Under autocast they are rounded to `dtype`, the
        input's type, after the maps.
        """
        gathered = [self._gather(suffix) for suffix in self._suffixes]
        if dtype is None or dtype == self._like.dtype:
            return gathered
        return [{name: w.to(_like_real(dtype, w)) for name, w in weights.items()} for weights in gathered]

    def _gather(self, suffix: str) -> Weights:
        own, names = self._parameters, [(name, name + suffix) for name in self._names]
        return {name: own[full] if full in own else getattr(self, full) for name, full in names}

    def __setattr__(self, name: str, value: Any) -> None:
        # `layer.weight_hh_l0 = V` sets values, of a free weight as of one that a map makes. Only an nn.Parameter takes
        # the place of another, as torch's own tools expect: load_state_dict(assign=True), pruning.
        own = self.__dict__.get("_parameters", {})
        if name in own:
            swaps = isinstance(value, nn.Parameter) and value.shape == own[name].shape
            super().__setattr__(name, value) if swaps else _copy_into(own[name], value, name)
        elif isinstance(value, Tensor) and _WEIGHT_NAME.fullmatch(name):
            if name not in self._weight_names():
                raise UserError(f"this network has no {name}; it has {', '.join(self._weight_names())}")
            super().__setattr__(name, value if self.transition(name) is None else value.detach())
        else:
            super().__setattr__(name, value)

    def _weight_names(self) -> list[str]:
        return [name + suffix for suffix in self._suffixes for name in self._names]

    # Training -----------------------------------------------------------------------------------

    def parameter_groups(self, lr: float, lr_orthogonal: float | None = None) -> list[dict[str, Any]]:
        """Return groups for an optimiser: parameters of orthogonal maps get their own rate, by default a tenth."""
        for name, rate in (("lr", lr), ("lr_orthogonal", lr if lr_orthogonal is None else lr_orthogonal)):
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate < math.inf:
                raise expected(name, "a finite number that is not negative", rate)
        orthogonal = [p for transition, own in self._transitions() for p in transition.orthogonal(own)]
        marked = {id(p) for p in orthogonal}
        groups = [{"params": [p for p in self.parameters() if id(p) not in marked], "lr": lr}]
        if orthogonal:
            groups.append({"params": orthogonal, "lr": lr / 10 if lr_orthogonal is None else lr_orthogonal})
        return groups

    def penalty(self) -> Float[Tensor, ""]:
        """Return what the network asks to be added to the loss; zero for most."""
        total = torch.zeros((), **self._own_factory())
        for transition, own in self._transitions():
            total = total + transition.penalty(own)
        return total

    def after_step(self) -> None:
        """Do what must happen after each step of the optimiser: rebase, retract. Nothing for most."""
        for transition, own in self._transitions():
            transition.after_step(own)

    # Running ------------------------------------------------------------------------------------

    @property
    def directions(self) -> int:
        """1, or 2 when bidirectional."""
        return 2 if self.bidirectional else 1

    @property
    def cell_output_size(self) -> int:
        """Numbers that one cell gives out per step: n."""
        return self.hidden_size

    @property
    def output_size(self) -> int:  # type: ignore[override]
        """Numbers per step of the output."""
        return self.cell_output_size * self.directions

    def init_state(
        self, batch: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> State:
        """Return the state before the first input: ``(layers * directions, batch, n)``, zeros."""
        factory = self._own_factory()
        factory["device"] = device or factory["device"]
        factory["dtype"] = self._real_dtype(dtype or factory["dtype"])
        return self._join([self.start(batch, **factory) for _ in self._suffixes])

    def step(
        self, x: Float[Tensor, "batch input"], state: State, weights: list[Weights] | None = None
    ) -> tuple[Float[Tensor, "batch output"], State]:
        """Return the output and the state after one input.

        Parameters
        ----------
        weights
            What `weights` returned, so that many steps compute the maps once.
        """
        self.require_causal("step")
        if not isinstance(x, Tensor) or x.dim() != 2:
            came = tuple(x.shape) if isinstance(x, Tensor) else Description(type(x).__name__)
            raise expected("x", "a tensor of shape (batch, input_size)", came)
        self._check_width(x, "x")
        check_state(state, self.init_state(x.shape[0], device=x.device))
        x = x.to(self._like.dtype) if torch.is_autocast_enabled(x.device.type) else x
        cells = []
        for layer, (w, cell) in enumerate(zip(weights or self.weights(), self._split(state), strict=True)):
            x = self._drop(x) if layer else x
            x, cell = self.advance(w, self.drive(w, x), cell)
            cells.append(cell)
        return x, self._join(cells)

    def run(
        self,
        x: Float[Tensor, "time batch input"],
        state: Any,
        lengths: Tensor | None,
        weights: list[Weights] | None = None,
    ) -> tuple[Float[Tensor, "time batch output"], State]:
        """Run whole sequences through all layers and directions; `weights` as in `step`."""
        if lengths is not None and int(lengths[-1]) == x.shape[0]:
            lengths = None
        # Autocast would round the maps and the recurrence: these run in the input's own type.
        autocast = torch._C._is_any_autocast_enabled()
        with torch.autocast(x.device.type, enabled=False) if autocast else nullcontext():
            cells: list[Any] = [None] * len(self._suffixes) if state is None else self._split(state)
            weights = weights or self.weights(x.dtype)
            for layer in range(self.num_layers):
                x = self._drop(x) if layer else x
                outputs = []
                for direction in range(self.directions):
                    i = layer * self.directions + direction
                    turned = _reverse(x, lengths) if direction else x
                    y, cells[i] = self.unroll(weights[i], turned, cells[i], lengths)
                    outputs.append(_reverse(y, lengths) if direction else y)
                x = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-1)
            return x, self._join(cells)

    def run_members(
        self,
        weights: Mapping[str, Tensor],
        x: Float[Tensor, "members time batch input"],
        hx: Any = None,
        randomness: str = "different",
    ) -> tuple[Float[Tensor, "members time batch output"], State]:
        """Run K networks of this shape on sequences of their own, in this network's order of time and batch.

        Parameters
        ----------
        weights
            The members' parameters and buffers by name, stacked; this network's own are not used.
        hx
            Their states, with the members in front.
        randomness
            As in `map_members`.
        """
        batched = self._run_batched(weights, x, hx)
        if batched is not None:
            return batched
        output, state = map_members(self, weights, x, hx, randomness=randomness)
        return output, state

    def _run_batched(self, weights: Mapping[str, Tensor], x: Tensor, hx: Any) -> tuple[Tensor, State] | None:
        """Run the members as one batched recurrence, without `torch.vmap`; None where there is none."""
        return None

    def _starting_state(self, hx: State | None, x: Tensor) -> State | None:
        return None if hx is None and self.starts_at_zero else super()._starting_state(hx, x)

    def _check_width(self, x: Tensor, name: str) -> None:
        own = self._like.dtype
        if x.dtype == own and x.shape[-1] == self.input_size:
            return
        super()._check_width(x, name)
        if x.dtype != own and not torch.is_autocast_enabled(x.device.type):
            raise expected(name, f"of the parameters' type {own}", x.dtype)

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def _join(self, cells: list[Any]) -> State:
        if isinstance(cells[0], Tensor):
            return torch.stack(cells)  # memory of its own: the last state may be a part of the output
        return tree_map(lambda *leaves: torch.stack(leaves), cells[0], *cells[1:])

    def _split(self, state: State) -> list[Any]:
        if isinstance(state, Tensor):
            return list(state.unbind(0))
        return [tree_map(lambda leaf, i=i: leaf[i], state) for i in range(len(self._suffixes))]

    def _own_factory(self) -> dict[str, Any]:
        return {"device": self._like.device, "dtype": self._like.dtype}

    @property
    def _like(self) -> Tensor:
        """The first parameter, whose type and device are the network's."""
        own = next((p for p in self._parameters.values() if p is not None), None)
        return next(self.parameters()) if own is None else own

    def _real_dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        dtype = dtype or torch.get_default_dtype()
        if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
            raise expected("dtype", "a real floating-point type", Description(str(dtype)))
        return dtype

    # Looking ------------------------------------------------------------------------------------

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that build this network again, but for device, dtype and generator."""
        skipped = {"device", "dtype", "generator"}
        return {name: getattr(self, name) for name in option_defaults(type(self)) if name not in skipped}

    def extra_repr(self) -> str:
        """Sizes first, then the options that are not at their default."""
        defaults = option_defaults(type(self)) | {"input_size": self.input_size, "hidden_size": self.hidden_size}
        defaults |= {name: getattr(self, f"{name}_default", value) for name, value in defaults.items()}
        named = {name: value for name, value in self.options.items() if value != defaults[name]}
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *(f"{k}={v!r}" for k, v in named.items())])

    def __repr__(self) -> str:
        return f"{public_class(type(self)).__name__}({self.extra_repr()})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = Recurrent.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__ = deepcopy(self.__dict__, memo)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        if any(len(found) > 1 or self.transition(name) is None for name, found in self._maps.items()):
            raise UserError("a network with a parametrisation of your own cannot be pickled: save its state_dict()")
        frozen = [name for name, parameter in self.named_parameters() if not parameter.requires_grad]
        rest = (self._own_factory(), self.training, self.state_dict(), frozen)
        return _rebuild, (public_class(type(self)), self.options, *rest)


_WEIGHT_NAME = re.compile(r"(weight|bias)\w*_l\d+(_reverse)?")


@torch.no_grad()
def _copy_into(parameter: Tensor, value: Any, name: str) -> None:
    try:
        given = torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise expected(name, f"numbers of shape {tuple(parameter.shape)}", value) from None
    if given.shape != parameter.shape:
        raise expected(name, f"of shape {tuple(parameter.shape)}", tuple(given.shape))
    if given.is_complex():
        raise expected(name, "real", given.dtype)
    parameter.copy_(given)


def _rebuild(
    cls: type[Stack],
    options: dict[str, Any],
    factory: dict[str, Any],
    training: bool,
    weights: Any,
    frozen: list[str],
) -> Stack:
    layer = cls(**options, **factory, generator=torch.Generator())  # what it draws is overwritten
    layer.load_state_dict(weights, assign=True)  # memory that is shared with other processes stays shared
    for name in frozen:
        layer.get_parameter(name).requires_grad_(False)
    return layer.train(training)


def _like_real(dtype: torch.dtype, tensor: Tensor) -> torch.dtype:
    return dtype.to_complex() if tensor.is_complex() else dtype


def _reverse(x: Float[Tensor, "time batch features"], lengths: Tensor | None) -> Float[Tensor, "time batch features"]:
    """Turn every sequence around within its own length."""
    if lengths is None:
        return x.flip(-3)
    times = torch.arange(x.shape[0], device=x.device)[:, None]
    ends = lengths.to(x.device)
    index = torch.where(times < ends, ends - 1 - times, times)
    return x.gather(0, index[:, :, None].expand_as(x))
