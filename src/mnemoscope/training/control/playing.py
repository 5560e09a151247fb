"""Playing: what an agent does in many copies of an environment, as experience to learn from and as a test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from mnemoscope.core.seeds import seed_of, stream
from mnemoscope.nn.state import State
from mnemoscope.tasks.control import Environment, Worlds
from mnemoscope.training.control.agent import answers, enlarged, renewed, room, stepper
from mnemoscope.training.control.settings import PPO
from mnemoscope.training.data import Source
from mnemoscope.training.descent import autocast, part, read_as
from mnemoscope.training.model import Model
from mnemoscope.training.options import Options

__all__ = ["Experience", "Player", "Rollout", "mean_return"]

_LOOK = 32
"""Steps between two looks whether all episodes of a test have ended."""


class Experience(NamedTuple):
    """What happened, step by step: a pytree of tensors (time, copies, ..).

    Attributes
    ----------
    seen, begins
        Observation, and whether an episode begins with it.
    actions, log_probabilities, values
        What was done, the logarithm of how probable that was, what the state was worth.
    rewards, ended
        What was paid, and whether the episode ended with that.
    """

    seen: Any
    begins: Bool[Tensor, "time copies"]
    actions: Int64[Tensor, "time copies"]
    log_probabilities: Float[Tensor, "time copies"]
    values: Float[Tensor, "time copies"]
    rewards: Float[Tensor, "time copies"]
    ended: Bool[Tensor, "time copies"]


class Rollout(NamedTuple):
    """Experience to learn from.

    Attributes
    ----------
    context
        All of it, the `burn_in` steps before those to learn from included.
    own
        The steps to learn from.
    states
        State before every `recurrence`-th step of the context: each that of a sequence after its burn-in.
    last
        Value of the state after the last step.
    orders
        For every pass the order of the sequences: number ``k * copies + b`` is the k-th of copy b.
    returns
        Sum and number of the returns of episodes that ended.
    numbers
        Nothing, of the type and on the device of what the network reads.
    """

    context: Experience
    own: Experience
    states: list[State]
    last: Float[Tensor, " copies"]
    orders: Int64[Tensor, "epochs sequences"]
    returns: Float[Tensor, " 2"]
    numbers: Tensor


class _Before(NamedTuple):
    """The last steps of what was played, and states before some of them by their numbers."""

    steps: Experience
    states: dict[int, State]


class Player(Source):
    """An agent in its worlds, as the source of what it learns from."""

    def __init__(self, model: Model, environment: Environment, options: Options, settings: PPO) -> None:
        self.model, self.environment, self.options, self.settings = model, environment, options, settings
        assert settings.frames is not None
        assert settings.recurrence is not None
        self.frames, self.recurrence, self.size = settings.frames, settings.recurrence, settings.worlds
        self._like = next(p for p in model.parameters() if p.is_floating_point() and not p.is_complex())
        self._numbers = torch.empty(0, device=self._like.device, dtype=read_as(self._like, options))
        self._generator = stream(options.seed, "actions")
        self._worlds = environment.worlds(self.size, seed_of(options.seed, "batches"), device=self._like.device)
        self._begins = torch.ones(self.size, dtype=torch.bool, device=self._like.device)
        self._paid = torch.zeros(self.size, device=self._like.device)
        with torch.no_grad(), room(model, self.steps):
            self._state = self._fresh()
        self._returns = torch.zeros(2, device=self._like.device)
        self._before: _Before | None = None

    @property
    def steps(self) -> int:
        """Steps for which a memory needs room: those of an episode, and of a sequence that goes beyond its end."""
        return self.environment.steps + self.recurrence

    def _look(self) -> Any:
        """Return what is seen now, in the number type of the network."""
        return _as(self._worlds.observation, self._numbers)

    def _fresh(self) -> State:
        return self.model.layer.init_state(self.size, device=self._like.device, dtype=self._numbers.dtype)

    def next(self) -> Rollout:  # type: ignore[override]
        """Play on, and return what happened."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad(), room(self.model, self.steps), autocast(self._like, self.options):
                return self._rollout()
        finally:
            self.model.train(training)

    def _rollout(self) -> Rollout:
        context, settings = self.settings.burn_in, self.settings
        step, fresh = stepper(self.model), self._fresh()
        if context and self._before is None:
            self._before = _Before(*self._play(step, fresh, 0, context))
        self._returns = torch.zeros(2, device=self._like.device)
        own, states = self._play(step, fresh, context, self.frames)
        given, _ = step(self._look(), renewed(self.model.layer, self._state, self._begins, fresh))
        whole = own
        if self._before is not None:
            whole = tree_map(lambda a, b: torch.cat([a, b]), self._before.steps, own)
            states = {**self._before.states, **states}
            late = {number - self.frames: state for number, state in states.items() if number >= self.frames}
            self._before = _Before(tree_map(lambda leaf: leaf[-context:], whole), late)
        early = [states[number] for number in range(0, self.frames, self.recurrence)]
        sequences = len(early) * self.size
        orders = [torch.randperm(sequences, generator=self._generator) for _ in range(settings.epochs)]
        last = answers(given, self._like).value
        return Rollout(whole, own, early, last, torch.stack(orders), self._returns, self._numbers)

    def _play(self, step: Any, fresh: State, first: int, count: int) -> tuple[Experience, dict[int, State]]:
        """Play `count` steps, numbered from `first`; states are kept before every `recurrence`-th number."""
        self._worlds.foresee(count)
        noise = gumbel(count, self.size, self.environment.actions, self._generator, self._like)
        steps, states = [], {}
        for t in range(count):
            seen, begins = self._look(), self._begins
            state = renewed(self.model.layer, self._state, begins, fresh)
            if (first + t) % self.recurrence == 0:
                states[first + t] = state
            given, self._state = step(seen, state)
            logs, value = answers(given, self._like)
            action = (logs + noise[t]).argmax(-1)
            reward, ended = self._worlds.step(action)
            self._begins, paid = ended, self._paid + reward
            self._returns = self._returns + torch.stack([torch.where(ended, paid, 0.0).sum(), ended.sum()])
            self._paid = torch.where(ended, 0.0, paid)
            chosen = logs.gather(-1, action[:, None]).squeeze(-1)
            steps.append(Experience(seen, begins, action, chosen, value, reward.to(value.dtype), ended))
        return tree_map(lambda *parts: torch.stack(parts), *steps), states

    # Tests --------------------------------------------------------------------------------------

    def held_out(self, split: str) -> Iterator[Any]:
        """Give copies of the environment at the beginning of their first episodes, the same at every call."""
        size = self.options.validation_size if split == "validation" else self.options.test_size
        yield self._copies(self.environment, size, split)

    def tests(self) -> dict[str, tuple[Any, Iterator[Any]]]:
        """Return the environment's own tests."""
        made = {}
        for label, environment in self.environment.trials():
            copies = self._copies(environment, self.options.test_size, f"test/{label}")
            made[label] = (environment, iter([copies]))
        return made

    def _copies(self, environment: Environment, size: int, purpose: str) -> Worlds:
        return environment.worlds(size, seed_of(self.options.seed, purpose), device=self._like.device)

    # Coming back --------------------------------------------------------------------------------

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that the next rollout depends on, but for the weights."""
        found = {f"worlds/{name}": tensor for name, tensor in self._worlds.tensors().items()}
        found |= {f"state/{i}": leaf for i, leaf in enumerate(tree_flatten(self._state)[0])}
        found |= {"begins": self._begins, "paid": self._paid, "generator": self._generator.get_state()}
        if self._before is not None:
            found |= {f"before/{i}": leaf for i, leaf in enumerate(tree_flatten(self._before.steps)[0])}
            for number, state in self._before.states.items():
                found |= {f"states/{number}/{i}": leaf for i, leaf in enumerate(tree_flatten(state)[0])}
        return {name: tensor.detach().clone() for name, tensor in found.items()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from there."""
        self._worlds.load(part(tensors, "worlds/"))
        self._state = self._state_of(part(tensors, "state/"))
        self._begins, self._paid = (tensors[name].to(self._like.device) for name in ("begins", "paid"))
        self._generator.set_state(tensors["generator"].cpu())
        before = part(tensors, "before/")
        if before:
            numbers = sorted({int(name.split("/")[0]) for name in part(tensors, "states/")})
            states = {number: self._state_of(part(tensors, f"states/{number}/")) for number in numbers}
            like = Experience(self._worlds.observation, *[self._begins] * 6)
            self._before = _Before(self._tree_of(before, like), states)

    def _state_of(self, leaves: Mapping[str, Tensor]) -> State:
        return self._tree_of(leaves, self._state)

    def _tree_of(self, leaves: Mapping[str, Tensor], like: Any) -> Any:
        moved = [leaves[str(i)].to(self._like.device) for i in range(len(leaves))]
        return tree_unflatten(moved, tree_flatten(like)[1])


