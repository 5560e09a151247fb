"""Foreign modules as networks: a cell, a recurrent module over whole sequences, a block without a state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from copy import deepcopy
from typing import Any, ClassVar, Self

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_leaves, tree_map

from mnemoscope.core.errors import UserError
from mnemoscope.nn.adapt.call import pick
from mnemoscope.nn.adapt.plan import Plan
from mnemoscope.nn.adapt.probe import keep_computed
from mnemoscope.nn.network import Network
from mnemoscope.nn.ops.scan import mask_of, scan
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork, by_length
from mnemoscope.nn.state import State, index_batch

__all__ = ["AdaptedCell", "AdaptedRecurrent", "AdaptedSequence"]


class _Adapted(Network):
    """What all adapted networks share: the module inside, what was guessed of it, and drawing it anew.

    Attributes
    ----------
    module
        The module as it was given.
    guesses
        What was guessed about it, in plain words.
    reading
        What was understood of it, in one sentence.
    fixed_length
        The only number of steps that it takes; None: it takes every one.
    unread
        Why the state that it seems to have was left alone; empty where there is none.
    """

    declares: ClassVar[bool] = False
    module: nn.Module
    guesses: tuple[str, ...]
    reading: str
    fixed_length: int | None
    unread: str

    def __init__(self, module: nn.Module, plan: Plan, batch_first: bool) -> None:
        super().__init__()
        self._layers = []
        self.module = module
        self.training = module.training
        self.input_size = plan.input_size
        self.output_size = plan.output_size
        self.batch_first = batch_first
        self.guesses = plan.guesses
        self.reading, self.fixed_length, self.unread = "", plan.length, plan.unread
        self.causal = plan.causality is None or plan.causality.causal
        self.future = "" if plan.causality is None else plan.causality.reason
        self._call = plan.call

    def role_of(self, parameter: str) -> str:
        """Return what a parameter is, by torch's own names: a stranger's module declares nothing."""
        return "recurrent" if "weight_hh" in parameter else ""

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw all parameters anew: every part that has a `reset_parameters` calls it, inner ones first."""
        self._check_resettable()
        with self._random(fork=generator is not None):
            if generator is not None:
                torch.manual_seed(int(torch.randint(2**62, (), generator=generator, device=generator.device)))
            _reset(self.module)

    def _check_resettable(self) -> None:
        """Refuse to keep old values in silence: draw a copy that has no values, and see what still has none."""
        twin = deepcopy(self).module
        with torch.no_grad(), self._random(fork=True):
            for parameter in twin.parameters():
                parameter.fill_(torch.nan)
            _reset(twin)
        for name, parameter in twin.named_parameters():
            if bool(parameter.isnan().any()):
                raise UserError(
                    f"{type(self.module).__name__}.reset_parameters() must draw every parameter anew, "
                    f"got {name!r} left as it was; write such a method, or give a function that builds the module"
                )

    def _random(self, fork: bool) -> AbstractContextManager[None]:
        cuda = sorted({p.device.index or 0 for p in self.parameters() if p.device.type == "cuda"})
        return torch.random.fork_rng(cuda, enabled=fork)

    def extra_repr(self) -> str:
        """Sizes, then what was guessed."""
        sizes = f"input_size={self.input_size}, output_size={self.output_size}"
        return "\n".join([f"{sizes}, batch_first={self.batch_first}", *(f"guessed: {each}" for each in self.guesses)])

    def __reduce__(self) -> Any:
        return _blank, (type(self),), self.__dict__  # as torch.nn.Module: no constructor builds it again

    def __repr__(self) -> str:
        return nn.Module.__repr__(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = nn.Module.__new__(type(self))
        memo[id(self)] = twin
        keep_computed(self, memo)
        with torch.no_grad():  # TorchScript copies parameters by an operation that autograd would record
            twin.__dict__ = deepcopy(self.__dict__, memo)
        for own, copied in zip(self.parameters(), twin.parameters(), strict=True):
            copied.requires_grad_(own.requires_grad)
        return twin


class _AdaptedStateful(_Adapted, Recurrent):
    """An adapted network with a state; a subclass says how the module is run.

    Attributes
    ----------
    hidden_size
        Units, where the module says so; else the last axis of its state.
    """

    def __init__(self, module: nn.Module, plan: Plan, batch_first: bool = False) -> None:
        super().__init__(module, plan, batch_first)
        assert plan.layout is not None
        assert plan.start is not None
        self._layout, self._start = plan.layout, plan.start
        self.batch_axis = plan.layout.batch_axis
        stated = getattr(module, "hidden_size", None)
        self.hidden_size = stated if isinstance(stated, int) else tree_leaves(plan.layout.leaves)[0].shape[-1]

    def init_state(
        self, batch: int, *, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> State:
        """Return the state before the first input, in torch's layout or with the batch in front."""
        like = next((t for t in numbers_of(self.module) if t.is_floating_point()), torch.zeros(()))
        return self._layout.outer(self._start(self.module, batch, device or like.device, dtype or like.dtype))


class AdaptedCell(_AdaptedStateful):
    """A cell, ``(x, state) -> state`` or ``(output, state)``, as a network."""

    def step(self, x: Float[Tensor, "batch input"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Return the output and the state after one input."""
        self._check_width(x, "x")
        output, after = self._call(self.module, x, self._layout.inner(state))
        return output, self._layout.outer(after)

    def run(
        self, x: Float[Tensor, "time batch input"], state: State, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch output"], State]:
        """Run whole sequences, one step after the other."""
        mask = None
        if lengths is not None:
            mask = mask_of(lengths, x)
        front = tree_map(lambda leaf: leaf.movedim(self.batch_axis, 0), state)
        y, last = scan(self._front_step, x, front, mask)
        return y, tree_map(lambda leaf: leaf.movedim(0, self.batch_axis), last)

    def _front_step(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        output, after = self.step(x, tree_map(lambda leaf: leaf.movedim(0, self.batch_axis), state))
        return output, tree_map(lambda leaf: leaf.movedim(self.batch_axis, 0), after)


class AdaptedRecurrent(_AdaptedStateful):
    """A recurrent module over whole sequences as a network; a step is a sequence of one."""

    def step(self, x: Float[Tensor, "batch input"], state: State) -> tuple[Float[Tensor, "batch output"], State]:
        """Return the output and the state after one input."""
        self.require_causal("step")
        self._check_width(x, "x")
        output, after = self._whole(x.unsqueeze(0), state)
        return output.squeeze(0), after

    def run(
        self, x: Float[Tensor, "time batch input"], state: State, lengths: Tensor | None
    ) -> tuple[Float[Tensor, "time batch output"], State]:
        """Run whole sequences in as few calls of the module as there are lengths."""
        if lengths is None or int(lengths.min()) == x.shape[0]:
            return self._whole(x, state)
        return self._segments(x, state, lengths) if self.causal else self._groups(x, state, lengths)

    def _whole(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        output, after = self._call(self.module, x, self._layout.inner(state))
        return output, self._layout.outer(after)

    def _segments(self, x: Tensor, state: State, lengths: Tensor) -> tuple[Tensor, State]:
        """Run from one end of a sequence to the next, each time without those that have ended."""
        begin, outputs, ended = 0, [], []
        for end in sorted(set(lengths.tolist())):
            alive, rest = int((lengths >= end).sum()), int((lengths > end).sum())
            y, state = self._whole(x[begin:end, :alive], state)
            outputs.append(torch.cat([y, y.new_zeros(y.shape[0], x.shape[1] - alive, y.shape[2])], dim=1))
            ended.append(self._examples(state, rest, alive))
            state, begin = self._examples(state, 0, rest), end
        last = tree_map(lambda *leaves: torch.cat(leaves, dim=self.batch_axis), *reversed(ended))
        return torch.cat(outputs), last

    def _groups(self, x: Tensor, state: State, lengths: Tensor) -> tuple[Tensor, State]:
        """Run sequences of one length together: who reads the future must not see padding there."""
        order, ended = [], []

        def run(group: Tensor, rows: Tensor) -> Tensor:
            y, after = self._whole(group, index_batch(state, rows, self.batch_axis))
            order.append(rows)
            ended.append(after)
            return y

        y = by_length(run, x, lengths)
        last = tree_map(lambda *leaves: torch.cat(leaves, dim=self.batch_axis), *ended)
        return y, index_batch(last, torch.cat(order).argsort(), self.batch_axis)

    def _examples(self, state: State, first: int, last: int) -> State:
        return tree_map(lambda leaf: leaf.narrow(self.batch_axis, first, last - first), state)


class AdaptedSequence(_Adapted, SequenceNetwork):
    """A block without a state as a network."""

    def __init__(self, module: nn.Module, plan: Plan, batch_first: bool = False) -> None:
        super().__init__(module, plan, batch_first)

    def run(
        self, x: Float[Tensor, "time batch input"], lengths: Int[Tensor, " batch"] | None
    ) -> Float[Tensor, "time batch output"]:
        """Run whole sequences."""
        if lengths is None or int(lengths.min()) == x.shape[0]:
            return self._whole(x)
        if not self.causal:
            return by_length(lambda group, rows: self._whole(group), x, lengths)
        y = self._whole(x)
        ended = torch.arange(x.shape[0], device=x.device)[:, None] >= lengths.to(x.device)
        return y.masked_fill(ended[..., None], 0.0)

    @property
    def answers_once(self) -> bool:
        """Whether the module answers once, after the last step."""
        return self._call.prefixes

    def last(self, x: Float[Tensor, "time batch input"]) -> Float[Tensor, "batch output"]:
        """Return the output at the last step: of a module that answers once, by one call."""
        return self._call.answer(self.module, x) if self.answers_once else super().last(x)

    def beside_output(self, x: Float[Tensor, "time batch input"]) -> dict[str, Tensor]:
        """Return the tensors that the module gives beside its output, by their places in what it returns."""
        returned = self._call.returned(self.module, x)
        output = pick(returned, self._call.output)
        leaves = tree_flatten_with_path(returned)[0]
        return {
            f"returned{keystr(path)}": leaf for path, leaf in leaves if isinstance(leaf, Tensor) and leaf is not output
        }

    def _whole(self, x: Tensor) -> Tensor:
        return self._call.outputs(self.module, x)


def numbers_of(module: nn.Module) -> Iterator[Tensor]:
    """Yield parameters and buffers, and tensors that are plain attributes: a reservoir may have no others."""
    yield from module.parameters()
    yield from module.buffers()
    for part in module.modules():
        yield from (value for value in vars(part).values() if isinstance(value, Tensor))


def _blank(cls: type[_Adapted]) -> _Adapted:
    return nn.Module.__new__(cls)


def _reset(module: nn.Module) -> None:
    for part in reversed(list(module.modules())):
        # torch's attention has the method with an underscore.
        reset = getattr(part, "reset_parameters", None) or getattr(part, "_reset_parameters", None)
        if reset is not None:
            reset()
