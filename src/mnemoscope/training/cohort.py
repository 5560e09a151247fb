"""One step of training many networks of one shape at once: their parameters stacked, each moved by its own gradient."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from mnemoscope.nn.members import map_members
from mnemoscope.nn.stack import Stack
from mnemoscope.tasks import Batch, Task
from mnemoscope.training.cautions import penalised
from mnemoscope.training.descent import as_real, base_rates, decaying, full_state, part, trained_parameters
from mnemoscope.training.model import Model
from mnemoscope.training.objective import Buffers, Loss, aligned, is_plain, quick_score, stacked_losses
from mnemoscope.training.options import Options
from mnemoscope.training.step import needs_after_step, prepared

__all__ = ["CohortStep"]


class _Mapped(nn.Module):
    """The part of a network that is mapped over the members: its outputs, its penalty and its state."""

    def __init__(self, model: Model, penalised: bool, answers: bool) -> None:
        super().__init__()
        self.model, self.penalised, self.with_answers = model, penalised, answers

    def forward(self, inputs: Any, hx: Any) -> Any:
        """Return outputs (or answers), penalty and state."""
        hidden, state = self.model.hidden(inputs, hx)
        y = self.model.answers(hidden) if self.with_answers else hidden
        return y, self.model.penalty() if self.penalised else hidden.new_zeros(()), state


class CohortStep:
    """What training does to K networks of one shape, step by step; the same as `Step` does to each alone.

    Parameters
    ----------
    models
        The members; their weights are copied, and come back by `load_into`.
    task
        Of all of them.
    options
        One for each member: rates and penalties may differ, and seeds, but nothing else.
    loss
        An own loss instead of the task's.
    """

    def __init__(
        self, models: Sequence[Model], task: Task, options: Sequence[Options], loss: Loss | None = None
    ) -> None:
        self.task, self.member_options, self.options = task, list(options), options[0]
        self.size = len(models)
        self.model = deepcopy(models[0])
        self.names, _ = trained_parameters(self.model)
        states = [full_state(model) for model in models]
        stacked = {name: torch.stack([state[name].detach() for state in states]) for name in states[0]}
        self.stacked: dict[str, Tensor] = {name: t.requires_grad_(name in self.names) for name, t in stacked.items()}
        rates = [base_rates(self.model, one) for one in options]
        self.base_rates = {name: [rate[name] for rate in rates] for name in self.names}
        self.factors = [1.0] * self.size
        decays = decaying(self.model, self.options)
        self.optimiser = self.options.optimiser(
            as_real(self._parameters()), self._rates(), [name in decays for name in self.names]
        )
        self.clipping = self.options.clipping
        self._recurrent = [i for i, name in enumerate(self.names) if name in self.model.recurrent_parameters]
        self._penalised = penalised(self.model, [one.penalty for one in options])
        self._follow = needs_after_step(self.model)
        linear = type(self.model.readout) is nn.Linear and not self.model.once
        self._fast = linear and loss is None and is_plain(task)
        self._loss = loss or task.loss
        self._buffers = Buffers()
        self.carry: Any = None
        self.carries = False
        self.last: tuple[Tensor, list[Batch]] | None = None

    def _parameters(self) -> list[Tensor]:
        return [self.stacked[name] for name in self.names]

    def _rates(self) -> list[float | Tensor]:
        like = self._parameters()[0]
        real = like.dtype.to_real() if like.is_complex() else like.dtype
        return [
            torch.tensor([f * r for f, r in zip(self.factors, self.base_rates[name], strict=True)], dtype=real)
            for name in self.names
        ]

    def __call__(self, batches: Sequence[Batch]) -> list[float]:
        """Make one step of every member on its own batch, and return their losses before the step."""
        self.last = None  # so that its memory is free for this step: a fresh piece of this size is slow
        masks = [batch.mask for batch in aligned(batches)]
        batches = [prepared(batch, self._like, self.options) for batch in batches]
        hidden, penalties, state = self._forward(batches, self._penalised, answers=not self._fast)
        losses = (
            stacked_losses(self.task, hidden, aligned(batches), self.stacked, self._buffers, masks)
            if self._fast
            else self._own_losses(hidden, batches)
        )
        if self.carries:
            self.carry = tree_map(Tensor.detach, state)
        # The gradient of the sum is for each member that of its own loss.
        total = losses.sum()
        if self._penalised:
            weights = torch.tensor([one.penalty for one in self.member_options], dtype=penalties.dtype)
            total = total + (weights.to(penalties.device) * penalties).sum()
        self.optimiser.take(as_real(torch.autograd.grad(total, self._parameters(), allow_unused=True)))
        if self.clipping is not None:
            self.clipping(self.optimiser, self._recurrent, self.size)
        self.optimiser.step()
        if self._follow:
            self._after_step()
        self.last = hidden.detach(), batches
        found: list[float] = losses.detach().tolist()
        return found

    @property
    def _like(self) -> Tensor:
        return self.stacked[self.names[0]]

    def _forward(self, batches: list[Batch], penalised: bool, answers: bool, carry: Any = None) -> Any:
        inputs = tree_map(lambda *parts: torch.stack(parts), *(batch.inputs for batch in aligned(batches)))
        carry = self.carry if carry is None else carry
        layer, weights = self.model.layer, self.stacked
        if isinstance(layer, Stack) and not (layer.batch_first or penalised or answers):
            embedding = self.model.embedding
            x = (
                torch.vmap(self.model.arranged)(inputs)
                if embedding is None
                else map_members(embedding, part(weights, "embedding."), inputs)
            )
            hidden, state = layer.run_members(part(weights, "layer."), x, carry, randomness="error")
            return hidden, hidden.new_zeros(self.size), state
        call = _Mapped(self.model, penalised, answers)
        named = {f"model.{name}": tensor for name, tensor in weights.items()}
        return map_members(call, named, inputs, carry, randomness="error")

    def _own(self, outputs: Tensor, batches: list[Batch]) -> list[Tensor]:
        """Return the outputs of every member, without the steps that only others have."""
        if self.model.once:
            return list(outputs)
        return [y[: len(batch.mask)] for y, batch in zip(outputs, batches, strict=True)]

    def _own_losses(self, answers: Tensor, batches: list[Batch]) -> Float[Tensor, " members"]:
        return torch.stack(
            [self._loss(y, batch) for y, batch in zip(self._own(answers, batches), batches, strict=True)]
        )

    @torch.no_grad()
    def scores(self) -> list[float]:
        """Return the score of each member on its batch of the last step, with the outputs before it."""
        assert self.last is not None
        hidden, batches = self.last
        weight, bias = self.stacked.get("readout.weight"), self.stacked.get("readout.bias")

        def answers(k: int, h: Tensor) -> Tensor:
            return F.linear(h, weight[k], None if bias is None else bias[k]) if weight is not None and self._fast else h

        each = enumerate(zip(self._own(hidden, batches), batches, strict=True))
        return [quick_score(self.task, partial(answers, k), h, batch) for k, (h, batch) in each]

    @torch.no_grad()
    def outputs(self, batches: Sequence[Batch], carry: Any = None) -> tuple[list[Tensor], list[Batch], Any]:
        """Return the answers of each member to its batch, the batches in the networks' numbers, and the last states."""
        own = [prepared(batch, self._like, self.options) for batch in batches]
        kept, self.carry = self.carry, None
        try:
            answers, _, state = self._forward(own, penalised=False, answers=True, carry=carry)
        finally:
            self.carry = kept
        return self._own(answers, own), own, state

    def set_rates(self, factors: Sequence[float]) -> None:
        """Multiply the rates that training began with, of each member by its own factor."""
        self.factors = list(factors)
        self.optimiser.set_rates(self._rates())

    @torch.no_grad()
    def _after_step(self) -> None:
        own = full_state(self.model)
        for k in range(self.size):
            for name, tensor in own.items():
                tensor.copy_(self.stacked[name][k])
            self.model.after_step()
            for name, tensor in own.items():
                self.stacked[name][k].copy_(tensor)

    @torch.no_grad()
    def keep(self, members: Sequence[int]) -> None:
        """Go on with some of the members."""
        index = torch.tensor(list(members))
        self.stacked = {name: t.detach()[index].requires_grad_(name in self.names) for name, t in self.stacked.items()}
        self.size = len(members)
        self.member_options = [self.member_options[k] for k in members]
        self.base_rates = {name: [rates[k] for k in members] for name, rates in self.base_rates.items()}
        self.factors = [self.factors[k] for k in members]
        self.optimiser = self.optimiser.kept(as_real(self._parameters()), self._rates(), index)
        self.carry = None if self.carry is None else tree_map(lambda leaf: leaf[index], self.carry)
        if self.last is not None:
            hidden, batches = self.last
            self.last = hidden[index], [batches[k] for k in members]

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, copied, but for the generators."""
        found = {f"model/{name}": tensor for name, tensor in self.stacked.items()}
        found |= {f"optimiser/{name}": tensor for name, tensor in self.optimiser.tensors().items()}
        leaves = [] if self.carry is None else tree_leaves(self.carry)
        found |= {f"carry/{i}": leaf for i, leaf in enumerate(leaves)}
        return {name: tensor.detach().clone() for name, tensor in found.items()}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        for name, tensor in part(tensors, "model/").items():
            self.stacked[name].copy_(tensor)
        self.optimiser.load(part(tensors, "optimiser/"))
        leaves = part(tensors, "carry/")
        if leaves:
            structure = tree_flatten(self.model.layer.init_state(1))[1]
            self.carry = tree_unflatten([leaves[str(i)] for i in range(len(leaves))], structure)

    def state(self, member: int = 0) -> dict[str, Tensor]:
        """Return a copy of the parameters and buffers of one member."""
        return {name: tensor[member].detach().clone() for name, tensor in self.stacked.items()}

    @torch.no_grad()
    def load_state(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Give one member other parameters and buffers."""
        for name, tensor in self.stacked.items():
            tensor[member].copy_(state[name])

    def finite(self) -> list[bool]:
        """Say of each member whether all its parameters are finite."""
        rows = torch.stack([p.detach().flatten(1).isfinite().all(1) for p in self._parameters()])
        found: list[bool] = rows.all(0).tolist()
        return found

    def train_mode(self, training: bool) -> None:
        """Switch between learning and answering."""
        self.model.train(training)
