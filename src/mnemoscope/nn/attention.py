"""Recurrent networks that attend to their own past states: what all of them share, whatever they remember."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor

from mnemoscope.core.errors import UserError, choice, expected, positive_int
from mnemoscope.nn.first_order import FirstOrder
from mnemoscope.nn.networks.gated import LSTM
from mnemoscope.nn.ops.attention import combine, read, scores, softmax, top
from mnemoscope.nn.ops.attentive import Inputs, Plan, attentive_recurrence
from mnemoscope.nn.ops.recurrence import last_alive
from mnemoscope.nn.ops.scan import forward_mode, mask_of, transforming
from mnemoscope.nn.registry import get
from mnemoscope.nn.stack import Layer, Stack, StackOptions, Weights
from mnemoscope.nn.state import State

__all__ = ["Attention", "Attentive", "AttentiveOptions", "Past", "put"]


class Past(NamedTuple):
    """A memory of past states: the state of one layer.

    Attributes
    ----------
    macro
        The macro-state s_t.
    carried
        What the core carries beside it: the cell of an LSTM, or nothing.
    states
        Past states in slots.
    steps
        The step, from 0, whose state a slot holds; -1: none.
    length
        Steps so far.
    """

    macro: Float[Tensor, "batch n"]
    carried: tuple[Tensor, ...]
    states: Float[Tensor, "batch slots n"]
    steps: Int[Tensor, "batch slots"]
    length: Int[Tensor, " batch"]


class Attention(NamedTuple):
    """Weights that states received.

    Attributes
    ----------
    weights
        Weight of each slot at each step.
    steps
        The step, from 0, whose state a slot held; -1: none.
    """

    weights: Float[Tensor, "time batch heads slots"]
    steps: Int[Tensor, "time batch slots"]

    def matrix(self) -> Float[Tensor, "batch time past"]:
        """Return alpha[b, t, i], the weight of the state of step i at the t-th step of the call, mean over heads."""
        time, batch, _, _ = self.weights.shape
        past = max(time, int(self.steps.max()) + 1)
        dense = self.weights.new_zeros(time, batch, past)
        return dense.scatter_add(-1, self.steps.clamp(min=0), self.weights.mean(2)).transpose(0, 1)  # empty slots add 0


class AttentiveOptions(StackOptions, total=False):
    """The options that every network with attention to past states takes."""

    combine: str
    alignment: str
    heads: int
    readout: str


class Attentive(Stack):
    """s_t = f(h_t, c_t), c_t = sum_i alpha_i h_i over remembered states; a subclass says which are remembered.

    The core makes h_t from the macro-state s_{t-1} where it would take h_{t-1}.

    Parameters
    ----------
    core
        The recurrent network: ``"rnn"``, ``"orth-rnn"``, ``"exprnn"`` or any other first-order network of real numbers,
        or ``"lstm"``.
    nonlinearity
        phi of a first-order core; by default the core's own.
    combine
        The macro-state: ``"sum"``, h + c; ``"mean"``, (h + c)/2; ``"concat"``, [h, c].
    alignment
        ``"additive"``, v . tanh(W s_{t-1} + U h_i); ``"dot"``, (W s_{t-1}) . (U h_i) / sqrt(n).
    heads
        Parts of the units, each with weights of its own.
    readout
        What is given out: ``"s"``, the macro-state, or ``"h"``.
    """

    batch_axis = 0
    top: int | None = None
    buffer: int = 0
    screens: bool = False
    full_after: int = 0
    """Steps after which no slot that `slots` counts is empty, where all examples have come as far."""

    def __init__(
        self,
        input_size: int | tuple[int, ...],
        hidden_size: int,
        num_layers: int = 1,
        *,
        core: str = "rnn",
        nonlinearity: str | None = None,
        combine: str = "sum",
        alignment: str = "additive",
        heads: int = 1,
        readout: str = "s",
        **common: Unpack[StackOptions],
    ) -> None:
        self.core = _checked_core(core)
        self.nonlinearity = nonlinearity
        self.combine = choice("combine", combine, ("sum", "mean", "concat"))
        self.alignment = choice("alignment", alignment, ("additive", "dot"))
        self.heads = positive_int("heads", heads)
        self.readout = choice("readout", readout, ("s", "h"))
        super().__init__(input_size, hidden_size, num_layers, **common)

    def _checked_hidden_size(self, hidden_size: Any) -> int:
        size = positive_int("hidden_size", hidden_size)
        if size % self.heads:
            raise expected("hidden_size", f"a multiple of heads = {self.heads}", size)
        return size

    # The memory -----------------------------------------------------------------------------------

    @abstractmethod
    def store(self, memory: Any, h: Tensor) -> Any:
        """Return the memory with new states h (batch, ..) in it; what a slot holds may be of any type."""

    @abstractmethod
    def slots(self, count: int) -> int:
        """Return the number of leading slots that may be filled after so many steps."""

    def attended(self, memory: Any, weights: Float[Tensor, "batch heads slots"]) -> Any:
        """Return the memory after its slots received these weights."""
        return memory

    def keep(self, memory: Any, row: int, count: int) -> None:
        """Do in place what `store` does, of one number of a row after `count` steps of all examples (`keeps`)."""

    @property
    def keeps(self) -> bool:
        """Whether there is a `keep`."""
        return False

    def enter(self, memory: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Return the macro-state and what else the core starts a step from."""
        return memory.macro, memory.carried

    def cuts(self, count: int, steps: int) -> frozenset[int]:
        """Return the steps of a call before which no gradient goes back through the recurrence."""
        return frozenset()

    # The cell -------------------------------------------------------------------------------------

    def declare(self, layer: Layer) -> None:
        """Create the core's weights, and W, U, v of the alignment."""
        options: dict[str, Any] = {} if self.nonlinearity is None else {"nonlinearity": self.nonlinearity}
        core: Any = get(self.core)(layer.input_size, self.hidden_size, bias=self.bias, device="meta", **options)
        self._cores = (core,)  # in a tuple, it is no submodule: the weights are this network's
        n, macro = self.hidden_size, self.macro_size
        for name, full in core._layers[0].names.items():
            role = core._layers[0].roles[name]
            if core.transition(full) is not None:
                self.constrain(name, core.make_transition(), role)
            else:
                self.parameter(name, *getattr(core, full).shape, init=core._initialisers[full], role=role)
        if self.combine == "concat":
            self.parameter("weight_context", len(core.weight_ih_l0), n, role="recurrent")
        self.parameter("weight_query", n, macro)
        self.parameter("weight_key", n, n)
        if self.alignment == "additive":
            self.parameter("weight_score", n)

    @property
    def macro_size(self) -> int:
        """Units of the macro-state."""
        return 2 * int(self.hidden_size) if self.combine == "concat" else int(self.hidden_size)

    @property
    def cell_output_size(self) -> int:
        """Numbers that one cell gives out per step."""
        return self.macro_size if self.readout == "s" else int(self.hidden_size)

    def start(self, w: Weights, batch: int, **factory: Any) -> Any:
        """Return an empty memory."""
        slots = self._slots_for(factory.pop("capacity", 0))
        return self._empty(batch, slots, factory)

    def _slots_for(self, capacity: int) -> int:
        return max(1, self.slots(capacity))

    def _empty(self, batch: int, slots: int, factory: dict[str, Any]) -> Any:
        zeros = self._zeros(batch, self.macro_size, **factory)
        carried = (self._zeros(batch, self.hidden_size, **factory),) if self.core == "lstm" else ()
        steps = torch.full((batch, slots), -1, device=factory["device"])
        count = torch.zeros(batch, dtype=torch.int64, device=factory["device"])
        return Past(zeros, carried, self._zeros(batch, slots, self.hidden_size, **factory), steps, count)

    def drive(self, w: Weights, x: Float[Tensor, "*time batch input"]) -> Tensor:
        """Return what the core makes of the input."""
        driven: Tensor = self._cores[0].drive(w, x)
        return driven

    def advance(self, w: Weights, a: Tensor, state: Any) -> tuple[Float[Tensor, "batch features"], Any]:
        """Advance by one step."""
        y, state, _ = self._attend(w, a, state)
        return y, state

    def _attend(self, w: Weights, a: Tensor, state: Any) -> tuple[Tensor, Any, Tensor]:
        self._require_room(state.length, 1)
        return self.remember(w, *self.produce(w, a, state), state)

    def produce(self, w: Weights, a: Tensor, state: Any) -> tuple[Float[Tensor, "batch n"], tuple[Tensor, ...]]:
        """Return the next state h of the core, and what it carries beside it, from the macro-state."""
        macro, carried = self.enter(state)
        before, n = macro[:, : self.hidden_size], self.hidden_size
        if self.combine == "concat":
            a = a + macro[:, n:] @ w["weight_context"].mT
        h, after = self._cores[0].advance(w, a, (before, *carried) if carried else before)
        return h, tuple(after[1:]) if carried else ()

    def remember(
        self, w: Weights, h: Float[Tensor, "batch n"], carried: tuple[Tensor, ...], state: Any
    ) -> tuple[Float[Tensor, "batch features"], Any, Float[Tensor, "batch heads slots"]]:
        """Return what is given out, the memory with h in it and the next macro-state, and the weights of its slots."""
        query = self.enter(state)[0] @ w["weight_query"].mT
        memory = self.store(state, h)
        fits = scores(query, memory.states @ w["weight_key"].mT, w.get("weight_score"), self.heads)
        filled = memory.steps >= 0
        weights = softmax(fits, filled) if self.top is None else top(self.top, fits, filled)
        macro = combine(self.combine, h, read(weights, memory.states))
        memory = self.attended(memory, weights)
        memory = memory._replace(macro=macro, carried=carried, length=state.length + 1)
        return (macro if self.readout == "s" else h), memory, weights

    @contextmanager
    def watched(self) -> Iterator[list[Tensor]]:
        """Yield a list that every state h is added to, by autograd's graph, as it is handed to the memory."""
        made: list[Tensor] = []
        own = self.store

        def store(memory: Any, h: Tensor) -> Any:
            made.append(h)
            return own(memory, h)

        self.__dict__["store"] = store
        try:
            yield made
        finally:
            del self.__dict__["store"]

    def _require_room(self, count: Tensor, steps: int) -> None:
        """Refuse steps for which a memory that grows has no room, where values can be seen."""
        if not self.grows or self.capacity is None or torch.compiler.is_compiling() or transforming() or count.is_meta:
            return
        needed = int(count.max()) + steps if count.numel() else 0
        if needed > self.capacity:
            raise UserError(f"a sequence of {needed} steps does not fit: give {type(self).__name__} capacity={needed}")

    def readout_state(self, state: State) -> State:
        """Return the macro-state of every layer, and the cells of an LSTM core."""
        return tuple((cell.macro, *cell.carried) for cell in state)

    # Whole sequences ------------------------------------------------------------------------------

    def unroll(
        self, w: Weights, x: Float[Tensor, "time batch input"], state: Any, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch features"], Any]:
        """Run whole sequences with a backward pass that keeps every state once; the plain loop where that cannot be."""
        self._require_room(state.length, x.shape[0] if lengths is None else 0)
        if not self._fuses(x, state):
            return super().unroll(w, x, state, lengths)
        inputs, memory, plan = self._fused_form(w, x, state, mask_of(lengths, x))
        h, s, cells, relevance, rows, steps, length = attentive_recurrence(plan, memory, inputs)
        # index_select: gather would keep the whole table for its backward pass
        index = (rows[..., 0] * x.shape[1] + torch.arange(x.shape[1], device=x.device)[:, None]).flatten()
        held = torch.cat([inputs.rows, h]).flatten(0, 1).index_select(0, index).view_as(state.states)
        last = (lambda parts: parts[-1].clone()) if lengths is None else (lambda parts: last_alive(parts, lengths))
        after = state._replace(
            macro=last(s),
            carried=() if cells is None else (last(cells),),
            states=torch.where((steps >= 0).unsqueeze(-1), held, state.states),
            steps=steps,
            length=length,
        )
        after = after if relevance is None else after._replace(relevance=relevance)
        y = s if self.readout == "s" else h
        return (y if plan.alive is None else torch.where(plan.alive.unsqueeze(-1), y, 0.0)), after

    def _fuses(self, x: Tensor, state: Any) -> bool:
        core = self._cores[0]
        plain = isinstance(core, LSTM) or type(core).advance is FirstOrder.advance
        watched = torch.compiler.is_compiling() or transforming() or forward_mode() or torch._C._get_tracing_state()
        seen = not watched and not x.is_meta
        return plain and seen and x.shape[1] > 0 and x.dtype in (torch.float32, torch.float64)

    def _fused_form(self, w: Weights, x: Tensor, state: Any, alive: Tensor | None) -> tuple[Inputs, Any, Plan]:
        core = self._cores[0]
        modrelu = getattr(core, "nonlinearity", "") == "modrelu"
        v = w["weight_hh"] if self.combine != "concat" else torch.cat([w["weight_hh"], w["weight_context"]], 1)
        b = w["bias_ih"] + w["bias_hh"] if "bias_ih" in w else None if modrelu else w.get("bias")
        counts = torch.stack(state.length.aminmax()).tolist()  # read once
        first = min(self.slots(counts[1]), state.steps.shape[1])
        relevance = getattr(state, "relevance", None)
        inputs = Inputs(
            x,
            w["weight_ih"],
            b,
            w.get("bias") if modrelu else None,
            v,
            w["weight_query"],
            w["weight_key"],
            w.get("weight_score"),
            state.macro,
            state.carried[0] if state.carried else None,
            state.states[:, :first].transpose(0, 1),
            relevance,
        )
        rows = torch.arange(state.steps.shape[1], dtype=torch.int32, device=x.device)
        rows = torch.where(rows < first, rows, 0).expand_as(state.steps).unsqueeze(-1)
        memory = state._replace(macro=state.length, carried=(), states=rows)
        memory = memory if relevance is None else memory._replace(relevance=relevance.detach())
        together = counts[0] == counts[1]
        plan = Plan(
            phi="lstm" if isinstance(core, LSTM) else "identity" if modrelu and "bias" not in w else core.nonlinearity,
            combine=self.combine,
            heads=self.heads,
            top=self.top,
            store=self.store,
            attended=self.attended,
            keep=self.keep if self.keeps and together and alive is None else None,
            count=counts[0],
            slots=lambda t: min(max(1, self.slots(counts[1] + t)), state.steps.shape[1]),
            buffer=self.buffer,
            screens=self.screens,
            full=self.full_after - counts[0] if self.top is None and (together or not self.grows) else x.shape[0] + 1,
            in_order=self.grows and self.top is None and together,
            alive=alive,
            cut=self.cuts(counts[1], x.shape[0]),
        )
        return inputs, memory, plan

    def attention(
        self, input: Float[Tensor, "time batch input"], hx: State | None = None, *, layer: int = 0
    ) -> Attention:
        """Return the weights that remembered states receive at every step of a sequence, in one layer.

        Parameters
        ----------
        input, hx
            As in a call.
        layer
            Which layer; of two directions the one that reads forward.
        """
        weights, x, cells = self.before_layer(input, hx, layer)
        w, state = weights[layer * self.directions], cells[layer * self.directions]
        found = []
        for a in self.drive(w, x).unbind(0):
            _, state, alpha = self._attend(w, a, state)
            found.append((alpha, state.steps))
        alphas, steps = zip(*found, strict=True)
        return Attention(torch.stack(alphas), torch.stack(steps))


def put(where: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Return slots (batch, slots, ..) with a new content (batch, ..) where a mask (batch, slots) says."""
    return torch.where(where.reshape(*where.shape, *[1] * (old.dim() - 2)), new.unsqueeze(1), old)


def _checked_core(core: Any) -> str:
    known = "rnn, orth-rnn, exprnn, another real first-order network, or lstm"
    cls = get(core) if isinstance(core, str) else None
    if cls is None or not issubclass(cls, FirstOrder | LSTM) or getattr(cls, "field", "real") != "real":
        raise expected("core", known, core)
    return str(core)
