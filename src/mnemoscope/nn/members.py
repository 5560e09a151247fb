"""Many modules of one shape called at once, each with its own weights on its own inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["map_members"]


def map_members(module: nn.Module, weights: Mapping[str, Tensor], *inputs: Any, randomness: str = "different") -> Any:
    """Return what K modules of one shape return; weights, inputs and outputs have the members in front.

    Parameters
    ----------
    weights
        Parameters and buffers by name, stacked.
    inputs
        Of all members; None is None for all.
    randomness
        What `torch.vmap` does where the module draws: ``"different"`` numbers for every member, or ``"error"``.
    """

    def one(weights: dict[str, Tensor], *inputs: Any) -> Any:
        return torch.func.functional_call(module, weights, inputs)

    in_dims = (0, *(None if given is None else 0 for given in inputs))
    return torch.vmap(one, in_dims=in_dims, randomness=randomness)(dict(weights), *inputs)
