"""Gradient propagation: how the gradient of a loss grows or fades on its way back through time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.arrays import non_negative
from mnemoscope.core.errors import Description, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.band import banded
from mnemoscope.measures.dynamics import Transition, prepare, transition
from mnemoscope.measures.gradients_backward import Source, go_back, of_loss, random_readout
from mnemoscope.measures.growth import fit_growth
from mnemoscope.measures.registry import measure
from mnemoscope.measures.threads import few_threads
from mnemoscope.measures.trajectory import drive
from mnemoscope.report import chart

__all__ = ["GradientNorms", "gradient_norms"]

_WHAT = "gradient_norms"


@result
class GradientNorms(Result):
    """Norms of the gradient at the states of a trajectory, from its end back to its beginning.

    Attributes
    ----------
    norms
        ``norms[k]`` is ``||dL/dh_{T-k}||``, k = 0..T: the geometric mean over the trajectories in which it is not
        zero; 0 where float64 cannot hold it, which `log_norms` can.
    log_norms
        Their natural logarithms; minus infinity where the gradient is exactly zero in all trajectories.
    spread
        Standard deviation of the logarithm over trajectories.
    vanished
        Share of the trajectories in which the gradient is exactly zero, by lag.
    rate
        Slope of ln norm per step back: below zero gradients vanish, above they explode.
    order
        p of the best power law k^p.
    law
        The law that fits better: ``"exponential"``, ``"polynomial"``; ``"constant"`` when nothing changes and
        ``"vanished"`` when the gradient is zero after a few steps.
    misfit_exponential, misfit_polynomial
        Root mean square distance of ln norm from the two laws.
    """

    measure: ClassVar[str] = "gradients"
    references: ClassVar[tuple[str, ...]] = ("pascanu2013", "kerg2019")

    norms: Float[np.ndarray, " lags"]
    log_norms: Float[np.ndarray, " lags"]
    spread: Float[np.ndarray, " lags"]
    vanished: Float[np.ndarray, " lags"]
    rate: float
    order: float
    law: str
    misfit_exponential: float
    misfit_polynomial: float

    def __str__(self) -> str:
        says = {
            "exponential": f"exponential, rate {self.rate:.6g} per step back",
            "polynomial": f"polynomial, order {self.order:.4g} in the lag",
            "constant": "constant",
            "vanished": "exactly zero after a few steps",
        }
        return f"gradient over {len(self.norms) - 1} steps back: {says[self.law]}"

    def plot(self) -> chart.Chart:
        """Draw log10 of the norm by lag, with a band of one standard deviation over trajectories."""
        lags, ten = np.arange(len(self.norms), dtype=float), math.log(10)
        middle = self.log_norms
        low, high = (middle - self.spread) / ten, (middle + self.spread) / ten
        titles = ("steps back from the end, k", "log10 of the gradient norm |dL/dh(T-k)|")
        return banded(lags, middle / ten, low, high, titles=titles, title=f"Gradients: {self.law}")


@measure("gradients", kinds=("recurrent",), needs=("jacobian",), quick={"trajectories": 8, "horizon": 200})
def gradient_norms(
    network: nn.Module,
    *,
    loss: Callable[[Tensor], Tensor] | None = None,
    horizon: int = 200,
    trajectories: int = 16,
    scale: float = 1.0,
    washout: int = 0,
    inputs: Any = None,
    seed: int = 0,
    device: str | None = None,
) -> GradientNorms:
    r"""Return the norms of dL/dh_t along driven trajectories, by the number of steps back from the end.

    .. math::
        \frac{dL}{dh_{t-1}} = A_t^\top \frac{dL}{dh_t} + \frac{\partial L}{\partial y_{t-1}}
        \frac{\partial y_{t-1}}{\partial h_{t-1}}, \quad A_t = \frac{\partial h_t}{\partial h_{t-1}},

    h the flat `readout_state`. The gradient is rescaled on its way, so that neither a norm of 1e-3000 nor one of 1e3000
    is lost; the fit says whether it changes exponentially or polynomially with the lag.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    loss
        A function of the outputs (time, trajectories, output) that returns one number, the sum or mean over
        trajectories; None: a random unit vector read out of the last state, one for each trajectory.
    horizon
        Steps back, T.
    trajectories
        Trajectories to average over.
    scale
        Standard deviation of the Gaussian inputs.
    washout
        Steps before the first that counts; 0: from the network's initial state.
    inputs
        Inputs (time, trajectories, input_size) in place of Gaussian ones, which then say horizon and trajectories.
    seed
        Of inputs and readouts.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    GradientNorms
        With ``.norms``, ``.rate`` and the law that fits better.

    Notes
    -----
    Cost: one step and one pullback of it per step, O(trajectories T S^2) for S numbers in the state.

    References
    ----------
    Pascanu, Mikolov and Bengio (2013); Kerg et al. (2019), Proposition 3.4.2, for polynomial growth.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> from mnemoscope.measures.gradients import gradient_norms
    >>> layer = ms.nn.LinearRNN(1, 4, init="random")
    >>> layer.weight_hh_l0 = 0.5 * layer.weight_hh_l0
    >>> found = gradient_norms(layer, horizon=2000, trajectories=2)
    >>> print(found)
    gradient over 2000 steps back: exponential, rate -0.693147 per step back
    """
    flow = transition(prepare(network, what=_WHAT, device=device), _WHAT)
    generator = torch.Generator().manual_seed(seed)
    given = None if inputs is None else _inputs(inputs, flow)
    steps = positive_int("horizon", horizon) if given is None else given.shape[0]
    count = positive_int("trajectories", trajectories) if given is None else given.shape[1]
    with few_threads(flow.size):
        path = drive(
            flow,
            steps=steps,
            trajectories=count,
            scale=non_negative("scale", scale),
            washout=0 if washout == 0 else positive_int("washout", washout),
            generator=generator,
            inputs=given,
        )
        source = random_readout(path, generator) if loss is None else of_loss(path, loss)
        return _finish(go_back(path, source), source)


def _inputs(value: Any, flow: Transition) -> Float[Tensor, "time batch input"]:
    found = torch.as_tensor(value).detach().to(**flow.factory)
    if found.dim() != 3 or found.shape[2] != flow.input_size or 0 in found.shape:
        raise expected("inputs", f"of shape (time, trajectories, {flow.input_size})", tuple(found.shape))
    if not bool(found.isfinite().all()):
        raise expected("inputs", "finite", Description("NaN or infinity"))
    return found


def _finish(logs: Float[np.ndarray, "lags trajectories"], source: Source) -> GradientNorms:
    if np.isneginf(logs).all():
        raise expected("loss(outputs)", "a number that changes with the outputs", Description("a gradient of zero"))
    alive = np.isfinite(logs)
    count = alive.sum(1)
    some = np.maximum(count, 1)
    known = np.where(alive, logs, 0.0)
    mean = np.where(count, known.sum(1) / some, -np.inf)
    spread = np.sqrt(np.where(alive, (known - np.where(count, mean, 0.0)[:, None]) ** 2, 0.0).sum(1) / some)
    growth = fit_growth(mean)
    return GradientNorms(
        status="exact" if logs.shape[1] == 1 else "estimate",
        digits=None,
        assumptions=source.said,
        cost="O(trajectories T S^2) time for S state numbers and T steps",
        norms=np.exp(mean),
        log_norms=mean,
        spread=spread,
        vanished=1 - count / logs.shape[1],
        **growth._asdict(),
    )
