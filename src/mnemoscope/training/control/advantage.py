"""Advantage of what was done over what was expected, by generalised advantage estimation."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["advantages"]


def advantages(
    rewards: Float[Tensor, "time batch"],
    values: Float[Tensor, "time batch"],
    ended: Bool[Tensor, "time batch"],
    last: Float[Tensor, " batch"],
    discount: float,
    trace: float,
) -> Float[Tensor, "time batch"]:
    """Return A_t = d_t + gamma lambda A_{t+1}, with d_t = r_t + gamma V_{t+1} - V_t.

    Where an episode ended with step t, nothing follows: V_{t+1} and A_{t+1} are zero there.

    Parameters
    ----------
    rewards, values, ended
        Of each step: what was paid, what the state was worth, whether the episode ended with it.
    last
        Value of the state after the last step.
    discount, trace
        gamma and lambda.

    References
    ----------
    schulman2016
    """
    goes_on = (~ended).to(values.dtype)
    after = torch.cat([values[1:], last.unsqueeze(0)])
    errors = rewards + discount * goes_on * after - values
    found, running = torch.empty_like(values), torch.zeros_like(last)
    for t in reversed(range(len(values))):
        running = errors[t] + discount * trace * goes_on[t] * running
        found[t] = running
    return found
