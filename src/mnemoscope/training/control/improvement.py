"""Improvement of a policy by what was played: the clipped objective of proximal policy optimisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.nn.state import State
from mnemoscope.training.control.advantage import advantages
from mnemoscope.training.control.agent import answers, renewed, room
from mnemoscope.training.control.playing import Player, Rollout
from mnemoscope.training.control.settings import PPO
from mnemoscope.training.descent import Descent, autocast

__all__ = ["Improvement", "Minibatch", "Pieces", "minibatch", "objective"]


class Minibatch(NamedTuple):
    """Some sequences of a rollout, (recurrence, sequences): what their loss needs besides the network's answers."""

    actions: Int64[Tensor, "time sequences"]
    log_probabilities: Float[Tensor, "time sequences"]
    values: Float[Tensor, "time sequences"]
    advantages: Float[Tensor, "time sequences"]


class Pieces(NamedTuple):
    """Sequences cut where episodes begin, so that a network runs over each piece without an interruption.

    Attributes
    ----------
    seen
        Observations (time, pieces), those of a piece first, then repetitions of some that nothing depends on.
    state
        State that each piece starts from.
    times, pieces
        Where step t of sequence s is found: ``answers[times[t, s], pieces[t, s]]``.
    """

    seen: Any
    state: State
    times: Int64[Tensor, "time sequences"]
    pieces: Int64[Tensor, "time sequences"]


def objective(
    log_probabilities: Float[Tensor, "time sequences actions"],
    values: Float[Tensor, "time sequences"],
    batch: Minibatch,
    settings: PPO,
) -> Float[Tensor, ""]:
    """Return L = - mean min(r A, clip(r) A) + c_v mean max((V - R)^2, (clip V - R)^2) - c_e mean H.

    r is the probability of what was done over that when it was done, held within 1 +- clip; V is held within clip of
    what it was; R = A + V as it was; H is the policy's entropy.

    References
    ----------
    schulman2017
    """
    clip = settings.clip
    chosen = log_probabilities.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
    ratio = (chosen - batch.log_probabilities).exp()
    gain = torch.minimum(ratio * batch.advantages, ratio.clamp(1 - clip, 1 + clip) * batch.advantages).mean()
    reached = batch.advantages + batch.values
    held = batch.values + (values - batch.values).clamp(-clip, clip)
    error = torch.maximum((values - reached).square(), (held - reached).square()).mean()
    entropy = -(log_probabilities.exp() * log_probabilities).sum(-1).mean()
    return -gain + settings.value * error - settings.entropy * entropy


