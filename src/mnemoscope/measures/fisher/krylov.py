"""Fisher information of large states: the noise covariance met in a subspace that grows block by block.

No matrix of S x S is formed. The covariance is applied by one sweep back and one forward along the trajectory, and met
in the Krylov space of the signals; what is found there is a lower bound, and the last block tells how far it is off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core import memory
from mnemoscope.measures.fisher.linearised import BLOCK, SETTLED, geometric_tail
from mnemoscope.measures.fisher.noise import Noise
from mnemoscope.measures.tangent import Tangents
from mnemoscope.measures.trajectory import Path

__all__ = ["Projected", "krylov_information", "shortfall", "window"]

_RANK = 32
"""Most columns of a block. The signals of a network that forgets have 10 to 30 directions, of all lags together."""

_DIRECTIONS = 1e-6
"""Share of the largest singular value of all signals, each of length one, below which a direction is left out."""

_PROBES = 8
_GROWN = 1e12
_FLOOR = 1e-13


@dataclass(frozen=True)
class Projected:
    """What a subspace tells.

    Attributes
    ----------
    answers
        Of every lag: the information about input direction u is |answers u|^2, for noise of variance one.
    smaller
        The same with two rounds less, and with one: a round takes every direction of the signals once more through the
        covariance, a block at a time.
    blocks
        How many blocks the subspace has.
    whole
        Whether it is the whole space, so that nothing is missing.
    """

    answers: Float[Tensor, "lags batch rank input"]
    smaller: tuple[Float[Tensor, "lags batch rank input"], ...]
    blocks: int
    whole: bool


def window(path: Path, noise: Noise, generator: torch.Generator, *, until_settled: bool) -> tuple[int, float]:
    """Return how many lags there are to look at, and an estimate of the share of the noise beyond them.

    A few random directions are taken back through time, as the whole covariance is in the dense way; where disturbances
    grow so much that no digit is left, it ends.
    """
    steps, batch = path.inputs.shape[:2]
    tangents, shares = Tangents(path, keep=False), []
    drawn = torch.randn(_PROBES, batch, noise.units, generator=generator, dtype=torch.float64).to(noise.scale)
    block = noise.read_back(torch.linalg.qr(drawn.permute(1, 2, 0)).Q.permute(2, 0, 1))
    gram: Tensor | None = None
    for lag in range(steps):
        seen = noise.enter_back(block)
        own = torch.einsum("ibu,jbu->bij", seen, seen)
        gram = own if gram is None else gram + own
        if (lag + 1) % BLOCK == 0 or lag == steps - 1:
            shares.append(_share(gram, own))
            tail = geometric_tail(shares)
            if float(own.abs().amax()) > _GROWN or (until_settled and tail < SETTLED):
                return lag + 1, tail
        block = tangents.pull(steps - 1 - lag, block)[0]
    return steps, geometric_tail(shares)


def _share(gram: Float[Tensor, "batch k k"], own: Float[Tensor, "batch k k"]) -> float:
    """Return the share of the noise that the last lag has, at most over the trajectories."""
    ridge = _FLOOR * gram.diagonal(dim1=1, dim2=2).amax(1)[:, None, None] * torch.eye(gram.shape[1]).to(gram)
    part = torch.linalg.solve(gram + ridge, own).diagonal(dim1=1, dim2=2).sum(1)
    return float(part.amax()) / gram.shape[1]


def krylov_information(path: Path, noise: Noise, lags: int, *, blocks: int, tolerance: float) -> Projected:
    """Return the information about the inputs of the last `lags` steps, all trajectories in turn.

    Parameters
    ----------
    path, noise
        Trajectories, and the noise on their states.
    lags
        How many steps back.
    blocks
        Most blocks of the subspace.
    tolerance
        Share of the total below which the gain of a block ends the search.
    """
    batch = path.inputs.shape[1]
    needed = 8 * lags * _RANK * path.dynamics.size * 2
    together = max(1, min(batch, memory.allowance() // 3 // needed))
    memory.require(f"{path.dynamics.what} over {lags} steps", needed, "a shorter window (longest=) would fit")
    found = [
        _Space(path.part(first, min(first + together, batch)), noise, lags).grow(blocks, tolerance)
        for first in range(0, batch, together)
    ]
    return found[0] if len(found) == 1 else _joined(found)


def _joined(found: list[Projected]) -> Projected:
    """Return several trajectories side by side, each with the blocks that it needed."""
    most = min(len(each.smaller) for each in found)

    def together(parts: list[Tensor]) -> Tensor:
        rank = max(part.shape[2] for part in parts)
        return torch.cat([torch.nn.functional.pad(part, (0, 0, 0, rank - part.shape[2])) for part in parts], dim=1)

    smaller = (together([each.smaller[index - most] for each in found]) for index in range(most))
    return Projected(
        together([each.answers for each in found]),
        tuple(smaller),
        max(each.blocks for each in found),
        all(each.whole for each in found),
    )


class _Space:
    """A subspace of the units, with the covariance and the signals in it."""

    def __init__(self, path: Path, noise: Noise, lags: int) -> None:
        self.path, self.noise, self.lags = path, noise, lags
        self.steps = path.inputs.shape[0]
        self.tangents = Tangents(path)
        self.basis: Tensor | None = None  # batch units rank
        self.images: Tensor | None = None  # C V of all blocks but the last
        self.gram: Tensor | None = None
        self.signals: Tensor | None = None  # lags batch rank input

    def grow(self, blocks: int, tolerance: float) -> Projected:
        """Add blocks until the gain of one is below the tolerance."""
        directions = self._signal_directions(_RANK * max(1, (2 * blocks) // 3))
        waiting = [directions[:, :, first : first + _RANK] for first in range(0, directions.shape[2], _RANK)]
        signals, found = len(waiting), []
        for index in range(blocks):
            block = self._new(waiting.pop(0))
            if block.shape[2] == 0:
                break
            image = self._add(block, last=index == blocks - 1)
            found.append(self._answers())
            if image is None or (index >= signals and self._gain(found) < tolerance / signals):
                break
            waiting.append(image)
        assert self.basis is not None
        rounds = found[::-signals][1:3][::-1] or found[-2:-1]
        return Projected(found[-1], tuple(rounds), len(found), self.basis.shape[2] == self.noise.units)

    @staticmethod
    def _gain(found: list[Tensor]) -> float:
        now, before = (float(each.square().sum()) for each in (found[-1], found[-2]))
        return (now - before) / now if now > 0 else 0.0

    def _new(self, block: Float[Tensor, "batch units any"]) -> Float[Tensor, "batch units any"]:
        """Return an orthonormal basis of what a block adds; twice, as once leaves what rounding made of it."""
        room = self.noise.units - (0 if self.basis is None else self.basis.shape[2])
        block = block[:, :, : max(0, room)]
        for _ in range(2):
            block = block / block.norm(dim=1, keepdim=True).clamp(min=1e-300)
            if self.basis is not None:
                block = block - self.basis @ (self.basis.mT @ block)
            block = torch.linalg.qr(block).Q
        return block

    def _add(self, block: Float[Tensor, "batch units any"], *, last: bool) -> Tensor | None:
        """Take a block in: its signals and its part of the covariance; return C times it unless it is the last."""
        seen, signals = self._back(block)
        own = torch.einsum("kibu,kjbu->bij", seen, seen)
        if self.basis is None:
            self.basis, self.gram, self.signals = block, own, signals
        else:
            assert self.images is not None
            assert self.gram is not None
            assert self.signals is not None
            cross = self.images.mT @ block
            top, low = torch.cat([self.gram, cross], dim=2), torch.cat([cross.mT, own], dim=2)
            self.gram = torch.cat([top, low], dim=1)
            self.basis = torch.cat([self.basis, block], dim=2)
            self.signals = torch.cat([self.signals, signals], dim=2)
        if last:
            return None
        image = self._forward(seen)
        self.images = image if self.images is None else torch.cat([self.images, image], dim=2)
        return image

    def _answers(self) -> Float[Tensor, "lags batch rank input"]:
        """Return F^-T V^T D_k, F^T F the covariance in the subspace."""
        assert self.gram is not None
        assert self.signals is not None
        lags, batch, rank, inputs = self.signals.shape
        ridge = _FLOOR * self.gram.diagonal(dim1=1, dim2=2).amax(1)[:, None, None] * torch.eye(rank).to(self.gram)
        root = torch.linalg.cholesky((self.gram + self.gram.mT) / 2 + ridge)
        columns = self.signals.permute(1, 2, 0, 3).reshape(batch, rank, lags * inputs)
        white = torch.linalg.solve_triangular(root, columns, upper=False)
        answers: Tensor = white.reshape(batch, rank, lags, inputs).permute(2, 0, 1, 3)
        return answers

    def _back(self, block: Float[Tensor, "batch units any"]) -> tuple[Tensor, Tensor]:
        """Return L^T R P_k^T R^T L^-T V of all lags, and V^T D_k."""
        carried = self.noise.read_back(block.permute(2, 0, 1))
        seen, signals = [], []
        for lag in range(self.lags):
            seen.append(self.noise.enter_back(carried))
            carried, by_input = self.tangents.pull(self.steps - 1 - lag, carried)
            signals.append(by_input.transpose(0, 1))
        return torch.stack(seen), torch.stack(signals)

    def _forward(self, seen: Float[Tensor, "lags any batch units"]) -> Float[Tensor, "batch units any"]:
        """Return the covariance times a block, from what `_back` saw of it."""
        carried = self.noise.enter(seen[-1])
        for lag in range(self.lags - 1, 0, -1):
            carried = self.tangents.push(self.steps - lag, carried) + self.noise.enter(seen[lag - 1])
        return self.noise.read(carried).permute(1, 2, 0)

    def _signal_directions(self, most: int) -> Float[Tensor, "batch units rank"]:
        """Return the directions of the signals of all lags, each of length one: taken forward in one sweep."""
        batch, inputs = self.path.inputs.shape[1:]
        frame: Tensor | None = None  # batch size rank
        weights: Tensor | None = None  # batch rank lags
        for t in range(self.steps - self.lags, self.steps):
            entry = self._entries(t, batch, inputs)
            frame, weights = _compressed(*_with(self._moved(t, frame), weights, entry), most)
        assert frame is not None
        assert weights is not None
        found = self.noise.read(frame.mT).mT @ weights
        left, size, _ = torch.linalg.svd(found / found.norm(dim=1, keepdim=True).clamp(min=1e-300), full_matrices=False)
        kept = int((size > _DIRECTIONS * size[:, :1]).sum(1).amax())
        directions: Tensor = left[:, :, : max(1, min(kept, most))]
        return directions

    def _moved(self, t: int, frame: Tensor | None) -> Tensor | None:
        return None if frame is None else self.tangents.push(t, frame.permute(2, 0, 1)).permute(1, 2, 0)

    def _entries(self, t: int, batch: int, inputs: int) -> Float[Tensor, "batch size input"]:
        along = torch.eye(inputs).to(self.noise.scale)[:, None].expand(inputs, batch, inputs)
        nothing = along.new_zeros(inputs, batch, self.path.dynamics.size)
        return self.tangents.push(t, nothing, along.contiguous()).permute(1, 2, 0)


def _with(moved: Tensor | None, weights: Tensor | None, entry: Tensor) -> tuple[Tensor, Tensor]:
    """Return columns and weights of all signals so far, with those of one more step."""
    inputs = torch.eye(entry.shape[2]).to(entry).expand(entry.shape[0], -1, -1)
    if moved is None or weights is None:
        return entry, inputs
    rank, lags = weights.shape[1:]
    before = torch.nn.functional.pad(weights, (0, 0, 0, entry.shape[2]))
    now = torch.nn.functional.pad(inputs, (0, 0, rank, 0))
    assert before.shape[2] == lags
    return torch.cat([moved, entry], dim=2), torch.cat([before, now], dim=2)


def _compressed(
    columns: Float[Tensor, "batch size rank"], weights: Float[Tensor, "batch rank lags"], most: int
) -> tuple[Tensor, Tensor]:
    """Return an orthonormal frame of the columns, with the signals in it at length one; few are kept."""
    frame, triangle = torch.linalg.qr(columns)
    found = triangle @ weights
    found = found / found.norm(dim=1, keepdim=True).clamp(min=1e-300)
    if found.shape[2] % BLOCK:
        return frame, found
    left, size, right = torch.linalg.svd(found, full_matrices=False)
    kept = max(1, min(most, int((size > _DIRECTIONS * size[:, :1]).sum(1).amax())))
    return frame @ left[:, :, :kept], (size[:, :kept, None] * right[:, :kept])


def shortfall(known: list[float]) -> float:
    """Return by what share the total may be larger, from the totals with two blocks less, one less, and all."""
    if len(known) < 2 or known[-1] <= 0:
        return math.inf if len(known) < 2 else 0.0
    gain = known[-1] - known[-2]
    if len(known) == 2:
        return gain / known[-1]
    earlier = known[-2] - known[-3]
    ratio = min(max(gain / earlier, 0.0), 0.9) if earlier > 0 else 0.5
    return gain * max(ratio / (1 - ratio), 0.1) / known[-1]
