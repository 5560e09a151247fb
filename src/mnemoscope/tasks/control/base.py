"""Base of all environments: problems that answer back, many copies of them played in step."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import positive_int
from mnemoscope.core.seeds import check_seed
from mnemoscope.tasks.problems import Problem

__all__ = ["Environment", "TensorEnvironment", "TensorWorlds", "Trial", "Worlds"]

Observation = Any
"""What is seen at one moment: a pytree of tensors with the copies in front."""


class Trial(NamedTuple):
    """A test of a trained network: the first episode of every one of many copies of an environment."""

    label: str
    environment: Environment


@dataclass(frozen=True)
class Environment(Problem):
    """A problem that answers what is done: a frozen dataclass whose fields are its settings.

    An episode gives an observation, takes one of `actions`, pays a reward and goes on, until it ends. The score is the
    mean over episodes of the sum of rewards, without discount.

    Attributes
    ----------
    name, references, difficulty, axes
        As every `Problem` has them.
    greedy
        Whether a test plays the most probable action; else actions are drawn as in training.
    """

    kind: ClassVar[str] = "control"
    metric: ClassVar[str] = "mean return of an episode"
    difficulty: ClassVar[str] = ""
    greedy: ClassVar[bool] = True

    @property
    @abstractmethod
    def input_size(self) -> int:
        """Numbers that a network reads at each step."""

    @property
    @abstractmethod
    def actions(self) -> int:
        """How many actions there are."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of the longest episode: an episode that comes so far ends there."""

    @abstractmethod
    def worlds(self, count: int, seed: int, *, device: torch.device | str | None = None) -> Worlds:
        """Return `count` copies at the beginning of their first episodes; all that happens follows from `seed`."""

    @property
    def frames(self) -> int:
        """Steps of every copy between two updates, unless said otherwise."""
        return 128

    @property
    def optimum(self) -> float:
        """The mean return of the best policy; NaN where nobody knows it."""
        return math.nan

    @property
    def memoryless(self) -> float:
        """The mean return of the best policy that sees the present observation only; NaN where nobody knows it."""
        return math.nan

    @property
    def baseline(self) -> float:
        """What the best policy without memory loses against the optimum; NaN where nobody knows it."""
        return self.optimum - self.memoryless

    def encoder(self, generator: torch.Generator) -> nn.Module | None:
        """Return what makes `input_size` numbers of an observation, its weights drawn; None: an observation is that."""
        return None

    def trials(self) -> tuple[Trial, ...]:
        """Return the tests of a trained network: by default this very environment."""
        own = f"{self.difficulty}={getattr(self, self.difficulty)}" if self.difficulty else self.name
        return (Trial(own, self),)

    # What a task has as well, so that sizes of networks are decided in one place.

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of what a network reads at each step."""
        return (self.input_size,)

    @property
    def output_size(self) -> int:
        """As many numbers as there are actions."""
        return self.actions

    @property
    def embedding(self) -> int | None:
        """Observations are not token numbers."""
        return None


class Worlds(ABC):
    """Many copies of an environment, played in step; one that ends begins a new episode at once.

    Attributes
    ----------
    observation
        What is seen now; of a copy whose episode has just ended, the first of its next one.
    """

    observation: Observation

    @abstractmethod
    def foresee(self, steps: int) -> None:
        """Draw the chance of the next steps at once, unless it is drawn episode by episode."""

    @abstractmethod
    def step(self, actions: Int64[Tensor, " copies"]) -> tuple[Float[Tensor, " copies"], Bool[Tensor, " copies"]]:
        """Do one action in each copy; return the rewards, and where an episode ended."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return what the rest depends on."""

    @abstractmethod
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned of such copies."""


@dataclass(frozen=True)
class TensorEnvironment(Environment):
    """An environment whose rules are tensor operations on all copies at once: nothing leaves the device.

    Its chance is one whole number for each copy and step, drawn ahead on the CPU, so that a seed gives the same
    episodes on every device. Observations are vectors.
    """

    @abstractmethod
    def draw(self, steps: int, count: int, generator: torch.Generator) -> Int64[Tensor, "steps count"]:
        """Draw the chance of so many steps."""

    @abstractmethod
    def begin(self, chance: Int64[Tensor, " copies"]) -> dict[str, Tensor]:
        """Return the states of copies at the beginning of an episode."""

    @abstractmethod
    def observe(self, state: Mapping[str, Tensor]) -> Float[Tensor, "copies input"]:
        """Return what is seen of a state."""

    @abstractmethod
    def turn(
        self, state: Mapping[str, Tensor], action: Int64[Tensor, " copies"], chance: Int64[Tensor, " copies"]
    ) -> tuple[dict[str, Tensor], Float[Tensor, " copies"], Bool[Tensor, " copies"]]:
        """Return the states after an action, the rewards, and whether the episodes end."""

    def worlds(self, count: int, seed: int, *, device: torch.device | str | None = None) -> TensorWorlds:
        """Return `count` copies at the beginning of their first episodes."""
        return TensorWorlds(self, positive_int("count", count), check_seed(seed), device)


class TensorWorlds(Worlds):
    """Copies of a `TensorEnvironment`."""

    def __init__(
        self, environment: TensorEnvironment, count: int, seed: int, device: torch.device | str | None = None
    ) -> None:
        self.environment, self.count, self.device = environment, count, device
        self._generator = torch.Generator().manual_seed(seed)
        self.foresee(1)
        self.state = environment.begin(self._take())
        self.observation = environment.observe(self.state)

    def foresee(self, steps: int) -> None:
        """Draw the chance of the next steps, and move it to the device at once."""
        drawn = self.environment.draw(steps, self.count, self._generator)
        self._chance = list(drawn.to(self.device).unbind(0))

    def _take(self) -> Tensor:
        if not self._chance:
            self.foresee(1)
        return self._chance.pop(0)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Do one action in each copy."""
        chance = self._take()
        after, reward, ended = self.environment.turn(self.state, actions, chance)
        fresh = self.environment.begin(chance)
        self.state = tree_map(lambda new, old: torch.where(_beside(ended, old), new, old), fresh, after)
        self.observation = self.environment.observe(self.state)
        return reward, ended

    def tensors(self) -> dict[str, Tensor]:
        """Return the states, the chance that is drawn already, and the state of the generator."""
        drawn = torch.stack(self._chance) if self._chance else torch.zeros(0, self.count, dtype=torch.int64)
        return {**self.state, "chance": drawn, "generator": self._generator.get_state()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Go on from there."""
        self._generator.set_state(tensors["generator"].cpu())
        self._chance = list(tensors["chance"].to(self.device).unbind(0))
        self.state = {name: tensors[name].to(own.device) for name, own in self.state.items()}
        self.observation = self.environment.observe(self.state)


def _beside(mask: Tensor, like: Tensor) -> Tensor:
    """Return a mask over the copies, shaped to choose between tensors like this one."""
    return mask.reshape(-1, *[1] * (like.dim() - 1))
