"""Fisher memory of networks whose state falls apart, part by part: states of many thousand numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core import memory
from mnemoscope.measures.blocks import Blocks, Derivative
from mnemoscope.measures.dynamics import Jacobians
from mnemoscope.measures.fisher.linearised import BLOCK, Propagated, propagate
from mnemoscope.measures.trajectory import Path, drive

__all__ = ["BlockMemory", "Driven", "block_memory"]


@dataclass(frozen=True)
class Driven:
    """How a network is driven that is not linear: trajectories, scale of the inputs, washout, seed."""

    trajectories: int
    scale: float
    washout: int
    seed: int


@dataclass(frozen=True)
class BlockMemory:
    """The noise after many steps, and what it leaves of the information about every input.

    Attributes
    ----------
    noise
        Covariance and horizon; its batch are trajectories times groups.
    grams
        G_k: the information about input direction u at lag k is u^T G_k u, for noise of variance one.
    linear
        Whether all steps have the same derivatives.
    """

    noise: Propagated
    grams: Float[Tensor, "lags trajectories input input"]
    linear: bool

    def best_direction(self) -> Float[np.ndarray, " input"]:
        """Return the unit input direction with the largest total, its largest entry positive."""
        best = torch.linalg.eigh(self.grams.sum((0, 1))).eigenvectors[:, -1]
        found: np.ndarray = (best * best[best.abs().argmax()].sign()).cpu().numpy()
        return found

    def information(self, direction: Float[np.ndarray, " input"]) -> Float[np.ndarray, "lags trajectories"]:
        """Return J(k) of every trajectory, for noise of variance one."""
        along = torch.from_numpy(direction).to(self.grams)
        found: np.ndarray = (self.grams @ along @ along).cpu().numpy()
        return found


def block_memory(blocks: Blocks, steps: int, driven: Driven, *, until_settled: bool) -> BlockMemory:
    r"""Return the Fisher memory of a network by the blocks of its state.

    With :math:`P_k^{(g)} = A_T^{(g)} \cdots A_{T-k+1}^{(g)}` the covariance of the noise falls apart into

    .. math::
        C^{(g)} = \epsilon \sum_k P_k^{(g)} P_k^{(g)\top}, \quad
        G_k = \sum_g (P_k^{(g)} B_{T-k}^{(g)})^\top (C^{(g)})^{-1} P_k^{(g)} B_{T-k}^{(g)},

    m x m matrices that serve all c columns: O(T G m^3 + T S (m + d)) time for a trajectory of T steps and a state of
    S = G m c numbers, where one matrix of the whole state takes O(T S^3).
    """
    trajectories = 1 if blocks.constant else driven.trajectories
    _require_memory(blocks, steps, trajectories)
    steps_back = _Constant(blocks, steps) if blocks.constant else _Along(blocks, steps, driven)
    eye = torch.eye(blocks.rows, **blocks.flow.factory)
    noise = propagate(steps_back.noise(), eye, trajectories * blocks.groups, until_settled=until_settled)
    return BlockMemory(noise, _grams(steps_back, noise, blocks, trajectories), steps_back.linear)


class _Constant:
    """Steps of a linear network."""

    linear = True

    def __init__(self, blocks: Blocks, steps: int) -> None:
        assert blocks.constant is not None
        self.steps = steps
        self.state, self.input = (part.flatten(0, 1) for part in blocks.constant)

    def noise(self) -> Iterator[Jacobians]:
        """Yield the transitions of `BLOCK` lags after the other, without inputs."""
        for first in range(0, self.steps, BLOCK):
            state = self.state.expand(min(BLOCK, self.steps - first), *self.state.shape)
            yield Jacobians(state, state[..., :0])

    def at(self, lag: int) -> tuple[Tensor, Tensor]:
        """Return A and B at a lag."""
        return self.state, self.input


class _Along:
    """Steps along trajectories, the last first; transitions are kept, entries are computed by blocks of lags."""

    linear = False

    def __init__(self, blocks: Blocks, steps: int, driven: Driven) -> None:
        self.blocks, self.steps = blocks, steps
        self.path: Path = drive(
            blocks.flow,
            steps=steps,
            trajectories=driven.trajectories,
            scale=driven.scale,
            washout=driven.washout,
            generator=torch.Generator().manual_seed(driven.seed),
        )
        self.kept: list[Tensor] = []
        self.entries: tuple[int, Tensor] | None = None

    def noise(self) -> Iterator[Jacobians]:
        """Yield the transitions of `BLOCK` lags after the other, without inputs."""
        for first in range(0, self.steps, BLOCK):
            state = self._derivatives(self.blocks.transitions, first)
            self.kept.extend(state.unbind(0))
            yield Jacobians(state, state[..., :0])

    def _derivatives(self, derivative: Derivative, first: int) -> Float[Tensor, "lags many rows any"]:
        """Return a derivative at `BLOCK` lags, of all trajectories and groups."""
        end = self.steps - first
        begin = max(end - BLOCK, 0)
        found = self.blocks.by_steps(derivative, self.path.inputs[begin:end], self.path.states[begin:end])
        return found.flip(0).flatten(1, 2)

    def at(self, lag: int) -> tuple[Tensor, Tensor]:
        """Return A and B at a lag."""
        first = lag - lag % BLOCK
        if self.entries is None or self.entries[0] != first:
            self.entries = first, self._derivatives(self.blocks.entries, first)
        return self.kept[lag], self.entries[1][lag - first]


def _grams(
    steps: _Constant | _Along, noise: Propagated, blocks: Blocks, trajectories: int
) -> Float[Tensor, "lags trajectories input input"]:
    product = torch.eye(blocks.rows, **blocks.flow.factory).expand(trajectories * blocks.groups, -1, -1)
    inputs, found = blocks.flow.input_size, []
    for first in range(0, len(noise.signals), BLOCK):
        signals = []
        for lag in range(first, min(first + BLOCK, len(noise.signals))):
            state, entry = steps.at(lag)
            signals.append(product @ entry)
            product = product @ state
        white = noise.whiten(torch.cat(signals, -1)).reshape(trajectories, -1, len(signals), blocks.columns, inputs)
        rows = white.movedim(2, 0).flatten(2, -2)
        found.append(rows.mT @ rows)
    return torch.cat(found)


def _require_memory(blocks: Blocks, steps: int, trajectories: int) -> None:
    flow = blocks.flow
    per_step = 0 if blocks.constant else 8 * trajectories * (flow.size + blocks.groups * blocks.rows**2)
    working = 8 * trajectories * BLOCK * (2 * flow.size * flow.input_size + 4 * blocks.groups * blocks.rows**2)
    fits = max(0, memory.allowance() - working) // max(per_step, 1)
    memory.require(
        f"{flow.what} over {steps} steps and {trajectories} trajectories of {flow.size} numbers",
        steps * per_step + working,
        f"horizon={fits} would fit" if fits else "fewer trajectories would fit",
    )
