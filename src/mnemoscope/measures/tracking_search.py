"""The search for two histories that lead a network to nearly the same state."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.measures.dynamics import Transition

__all__ = ["Confused", "final_states", "invisible_pair", "search_pair"]

_PATIENCE = 12
_CLOSE = 1e-14


class Confused(NamedTuple):
    """Two histories, of which the second has a zero where the first has 1 or -1."""

    history: Float[Tensor, "time input"]
    twin: Float[Tensor, "time input"]


def final_states(system: Transition, histories: Float[Tensor, "time batch input"]) -> Float[Tensor, "batch size"]:
    """Return the flat states after histories from the start."""
    return system.flatten(system.drive(histories, system.start(histories.shape[1]))[-1])


def invisible_pair(system: Transition, history: Float[Tensor, "time input"]) -> tuple[Confused | None, int]:
    """Return two histories that a state which is affine in its inputs cannot tell apart, and the map's numerical rank.

    The difference is the least one that turns an entry of `history` into zero; None when there is none at all.
    """
    size = history.numel()
    impulses = torch.eye(size, **system.factory).reshape(size, *history.shape).transpose(0, 1)
    nothing = torch.zeros_like(impulses[:, :1])
    states = final_states(system, torch.cat([nothing, impulses], dim=1))
    response = (states[1:] - states[0]).mT
    _, values, right = torch.linalg.svd(response)
    cut = values.max() * max(response.shape) * torch.finfo(response.dtype).eps
    rank = int((values > cut).sum())
    null = right[max(rank, min(response.shape)) :] if response.shape[0] < size else right[rank:]
    if len(null) == 0:
        return None, rank
    visible = null.square().sum(dim=0)  # how much of each single entry lies in the null space
    entry = int(visible.argmax())
    difference = -history.reshape(-1)[entry] * (null.mT @ null[:, entry]) / visible[entry]
    twin = history.reshape(-1) + difference
    twin[entry] = 0.0
    return Confused(history, twin.reshape(history.shape)), rank


def search_pair(system: Transition, history: Float[Tensor, "time input"], iterations: int) -> Confused:
    """Return a history whose first entry is zero and that leads to nearly the same state: Levenberg and Marquardt."""
    goal = final_states(system, history[:, None])[0]
    free = torch.ones(history.numel(), dtype=torch.bool, device=history.device)
    free[0] = False
    twin = history.clone()
    twin.view(-1)[0] = 0.0
    damping, failed, left = 1e-3, 0, final_states(system, twin[:, None])[0] - goal
    while iterations and failed < _PATIENCE and bool(left.norm() > _CLOSE * goal.norm()):
        left_vectors, values, right = torch.linalg.svd(_sensitivity(system, twin)[:, free], full_matrices=False)
        failed = 0
        while failed < _PATIENCE:
            weight = values / (values.square() + damping * values.square().max() + 1e-300)
            trial = twin.clone()
            trial.view(-1)[free] -= right.mT @ (weight * (left_vectors.mT @ left))
            new = final_states(system, trial[:, None])[0] - goal
            if bool(new.norm() < left.norm()):
                twin, left, damping = trial, new, damping / 10
                break
            damping, failed = damping * 5, failed + 1
        iterations -= 1
    return Confused(history, twin)


def _sensitivity(system: Transition, history: Float[Tensor, "time input"]) -> Float[Tensor, "size inputs"]:
    """Return the derivative of the last state by all inputs: one batch of Jacobians, chained from the end."""
    states = system.drive(history[:, None], system.start(1))[:-1]
    jacobians = system.jacobians(history, system.join(states))
    chain, blocks = torch.eye(system.size, **system.factory), []
    for state, entry in zip(jacobians.state.flip(0), jacobians.input.flip(0), strict=True):
        blocks.append(chain @ entry)
        chain = chain @ state
    return torch.cat(blocks[::-1], dim=1)
