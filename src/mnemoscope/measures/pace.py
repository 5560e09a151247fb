"""Pace of a network on this machine: what single steps of it take, forward and back, and how fast it forgets.

Estimates of time are made of these: two networks with as many numbers in their states can differ by a hundred in the
time of a step, and a curve that settles within twenty lags takes a fiftieth of one that needs a thousand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from mnemoscope.measures.blocks import Blocks, blocks_of
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.tangent import Tangents
from mnemoscope.measures.trajectory import Path, affine, drive
from mnemoscope.nn.module import DeclaredModule
from mnemoscope.nn.recurrent import Recurrent

__all__ = ["Line", "Pace", "Poles", "pace_of"]

_EXAMPLES = 32
_COTANGENTS = 16
_REPEATS, _ENOUGH = 8, 0.03
"""Calls of each kind at the least, and seconds after which these are enough."""

_STEPS = 160
"""Steps over which cotangents are followed back: what fades slowly is seen when the rest is gone."""

_PATIENCE = 1.0
"""Seconds that following them may take, or calls of one kind."""

_EIGENVALUES = 2**22
"""Entries cubed of the blocks whose eigenvalues are found: a fifth of a second."""

_TONES = 16
"""Tones, those of the slowest eigenvalues, of which the delay is looked at."""

_WAITS = 3.0
"""Time on the clock over that of a busy machine from which on a step waits: for a device, a file, or on purpose."""

_LOOK = 0.05
"""Seconds of the processor by which it is seen how busy the machine is."""

_GIGAFLOPS = 50.0
"""Of the common machine, in float64 on one core: what the rates of costs are for."""


@dataclass(frozen=True)
class Line:
    """Seconds that grow with a number: a + b k."""

    base: float
    each: float

    def __call__(self, count: float) -> float:
        """Return the seconds for so many."""
        return self.base + self.each * count


@dataclass(frozen=True)
class Poles:
    """Distinct eigenvalues of a linear network: count, largest modulus, and how long they delay a tone at most."""

    count: int
    radius: float
    delay: float


@dataclass(frozen=True)
class Pace:
    """Speed of one network on this machine.

    Attributes
    ----------
    step
        Seconds of a step, by the number of examples.
    pull
        Seconds of linearising a step and taking cotangents back through it, by their number.
    arithmetic
        Seconds that this machine needs for what takes the common one a second, in products of matrices.
    fading
        Nats per step at which a cotangent shrinks on its way back, after a while; negative where it grows.
    linear
        Whether the next state is an affine function of state and input.
    gated
        Whether it is one of the state, at each input.
    falls_apart
        Whether its state does, into blocks that the network declares.
    poles
        Eigenvalues of these, where they are the same at every input; None where they are not.
    read
        Numbers of the state that a readout sees; None: all of them.
    maps
        Seconds of computing the matrices that are functions of parameters.
    multiplied
        Weights of a network that is a polynomial of weights and inputs, and so evaluated exactly; zero for others.
    load
        Seconds on the clock for one of the processor, at this moment: above 1 where others are at work.
    """

    step: Line
    pull: Line
    arithmetic: float
    fading: float
    linear: bool
    gated: bool = False
    falls_apart: bool = False
    poles: Poles | None = None
    read: int | None = None
    maps: float = 0.0
    multiplied: int = 0
    load: float = 1.0

    def lags(self, share: float, longest: float, every: int = 16) -> float:
        """Return about how many lags it takes until the square of what is left is below a share of all."""
        if self.fading <= 0:
            return longest
        needed = -math.log(share) / (2 * self.fading)
        return min(longest, every * max(2, math.ceil(needed / every)))


def pace_of(network: Dynamics) -> Pace | None:
    """Return the pace of a network, found within about a second; None where its steps cannot be differentiated."""
    try:
        flow = Dynamics.of(network, "an estimate of time")
        with few_threads(flow.size):
            path = drive(
                flow,
                steps=1,
                trajectories=1,
                scale=1.0,
                washout=0,
                generator=torch.Generator().manual_seed(0),
            )
            load = _load()
            found = _step(flow, load), _pull(path, load), _arithmetic(load), _fading(flow), affine(flow)
            blocks = blocks_of(flow)
            return Pace(
                *found,
                gated=affine(flow, held=True),
                falls_apart=blocks is not None,
                poles=None if blocks is None else _poles(blocks),
                read=len(flow.read),
                maps=_maps(flow.network, load),
                multiplied=_multiplied(flow.network),
                load=load,
            )
    except Exception:  # a stranger's step may raise anything: then times are those of a common network of its size
        return None


def _seconds(*works: Callable[[], object], load: float) -> list[float]:
    """Return the least time of some calls of each: what the machine does besides is none of the network's."""
    found: list[list[tuple[float, float]]] = [[] for _ in works]
    begin = time.perf_counter()
    while len(found[0]) < _REPEATS or time.perf_counter() - begin < _ENOUGH * len(works):
        for work, own in zip(works, found, strict=True):  # in turn, so that both see the same disturbances
            clock, processor = time.perf_counter(), time.thread_time()
            work()
            own.append((time.perf_counter() - clock, time.thread_time() - processor))
        if time.perf_counter() - begin > _PATIENCE * len(works):
            break
    return [_told(min(clock for clock, _ in own), min(worked for _, worked in own), load) for own in found]