def gumbel(
    steps: int, copies: int, actions: int, generator: torch.Generator, like: Tensor
) -> Float[Tensor, "steps copies actions"]:
    """Return noise that, added to log-probabilities, makes the largest of them a draw; drawn on the CPU, moved once."""
    drawn = torch.rand(steps, copies, actions, generator=generator).clamp_min(1e-20)
    return (-(-drawn.log()).log()).to(like.device, like.dtype)


def _as(seen: Any, like: Tensor) -> Any:
    return tree_map(lambda leaf: leaf.to(like.dtype) if leaf.is_floating_point() else leaf, seen)


@torch.no_grad()
def mean_return(model: Model, environment: Environment, worlds: Worlds, options: Options) -> float:
    """Return the mean return of the first episode of every copy, memory never cut short.

    The most probable action is done where the environment says so; else actions are drawn, from a generator of their
    own, as in training.
    """
    like = next(p for p in model.parameters() if p.is_floating_point() and not p.is_complex())
    numbers = torch.empty(0, device=like.device, dtype=read_as(like, options))
    generator = stream(options.seed, f"test/{environment.name}/actions")
    size = len(tree_flatten(worlds.observation)[0][0])
    paid = torch.zeros(size, device=like.device)
    over = torch.zeros(size, dtype=torch.bool, device=like.device)
    state, done = None, 0
    while done < environment.steps and not bool(over.all()):
        # A memory that grows gets room as it is needed: empty slots would cost as much as full ones.
        until = min(environment.steps, max(_LOOK, 2 * done))
        with room(model, until), autocast(like, options):
            step = stepper(model)
            state = (
                enlarged(model, state, numbers, size)
                if done
                else model.layer.init_state(size, device=like.device, dtype=numbers.dtype)
            )
            while done < until and not bool(over.all()):
                count = min(_LOOK, until - done)
                worlds.foresee(count)
                noise = gumbel(count, size, environment.actions, generator, like)
                for t in range(count):
                    given, state = step(_as(worlds.observation, numbers), state)
                    logs, _ = answers(given, like)
                    reward, ended = worlds.step((logs if environment.greedy else logs + noise[t]).argmax(-1))
                    paid = paid + torch.where(over, 0.0, reward)
                    over = over | ended
                done += count
    return float(paid.mean())
