"""What a network costs: parameters, state, multiply-adds and time of a step, memory of training, and how they grow."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.measures.cost.growth import growth_exponent, slope
from mnemoscope.measures.cost.result import Resources
from mnemoscope.measures.cost.step import spent_on_steps
from mnemoscope.measures.cost.stream import Network
from mnemoscope.measures.cost.training import training_memory
from mnemoscope.measures.registry import measure
from mnemoscope.measures.threads import few_threads
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.options import public_class
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork

__all__ = ["Resources", "resources"]


@measure(
    "resources",
    kinds=("recurrent", "sequence"),
    quick={"lengths": (64, 128, 256, 512), "repeats": 3},
)
def resources(
    network: nn.Module,
    *,
    lengths: tuple[int, ...] = (128, 256, 512, 1024),
    batch: int = 1,
    repeats: int = 5,
    seed: int = 0,
) -> Resources:
    """Measure what a network costs: parameters, state, multiply-adds, time of a step, memory of training, their growth.

    Multiply-adds are counted while a step runs, from every tensor operation in it: products of matrices, and products
    of single numbers (a complex one is four); sums and functions such as tanh are not. An LSTM of n units and d inputs
    has 4n(n + d) + 3n. Matrices that are functions of parameters are computed once per call, and counted apart.

    Time per step is that of `step`, called for one input after the other; at length T the median and the 99% quantile
    of the steps between T/2 and T. A network without a state must read its whole past again for each new output.

    Memory is what autograd saves in the forward half of a training pass over T steps, each storage counted once. Its
    exponent p is that of the best fit c + a T^p.

    Parameters
    ----------
    network
        Any recurrent or sequence network, or a module that `mnemoscope.adapt` understands.
    lengths
        Sequence lengths T, at least three.
    batch
        Examples at once, for time and memory.
    repeats
        How often the longest sequence is streamed for the times.
    seed
        Of the random inputs.

    Returns
    -------
    Resources

    References
    ----------
    Kerg et al. 2020 compare the memory of recurrent and attentive networks so.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> from mnemoscope.measures.cost.network import resources
    >>> found = resources(ms.nn.LSTM(10, 64), lengths=(16, 32, 64))
    >>> found.parameters, found.state_size, found.multiply_adds == 4 * 64 * (64 + 10) + 3 * 64
    (19456, 128, True)
    >>> round(found.exponent, 2)
    1.0
    """
    steps = _checked_lengths(lengths)
    positive_int("batch", batch)
    positive_int("repeats", repeats)
    subject = _copy(network)
    cuda = sorted({p.device.index or 0 for p in subject.parameters() if p.device.type == "cuda"})
    with few_threads(getattr(subject, "state_size", None) or subject.output_size), torch.random.fork_rng(cuda):
        torch.manual_seed(_seed(seed))
        x = _inputs(subject, steps[-1], batch)
        saved = training_memory(deepcopy(subject).train(), x, steps)
        spent = spent_on_steps(subject.eval(), x, steps, repeats)
    grid = np.array(steps, dtype=float)
    return Resources(
        status="estimate",
        digits=None,
        assumptions=_assumptions(subject, x, spent.uncounted),
        cost="time of (repeats + 2) T steps, memory of one training pass over the longest T",
        network=_name(subject),
        parameters=sum(p.numel() for p in subject.parameters()),
        parameter_bytes=sum(p.numel() * p.element_size() for p in subject.parameters()),
        state_size=spent.state_size,
        state_bytes=spent.state_bytes,
        multiply_adds=round(spent.work[-1]),
        elementwise=round(spent.elementwise),
        map_multiply_adds=spent.maps,
        map_seconds=spent.map_seconds,
        lengths=np.array(steps),
        work=np.array(spent.work),
        step_p50=np.array(spent.p50),
        step_p99=np.array(spent.p99),
        memory=np.array(saved),
        exponent=growth_exponent(grid, np.array(saved, dtype=float)),
        work_exponent=growth_exponent(grid, np.array(spent.work)),
        time_exponent=slope(grid, np.array(spent.p50)),
        batch=batch,
        uncounted=tuple(sorted(spent.uncounted)),
    )


def _copy(network: Any) -> Network:
    """Return the network as a copy, so that nothing of the caller's changes."""
    adapted = adapt(network)
    if not isinstance(adapted, Recurrent | SequenceNetwork):
        kind = Description(f"kind {getattr(adapted, 'kind', None)!r}")
        raise expected("network", "recurrent or a sequence network", kind)
    return deepcopy(adapted)


def _inputs(network: Network, steps: int, batch: int) -> Tensor:
    like = next((p for p in network.parameters() if p.is_floating_point()), torch.zeros(()))
    return torch.randn(steps, batch, network.input_size, dtype=like.dtype).to(like.device)


def _checked_lengths(lengths: Any) -> list[int]:
    if not isinstance(lengths, Sequence | np.ndarray) or isinstance(lengths, str):
        raise expected("lengths", "several numbers of steps", lengths)
    steps = sorted({positive_int("each of lengths", length) for length in lengths})
    if len(steps) < 3:
        raise expected("lengths", "at least three different numbers of steps", lengths)
    return steps


def _seed(seed: Any) -> int:
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise expected("seed", "a whole number of at least 0", seed)
    return seed


def _name(network: Network) -> str:
    return public_class(type(getattr(network, "module", network))).__name__


def _assumptions(network: Network, x: Tensor, uncounted: set[str]) -> tuple[str, ...]:
    kind = str(x.dtype).removeprefix("torch.")
    found = [f"times are of this machine: {x.device.type}, {torch.get_num_threads()} threads, {kind}"]
    if not network.causal:
        found.append(f"it cannot stream, since {network.future}; multiply-adds are a whole call's divided by T")
    elif isinstance(network, SequenceNetwork):
        found.append("it has no state: each new output reads the past again; multiply-adds are a call's divided by T")
    if uncounted:
        found.append(f"the multiplications of {', '.join(sorted(uncounted))} are not counted")
    return tuple(found)
