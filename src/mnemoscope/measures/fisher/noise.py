"""Noise on the units of a state: of one variance, of each unit's own, or shaped like the whole state."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._pytree import tree_leaves

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import UserError, expected
from mnemoscope.measures.dynamics import Dynamics, Jacobians
from mnemoscope.measures.trajectory import Path
from mnemoscope.nn.state import State

__all__ = ["NOISES", "Noise", "check_noise", "unit_groups", "white", "with_activity"]

NOISES = ("relative", "mixture")
"""Noise by its shape: each unit's own variance D along the trajectory, or 0.9 Sigma + 0.1 D of the whole state."""

_SHARED = 0.9
_CONSTANT = 1e-9
"""Standard deviation of a unit, as a share of its root mean square, below which it is constant."""


def check_noise(value: Any) -> float | str:
    """Return a variance above zero or one of `NOISES`, or raise the standard error."""
    if isinstance(value, str):
        if value not in NOISES:
            raise expected("noise", "a variance above zero, 'relative' or 'mixture'", value)
        return value
    return positive("noise", value)


@dataclass(frozen=True)
class Noise:
    r"""Covariance :math:`L L^\top` of the noise on those units that are read out.

    Everything is said in units in which the noise is white: y = L^-1 R h, where R picks the units that are read out
    and L = diag(scale) (1 + U diag(gains) U^T), so that neither L, its inverse nor R is ever a matrix: that of a memory
    of thousands of numbers would be multiplied with at every step.

    Attributes
    ----------
    places
        Where in the state each unit with noise stands.
    size
        Numbers in the state.
    scale
        Standard deviation of the noise on each unit, but for what is shared.
    shared, gains
        U and the gains of noise that units share; none where it is independent.
    """

    places: Int[Tensor, " units"]
    size: int
    scale: Float[Tensor, " units"]
    shared: Float[Tensor, "units rank"] | None = None
    gains: Float[Tensor, " rank"] | None = None

    @property
    def units(self) -> int:
        """Units with noise."""
        return len(self.places)

    @cached_property
    def everywhere(self) -> bool:
        """Whether every number of the state has noise, in its own place."""
        return self.units == self.size and torch.equal(self.places, torch.arange(self.size).to(self.places))

    @property
    def rows(self) -> Float[Tensor, "units size"]:
        """R, of a state that is small enough for matrices."""
        return self._placed(torch.eye(self.units).to(self.scale))

    def read(self, states: Float[Tensor, "*any size"]) -> Float[Tensor, "*any units"]:
        """Return L^-1 R h."""
        return self._mixed(self._picked(states) / self.scale, inverse=True)

    def enter(self, white: Float[Tensor, "*any units"]) -> Float[Tensor, "*any size"]:
        """Return R^T L y: what noise of unit variance does to the state."""
        return self._placed(self._mixed(white, inverse=False) * self.scale)

    def read_back(self, white: Float[Tensor, "*any units"]) -> Float[Tensor, "*any size"]:
        """Return R^T L^-T y, the transpose of `read`."""
        return self._placed(self._mixed(white, inverse=True) / self.scale)

    def enter_back(self, states: Float[Tensor, "*any size"]) -> Float[Tensor, "*any units"]:
        """Return L^T R c, the transpose of `enter`."""
        return self._mixed(self._picked(states) * self.scale, inverse=False)

    def _picked(self, states: Tensor) -> Tensor:
        return states if self.everywhere else states[..., self.places]

    def _placed(self, units: Tensor) -> Tensor:
        if self.everywhere:
            return units
        return units.new_zeros(*units.shape[:-1], self.size).index_copy_(-1, self.places, units)

    def _mixed(self, values: Tensor, *, inverse: bool) -> Tensor:
        if self.shared is None or self.gains is None:
            return values
        gains = -self.gains / (1 + self.gains) if inverse else self.gains
        return values + ((values @ self.shared) * gains) @ self.shared.mT

    def white_jacobians(self, jacobians: Jacobians) -> Jacobians:
        """Return L^-1 A L and L^-1 B, where noise is on every number of the state."""
        state = self.read(self.enter_back(jacobians.state).mT).mT
        return Jacobians(state, self.read(jacobians.input.mT).mT)


def white(flow: Dynamics) -> Noise:
    """Return noise of variance one on every unit that is read out."""
    return Noise(flow.read, flow.size, torch.ones(len(flow.read), **flow.factory))


def with_activity(path: Path, kind: str) -> Noise:
    """Return noise relative to what the units do along a path; constant units are left out.

    Parameters
    ----------
    path
        Driven trajectories.
    kind
        ``"relative"``: independent, each unit with its own variance, which rescaling a unit does not change.
        ``"mixture"``: 0.9 of the covariance of all units and 0.1 of that, so that units which do the same do not
        average their noise away.
    """
    flow = path.dynamics
    active = torch.stack([flow.flatten(state)[:, flow.read] for state in path.states]).flatten(0, 1)
    centred = active - active.mean(0)
    groups = unit_groups(flow.network.readout_state(flow.start(1)))
    variance = _by_unit(centred.square().mean(0), groups)
    moving = variance.sqrt() > _CONSTANT * _by_unit(active.square().mean(0), groups).sqrt()
    if not bool(moving.any()):
        raise UserError(f"{flow.what} with noise={kind!r} needs units that move, and all are constant")
    scale = variance[moving].sqrt()
    if kind == "relative":
        return Noise(flow.read[moving], flow.size, scale)
    # In units of their own deviation the covariance is Y^T Y: 0.1 + 0.9 Y^T Y has the directions of Y.
    samples = (centred[:, moving] / scale) / len(centred) ** 0.5
    size, shared = _directions(samples)
    own = (1 - _SHARED) ** 0.5
    gains = (1 + _SHARED / (1 - _SHARED) * size).sqrt() - 1
    return Noise(flow.read[moving], flow.size, own * scale, shared, gains)


def _directions(samples: Float[Tensor, "samples units"]) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of Y^T Y, from the smaller of its two products."""
    count, units = samples.shape
    if units <= count:
        values, vectors = torch.linalg.eigh(samples.mT @ samples)
        return values.clamp(min=0), vectors
    values, left = torch.linalg.eigh(samples @ samples.mT)
    kept = values > 1e-12 * values[-1]
    vectors = samples.mT @ left[:, kept] / values[kept].sqrt()
    return values[kept], vectors


def _by_unit(values: Float[Tensor, " numbers"], groups: Int[Tensor, " numbers"]) -> Float[Tensor, " numbers"]:
    """Return the mean over the numbers of each unit, at all of them."""
    sums = values.new_zeros(len(values)).index_add(0, groups, values)
    counts = values.new_zeros(len(values)).index_add(0, groups, torch.ones_like(values))
    return (sums / counts.clamp(min=1))[groups]


def unit_groups(state: State) -> Int[Tensor, " numbers"]:
    """Return to which unit each number of the state of one example belongs: both parts of a complex number to one."""
    found, first = [], 0
    for leaf in tree_leaves(state):
        if leaf.is_floating_point() or leaf.is_complex():
            own = torch.arange(leaf.numel(), device=leaf.device).repeat_interleave(2 if leaf.is_complex() else 1)
            found.append(first + own)
            first += leaf.numel()
    return torch.cat(found)
