"""minigrid: rooms, doors and keys of which the agent sees a few squares (the extra ``mnemoscope[control]``)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, nearest, positive_int
from mnemoscope.core.seeds import check_seed, seed_of
from mnemoscope.tasks.control.base import Environment, Trial, Worlds
from mnemoscope.tasks.control.registry import environment

__all__ = ["PAIRS", "MiniGrid", "Sight"]

PAIRS = {
    "RedBlueDoors-6x6": "RedBlueDoors-8x8",
    "GoToObject-6x6-N2": "GoToObject-8x8-N2",
    "MemoryS7": "MemoryS13",
    "GoToDoor-5x5": "GoToDoor-8x8",
    "Fetch-5x5-N2": "Fetch-8x8-N3",
    "DoorKey-5x5": "DoorKey-16x16",
}
"""Levels of Kerg's Table B.1: trained in the small room, tested in the large one."""

_SEEN, _WORD, _READ = 64, 32, 128
"""Numbers that the encoder makes of the squares, of a word, and of a mission."""


class Sight(NamedTuple):
    """What is seen: object, colour and state of 7 x 7 squares, and the number of the mission in the level's list."""

    image: UInt8[Tensor, "*batch 7 7 3"]
    mission: Int64[Tensor, "*batch"]


class _Facts(NamedTuple):
    steps: int
    actions: int
    missions: tuple[str, ...]


@environment("minigrid")
@dataclass(frozen=True)
class MiniGrid(Environment):
    """A level of MiniGrid, partially observed: 7 x 7 squares ahead of the agent, and its mission in words.

    A return is MiniGrid's own: 1 - 0.9 steps / longest on success, else 0. An episode that reaches its longest ends, as
    any other does. The mission is read by a GRU where a level has several; where it has one, it says nothing.

    Parameters
    ----------
    level
        Name of the level without ``MiniGrid-`` and ``-v0``.
    larger
        The level that a trained network is tested in besides; by default the partner in Kerg's Table B.1, if it has
        one; ``"none"``: no other.
    """

    level: str = "DoorKey-5x5"
    larger: str | None = None

    references = ("chevalier2023", "kerg2020")
    metric = "mean reward of an episode"
    greedy = False

    def __post_init__(self) -> None:
        """Look the levels up."""
        _check_level(self.level)
        if self.larger is None:
            object.__setattr__(self, "larger", PAIRS.get(self.level, "none"))
        if self.larger != "none":
            _check_level(self.larger)
            if _facts(str(self.larger)).missions != self._facts.missions:
                raise UserError(f"larger must be a level with the missions of {self.level}, got {self.larger!r}")

    @property
    def _facts(self) -> _Facts:
        return _facts(self.level)

    @property
    def input_size(self) -> int:
        """Features of the squares, and of the mission where there are several."""
        return _SEEN + (_READ if len(self._facts.missions) > 1 else 0)

    @property
    def actions(self) -> int:
        """Seven: left, right, forward, pick up, drop, toggle, done."""
        return self._facts.actions

    @property
    def steps(self) -> int:
        """Steps after which an episode ends."""
        return self._facts.steps

    def trials(self) -> tuple[Trial, ...]:
        """Return the level itself, and the larger one."""
        more = () if self.larger == "none" else (Trial(str(self.larger), MiniGrid(str(self.larger), "none")),)
        return (Trial(self.level, self), *more)

    def encoder(self, generator: torch.Generator) -> nn.Module:
        """Return the convolutions and the reader of missions."""
        return _Encoder(self._facts.missions, generator)

    def worlds(self, count: int, seed: int, *, device: torch.device | str | None = None) -> Worlds:
        """Return `count` rooms; the n-th episode of each has a seed of its own."""
        return _Rooms(self, positive_int("count", count), check_seed(seed), device)


class _Encoder(nn.Module):
    """Convolutions of 16, 32 and 64 filters of 2 x 2, the first with pooling; a GRU over the words of a mission."""

    def __init__(self, missions: Sequence[str], generator: torch.Generator) -> None:
        super().__init__()
        layers = [nn.Conv2d(3, 16, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 2), nn.ReLU()]
        self.squares = nn.Sequential(*layers, nn.Conv2d(32, _SEEN, 2), nn.ReLU())
        self.reads = len(missions) > 1
        if self.reads:
            words = sorted({word for mission in missions for word in mission.split()})
            texts = [[1 + words.index(word) for word in mission.split()] for mission in missions]
            longest = max(map(len, texts))
            # Words stand at the end, so that the last state has read them all.
            rows = torch.tensor([[0] * (longest - len(text)) + text for text in texts])
            self.register_buffer("texts", rows)
            self.words = nn.Embedding(len(words) + 1, _WORD, padding_idx=0)
            self.reader = nn.GRU(_WORD, _READ, batch_first=True)
        for parameter in self.parameters():
            scale = math.prod(parameter.shape[1:]) ** -0.5 if parameter.dim() > 1 else 0.0
            nn.init.uniform_(parameter, -scale, scale, generator=generator)

    def forward(self, seen: Sight) -> Float[Tensor, "*batch features"]:
        """Return the features of what is seen, whatever axes stand in front."""
        axes, like = seen.mission.shape, next(self.parameters())
        image = seen.image.flatten(0, len(axes) - 1).to(like.dtype).movedim(-1, 1)
        features: Tensor = self.squares(image).flatten(1)
        if self.reads:  # every mission of the level once, however often it is seen
            _, read = self.reader(self.words(self.texts))
            features = torch.cat([features, read[0].to(features.dtype)[seen.mission.flatten()]], dim=1)
        return features.reshape(*axes, -1)