class Improvement(Descent):
    """What an update does to an agent: several passes over a rollout, in minibatches of whole sequences.

    Parameters
    ----------
    player
        Whose agent, options and settings these are.
    """

    def __init__(self, player: Player) -> None:
        super().__init__(player.model, player.options)
        self.player, self.settings = player, player.settings
        self._returns = torch.zeros(3, dtype=torch.float64)

    def __call__(self, batches: Sequence[Any]) -> list[float]:
        """Learn from the one rollout of a sequence, and return the mean loss of its minibatches."""
        rollout: Rollout = batches[0]
        with room(self.model, self.player.steps):
            losses = [self._improve(batch, pieces) for batch, pieces in self._minibatches(rollout)]
        self._returns[:2] += rollout.returns.double().cpu()
        return [float(torch.stack(losses).mean())]

    def _minibatches(self, rollout: Rollout) -> Any:
        settings, player = self.settings, self.player
        own = rollout.own
        found = advantages(own.rewards, own.values, own.ended, rollout.last, settings.discount, settings.trace)
        begins = rollout.context.begins.cpu()
        size = max(1, self.options.batch_size // player.recurrence)
        for order in rollout.orders:
            for chosen in order.split(size):
                with autocast(self._like, self.options):
                    states = burnt_in(self.model, rollout, chosen, settings)
                yield (
                    minibatch(rollout, found, chosen, settings),
                    cut(self.model, rollout, begins, chosen, states, settings),
                )

    def _improve(self, batch: Minibatch, pieces: Pieces) -> Tensor:
        with autocast(self._like, self.options):
            hidden, _ = self.model.hidden(pieces.seen, pieces.state)
            given = self.model.answers(hidden)
        logs, values = answers(given[pieces.times, pieces.pieces], batch.values)
        loss = objective(logs, values, batch, self.settings)
        self.descend(loss)
        return loss.detach()

    def scores(self) -> list[float]:
        """Return the mean return of the episodes that ended since the last line; of none, what it was before."""
        total, count, before = self._returns.tolist()
        mean = total / count if count else before
        self._returns = torch.tensor([0.0, 0.0, mean], dtype=torch.float64)
        return [mean]

    def tensors(self) -> dict[str, Tensor]:
        """Return weights, optimiser and the returns that no line has told yet."""
        return super().tensors() | {"returns": self._returns.clone()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        super().load(tensors)
        self._returns = tensors["returns"].cpu().clone()


def minibatch(rollout: Rollout, found: Tensor, chosen: Int64[Tensor, " sequences"], settings: PPO) -> Minibatch:
    """Return the columns of some sequences."""
    own = rollout.own
    columns = (own.actions, own.log_probabilities, own.values, found)
    return Minibatch(*(_sequences(column, chosen, settings) for column in columns))


def _sequences(column: Tensor, chosen: Tensor, settings: PPO) -> Tensor:
    """Return sequences (recurrence, sequences, ..) of a column (frames, worlds, ..)."""
    assert settings.recurrence is not None
    parts = column.reshape(-1, settings.recurrence, *column.shape[1:]).transpose(1, 2).flatten(0, 1)
    found: Tensor = parts[chosen.to(column.device)].transpose(0, 1)
    return found


@torch.no_grad()
def burnt_in(model: Any, rollout: Rollout, chosen: Int64[Tensor, " sequences"], settings: PPO) -> State:
    """Return the states before some sequences: those of the rollout, or what the steps before make of earlier ones."""
    layer, worlds = model.layer, rollout.context.begins.shape[1]
    axis = layer.batch_axis
    joined = tree_map(lambda *leaves: torch.cat(leaves, dim=axis), *rollout.states)
    state = tree_map(lambda leaf: leaf.index_select(axis, chosen.to(leaf.device)), joined)
    if not settings.burn_in:
        return state
    assert settings.recurrence is not None
    first, copies = chosen // worlds * settings.recurrence, chosen % worlds
    fresh = layer.init_state(len(chosen), device=rollout.numbers.device, dtype=rollout.numbers.dtype)
    advance = layer.stepper()
    for t in range(settings.burn_in):
        where = (first + t, copies)
        seen = tree_map(lambda leaf, where=where: leaf[where], rollout.context.seen)
        x = seen if model.embedding is None else model.embedding(seen)
        _, state = advance(x, renewed(layer, state, rollout.context.begins[where], fresh))
    after = rollout.context.begins[first + settings.burn_in, copies]
    return renewed(layer, state, after, fresh)


def cut(
    model: Any, rollout: Rollout, begins: Tensor, chosen: Int64[Tensor, " sequences"], states: State, settings: PPO
) -> Pieces:
    """Return sequences as pieces that no episode begins within.

    Parameters
    ----------
    begins
        Where episodes begin, on the CPU.
    states
        Before the sequences.
    """
    assert settings.recurrence is not None
    length, worlds = settings.recurrence, rollout.context.begins.shape[1]
    first, copies = chosen // worlds * length + settings.burn_in, chosen % worlds
    steps = torch.arange(length)[:, None]
    new = begins[first + steps, copies]
    new[0] = True  # every sequence is a piece at least
    # Pieces are numbered sequence by sequence; of each, the place in time and the sequence it begins at.
    sequence, start = new.T.nonzero(as_tuple=True)
    pieces = new.T.flatten().cumsum(0).reshape(-1, length).T - 1
    times = steps - start[pieces]
    longest = int(times.max()) + 1
    inside = (start + torch.arange(longest)[:, None]).clamp(max=length - 1)
    device = rollout.numbers.device
    where = ((first[sequence] + inside).to(device), copies[sequence].to(device))
    seen = tree_map(lambda leaf: leaf[where], rollout.context.seen)
    layer = model.layer
    fresh = layer.init_state(len(start), device=device, dtype=rollout.numbers.dtype)
    spread = tree_map(lambda leaf: leaf.index_select(layer.batch_axis, sequence.to(device)), states)
    state = renewed(layer, spread, ((start > 0) | begins[first, copies][sequence]).to(device), fresh)
    return Pieces(seen, state, times.to(device), pieces.to(device))
