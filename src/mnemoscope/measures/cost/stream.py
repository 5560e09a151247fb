"""Time of single steps when inputs arrive one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from mnemoscope.core.errors import UserError
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.sequence import SequenceNetwork
from mnemoscope.nn.stack import Stack
from mnemoscope.nn.state import State

__all__ = ["Network", "Step", "call", "compute_maps", "read_again", "stepping", "stream"]

Network = Recurrent | SequenceNetwork

Step = Callable[[Tensor, State], tuple[Tensor, State]]

_CALLS, _FEWEST, _SECONDS = 100, 5, 0.25
"""Calls by which the time of a whole sequence is judged: so many, or fewer when they take longer, but not too few."""


def call(network: Network, x: Tensor) -> Tensor:
    """Return the output for whole sequences `x`, (time, batch, input)."""
    try:
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
    if isinstance(network, Stack):
        weights = network.weights()
        yield lambda x, state: network.step(x, state, weights)
    else:
        with parametrize.cached():
            yield network.step


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
