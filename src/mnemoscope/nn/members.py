"""Many modules of one shape called at once, each with its own weights on its own inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

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
    structure: list[Any] = []

    def one(weights: dict[str, Tensor], *inputs: Any) -> tuple[Tensor, ...]:
        leaves, spec = tree_flatten(torch.func.functional_call(module, weights, inputs))
        # vmap returns tensors alone: a state that is None must not stop it.
        structure[:] = spec, [isinstance(leaf, Tensor) for leaf in leaves]
        return tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))

    in_dims = (0, *(None if given is None else 0 for given in inputs))
    found = iter(torch.vmap(one, in_dims=in_dims, randomness=randomness)(dict(weights), *inputs))
    spec, tensors = structure
    return tree_unflatten([next(found) if is_tensor else None for is_tensor in tensors], spec)
