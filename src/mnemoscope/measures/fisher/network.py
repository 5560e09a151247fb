"""Fisher memory of any recurrent network: the information of its noisy state about an input, by lag."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from mnemoscope.core import memory
from mnemoscope.core.arrays import non_negative, vector
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.measures.blocks import Blocks, Rescaled, blocks_of
from mnemoscope.measures.dynamics import Dynamics, Jacobians, few_threads
from mnemoscope.measures.fisher.affine import linear_memory, stable_radius
from mnemoscope.measures.fisher.conventions import trusted_digits
from mnemoscope.measures.fisher.finding import COST, DENSE, WHAT, NetworkFisherMemory, estimated, exact, rounded
from mnemoscope.measures.fisher.krylov import krylov_information, shortfall, window
from mnemoscope.measures.fisher.linearised import BLOCK, Propagated, best_direction, information, propagate
from mnemoscope.measures.fisher.noise import Noise, check_noise, white, with_activity
from mnemoscope.measures.fisher.structured import Driven, block_memory
from mnemoscope.measures.registry import measure
from mnemoscope.measures.tangent import Tangents
from mnemoscope.measures.trajectory import Path, affine, constant_jacobians, drive

__all__ = ["NetworkFisherMemory", "network_fisher_memory"]


@measure(
    "network-fisher",
    kinds=("recurrent",),
    needs=("jacobian",),
    quick={"trajectories": 4, "longest": 128, "washout": 32},
    cost=COST,
)
def network_fisher_memory(
    network: nn.Module | Dynamics,
    direction: tuple[float, ...] | None = None,
    *,
    noise: float | str = 1.0,
    horizon: int | None = None,
    longest: int = 1000,
    trajectories: int = 8,
    krylov: int = 12,
    tolerance: float = 1e-3,
    scale: float = 1.0,
    washout: int = 100,
    inputs: Any = None,
    seed: int = 0,
    device: str | None = None,
) -> NetworkFisherMemory:
    r"""Return the Fisher information that the noisy state of any recurrent network holds about its past inputs.

    Noise of variance :math:`\epsilon` is on every unit of the state (`readout_state`: h and c of an LSTM) after every
    step, and a signal s enters along the input direction u,

    .. math::
        h_t = f(h_{t-1}, x_t + u s_t) + z_t, \quad z_t \sim N(0, \epsilon I).

    Along a trajectory under inputs x, and linearised around it, the state at its end is Gaussian, and tells of s_{T-k}

    .. math::
        J(k) = b_{T-k}^\top P_k^\top C^{-1} P_k b_{T-k}, \quad
        C = \epsilon \sum_{k<T} P_k P_k^\top, \quad P_k = A_T A_{T-1} \cdots A_{T-k+1},

    with :math:`A_t = \partial f / \partial h` and :math:`b_t = (\partial f / \partial x) u` at step t, averaged over
    trajectories. For a linear network this is `fisher_memory` of its matrices.

    Rescaling a unit, which changes no function, changes the information under noise of one variance.
    ``noise="relative"`` gives each unit noise of its own variance along the trajectory (both parts of a complex unit as
    one, constant units left out), so that neither rescaling nor permuting units changes anything. It rewards
    redundant units, whose independent noise averages out; ``noise="mixture"``, 0.9 of the covariance of the states
    and 0.1 of that, does not.

    Where the state falls apart into blocks (`transition_blocks`), so does C under noise of one variance, and, beyond
    512 numbers, under relative noise. Else C is never formed beyond 512 numbers: it is met in the block Krylov space of
    the signals, which grows until a block adds less than `tolerance`. That is a lower bound; `missing` says by what
    share it may be larger, from what the last blocks added.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    direction
        u, the input direction of the signal, as it is (it need not be a unit vector); None: the unit vector with the
        largest total.
    noise
        Variance of the noise on every unit, or ``"relative"``, or ``"mixture"``.
    horizon
        Steps with noise and signal; None: as many as the curve needs to settle, `longest` at most.
    longest
        Steps that a network may take to settle.
    trajectories
        Trajectories to average over.
    krylov, tolerance
        Of a large state: most blocks of the subspace, and the share of the total below which the gain of one ends it.
    scale
        Standard deviation of the Gaussian inputs that drive the network.
    washout
        Steps before the first that counts; between one and two times as many are taken.
    inputs
        Sequences of one's own, (time, sequences, input_size), that drive the network in place of Gaussian ones: joined
        end to end, from a place of its own for each trajectory.
    seed
        Of inputs and phases.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    NetworkFisherMemory
        With ``.curve``, ``.total`` and ``.stderr``.

    Notes
    -----
    Cost: O(trajectories T S^3) time for S numbers in the state, and O(trajectories T S d) memory for d inputs; beyond
    S = 512 O(trajectories T S^2) time for each of some tens to hundreds of directions. Networks
    whose state falls apart (`transition_blocks`: diagonal recurrences, linear attention, delta rules) take
    O(trajectories T (G m^3 + S (m + d))) for G groups of m rows.

    References
    ----------
    Ganguli, Huh and Sompolinsky (2008), for linear networks.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> from mnemoscope.measures.fisher.network import network_fisher_memory
    >>> layer = ms.nn.LinearRNN(1, 3, bias=False)
    >>> layer.weight_hh_l0 = torch.diag(torch.ones(2), -1)  # a delay line
    >>> layer.weight_ih_l0 = torch.tensor([[1.0], [0.0], [0.0]])
    >>> print(network_fisher_memory(layer).curve.round(6))
    [1.       0.5      0.333333]
    """
    kind = check_noise(noise)
    positive_int("krylov", krylov)
    steps = positive_int("longest", longest) if horizon is None else positive_int("horizon", horizon)
    count, spread = positive_int("trajectories", trajectories), non_negative("scale", scale)
    before = 0 if washout == 0 else positive_int("washout", washout)
    flow = Dynamics.of(network, WHAT, device=device, inputs=inputs).with_room(steps + 2 * before)
    along = None if direction is None else _direction(direction, flow.input_size)
    with few_threads(flow.size):
        blocks, driven = blocks_of(flow), Driven(count, spread, before, seed)
        if blocks is not None and not isinstance(kind, str):
            return _of_blocks(blocks, along, kind, horizon, steps, driven)
        fixed = constant_jacobians(flow) if flow.size <= DENSE else None
        if fixed is not None and not isinstance(kind, str):
            return linear_memory(fixed, flow.readout(), along, kind, horizon, steps)
        if flow.size <= DENSE:
            _require_memory(flow, steps, count)
            COST.require_end(WHAT, S=flow.size, T=steps, B=count, M=flow.size)
        linear = fixed is not None or (flow.size > DENSE and affine(flow))
        generator = torch.Generator().manual_seed(seed)
        path = drive(
            flow,
            steps=steps,
            trajectories=1 if linear and not isinstance(kind, str) else count,
            scale=spread,
            washout=before,
            generator=generator,
        )
        shape = with_activity(path, kind) if isinstance(kind, str) else white(flow)
        if blocks is not None and kind == "relative" and flow.size > DENSE and shape.everywhere:
            return _of_blocks(Rescaled.of(blocks, shape.scale), along, kind, horizon, steps, driven)
        asked = _Asked(path, shape, along, kind, horizon, steps, linear)
        if flow.size > DENSE:
            return _by_subspace(asked, krylov, tolerance, generator)
        if fixed is not None and shape.everywhere:
            eye = torch.eye(flow.size).to(shape.scale)
            exact = linear_memory(shape.white_jacobians(fixed), eye, along, 1.0, horizon, steps)
            return replace(exact, noise=kind)
        return _by_covariance(asked)


@dataclass(frozen=True)
class _Asked:
    """What is asked of a network: along which path, under which noise, about which direction and window."""

    path: Path
    shape: Noise
    direction: Float[np.ndarray, " input"] | None
    noise: float | str
    horizon: int | None
    steps: int
    linear: bool

    @property
    def level(self) -> float:
        """What the information under noise of variance one is divided by."""
        return 1.0 if isinstance(self.noise, str) else self.noise


def _by_covariance(asked: _Asked) -> NetworkFisherMemory:
    """Form the whole covariance, and invert it."""
    path, shape = asked.path, asked.shape
    flow, count = path.dynamics, path.inputs.shape[1]
    jacobians: Iterable[Jacobians] = path.backwards(BLOCK)
    rows, entry = shape.rows, None
    if isinstance(asked.noise, str) and shape.everywhere:
        jacobians = map(shape.white_jacobians, jacobians)
    elif isinstance(asked.noise, str):
        rows = shape.read(torch.eye(flow.size).to(rows)).mT
        entry = shape.enter(torch.eye(shape.units).to(rows)).mT
    found = propagate(jacobians, rows, count, until_settled=asked.horizon is None, entry=entry)
    if asked.horizon is not None:
        _require_digits(found)
    answers = found.answers()
    along = best_direction(answers) if asked.direction is None else asked.direction
    curves = information(answers, along) / asked.level
    return estimated(curves, along, asked.noise, tail=found.tail, size=found.units, said=rounded(found.error))


def _by_subspace(asked: _Asked, blocks: int, tolerance: float, generator: torch.Generator) -> NetworkFisherMemory:
    """Meet the covariance in a subspace that grows."""
    size, count = asked.path.dynamics.size, asked.path.inputs.shape[1]
    carried = math.sqrt(size * len(asked.path.dynamics.read))  # a memory's slots are read, and multiplied, one by one
    lags, tail = window(asked.path, asked.shape, generator, until_settled=asked.horizon is None)
    COST.require_end(WHAT, S=carried, T=lags, B=count, M=48 * blocks)
    found = krylov_information(asked.path, asked.shape, lags, blocks=blocks, tolerance=tolerance)
    along = best_direction(found.answers) if asked.direction is None else asked.direction
    curves = information(found.answers, along) / asked.level
    totals = curves.sum(0)
    smaller = [information(each, along).sum(0).mean() / asked.level for each in found.smaller]
    missing = 0.0 if found.whole else shortfall([*smaller, float(totals.mean())])
    bound = f"a lower bound, from {found.blocks} blocks of directions of a state of {size} numbers"
    return estimated(
        curves,
        along,
        asked.noise,
        tail=tail,
        size=asked.shape.units,
        said=(f"{bound}: by the last blocks, at most {missing:.1g} of it is missing", *_pushed(asked.path)),
        linear=asked.linear,
        missing=missing,
    )


def _pushed(path: Path) -> tuple[str, ...]:
    """Say that a step cannot be differentiated twice, where it is so."""
    if not Tangents(path, keep=False).differenced:
        return ()
    return ("its step has no forward derivative: disturbances were taken forward by differences, to about nine digits",)


def _direction(value: object, size: int) -> Float[np.ndarray, " input"]:
    found = vector("direction", value, size)
    if not found.any():
        raise expected("direction", "a vector that is not zero", found.tolist())
    return found


def _require_memory(flow: Dynamics, steps: int, trajectories: int) -> None:
    size = flow.size
    per_step = 16 * trajectories * size * flow.input_size
    working = 8 * trajectories * size * size * (4 * BLOCK)
    fits = max(0, memory.allowance() - working) // per_step
    memory.require(
        f"{WHAT} over {steps} steps and {trajectories} trajectories of {size} numbers",
        steps * per_step + working,
        f"horizon={fits} would fit" if fits else "fewer trajectories would fit",
    )


def _require_digits(found: Propagated) -> None:
    if found.error >= 1 or not found.finite:
        raise UserError(
            f"disturbances of this network grow so much within {len(found.signals)} steps that no digit of its memory "
            f"is left; horizon={found.trusted} would leave six"
        )


def _of_blocks(
    blocks: Blocks,
    direction: Float[np.ndarray, " input"] | None,
    noise: float | str,
    horizon: int | None,
    steps: int,
    driven: Driven,
) -> NetworkFisherMemory:
    """Return the memory of a network whose state falls apart, by its parts."""
    if blocks.constant and horizon is None:
        stable_radius(blocks.constant[0])
    found = block_memory(blocks, steps, driven, until_settled=horizon is None)
    along = found.best_direction() if direction is None else direction
    curves, size = found.information(along) / (1.0 if isinstance(noise, str) else noise), blocks.flow.size
    if not found.linear:
        if horizon is not None:
            _require_digits(found.noise)
        return estimated(curves, along, noise, tail=found.noise.tail, size=size, said=rounded(found.noise.error))
    digits = trusted_digits(found.noise.error)
    return exact(curves[:, 0], float(curves.sum()), along, noise, tail=found.noise.tail, digits=digits, size=size)
