"""What one step takes: multiply-adds, seconds, and the state that it hands on."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from mnemoscope.measures.cost.operations import count
from mnemoscope.measures.cost.stream import Network, call, compute_maps, read_again, stepping, stream
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import State, index_batch

__all__ = ["Spent", "spent_on_steps"]


@dataclass
class Spent:
    """What steps took: numbers by length (multiply-adds, seconds), then those of one call."""

    work: list[float]
    p50: list[float]
    p99: list[float]
    elementwise: float
    uncounted: set[str]
    maps: int = 0
    map_seconds: float = 0.0
    state_size: int | None = None
    state_bytes: int | None = None


def spent_on_steps(network: Network, x: Tensor, steps: list[int], repeats: int) -> Spent:
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


def _stepped(network: Recurrent, x: Tensor, steps: list[int], repeats: int) -> Spent:
    """Take a network with a state step by step."""
    runs = [stream(network, x, steps if run == 0 else ()) for run in range(repeats)]
    seconds = np.array([run[0] for run in runs])
    windows = [seconds[:, length // 2 : length] for length in steps]
    states = {length: _first_example(network, state) for length, state in runs[0][1].items()}
    with stepping(network) as step:
        step(x[0, :1], states[steps[0]])
        counts = [count(partial(step, x[length - 1, :1], states[length])) for length in steps]
    found = Spent(
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


def _whole(network: Network, x: Tensor, steps: list[int]) -> Spent:
    """Take a network that has no step by whole sequences."""
    counts = [count(partial(call, network, x[:length, :1])) for length in steps]
    maps = count(partial(compute_maps, network))
    nothing = [float("nan")] * len(steps)
    found = Spent(
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
