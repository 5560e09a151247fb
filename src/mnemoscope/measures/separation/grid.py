"""A network's outputs on every sequence of K templates, with each common prefix evaluated once.

The grid has K^T entries. A pass over every sequence would take T K^T steps of the network. Here a prefix is one row of
a batch, taken K ways further: K + K^2 + .. + K^T steps in all, in batches that fit the processor's cache.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from mnemoscope.core.errors import UserError
from mnemoscope.core.ring import PRIMES, Prime, Ring
from mnemoscope.measures.blackbox import Blackbox
from mnemoscope.measures.separation.inputs import Templates
from mnemoscope.nn import state as states
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.nn.recurrent import Recurrent

__all__ = ["Polynomial", "RingWalk", "StepWalk", "Walk", "WholeWalk", "evaluate_grid", "exact_rank", "matricise"]

_ROWS = 1 << 13
"""Prefixes in a batch, at the most."""

_STEPPED, _NUMBERS = 1 << 10, 1 << 19
"""Prefixes in a batch of steps, and numbers in their states: more leave the processor's cache, and take up to seven
times as long."""


class Polynomial(Protocol):
    """A network that exact arithmetic can evaluate."""

    @property
    def polynomial(self) -> bool:
        """Whether its options make it a polynomial of weights and inputs."""

    def exact_weights(self, ring: Ring) -> dict[str, np.ndarray]:
        """Return the weights in a ring."""

    def evaluate(self, ring: Ring, weights: dict[str, Any], inputs: np.ndarray, state: Any = None) -> tuple[Any, Any]:
        """Return outputs (T, B, o) and the state after them, for inputs (T, B, d)."""


class Walk(ABC):
    """One step further of a batch of prefixes. A prefix's state is one row of a batch."""

    count: int
    dtype: np.dtype[Any]
    outputs: tuple[int, ...] = ()
    """The shape of what is recorded after a sequence: () for one output."""

    def most(self, state: Any, batch: int) -> int:
        """Return how many prefixes are taken further at once, when `batch` of them have these states."""
        return _ROWS

    @abstractmethod
    def extend(self, state: Any, batch: int, last: bool = False) -> tuple[np.ndarray, Any]:
        """Continue each of `batch` prefixes (None: the empty one) by every template: outputs and states, in order.

        After the `last` step nobody needs the states.
        """

    @abstractmethod
    def take(self, state: Any, rows: slice) -> Any:
        """Return the states of some prefixes."""


class RingWalk(Walk):
    """Steps of a polynomial network in a ring.

    Parameters
    ----------
    network
        With `evaluate`.
    ring
        Where to compute.
    weights
        Of the network, in the ring.
    templates
        K rows of inputs, in the ring.
    unit
        Which output is recorded, or which ones.
    """

    def __init__(
        self,
        network: Polynomial,
        ring: Ring,
        weights: dict[str, np.ndarray],
        templates: np.ndarray,
        unit: int | Sequence[int],
    ) -> None:
        self.outputs = () if isinstance(unit, int) else (len(unit),)
        self.ring, self.templates, self.unit = ring, templates, unit
        self.count, self.dtype = len(templates), ring.dtype
        self._evaluate = partial(network.evaluate, ring, weights)
        self._finish = partial(network.evaluate, ring, _without_successor(network, weights))
        # A ring's state is whatever the network returns: batches of one and two show where its batch stands.
        one, two = (tree_flatten(self._evaluate(ring.zeros((1, b, templates.shape[1])))[1])[0] for b in (1, 2))
        self._axes = [_batch_axis(a, b) for a, b in zip(one, two, strict=True)]

    def extend(self, state: Any, batch: int, last: bool = False) -> tuple[np.ndarray, Any]:
        """Continue each prefix by every template."""
        inputs = np.broadcast_to(self.templates, (batch, *self.templates.shape))
        inputs = inputs.reshape(1, batch * self.count, self.templates.shape[1])
        if state is not None:
            state = self._along(state, lambda leaf, axis: np.repeat(leaf, self.count, axis=axis))
        outputs, state = (self._finish if last else self._evaluate)(inputs, state=state)
        return np.asarray(outputs)[-1][:, self.unit], state

    def take(self, state: Any, rows: slice) -> Any:
        """Return the states of some prefixes."""
        return self._along(state, lambda leaf, axis: leaf[(slice(None),) * axis + (rows,)])

    def _along(self, state: Any, change: Callable[[np.ndarray, int], np.ndarray]) -> Any:
        leaves, form = tree_flatten(state)
        pairs = zip(leaves, self._axes, strict=True)
        return tree_unflatten([leaf if axis is None else change(leaf, axis) for leaf, axis in pairs], form)


