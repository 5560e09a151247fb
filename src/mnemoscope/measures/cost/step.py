"""Cost of single steps and of training passes: multiply-adds, seconds, state, and bytes saved for the backward half."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.utils._pytree import tree_leaves

from mnemoscope.core import memory
from mnemoscope.core.errors import UserError
from mnemoscope.measures.cost.operations import count
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork
from mnemoscope.nn.stack import Stack
from mnemoscope.nn.state import State, index_batch

__all__ = [
    "Step",
    "StepCosts",
    "SteppedNetwork",
    "call",
    "compute_maps",
    "read_again",
    "saved_bytes",
    "step_costs",
    "stepping",
    "stream",
    "training_memory",
]

SteppedNetwork = Recurrent | SequenceNetwork

Step = Callable[[Tensor, State], tuple[Tensor, State]]

_CALLS, _FEWEST, _SECONDS = 100, 5, 0.25
"""Calls by which the time of a whole sequence is judged: so many, or fewer when they take longer, but not too few."""


def call(network: SteppedNetwork, x: Tensor) -> Tensor:
    """Return the output for whole sequences `x`, (time, batch, input); of a network that answers once, its answer."""
    try:
        if isinstance(network, SequenceNetwork) and network.answers_once:
            return network.last(x)
        returned = network(x.transpose(0, 1) if network.batch_first else x)
    except UserError:
        raise
    except Exception as error:  # a stranger's module may fail as it likes on a length that it does not take
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"the network cannot run {x.shape[0]} steps: {reason}; give other lengths") from error
    output: Tensor = returned[0] if isinstance(network, Recurrent) else returned
    return output


def compute_maps(network: nn.Module) -> None:
    """Compute every matrix that is a function of parameters, as a call does once."""
    if isinstance(network, Stack):
        network.weights()
        return
    for module in network.modules():
        for name in getattr(module, "parametrizations", ()):
            getattr(module, name)


@contextmanager
def stepping(network: Recurrent) -> Iterator[Step]:
    """Give the step of a network whose maps (the matrices that are functions of its parameters) are computed once."""
    with parametrize.cached():  # for a stranger's module, whose own step computes them
        yield network.stepper()


@torch.no_grad()
def stream(network: Recurrent, x: Tensor, keep: Collection[int] = ()) -> tuple[list[float], dict[int, State]]:
    """Return the seconds of every step along `x`, (time, batch, input), and the states before the steps to `keep`."""
    with stepping(network) as step:
        state = network.init_state(x.shape[1], device=x.device, dtype=x.dtype)
        step(x[0], state)  # warms up
        seconds, states = [], {}
        for t, x_t in enumerate(x, start=1):
            if t in keep:
                states[t] = state
            begin = _now(x)
            _, state = step(x_t, state)
            seconds.append(_now(x) - begin)
    return seconds, states


@torch.no_grad()
def read_again(network: SequenceNetwork, x: Tensor) -> list[float]:
    """Return the seconds of calls on all of `x`, (time, batch, input): a step of a network that keeps no state."""
    call(network, x)
    seconds: list[float] = []
    while len(seconds) < _FEWEST or (len(seconds) < _CALLS and sum(seconds) < _SECONDS):
        begin = _now(x)
        call(network, x)
        seconds.append(_now(x) - begin)
    return seconds


def _now(x: Any) -> float:
    if x.is_cuda:
        torch.cuda.synchronize(x.device)
    return time.perf_counter()


@dataclass
class StepCosts:
    """Cost of steps: numbers by length (multiply-adds, seconds), then those of one call."""

    work: list[float]
    p50: list[float]
    p99: list[float]
    elementwise: float
    uncounted: set[str]
    maps: int = 0
    map_seconds: float = 0.0
    state_size: int | None = None
    state_bytes: int | None = None


def step_costs(network: SteppedNetwork, x: Tensor, steps: list[int], repeats: int) -> StepCosts:
    """Return what the steps of a network take at each of the lengths `steps`; `x` is (time, batch, input)."""
    if isinstance(network, Recurrent) and network.causal:
        found = _stepped(network, x, steps, repeats)
    else:
        found = _whole(network, x, steps)
    maps = count(partial(compute_maps, network))
    found.maps = maps.total
    found.map_seconds = _median_seconds(torch.no_grad()(partial(compute_maps, network))) if maps.total else 0.0
    found.uncounted |= maps.uncounted
    return found


def _stepped(network: Recurrent, x: Tensor, steps: list[int], repeats: int) -> StepCosts:
    """Take a network with a state step by step."""
    runs = [stream(network, x, steps if run == 0 else ()) for run in range(repeats)]
    seconds = np.array([run[0] for run in runs])
    windows = [seconds[:, length // 2 : length] for length in steps]
    states = {length: _first_example(network, state) for length, state in runs[0][1].items()}
    with stepping(network) as step:
        step(x[0, :1], states[steps[0]])
        counts = [count(partial(step, x[length - 1, :1], states[length])) for length in steps]
    found = StepCosts(
        work=[float(one.total) for one in counts],
        p50=[float(np.quantile(window, 0.5)) for window in windows],
        p99=[float(np.quantile(window, 0.99)) for window in windows],
        elementwise=counts[-1].elementwise,
        uncounted=counts[-1].uncounted,
    )
    sizes = {network.flatten_state(state).shape[1] for state in states.values()}
    if len(sizes) == 1 and network.state_size is not None:
        found.state_size, found.state_bytes = sizes.pop(), _bytes(states[steps[0]])
    return found


def _whole(network: SteppedNetwork, x: Tensor, steps: list[int]) -> StepCosts:
    """Take a network that has no step by whole sequences."""
    counts = [count(partial(call, network, x[:length, :1])) for length in steps]
    maps = count(partial(compute_maps, network))
    nothing = [float("nan")] * len(steps)
    found = StepCosts(
        work=[(one.total - maps.total) / length for one, length in zip(counts, steps, strict=True)],
        p50=nothing,
        p99=nothing,
        elementwise=(counts[-1].elementwise - maps.elementwise) / steps[-1],
        uncounted=counts[-1].uncounted,
    )
    if isinstance(network, Recurrent):
        state = network.init_state(1)
        found.state_size, found.state_bytes = network.state_size, _bytes(state)
    elif network.causal:
        times = [read_again(network, x[:length]) for length in steps]
        found.p50 = [float(np.quantile(window, 0.5)) for window in times]
        found.p99 = [float(np.quantile(window, 0.99)) for window in times]
    return found


def _median_seconds(work: Callable[[], Any], calls: int = 9) -> float:
    seconds = []
    for _ in range(calls):
        begin = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def _first_example(network: Recurrent, state: State) -> State:
    leaves = tree_leaves(state)
    return index_batch(state, torch.zeros(1, dtype=torch.long, device=leaves[0].device), network.batch_axis)


def _bytes(state: State) -> int:
    return sum(leaf.numel() * leaf.element_size() for leaf in tree_leaves(state))


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


def training_memory(network: SteppedNetwork, x: Tensor, steps: list[int]) -> list[int]:
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


def _differentiable_call(network: SteppedNetwork, x: Tensor) -> None:
    output = call(network, x)
    if not output.requires_grad:
        raise UserError(
            "resources needs a differentiable network to see what training keeps, and the output of this one has "
            "no gradient"
        )
