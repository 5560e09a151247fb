"""Environments: problems in which what a network does decides what it sees next.

>>> import torch
>>> import mnemoscope as ms
>>> worlds = ms.tasks.control.create("t-maze", corridor=3).worlds(2, seed=0)
>>> worlds.observation.shape
torch.Size([2, 4])
>>> reward, ended = worlds.step(torch.tensor([2, 2]))
"""

from typing import TYPE_CHECKING

from mnemoscope.core.lazy import lazy
from mnemoscope.tasks.control.base import Environment, TensorEnvironment, TensorWorlds, Trial, Worlds
from mnemoscope.tasks.control.registry import TABLE, create, environment, get, names

if TYPE_CHECKING:
    from mnemoscope.tasks.control.minigrid import *
    from mnemoscope.tasks.control.repeating import *
    from mnemoscope.tasks.control.t_maze import *

_HOMES = {cls: file for file, _, cls in (place.partition(":") for place in TABLE.values())}

__all__ = [
    "Environment",
    "TensorEnvironment",
    "TensorWorlds",
    "Trial",
    "Worlds",
    "create",
    "environment",
    "get",
    "names",
]

__getattr__ = lazy(__name__, _HOMES)


def __dir__() -> list[str]:
    return [*__all__, *_HOMES]