class StepWalk(Walk):
    """Steps of any recurrent network in float64.

    Parameters
    ----------
    network
        A float64 copy in eval mode.
    templates
        K rows of inputs.
    unit
        Which output is recorded, or which ones.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, network: Recurrent, templates: Tensor, unit: int | Sequence[int]) -> None:
        self.outputs = () if isinstance(unit, int) else (len(unit),)
        self.network, self.templates, self.unit = network, templates, unit
        self.count = len(templates)
        self._step = network.stepper()

    def most(self, state: Any, batch: int) -> int:
        """Return as many prefixes as a cache has room for."""
        if state is None:
            return _STEPPED
        numbers: int = sum(leaf.numel() for leaf in tree_leaves(state)) // batch
        return min(_STEPPED, max(32, _NUMBERS // max(1, numbers)))

    @torch.no_grad()
    def extend(self, state: Any, batch: int, last: bool = False) -> tuple[np.ndarray, Any]:
        """Continue each prefix by every template."""
        if state is None:
            state = self.network.init_state(batch, device=self.templates.device, dtype=self.templates.dtype)
        rows = torch.arange(batch, device=self.templates.device).repeat_interleave(self.count)
        state = states.index_batch(state, rows, self.network.batch_axis)
        inputs = self.templates.repeat(batch, 1).reshape(-1, *self.network.input_shape)
        outputs, state = self._step(inputs, state)
        return outputs.flatten(1)[:, self.unit].cpu().numpy(), state

    def take(self, state: Any, rows: slice) -> Any:
        """Return the states of some prefixes."""
        before = (slice(None),) * self.network.batch_axis
        return tree_map(lambda leaf: leaf[(*before, rows)], state)


class WholeWalk(Walk):
    """Whole sequences of a network without a state: a prefix is kept as its inputs, and run when it is complete.

    Parameters
    ----------
    box
        The network.
    templates
        K rows of inputs.
    unit
        Which output is recorded, or which ones.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, box: Blackbox, templates: Tensor, unit: int | Sequence[int]) -> None:
        self.outputs = () if isinstance(unit, int) else (len(unit),)
        self.box, self.templates, self.unit = box, templates, unit
        self.count = len(templates)

    def extend(self, state: Any, batch: int, last: bool = False) -> tuple[np.ndarray, Any]:
        """Continue each prefix by every template."""
        now = self.templates.repeat(batch, 1).unsqueeze(0)
        state = now if state is None else torch.cat([state.repeat_interleave(self.count, dim=1), now])
        if not last:
            return np.empty((0, *self.outputs)), state
        return self.box.answers(state)[:, self.unit].cpu().numpy(), state

    def take(self, state: Any, rows: slice) -> Any:
        """Return some prefixes."""
        return state[:, rows]


def evaluate_grid(walk: Walk, horizon: int) -> np.ndarray:
    """Return the last output on each of the K^T sequences of templates, the first step's template varying slowest.

    Of several outputs, each has a column.
    """
    out = np.empty((walk.count**horizon, *walk.outputs), dtype=walk.dtype)
    _fill(walk, out, None, 1, horizon)
    return out


