"""Parts of a state that act on themselves, and their transitions along driven trajectories.

The Jacobian of a step falls apart into strongly connected parts: numbers of the state that depend on each other in a
circle. In the right order it is block triangular, so that its eigenvalues are those of its parts. A diagonal
recurrence has a part for every unit (for every pair of units over the complex numbers), a layer that reads another's
state comes after it, and an LSTM is one part.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.utils._pytree import tree_map

from mnemoscope.core import memory
from mnemoscope.measures.blocks import Blocks, blocks_of
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.trajectory import Path
from mnemoscope.nn.state import State

__all__ = ["Parts", "find_parts", "jittered", "moments", "nonlinear_unit"]

_ZERO = 1e-13
"""Share of the largest derivative of a number up to which one is rounding."""

_SAME = 1e-9
"""Share of their size up to which two transitions are the same."""

_NUMBERS = 2**22
"""Numbers of the states that are tried in one step."""

_JITTER = 0.02
"""Standard deviation by which weights are moved, as a share of 1 plus their usual size."""

_START = 2
"""Steps at which all trajectories are still nearly the same."""


@dataclass(frozen=True)
class Parts:
    """Transitions of all parts at several moments.

    Attributes
    ----------
    transitions
        For each size of a part, that of every part at every moment.
    linear
        Whether no transition depends on the part's own state: h' = A(x) h + b(x), with the parts before it in x.
    layers
        Parts that act on themselves, one after the other, on the longest way.
    """

    transitions: tuple[Float[Tensor, "moments parts rows rows"], ...]
    linear: bool
    layers: int

    @property
    def fixed(self) -> bool:
        """Whether transitions are the same at all moments."""
        return not any(_differ(each, each[:1].expand_as(each)).any() for each in self.transitions)

    @property
    def diagonal(self) -> bool:
        """Whether every part is one number."""
        return all(each.shape[-1] == 1 for each in self.transitions)

    def passive(self, tolerance: float) -> bool:
        """Whether every part has transitions that are the same, or is one number, multiplied by none below zero."""
        for each in self.transitions:
            held = _differ(each, each[:1].expand_as(each)).logical_not()
            if each.shape[-1] == 1:
                held |= each[..., 0, 0] >= -tolerance
            if not bool((held.all(0)).all()):
                return False
        return True

    @property
    def commuting(self) -> bool:
        """Whether the transitions of every part commute: if they do with one sum of all, at random, then in pairs."""
        for each in self.transitions:
            if each.shape[-1] > 1:
                weights = torch.rand(len(each), generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 0.5
                both = torch.einsum("m,mpij->pij", weights.to(each), each)
                sizes = each.norm(dim=(-2, -1)) * torch.einsum("m,mp->p", weights.to(each), each.norm(dim=(-2, -1)))
                if bool(((each @ both - both @ each).norm(dim=(-2, -1)) > _SAME * sizes).any()):
                    return False
        return True

    @property
    def diagonalisable(self) -> bool:
        """Whether every part has a basis of eigenvectors, as far as double precision tells."""
        for each in self.transitions:
            if each.shape[-1] > 1:
                vectors = torch.linalg.eig(each[0]).eigenvectors
                if bool((torch.linalg.cond(vectors) > 1 / _SAME).any()):
                    return False
        return True

    def eigenvalues(self) -> np.ndarray:
        """Return those of every moment, one row each; one row where all are the same."""
        last = 1 if self.fixed else None
        found = [torch.linalg.eigvals(each[:last]).flatten(1) for each in self.transitions]
        return np.asarray(torch.cat(found, dim=1).cpu().numpy())


def moments(path: Path, count: int, generator: torch.Generator) -> tuple[Float[Tensor, "moments input"], State]:
    """Return inputs and the states that they meet, at moments drawn from all trajectories, not from their start."""
    first = min(_START, len(path.inputs) // 2)
    inputs = path.inputs[first:]
    steps, runs = inputs.shape[:2]
    states = path.dynamics.join(path.states[first:-1])
    chosen = torch.randperm(steps * runs, generator=generator)[:count].to(path.inputs.device)
    axis = path.dynamics.network.batch_axis
    return inputs.flatten(0, 1)[chosen], tree_map(lambda leaf: leaf.index_select(axis, chosen), states)


def find_parts(dynamics: Dynamics, x: Float[Tensor, "moments input"], state: State, *, test: bool = True) -> Parts:
    """Return the parts of a state: those that the network declares, or those that its Jacobians show.

    Without `test` nobody asks whether they are linear.
    """
    declared = blocks_of(dynamics)
    return _declared(declared, x, state) if declared is not None else _found(dynamics, x, state, test)


@torch.no_grad()
def nonlinear_unit(dynamics: Dynamics, x: Float[Tensor, "moments input"], state: State) -> bool:
    """Tell whether a number of the state is seen to depend on itself other than by an affine function.

    Of some numbers, each alone takes the value that it has at another moment, and the one halfway. That is a few steps
    where Jacobians are many, and enough for most networks with a nonlinearity around their recurrence.
    """
    flat = dynamics.flatten(state)
    moments, size = flat.shape
    most = min(size, max(8, _NUMBERS // (2 * moments * size)), 64)
    units = torch.linspace(0, size - 1, most, device=flat.device).round().long()
    moved = flat.repeat(2 * len(units), 1).reshape(2, len(units), moments, size)
    each, other = torch.arange(len(units), device=flat.device), flat.roll(1, 0)[:, units].mT
    moved[0, each, :, units] = other
    moved[1, each, :, units] = (other + flat[:, units].mT) / 2
    many = dynamics.join([state] * (2 * len(units)))
    after = dynamics.guarded(lambda: dynamics.advance(x.repeat(2 * len(units), 1), moved.reshape(-1, size), many))
    there, halfway = after.reshape(2, len(units), moments, size)[:, each, :, units].transpose(0, 1)
    here = dynamics.advance(x, flat, state)[:, units].mT
    gap, sizes = (2 * halfway - here - there).abs(), here.abs() + there.abs()
    return bool(((gap > _SAME * sizes) & gap.isfinite()).any())


def jittered(dynamics: Dynamics, generator: torch.Generator) -> Dynamics:
    """Return the network with every weight moved a little: what holds at its weights by chance no longer does."""
    twin = copy.deepcopy(dynamics.network)
    with torch.no_grad():
        for weight in twin.parameters():
            if weight.is_floating_point() and weight.numel():
                noise = torch.randn(weight.shape, generator=generator, dtype=torch.float64).to(weight)
                weight.add_(noise, alpha=_JITTER * (1 + float(weight.square().mean().sqrt())))
    return Dynamics.of(twin, dynamics.what, differentiable=False)


def _declared(blocks: Blocks, x: Tensor, state: State) -> Parts:
    with torch.no_grad():
        return Parts((blocks.transitions(x, state),), linear=True, layers=1)


def _found(dynamics: Dynamics, x: Tensor, state: State, test: bool) -> Parts:
    memory.require(dynamics.what, 4 * 8 * len(x) * dynamics.size**2, "fewer moments would fit")
    jacobians = dynamics.jacobians(x, state).state.detach()
    if not bool(jacobians.isfinite().all()):
        return Parts((), linear=False, layers=1)
    sizes = jacobians.abs()
    edges = (sizes > _ZERO * sizes.amax(-1, keepdim=True)).any(0).cpu().numpy()
    order = _ordered(edges)
    places = _by_size(order.labels)
    transitions = tuple(_blocks(jacobians, place) for place in places)
    found = Parts(transitions, linear=True, layers=max(1, int((order.before + order.acts).max())))
    return replace(found, linear=not test or _linear(dynamics, x, state, order, jacobians))


@torch.no_grad()
def _linear(dynamics: Dynamics, x: Tensor, state: State, order: _Order, jacobians: Tensor) -> bool:
    """Tell whether parts move by their transitions when their own numbers, and those behind them, become others.

    Those in front must not move at all. Steps are compared, not derivatives: these do not see a threshold.
    """
    flat = dynamics.flatten(state)
    here = dynamics.advance(x, flat, state)
    label = torch.from_numpy(order.labels).to(flat.device)
    own = torch.where(label[:, None] == label, jacobians, 0.0)
    places = torch.from_numpy(order.place).to(flat.device)[label]
    for each in np.unique(order.place).tolist():
        moved = torch.where(places >= each, flat.roll(1, 0), flat)
        there = dynamics.advance(x, moved, state)
        change = torch.einsum("mij,mj->mi", own, torch.where(places == each, moved - flat, 0.0))
        gap, sizes = (there - here - change).abs(), here.abs() + there.abs() + change.abs()
        seen = gap[:, places <= each]
        if not bool(seen.isfinite().all()) or bool((seen > _SAME * sizes[:, places <= each]).any()):
            return False
    return True


class _Order(NamedTuple):
    """The part of every number; of every part its place, whether it acts on itself, and how many before it do."""

    labels: Int[np.ndarray, " size"]
    place: Int[np.ndarray, " parts"]
    acts: Bool[np.ndarray, " parts"]
    before: Int[np.ndarray, " parts"]


def _ordered(edges: Bool[np.ndarray, "to origin"]) -> _Order:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, labels = connected_components(csr_array(edges.T), directed=True, connection="strong")
    to, origin = (labels[each] for each in np.nonzero(edges))
    inner = to == origin
    acts = np.zeros(count, dtype=bool)
    acts[to[inner]] = True
    pairs = np.unique(np.stack([origin[~inner], to[~inner]], axis=1), axis=0)
    ones = np.ones(count, dtype=np.int64)
    return _Order(labels, _longest(pairs, ones), acts, _longest(pairs, acts.astype(np.int64)))


def _longest(pairs: Int[np.ndarray, "edges 2"], weights: Int[np.ndarray, " parts"]) -> Int[np.ndarray, " parts"]:
    """Return the weight of the heaviest way to every part, its own not counted; there are no circles."""
    found = np.zeros(len(weights), dtype=np.int64)
    while True:
        further = found.copy()
        np.maximum.at(further, pairs[:, 1], (found + weights)[pairs[:, 0]])
        if (further == found).all():
            return found
        found = further


def _by_size(labels: Int[np.ndarray, " size"]) -> list[Int[np.ndarray, "parts rows"]]:
    """Return the places of every part's numbers, parts of one size together."""
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(labels))[:-1])
    sizes = sorted({len(each) for each in parts})
    return [np.stack([each for each in parts if len(each) == size]) for size in sizes]


def _blocks(jacobians: Tensor, places: Int[np.ndarray, "parts rows"]) -> Float[Tensor, "moments parts rows rows"]:
    index = torch.from_numpy(places).to(jacobians.device)
    return jacobians[:, index[:, :, None], index[:, None, :]]


def _differ(one: Tensor, other: Tensor) -> Bool[Tensor, "moments parts"]:
    """Tell which transitions are not the same."""
    size = torch.maximum(one.abs().amax(dim=(-2, -1)), other.abs().amax(dim=(-2, -1)))
    return (one - other).abs().amax(dim=(-2, -1)) > _SAME * size
