"""Layers, directions, dropout and packing of networks made of cells."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Inexact
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.nn.declared import Layer, Weights
from mnemoscope.nn.ops.scan import for_onnx, mask_of, of_traced_length, reverse, scan, tracing
from mnemoscope.nn.options import StackOptions, public_class
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State, as_type, check_state, complex_of, fits, join_cells, split_cells

__all__ = ["Layer", "Stack", "StackOptions", "Weights"]


class Stack(Recurrent):
    """A stack of layers of one cell, each in one or two directions.

    A network is a subclass that declares its weights (`declare`), prepares its input (`drive`) and advances its
    state (`advance`). It sets its own options as attributes before it calls this constructor. The state of a cell is a
    vector, or a tuple of vectors, in torch's layout; with ``batch_axis = 0`` any pytree of tensors whose leaves have
    the batch in front, and the network's state is a tuple of these, one for each layer and direction.

    Parameters
    ----------
    input_size
        Numbers per step of the input, d; or the shape of one input, ``(5, 5)``.
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

    any_length_traced: ClassVar[bool] = False
    """Whether what `torch.jit.trace` records of a call is right for other lengths: no loop is written out."""

    field: str = "real"
    """``"complex"``: units, and what comes and goes between steps, are complex; outputs are [Re, Im]."""

    hidden_size: Any

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: Any,
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
        self._take_input_size(input_size)
        self.num_layers = positive_int("num_layers", num_layers)
        self.hidden_size = self._checked_hidden_size(hidden_size)
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise expected("dropout", "a probability between 0 and 1", dropout)
        for name, value in (("bias", bias), ("batch_first", batch_first), ("bidirectional", bidirectional)):
            if not isinstance(value, bool):
                raise expected(name, "True or False", value)
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.causal = not bidirectional
        self.future = "it is bidirectional"
        self._begin(device, dtype, generator)
        shape = self.input_shape if self.input_axes > 1 else (self.input_size,)
        for index in range(self.cell_layers):
            for suffix in (f"_l{index}", f"_l{index}_reverse")[: self.directions]:
                last = index == self.cell_layers - 1
                self._declare_layer(Layer(index, suffix.endswith("_reverse"), shape, last, suffix))
            shape = self.layer_output_shape(index)
        self.reset_parameters(generator)

    def _checked_hidden_size(self, hidden_size: Any) -> Any:
        return positive_int("hidden_size", hidden_size)

    # The cell -----------------------------------------------------------------------------------

    @abstractmethod
    def declare(self, layer: Layer) -> None:
        """Create the weights of one layer and direction with `parameter`, `constrain` and `submodule`."""

    @abstractmethod
    def advance(self, w: Weights, a: Any, state: Any) -> tuple[Float[Tensor, "batch ..."], Any]:
        """Return output and state of one cell after one driven input."""

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Any:
        """Return what the input contributes, for all steps at once: ``U x + b``."""
        return F.linear(x, w["weight_ih"], w.get("bias"))

    def start(self, w: Weights, batch: int, **factory: Any) -> Any:
        """Return the state of one cell before the first input: zeros.

        `w` has all weights but those that a map makes. `factory` is device and dtype, and for a memory that grows its
        capacity.
        """
        return self._zeros(batch, self.hidden_size, **factory)

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch *input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch *features"], Any]:
        """Run one cell over whole sequences; `lengths` (descending) says where they end, None: all are full."""
        return scan(partial(self.advance, w), self.drive(w, x), state, mask_of(lengths, x))

    def between(self, w: Weights, x: Tensor, y: Tensor) -> Tensor:
        """Return what a layer hands on, of its input and output: y. Residuals, norms and MLPs go here.

        `w` has the weights of the layer; of its first direction where there are two, whose outputs y has both.
        """
        return y

    def _zeros(self, *shape: int, **factory: Any) -> Inexact[Tensor, " *shape"]:
        """Return zeros, complex over the complex field."""
        if self.field == "complex":
            factory["dtype"] = complex_of(factory["dtype"])
        return torch.zeros(*shape, **factory)

    def flatten_parameters(self) -> None:
        """Do nothing: torch's layers bring their weights together here, for a GPU's kernel."""

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Weights of every layer and direction, as torch.nn.RNN lists them; every map computed."""
        return [[leaf for leaf in w.values() if isinstance(leaf, Tensor)] for w in self.weights()]

    # Running ------------------------------------------------------------------------------------

    @property
    def directions(self) -> int:
        """1, or 2 when bidirectional."""
        return 2 if self.bidirectional else 1

    @property
    def cell_layers(self) -> int:
        """Layers with a state of their own: `num_layers`, unless they are one deep transition of a single state."""
        return self.num_layers

    @property
    def cell_output_size(self) -> int:
        """Numbers that one cell gives out per step: n, or 2n over the complex field: [Re, Im]."""
        return self._width * (2 if self.field == "complex" else 1)

    def layer_output_shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of what layer `index` hands on at a step, both directions together."""
        return (self.cell_output_size * self.directions,)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of one output."""
        return self.layer_output_shape(self.cell_layers - 1)

    @property
    def output_size(self) -> int:  # type: ignore[override]
        """Numbers per step of the output."""
        return math.prod(self.output_shape)

    def init_state(
        self, batch: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> State:
        """Return the state before the first input: ``(layers * directions, batch, n)``, zeros for most."""
        if self.grows and self.capacity is None:
            raise UserError(
                f"the memory of {type(self).__name__} grows: give it a capacity "
                "(capacity=N, --set capacity=N) to step or to go on"
            )
        factory = self._own_factory()
        return self._join(self._start_cells(batch, device or factory["device"], dtype or factory["dtype"]))

    def state_size_at(self, steps: int) -> int:
        """Return the real numbers in the state of one example after so many steps."""
        cells = self._start_cells(1, **self._own_factory(), steps=steps)
        return int(self.flatten_state(self._join(cells)).shape[1])

    def _start_cells(
        self, batch: int, device: Any, dtype: torch.dtype, steps: int = 0, weights: list[Weights] | None = None
    ) -> list[Any]:
        factory: dict[str, Any] = {"device": device, "dtype": self._real_dtype(dtype)}
        if self.grows:
            factory["capacity"] = self.capacity or steps
        weights = weights or [self._gather(layer, maps=False) for layer in self._layers]
        return [self.start(w, batch, **factory) for w in weights]

    def step(
        self, x: Float[Tensor, "batch ..."], state: State, weights: list[Weights] | None = None
    ) -> tuple[Float[Tensor, "batch ..."], State]:
        """Return the output and the state after one input.

        Parameters
        ----------
        weights
            What `weights` returned, so that many steps compute the maps once. `stepper` also checks only once.
        """
        self.require_causal("step")
        if not isinstance(x, Tensor) or x.dim() != 1 + len(self.input_shape):
            came = tuple(x.shape) if isinstance(x, Tensor) else Description(type(x).__name__)
            shape = "input_size" if len(self.input_shape) == 1 else ", ".join(map(str, self.input_shape))
            raise expected("x", f"a tensor of shape (batch, {shape})", came)
        self._check_width(x, "x")
        self._check_state(state, x.unsqueeze(0))
        y, cells = self._step_cells(weights or self.weights(), x, self._split(state))
        return y, self._join(cells)

    def stepper(self, weights: list[Weights] | None = None) -> Callable[[Tensor, State], tuple[Tensor, State]]:
        """Return `step` for many steps: maps computed once, nothing checked, states perhaps views of outputs."""
        self.require_causal("step")
        weights = weights or self.weights()

        def step(x: Tensor, state: State) -> tuple[Tensor, State]:
            y, cells = self._step_cells(weights, x, self._split(state))
            return y, self._join(cells)

        def step_alone(x: Tensor, state: State) -> tuple[Tensor, State]:
            y, (cell,) = self._step_cells(weights, x, [tree_map(lambda leaf: leaf[0], state)])
            return y, tree_map(lambda leaf: leaf.unsqueeze(0), cell)

        return step if len(self._layers) > 1 or self.batch_axis == 0 else step_alone

    def _step_cells(self, weights: list[Weights], x: Tensor, cells: list[Any]) -> tuple[Tensor, list[Any]]:
        if torch._C._is_any_autocast_enabled():  # as in `run`: all in the input's own type
            with torch.autocast(x.device.type, enabled=False):
                x = x.to(self._like.dtype) if self.field == "complex" else x
                weights = weights if x.dtype == self._like.dtype else [w.to(x.dtype) for w in weights]
                return self._step_cells(weights, x, [as_type(cell, x.dtype) for cell in cells])
        after = []
        x = x.flatten(1) if self.input_axes == 1 and x.dim() > 2 else x
        for index, (w, cell) in enumerate(zip(weights, cells, strict=True)):
            x = self._drop(x) if index else x
            y, cell = self.advance(w, self.drive(w, x), cell)
            x = self.between(w, x, y)
            after.append(cell)
        return x, after

    def run(
        self,
        x: Float[Tensor, "time batch *input"],
        state: Any,
        lengths: Tensor | None,
        weights: list[Weights] | None = None,
    ) -> tuple[Float[Tensor, "time batch *output"], State]:
        """Run whole sequences through all layers and directions; `weights` as in `step`."""
        if lengths is not None and int(lengths[-1]) == x.shape[0]:
            lengths = None
        x = self._recorded(x)
        # Autocast would round the maps and the recurrence: these run in the input's own type.
        autocast = torch._C._is_any_autocast_enabled()
        with torch.autocast(x.device.type, enabled=False) if autocast else nullcontext():
            x = x.to(self._like.dtype) if autocast and self.field == "complex" else x  # there is no complex bfloat16
            weights = weights or self.weights(x.dtype)
            if x.shape[0] == 1 and lengths is None and self._steps_alone():
                given = None if state is None else self._split(state)
                cells = given or self._start_cells(x.shape[1], x.device, x.dtype, 1, weights)
                y, cells = self._step_cells(weights, x[0], cells)
                return y.unsqueeze(0), self._join(cells)
            cells = self._cells_before(x, state, weights)
            for index in range(self.cell_layers):
                x = self._run_layer(index, weights, x, cells, lengths)
            return self._within_capacity(x, cells), self._join(cells)

    def _recorded(self, x: Tensor) -> Tensor:
        """Return x; where a graph is being made of the call, refuse what it could not be right for."""
        recording = tracing()
        if (recording or torch.compiler.is_exporting()) and for_onnx():
            if self.field == "complex":
                raise UserError(
                    f"{public_class(type(self)).__name__} computes with complex numbers, which ONNX does not have"
                )
            if self._maps:
                raise UserError(
                    f"{public_class(type(self)).__name__} is exported to ONNX after remove_parametrizations()"
                )
            if recording and not self.any_length_traced:
                raise UserError(f"{type(self).__name__} is exported by torch.onnx.export(.., dynamo=True) alone")
        return of_traced_length(x) if recording and not self.any_length_traced else x

    def _within_capacity(self, y: Tensor, cells: list[Any]) -> Tensor:
        """Return outputs; in an exported graph, which cannot refuse, NaN where a memory that grows has no more room."""
        if not (self.grows and self.capacity and torch.compiler.is_exporting()):
            return y
        ends = cells[0].length + torch.arange(1 - y.shape[0], 1, device=y.device)[:, None]  # time, batch
        return torch.where((ends > self.capacity)[..., None], torch.nan, y)

    def _steps_alone(self) -> bool:
        """Say whether a sequence of one step is best run as a step: decoding, one call for each action."""
        return not (torch.is_grad_enabled() or self.bidirectional or torch.compiler.is_compiling() or tracing())

    def _run_layer(
        self, index: int, weights: list[Weights], x: Tensor, cells: list[Any], lengths: Tensor | None
    ) -> Tensor:
        """Return what a layer hands on; `cells` get the last states of its directions."""
        x = self._drop(x) if index else x
        outputs = []
        for direction in range(self.directions):
            i = index * self.directions + direction
            turned = self._reverse(x, lengths) if direction else x
            y, cells[i] = self.unroll(weights[i], turned, cells[i], lengths)
            outputs.append(self._reverse(y, lengths) if direction else y)
        y = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=-1)
        return self.between(weights[index * self.directions], x, y)

    def before_layer(self, input: Tensor, hx: State | None, layer: int) -> tuple[list[Weights], Tensor, list[Any]]:
        """Return all weights, what layer `layer` reads of `input` (time, batch, ..), and the states before."""
        if isinstance(layer, bool) or not isinstance(layer, int) or not 0 <= layer < self.cell_layers:
            raise expected("layer", f"an integer from 0 to {self.cell_layers - 1}", layer)
        self._check_input(input)
        batched = input.dim() == 2 + len(self.input_shape)
        x = input.transpose(0, 1) if batched and self.batch_first else input if batched else input.unsqueeze(1)
        x, weights = self._as_read(x), self.weights()
        cells = self._cells_before(x, self._starting_state(hx, x), weights)
        for index in range(layer):
            x = self._run_layer(index, weights, x, cells, None)
        return weights, x, cells

    def _cells_before(self, x: Tensor, state: State | None, weights: list[Weights]) -> list[Any]:
        if state is not None:
            return self._split(state)
        if self.starts_at_zero:
            return [None] * len(self._layers)
        return self._start_cells(x.shape[1], x.device, x.dtype, x.shape[0], weights)

    def run_members(
        self, weights: Mapping[str, Tensor], *inputs: Any, randomness: str = "different"
    ) -> tuple[Float[Tensor, "members time batch output"], State]:
        """Run K networks of this shape on sequences of their own, in this network's order of time and batch."""
        batched = self._run_batched(weights, *inputs)
        output, state = batched or super().run_members(weights, *inputs, randomness=randomness)
        return output, state

    def _run_batched(self, weights: Mapping[str, Tensor], x: Tensor, hx: Any = None) -> tuple[Tensor, State] | None:
        """Run the members as one batched recurrence, without `torch.vmap`; None where there is none."""
        return None

    def _starting_state(self, hx: State | None, x: Tensor) -> State | None:
        if hx is None:
            return None  # `run` has the weights that a state may start from
        autocast = torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(x.device.type)
        x = x.to(self._like.dtype) if autocast and self.field == "complex" else x
        self._check_state(hx, x)
        return as_type(hx, x.dtype) if autocast else hx

    def _check_state(self, hx: State, x: Tensor) -> None:
        """Compare with the shapes of an initial state, which is made only once and where they do not fit."""
        if torch.compiler.is_compiling() or not self._fits(hx, x):
            check_state(hx, self.init_state(x.shape[1], device=x.device, dtype=x.dtype))

    def _fits(self, hx: State, x: Tensor) -> bool:
        known = self.__dict__.setdefault("_known_states", {})
        found = known.get(x.dtype)
        if found is None:
            like, spec = tree_flatten(self.init_state(1, device=x.device, dtype=x.dtype))
            found = spec, [(leaf.shape, leaf.dtype) for leaf in like]
            if not tracing():  # a trace is made twice, and must be the same both times
                known[x.dtype] = found
        spec, like = found
        return fits(hx, spec, like, x.shape[1], self.batch_axis)

    def _check_width(self, x: Tensor, name: str) -> None:
        own = self._like.dtype
        super()._check_width(x, name)
        if x.dtype != own and not torch.is_autocast_enabled(x.device.type):
            raise expected(name, f"of the parameters' type {own}", x.dtype)
        if self.field == "complex" and x.dtype == own:
            self._real_dtype(own)  # refuses 16 bits

    def _real_dtype(self, dtype: torch.dtype | None) -> torch.dtype:
        real = super()._real_dtype(dtype)
        if self.field == "complex" and real not in (torch.float32, torch.float64):
            raise UserError(f"a complex network must be float32 or float64 (complex64, complex128), got {real}")
        return real

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training) if self.dropout else x

    def _join(self, cells: list[Any]) -> State:
        return join_cells(cells, self.batch_axis)

    def _split(self, state: State) -> list[Any]:
        return split_cells(state, self.batch_axis, len(self._layers))

    def _reverse(self, x: Tensor, lengths: Tensor | None) -> Tensor:
        # Members may stand in front of time.
        return reverse(x, lengths, time=-3 if self.input_axes == 1 else 0)
