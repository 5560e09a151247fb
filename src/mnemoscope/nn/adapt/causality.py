"""Dependence of outputs on later inputs and on other examples, found by changing inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

__all__ = ["Causality", "Run", "causality", "mixes"]

Run = Callable[[Float[Tensor, "time batch input"]], Float[Tensor, "time batch output"]]


@dataclass(frozen=True)
class Causality:
    """What was found.

    Attributes
    ----------
    causal
        Whether no output changed when only later inputs did.
    remembers
        Whether some output changed when only earlier inputs did.
    steps
        The length of the sequences on which this was tried.
    reason
        Why the network is not causal; empty when it is.
    """

    causal: bool
    remembers: bool
    steps: int
    reason: str = ""


def causality(run: Run, x: Float[Tensor, "time 1 input"], other: Float[Tensor, "time 1 input"]) -> Causality:
    """Change the inputs of `x` after (and before) each step to those of `other`, and see which outputs change.

    One batch holds every step at which the change could begin, so `run` must treat its examples one by one.
    """
    steps = x.shape[0]
    now = torch.arange(steps, device=x.device)[:, None]
    begins = torch.arange(1, steps, device=x.device)
    after = now >= begins
    base = x.expand(-1, steps - 1, -1)
    first = run(base)
    late = changed(run(torch.where(after[..., None], other, base)), first)
    early = changed(run(torch.where(after[..., None], base, other)), first)
    leaks = (late & ~after).nonzero()
    if not len(leaks):
        return Causality(True, bool((early & after).any()), steps)
    seen, begin = (int(index) for index in leaks[0])
    reason = f"its output at step {seen} changed when only the inputs from step {begin + 1} on did"
    return Causality(False, True, steps, reason)


def mixes(run: Run, x: Float[Tensor, "first second input"], other: Tensor, axis: int) -> bool:
    """Whether what stands in one half of `axis` changes outputs in the other half."""
    half = x.shape[axis] // 2
    y = run(x)
    for kept in (slice(None, half), slice(half, None)):
        where = (kept, slice(None)) if axis == 0 else (slice(None), kept)
        mixed = other.clone()
        mixed[where] = x[where]
        if bool(changed(run(mixed), y)[where].any()):
            return True
    return False


def changed(
    y: Float[Tensor, "time batch output"], before: Float[Tensor, "time batch output"]
) -> Bool[Tensor, "time batch"]:
    """Where two outputs differ by more than rounding, which a network that uses an FFT spreads everywhere."""
    if y.shape != before.shape:
        return torch.ones(before.shape[:2], dtype=torch.bool, device=before.device)
    slack = float(torch.finfo(y.dtype).eps ** 0.6) * before.abs().amax()
    return (y - before).abs().amax(dim=-1).gt(slack)