class _Rooms(Worlds):
    """Copies of a level. An episode follows from its seed and its actions: that is what is kept of it."""

    def __init__(self, level: MiniGrid, count: int, seed: int, device: torch.device | str | None) -> None:
        self.level, self.seed, self.device = level, seed, device
        self.rooms = [_make(level.level) for _ in range(count)]
        self.number = {mission: k for k, mission in enumerate(_facts(level.level).missions)}
        self.episodes = [0] * count
        self.done: list[list[int]] = [[] for _ in range(count)]
        self.seen = [self._begin(k) for k in range(count)]
        self.observation = self._look()

    def _begin(self, k: int) -> Any:
        self.done[k] = []
        return self.rooms[k].reset(seed=seed_of(self.seed, f"{k}/{self.episodes[k]}") % 2**31)[0]

    def _look(self) -> Sight:
        images = torch.from_numpy(np.stack([one["image"] for one in self.seen]))
        missions = torch.tensor([self.number[one["mission"]] for one in self.seen])
        return Sight(images.to(self.device), missions.to(self.device))

    def foresee(self, steps: int) -> None:
        """Nothing: the seed of an episode decides it."""

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Do one action in each room."""
        rewards, ends = [], []
        for k, action in enumerate(actions.tolist()):
            self.seen[k], reward, terminated, truncated, _ = self.rooms[k].step(action)
            self.done[k].append(action)
            rewards.append(float(reward))
            ends.append(bool(terminated or truncated))
            if ends[-1]:
                self.episodes[k] += 1
                self.seen[k] = self._begin(k)
        self.observation = self._look()
        return torch.tensor(rewards, device=self.device), torch.tensor(ends, device=self.device)

    def tensors(self) -> dict[str, Tensor]:
        """Return which episode each room is in, and what was done in it so far; -1 after the last action."""
        longest = max(map(len, self.done))
        rows = [row + [-1] * (longest - len(row)) for row in self.done]
        return {"episodes": torch.tensor(self.episodes), "done": torch.tensor(rows, dtype=torch.int64)}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Begin the same episodes, and do in them what was done."""
        self.episodes = tensors["episodes"].tolist()
        for k, row in enumerate(tensors["done"].tolist()):
            self.seen[k] = self._begin(k)
            for action in (one for one in row if one >= 0):
                self.seen[k] = self.rooms[k].step(action)[0]
                self.done[k].append(action)
        self.observation = self._look()


def _gymnasium() -> Any:
    try:
        import gymnasium
        import minigrid  # noqa: F401 - registers its levels
    except ImportError as error:
        raise UserError(
            f"the environment minigrid needs gymnasium and minigrid ({error}): pip install 'mnemoscope[control]'"
        ) from None
    return gymnasium


@cache
def _levels() -> tuple[str, ...]:
    found = (name for name in _gymnasium().envs.registry if name.startswith("MiniGrid-") and name.endswith("-v0"))
    return tuple(sorted(name.removeprefix("MiniGrid-").removesuffix("-v0") for name in found))


def _check_level(level: Any) -> None:
    if level not in _levels():
        near = nearest(level, _levels())
        hint = f"did you mean {near!r}?" if near else f"there are {', '.join(PAIRS)} and others"
        raise UserError(f"MiniGrid has no level {level!r}; {hint}")


def _make(level: str) -> Any:
    return _gymnasium().make(f"MiniGrid-{level}-v0", disable_env_checker=True).unwrapped


@cache
def _facts(level: str) -> _Facts:
    room = _make(level)
    room.reset(seed=0)
    space = room.observation_space["mission"]
    blanks = space.ordered_placeholders or []
    missions = tuple(dict.fromkeys(space.mission_func(*words) for words in product(*blanks)))
    return _Facts(room.max_steps, int(room.action_space.n), missions)
