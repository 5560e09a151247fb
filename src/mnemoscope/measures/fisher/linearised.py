"""Fisher information of a linearised noisy network, from its Jacobians, the last step first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.measures.dynamics import Jacobians

__all__ = ["BLOCK", "SETTLED", "Propagated", "best_direction", "geometric_tail", "information", "propagate"]

BLOCK = 16
"""Lags between two looks at what is still to come."""

SETTLED = 1e-10
"""The share of the information about the noise that may lie beyond the horizon of a curve that has settled."""

_GRAM = 1e4
"""Condition of the covariance up to which it is summed itself; beyond, its square root is updated by QR."""

_OVERFLOW = 1e140

_TRUSTED = 1e-6


class Propagated:
    r"""The noise covariance after many steps, as a square root, and what the input of each step has become.

    .. math::
        C = \epsilon \sum_{k<T} P_k P_k^\top, \quad P_0 = I, \quad P_{k+1} = P_k A_{T-k}, \quad D_k = P_k B_{T-k}

    P_0 = I bounds C / epsilon from below by I, so its trace bounds its condition. Up to a condition of 10^4 the sum
    itself is kept and factored once, which costs four digits at most; beyond, the triangular factor F,
    C = epsilon F^T F, is updated by QR, and the digits that are lost grow only with the root of the condition.
    """

    def __init__(
        self, readout: Float[Tensor, "units size"], batch: int, entry: Float[Tensor, "size units"] | None = None
    ) -> None:
        units = readout.shape[0]
        self.units = units
        self.product = readout.expand(batch, *readout.shape)
        self.noise = readout.mT if entry is None else entry  # noise enters the units that are read out, and no other
        self.whole = readout.shape[0] == readout.shape[1] and bool((readout == torch.eye(units).to(readout)).all())
        self.gram = readout.new_zeros(batch, units, units)
        self.factor: Tensor | None = None
        self.signals: list[Tensor] = []
        self.shares: list[float] = []
        self.trusted = 0

    @property
    def condition(self) -> float:
        """A bound of the condition number of the covariance."""
        size = self.gram.diagonal(dim1=1, dim2=2).sum(1) if self.factor is None else self.factor.square().sum((1, 2))
        return float(size.max())

    def add(self, jacobians: Jacobians) -> bool:
        """Go some lags further back; say whether that was possible without overflow."""
        noise = []
        for state, entry in zip(jacobians.state, jacobians.input, strict=True):
            self.signals.append(self.product @ entry)
            noise.append(self.product if self.whole else self.product @ self.noise)
            self.product = self.product @ state
        self._sum(torch.stack(noise, dim=1))
        self.shares.append(self._share(noise[-1]))
        self.trusted = len(self.signals) if self.error <= _TRUSTED else self.trusted
        return self.finite

    def _sum(self, noise: Float[Tensor, "batch lags units units"]) -> None:
        if self.factor is None:
            columns = noise.transpose(1, 2).flatten(2)
            before, self.gram = self.gram, self.gram + columns @ columns.mT
            if self.condition <= _GRAM:
                return
            # What stood in the sum before this block is still well conditioned, and has a root that is accurate.
            self.factor = torch.linalg.cholesky(before).mT if bool(before.any()) else before
        rows = noise.mT.flatten(1, 2)
        self.factor = torch.linalg.qr(torch.cat([self.factor, rows], dim=1), mode="r").R

    def _root(self) -> Float[Tensor, "batch units units"]:
        root: Tensor = torch.linalg.cholesky(self.gram).mT if self.factor is None else self.factor
        return root

    def whiten(self, columns: Float[Tensor, "batch units any"]) -> Float[Tensor, "batch units any"]:
        """Return F^-T times the columns: what the noise makes of them, where it has unit covariance."""
        white: Tensor = torch.linalg.solve_triangular(self._root().mT, columns, upper=False)
        return white

    def _share(self, noise: Float[Tensor, "batch units units"]) -> float:
        """Return the share of the noise's information that is of the last lag; over all lags they sum to one."""
        return float(self.whiten(noise).square().sum((1, 2)).max()) / self.units

    @property
    def finite(self) -> bool:
        """Whether the disturbances are still far from overflow."""
        return bool(self.product.abs().amax() < _OVERFLOW)

    @property
    def error(self) -> float:
        """The relative error that rounding may have made in the information."""
        root = self.condition if self.factor is None else max(math.sqrt(self.condition), _GRAM)
        return self.units * torch.finfo(self.gram.dtype).eps * root

    @property
    def tail(self) -> float:
        """An estimate of the share that lies further back: as if it went on falling as in the last two blocks."""
        return geometric_tail(self.shares)

    def answers(self) -> Float[Tensor, "lags batch units input"]:
        """Return F^-T D_k for every lag: the information about input direction u at lag k is |F^-T D_k u|^2 / eps."""
        signals = torch.stack(self.signals, dim=2).flatten(2)
        white = self.whiten(signals)
        return white.reshape(*white.shape[:2], len(self.signals), -1).permute(2, 0, 1, 3)


def geometric_tail(shares: Sequence[float]) -> float:
    """Return what lies beyond the last of the shares at the ends of blocks, as if they went on falling as they did."""
    if shares[-1] == 0:
        return 0.0
    if len(shares) < 2:
        return math.inf
    before, now = shares[-2:]
    ratio = (now / before) ** (1 / BLOCK) if before > 0 else math.inf
    return now * ratio / (1 - ratio) if ratio < 1 else math.inf


def propagate(
    jacobians: Iterable[Jacobians],
    readout: Float[Tensor, "units size"],
    batch: int,
    *,
    until_settled: bool,
    entry: Float[Tensor, "size units"] | None = None,
) -> Propagated:
    """Sum over blocks of lags, the last step first; noise enters as `entry` says, by default the units read out.

    Stop where numbers overflow, and, if `until_settled`, where nothing is to come or where a network that expands
    leaves fewer than six digits.
    """
    found = Propagated(readout, batch, entry)
    for part in jacobians:
        if not found.add(part) or (until_settled and (found.tail < SETTLED or found.error > _TRUSTED)):
            break
    return found


def best_direction(answers: Float[Tensor, "lags batch units input"]) -> Float[np.ndarray, " input"]:
    """Return the unit input direction with the largest total over lags and trajectories, its largest entry positive."""
    flat = answers.flatten(0, 2)
    best = torch.linalg.eigh(flat.mT @ flat).eigenvectors[:, -1]
    found: np.ndarray = (best * best[best.abs().argmax()].sign()).cpu().numpy()
    return found


def information(
    answers: Float[Tensor, "lags batch units input"], direction: Float[np.ndarray, " input"]
) -> Float[np.ndarray, "lags batch"]:
    """Return the information about an input direction, by lag and trajectory, for noise of variance one."""
    found: np.ndarray = (answers @ torch.from_numpy(direction).to(answers)).square().sum(2).cpu().numpy()
    return found
