"""Bytes that a training pass keeps for its backward half."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mnemoscope.core import memory
from mnemoscope.core.errors import UserError
from mnemoscope.measures.cost.stream import Network, call

__all__ = ["saved_bytes", "training_memory"]

_PROBES = (16, 32, 64)
"""Lengths at which the memory of longer ones is foretold."""


def saved_bytes(work: Callable[[], Any], there_anyway: Iterable[Tensor] = ()) -> int:
    """Run `work` with gradients and return the bytes of all storages that autograd saved during it.

    A storage that several nodes save, as a whole or as views, is counted once. What holds the tensors `there_anyway`
    (parameters, the input) is not counted.
    """
    # Kept until the end: a storage that were freed could give its address to another.
    kept: dict[int, torch.UntypedStorage] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept.setdefault(storage.data_ptr(), storage)
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        work()
    for tensor in there_anyway:
        kept.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(storage.nbytes() for storage in kept.values())


def training_memory(network: Network, x: Tensor, steps: list[int]) -> list[int]:
    """Return the bytes that a training pass over each of `steps` saves; `x` is (time, batch, input)."""
    if not any(p.requires_grad for p in network.parameters()):
        x = x.clone().requires_grad_()
    there = [x, *network.parameters(), *network.buffers()]

    def saved(length: int) -> int:
        return saved_bytes(partial(_differentiable_call, network, x[:length]), there)

    probes = [length for length in _PROBES if length < steps[0]]
    if len(probes) == len(_PROBES):
        _require_memory([saved(length) for length in probes], steps[-1])
    return [saved(length) for length in steps]


def _require_memory(probed: list[int], longest: int) -> None:
    """Refuse lengths whose memory, extrapolated as a polynomial of the second degree, would not be allowed."""
    growth = np.polynomial.Polynomial.fit(_PROBES, probed, 2)
    fits = longest
    while fits > _PROBES[-1] and growth(fits) > memory.allowance():
        fits //= 2
    what = f"a training pass over {longest} steps"
    memory.require(what, int(max(growth(longest), 0)), f"lengths up to {fits} would fit")


def _differentiable_call(network: Network, x: Tensor) -> None:
    output = call(network, x)
    if not output.requires_grad:
        raise UserError(
            "resources needs a differentiable network to see what training keeps, and the output of this one has "
            "no gradient"
        )
