"""Fisher memory of any recurrent network: how much of an input its noisy state still tells, by lag."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from mnemoscope.core import memory
from mnemoscope.core.arrays import non_negative, positive, vector
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.measures.dynamics import Transition, prepare, transition
from mnemoscope.measures.fisher.linearised import BLOCK, SETTLED, Propagated, best_direction, information, propagate
from mnemoscope.measures.fisher.network_linear import COST, WHAT, linear_memory, rounded, unsettled
from mnemoscope.measures.fisher.network_result import NetworkFisherMemory
from mnemoscope.measures.registry import measure
from mnemoscope.measures.threads import few_threads
from mnemoscope.measures.trajectory import constant_jacobians, drive

__all__ = ["NetworkFisherMemory", "network_fisher_memory"]


@measure(
    "network-fisher",
    kinds=("recurrent",),
    needs=("jacobian",),
    quick={"trajectories": 4, "longest": 128, "washout": 32},
)
def network_fisher_memory(
    network: nn.Module,
    direction: tuple[float, ...] | None = None,
    *,
    noise: float = 1.0,
    horizon: int | None = None,
    longest: int = 1000,
    trajectories: int = 8,
    scale: float = 1.0,
    washout: int = 100,
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

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    direction
        u, the input direction of the signal, as it is (it need not be a unit vector); None: the unit vector with the
        largest total.
    noise
        Variance of the noise on every unit.
    horizon
        Steps with noise and signal; None: as many as the curve needs to settle, `longest` at most.
    longest
        Steps that a network may take to settle.
    trajectories
        Trajectories to average over.
    scale
        Standard deviation of the Gaussian inputs that drive the network.
    washout
        Steps before the first that counts; between one and two times as many are taken.
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
    Cost: O(trajectories T S^3) time for S numbers in the state, and O(trajectories T S d) memory for d inputs.

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
    noise = positive("noise", noise)
    steps = positive_int("longest", longest) if horizon is None else positive_int("horizon", horizon)
    count, spread = positive_int("trajectories", trajectories), non_negative("scale", scale)
    before = 0 if washout == 0 else positive_int("washout", washout)
    flow = transition(prepare(network, what=WHAT, device=device), WHAT)
    along = None if direction is None else _direction(direction, flow.input_size)
    with few_threads(flow.size):
        fixed = constant_jacobians(flow)
        if fixed is not None:
            return linear_memory(fixed, flow.readout(), along, noise, horizon, steps)
        _require_memory(flow, steps, count)
        generator = torch.Generator().manual_seed(seed)
        path = drive(flow, steps=steps, trajectories=count, scale=spread, washout=before, generator=generator)
        found = propagate(path.backwards(BLOCK), flow.readout(), count, until_settled=horizon is None)
        if horizon is not None:
            _require_digits(found)
        return _finish(found, along, noise)


def _direction(value: object, size: int) -> Float[np.ndarray, " input"]:
    found = vector("direction", value, size)
    if not found.any():
        raise expected("direction", "a vector that is not zero", found.tolist())
    return found


def _require_memory(flow: Transition, steps: int, trajectories: int) -> None:
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


def _finish(found: Propagated, direction: Float[np.ndarray, " input"] | None, noise: float) -> NetworkFisherMemory:
    answers = found.answers()
    along = best_direction(answers) if direction is None else direction
    curves = information(answers, along) / noise
    totals = curves.sum(0)
    return NetworkFisherMemory(
        status="estimate",
        digits=None,
        assumptions=(
            "the noise is so small that the network is linear within it",
            *unsettled(found.tail),
            *rounded(found.error),
        ),
        cost=COST,
        curve=curves.mean(1),
        total=float(totals.mean()),
        stderr=float(_stderr(totals)),
        curve_stderr=_stderr(curves),
        direction=along,
        totals=totals,
        horizon=len(curves),
        settled=found.tail < SETTLED,
        tail=found.tail,
        linear=False,
        noise=noise,
        size=found.units,
    )


def _stderr(values: Float[np.ndarray, "*lags trajectories"]) -> Float[np.ndarray, "*lags"]:
    """Return the standard error of the mean over trajectories; NaN of one alone, which says nothing of its error."""
    count = values.shape[-1]
    if count == 1:
        return np.full(values.shape[:-1], np.nan)
    found: np.ndarray = values.std(-1, ddof=1) / math.sqrt(count)
    return found