def _fill(walk: Walk, out: np.ndarray, state: Any, batch: int, steps: int) -> None:
    """Write what follows from `batch` prefixes within `steps` more steps, some rows after the others."""
    most = walk.most(state, batch)
    if batch > 1 and batch * walk.count > most:
        rows, width = max(1, most // walk.count), walk.count**steps
        for first in range(0, batch, rows):
            part = slice(first, min(batch, first + rows))
            within = out[part.start * width : part.stop * width]
            _extend(walk, within, walk.take(state, part), part.stop - part.start, steps)
    else:
        _extend(walk, out, state, batch, steps)


def _extend(walk: Walk, out: np.ndarray, state: Any, batch: int, steps: int) -> None:
    # Depth first: a prefix is evaluated once for all sequences that begin with it, and few states live at once.
    outputs, state = walk.extend(state, batch, last=steps == 1)
    if steps == 1:
        out[:] = outputs
    else:
        _fill(walk, out, state, batch * walk.count, steps - 1)


def matricise(grid: np.ndarray, count: int, horizon: int, start: tuple[int, ...]) -> np.ndarray:
    """Return the grid as a matrix: rows for the templates at the steps of `start`, columns for those at all others."""
    rows = count ** len(start)
    if start == tuple(range(len(start))) or count == 1:
        return grid.reshape(rows, -1)
    inside = [step in start for step in range(horizon)]
    cuts = [0, *(t for t in range(1, horizon) if inside[t] != inside[t - 1]), horizon]
    runs = list(itertools.pairwise(cuts))  # steps of one side that follow each other are one axis
    tensor = grid.reshape([count ** (stop - first) for first, stop in runs])
    order = sorted(range(len(runs)), key=lambda run: not inside[runs[run][0]])
    return np.ascontiguousarray(tensor.transpose(order)).reshape(rows, -1)


def _without_successor(network: Polynomial, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return weights for a step after which no other comes: a RAC's W_H without rows, since it only makes the state."""
    if not isinstance(network, RAC):
        return weights
    return {name: value[:0] if name.startswith("weight_hh") else value for name, value in weights.items()}


def _batch_axis(one: Any, two: Any) -> int | None:
    """Return along which axis a leaf of the state grew when the batch did."""
    if not isinstance(one, np.ndarray):
        return None
    grown = [axis for axis, (a, b) in enumerate(zip(one.shape, two.shape, strict=True)) if a != b]
    return grown[0] if grown else None


def exact_rank(
    network: Polynomial,
    templates: Templates,
    horizon: int,
    start: tuple[int, ...],
    unit: int,
    ceiling: int,
    weights: Any = None,
) -> tuple[int, tuple[int, ...]]:
    """Return the rank of a polynomial network's grid, and the primes modulo which it was found.

    A rank modulo a prime is at most the true one. It is settled when it reaches `ceiling`, an upper bound, or when two
    primes give the largest rank seen.

    Parameters
    ----------
    network
        With `evaluate`; its own weights are taken, or `weights`.
    templates
        Rows of inputs.
    horizon, start, unit
        Steps; those of the start set; the output.
    ceiling
        What the rank cannot exceed.
    weights
        Integers, floats or fractions by the names of parameters, in place of the network's.
    """
    found: list[int] = []
    for p in PRIMES:
        # Fractions become residues, so that nothing is rounded; a minor that is not zero may be lost, never gained.
        field = Prime(p)
        own = network.exact_weights(field) if weights is None else {k: field.array(w) for k, w in weights.items()}
        walk = RingWalk(network, field, own, field.array(templates), unit)
        found.append(field.rank(matricise(evaluate_grid(walk, horizon), len(templates), horizon, start)))
        if found[-1] == ceiling or found.count(max(found)) == 2:
            return max(found), PRIMES[: len(found)]
    raise UserError(
        f"an exact rank was sought and ranks {found} modulo {len(PRIMES)} primes were found, of which no two agree"
    )
