"""Memory capacity of networks whose state falls apart, from its eigenvalues: exact for many thousand numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor

from mnemoscope.core.errors import UserError
from mnemoscope.measures.blocks import Blocks, blocks_of
from mnemoscope.measures.capacity.estimate import EstimateSettings, polynomials
from mnemoscope.measures.capacity.linear import MOST_LAGS, TAIL, LinearCapacity, digits_of
from mnemoscope.measures.capacity.network import WHAT, input_direction, rest
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.theory.formulas.inner import inner_curve

__all__ = ["block_capacity"]

_NODES = 12
"""Inputs at which the drive is looked at: polynomials up to degree 11 are told apart."""

_SILENT = 1e-12
_WELL_CONDITIONED = 1e6


def block_capacity(
    dynamics: Dynamics, direction: Any, asked: EstimateSettings, linearised: bool
) -> tuple[LinearCapacity, int] | None:
    r"""Return the capacity and the degree of the inputs that it is of, or None where the state does not fall apart so.

    With :math:`h_t = A h_{t-1} + D(u_t)` and a drive that is one orthonormal polynomial of the scalar input,
    :math:`D(u) = d_0 + d_m P_m(u)`, the state is a linear network under the white signal P_m(u): that is the input
    itself in `lru` and `s4d`, and its square in `retnet`, whose keys and values are both linear in it. Its capacity
    follows from the eigenvalues that d_m reaches, group by group.
    """
    blocks = blocks_of(dynamics)
    if blocks is None or asked.noise:
        return None
    along = input_direction(dynamics, direction)
    found = _linearised(blocks, along) if linearised else _driven(blocks, along, asked)
    if found is None:
        return None
    transitions, drive, degree = found
    eigenvalues = _reached(transitions, drive)
    if eigenvalues is None or (asked.horizon is not None and asked.horizon > len(eigenvalues)):
        return None
    return _capacity(eigenvalues, dynamics.size, _radius(transitions), asked), degree


def _driven(
    blocks: Blocks, along: Float[Tensor, " input"], asked: EstimateSettings
) -> tuple[Float[Tensor, "groups rows rows"], Float[Tensor, "groups rows columns"], int] | None:
    """Return A, d_m and m, where A does not depend on the input and there is one m above 0."""
    nodes, weights = _quadrature(asked.distribution)
    x = asked.scale * torch.from_numpy(nodes).to(along)[:, None] * along
    state = blocks.flow.start(len(x))
    transitions = blocks.transitions(x[:4], blocks.flow.start(4))
    if not bool(((transitions - transitions[:1]).abs() <= 1e-13 * transitions.abs().amax()).all()):
        return None
    with torch.no_grad():
        after = blocks.flow.guarded(partial(blocks.flow.advance, x, blocks.flow.flatten(state), state))
    basis = polynomials(nodes[None], _NODES - 1, asked.distribution)[:, 0]
    parts = torch.from_numpy(basis * weights).to(after) @ after
    sizes = parts[1:].abs().amax(1)
    heard = torch.nonzero(sizes > _SILENT * after.abs().amax()).flatten().tolist()
    if len(heard) > 1:
        return None
    degree = heard[0] + 1 if heard else 1
    drive = parts[degree] if heard else torch.zeros_like(parts[0])
    return transitions[0], drive.reshape(blocks.groups, blocks.rows, -1), degree


def _quadrature(distribution: str) -> tuple[Float[np.ndarray, " nodes"], Float[np.ndarray, " nodes"]]:
    """Return nodes and weights of Gauss' rule for the distribution of the inputs."""
    uniform = distribution == "uniform"
    rule = np.polynomial.legendre.leggauss if uniform else np.polynomial.hermite_e.hermegauss
    nodes, weights = rule(_NODES)
    return nodes, weights / weights.sum()


def _linearised(
    blocks: Blocks, along: Float[Tensor, " input"]
) -> tuple[Float[Tensor, "groups rows rows"], Float[Tensor, "groups rows columns"], int]:
    """Return A and the derivative by the input at rest."""
    state = rest(blocks.flow)
    silence = torch.zeros(1, blocks.flow.input_size, **blocks.flow.factory)
    entries = blocks.entries(silence, state)[0].reshape(blocks.groups, blocks.rows, blocks.columns, -1)
    return blocks.transitions(silence, state)[0], entries @ along, 1


def _reached(
    transitions: Float[Tensor, "groups rows rows"], drive: Float[Tensor, "groups rows columns"]
) -> Complex[np.ndarray, " r"] | None:
    """Return the distinct eigenvalues that the input reaches; None where they are too ill-conditioned to say."""
    rows = transitions.shape[-1]
    if rows == 1:
        values, weights = transitions[..., 0].to(torch.complex128), drive
    else:
        values, vectors = torch.linalg.eig(transitions)
        if float(torch.linalg.cond(vectors).max()) > _WELL_CONDITIONED:
            return None
        weights = torch.linalg.solve(vectors, drive.to(vectors))
    sizes = weights.abs().amax(-1)
    heard = values[sizes > _SILENT * drive.abs().amax()].cpu().numpy()
    found: np.ndarray = np.unique(heard)
    return found


def _radius(transitions: Float[Tensor, "groups rows rows"]) -> float:
    return float(torch.linalg.eigvals(transitions).abs().max())


def _capacity(
    eigenvalues: Complex[np.ndarray, " r"], size: int, radius: float, asked: EstimateSettings
) -> LinearCapacity:
    rank = len(eigenvalues)
    if asked.horizon is not None:  # no more inputs than directions: all of them are recovered
        lags = asked.horizon if asked.lag is None else asked.lag + 1
        return LinearCapacity(np.ones(lags), float(asked.horizon), asked.horizon, digits_of(0.0), radius)
    if rank and np.abs(eigenvalues).max() >= 1:
        raise UserError(
            f"{WHAT} over an endless past needs a stable network, got spectral radius {radius:.8g}; "
            "horizon=n gives the capacity for the last n inputs"
        )
    least, most = (size, MOST_LAGS) if asked.lag is None else (asked.lag + 1, asked.lag + 1)
    if not rank:
        return LinearCapacity(np.zeros(least), 0.0, 0, digits_of(0.0), radius)
    curve, _, error = inner_curve(eigenvalues, least, most, TAIL * rank)
    curve = np.append(curve, np.zeros(max(0, least - len(curve))))
    return LinearCapacity(curve, float(rank), rank, digits_of(error), radius)