def _told(clock: float, processor: float, load: float) -> float:
    """Return the seconds of a call: on one thread by the processor's clock, unless it waits meanwhile."""
    waits = torch.get_num_threads() > 1 or clock > _WAITS * load * processor
    return clock / load if waits else processor


def _line(work: Callable[[int], object], many: int, load: float) -> Line:
    work(1)
    one, more = _seconds(lambda: work(1), lambda: work(many), load=load)
    each = max(more - one, 0.0) / (many - 1)
    return Line(max(min(one, more) - each, 0.0), each)


def _step(flow: Dynamics, load: float) -> Line:
    states = {count: flow.start(count) for count in (1, _EXAMPLES)}
    inputs = {count: torch.ones(count, flow.input_size, **flow.factory) for count in states}

    @torch.no_grad()
    def work(count: int) -> object:
        return flow.guarded(lambda: flow.step(inputs[count], states[count]))

    return _line(work, _EXAMPLES, load)


def _pull(path: Path, load: float) -> Line:
    tangents = Tangents(path, keep=False)
    ones = torch.ones(_COTANGENTS, 1, path.dynamics.size, **path.dynamics.factory)
    return _line(lambda count: tangents.pull(0, ones[:count]), _COTANGENTS, load)


def _arithmetic(load: float) -> float:
    size = 512
    matrix = torch.eye(size, dtype=torch.float64)
    return _seconds(lambda: matrix @ matrix, load=load)[0] * _GIGAFLOPS * 1e9 / (2 * size**3)


def _load() -> float:
    clock, processor = time.perf_counter(), time.thread_time()
    while time.thread_time() - processor < _LOOK:
        math.sqrt(2.0)
    return max(1.0, (time.perf_counter() - clock) / _LOOK)


def _maps(network: Recurrent, load: float) -> float:
    if not isinstance(network, DeclaredModule):  # a stranger's, in which "weights" may be anything
        return 0.0
    with torch.enable_grad():  # without gradients they would be kept from before
        return _seconds(network.weights, load=load)[0]


def _multiplied(network: Recurrent) -> int:
    return sum(each.numel() for each in network.parameters()) if getattr(network, "polynomial", False) else 0


def _poles(blocks: Blocks) -> Poles | None:
    x = torch.linspace(-1, 1, 4, **blocks.flow.factory)[:, None].expand(4, blocks.flow.input_size)
    transitions = blocks.transitions(x, blocks.flow.start(4))
    if not torch.equal(transitions, transitions[:1].expand_as(transitions)):
        return None
    some = transitions[0, : max(1, _EIGENVALUES // blocks.rows**3)]  # of many groups a few stand for all
    share = len(some) / blocks.groups
    found = np.unique(torch.linalg.eigvals(some).flatten().cpu().numpy())
    sizes = np.abs(found)
    tones = np.exp(-1j * np.angle(found[np.argsort(sizes)[-_TONES:]]))
    delays = ((1 - sizes**2) / np.maximum(np.abs(1 - found * tones[:, None]) ** 2, 1e-300)).sum(axis=1)
    return Poles(round(len(found) / share), float(sizes.max()), float(delays.max()) / share)


def _fading(flow: Dynamics) -> float:
    """Return the rate at which a cotangent shrinks over the last third of some steps back, as many as are quick.

    It begins, and is looked at, where the state is read out: what a memory holds back says nothing of noise there.
    """
    generator = torch.Generator().manual_seed(0)
    path = drive(flow, steps=_STEPS, trajectories=1, scale=1.0, washout=8, generator=generator)
    tangents, logs, total = Tangents(path, keep=False), [], 0.0
    block = torch.zeros(1, 1, flow.size, **flow.factory)
    block[..., flow.read] = torch.randn(len(flow.read), generator=generator, dtype=torch.float64).to(block)
    begin = time.perf_counter()
    for t in range(_STEPS - 1, -1, -1):
        block = tangents.pull(t, block)[0]
        size, seen = float(block.norm()), float(block[..., flow.read].norm())
        if not math.isfinite(size) or seen == 0:
            return math.inf if seen == 0 else 0.0
        logs.append(total + math.log(seen))
        block, total = block / size, total + math.log(size)
        if time.perf_counter() - begin > _PATIENCE:
            break
    first = 2 * len(logs) // 3
    return (logs[first - 1] - logs[-1]) / max(len(logs) - first, 1)
