"""Lyapunov exponents: growth rates of small disturbances of the state along driven trajectories."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import scipy.linalg
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.arrays import non_negative
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.trajectory import Path, constant_jacobians, drive

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["LyapunovExponents", "lyapunov_exponents"]


def log_moduli(matrix: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return ln |eigenvalues|, the largest first, and a bound of the rounding error of each.

    The error of a simple eigenvalue is the rounding error of the matrix over |y^H x|, its left and right unit
    eigenvectors; of a multiple one without enough eigenvectors it has no bound in these terms, and is stated as
    infinite. A triangular matrix shows its eigenvalues on its diagonal, without error.
    """
    if not np.tril(matrix, -1).any() or not np.triu(matrix, 1).any():
        values, errors = np.diagonal(matrix), np.zeros(len(matrix))
    else:
        values, left, right = scipy.linalg.eig(matrix, left=True, right=True)
        with np.errstate(divide="ignore"):
            errors = np.finfo(float).eps * np.linalg.norm(matrix) / np.abs(np.sum(left.conj() * right, axis=0))
    moduli = np.abs(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(moduli)
        relative = np.where(errors == 0, 0.0, errors / moduli)
    order = np.argsort(-logs, kind="stable")
    return logs[order], relative[order]


_WHAT = "lyapunov_exponents"
_BLOCK = 16
_BLOCKS = 10
_EDGE = 1e-6
"""What single-precision weights leave of an exponent of zero."""


@result
class LyapunovExponents(Result):
    """The Lyapunov spectrum.

    Attributes
    ----------
    exponents
        Nats per step, the largest first; minus infinity for directions that are lost within a step.
    stderr
        Standard error of each, from the scatter between stretches of time and between trajectories; for a linear
        network what rounding may have done to its eigenvalue.
    drift
        By how much the largest exponent of the second half of the time differs from that of the first: near zero when
        the transient is over.
    horizon
        Steps that were averaged.
    linear
        Whether the Jacobians are the same everywhere: the exponents are then the logarithms of the moduli of the
        eigenvalues.
    """

    measure: ClassVar[str] = "lyapunov"
    references: ClassVar[tuple[str, ...]] = ("benettin1980",)

    exponents: Float[np.ndarray, " size"]
    stderr: Float[np.ndarray, " size"]
    drift: float
    horizon: int
    linear: bool

    @property
    def dimension(self) -> float:
        """Kaplan and Yorke's dimension: how many directions the largest exponents keep from shrinking together."""
        sums = np.cumsum(self.exponents)
        kept = int((sums >= 0).sum())
        if kept == 0 or kept == len(sums):
            return float(kept)
        return kept + float(sums[kept - 1] / abs(self.exponents[kept]))

    def __str__(self) -> str:
        top, error = self.exponents[0], self.stderr[0]
        sure = max(2 * error, _EDGE)
        says = "growing" if top > sure else "fading" if top < -sure else "at the edge"
        spread = "" if self.linear else f" ± {error:.2g}"
        return f"largest Lyapunov exponent {top:.8g}{spread} nats per step ({says}), {len(self.exponents)} exponents"

    def plot(self) -> chart.Chart:
        """Draw the spectrum; exponents of minus infinity are left out."""
        from mnemoscope.report import chart

        index = np.arange(1, len(self.exponents) + 1)
        series = {"exponent": (index, self.exponents), "zero": (index[[0, -1]], np.zeros(2))}
        lost = int(np.isneginf(self.exponents).sum())
        return chart.lines(
            series,
            x="index i",
            y="Lyapunov exponent (nats per step)",
            title="Lyapunov spectrum" + (f", {lost} at minus infinity" if lost else ""),
            points=len(index) <= 40,
        )


_COST = Cost(time={"B T S^3": 2.5e-10, "B T": 1e-4}, memory="B T S", sizes={"T": "horizon", "B": "trajectories"})


@measure(
    "lyapunov",
    kinds=("recurrent",),
    needs=("jacobian",),
    quick={"trajectories": 2, "horizon": 200, "transient": 50},
    cost=_COST,
)
def lyapunov_exponents(
    network: nn.Module | Dynamics,
    *,
    count: int | None = None,
    horizon: int = 1000,
    transient: int = 100,
    trajectories: int = 4,
    scale: float = 1.0,
    washout: int = 100,
    seed: int = 0,
    device: str | None = None,
) -> LyapunovExponents:
    r"""Return the Lyapunov exponents of any recurrent network under Gaussian inputs.

    .. math::
        A_t Q_{t-1} = Q_t R_t, \quad \lambda_i = \frac{1}{T} \sum_t \ln |(R_t)_{ii}|, \quad
        A_t = \frac{\partial h_t}{\partial h_{t-1}}

    along trajectories, with a QR decomposition at every step. Where the Jacobian is the same everywhere, as in a linear
    network, the exponents are ln |eigenvalues|, exactly.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    count
        How many exponents, the largest; None: all.
    horizon
        Steps to average over.
    transient
        Steps before them, in which the frame Q turns into its directions.
    trajectories
        Trajectories to average over.
    scale
        Standard deviation of the Gaussian inputs; 0: the network is left to itself.
    washout
        Steps before the transient, in which the state forgets where it started.
    seed
        Of inputs, phases and the first frame.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    LyapunovExponents
        With ``.exponents`` in nats per step, the largest first, and ``.stderr``.

    Notes
    -----
    Cost: O(trajectories T S^2 (S + count)) time for S numbers in the state. R_ii below the rounding error of its
    column cannot be told from zero and counts as zero: an exponent below about -30 is reported as minus infinity.

    References
    ----------
    Benettin, Galgani, Giorgilli and Strelcyn (1980).

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> from mnemoscope.measures.lyapunov import lyapunov_exponents
    >>> layer = ms.nn.LinearRNN(1, 2)
    >>> layer.weight_hh_l0 = torch.tensor([[0.5, 1.0], [0.0, 0.25]])
    >>> print((lyapunov_exponents(layer).exponents / torch.tensor(2.0).log().item()).round(6))
    [-1. -2.]
    """
    flow = Dynamics.of(network, _WHAT, device=device)
    units = flow.readout()
    wanted = units.shape[0] if count is None else positive_int("count", count)
    if wanted > units.shape[0]:
        raise expected("count", f"at most {units.shape[0]}, the numbers in the state", wanted)
    steps, skipped = positive_int("horizon", horizon), _zero_or_more("transient", transient)
    positive_int("trajectories", trajectories)
    with few_threads(flow.size):
        fixed = constant_jacobians(flow)
        if fixed is not None and units.shape[0] == flow.size:
            return _of_matrix(fixed.state[0].cpu().numpy(), wanted)
        _COST.require_end(_WHAT, S=flow.size, T=skipped + steps, B=trajectories)
        generator = torch.Generator().manual_seed(seed)
        path = drive(
            flow,
            steps=skipped + steps,
            trajectories=trajectories,
            scale=non_negative("scale", scale),
            washout=_zero_or_more("washout", washout),
            generator=generator,
        )
        return _finish(_growth(path, units, wanted, generator)[skipped:])


def _zero_or_more(name: str, value: int) -> int:
    return 0 if isinstance(value, int) and value == 0 else positive_int(name, value)


def _growth(
    path: Path, units: Float[Tensor, "units size"], count: int, generator: torch.Generator
) -> Float[np.ndarray, "time batch count"]:
    """Return ln |R_ii| of every step."""
    batch = path.inputs.shape[1]
    frame = torch.randn(batch, units.shape[0], count, generator=generator, dtype=torch.float64).to(units)
    frame = units.T @ torch.linalg.qr(frame).Q
    rounding = (4 + units.shape[1]) * torch.finfo(units.dtype).eps
    logs = []
    for part in path.forwards(0, _BLOCK):
        for jacobian in part.state:
            moved = jacobian @ frame
            frame, triangle = torch.linalg.qr(moved)
            size = triangle.diagonal(dim1=1, dim2=2).abs()
            lost = size <= rounding * moved.norm(dim=1)
            logs.append(torch.where(lost, -torch.inf, size.log()))
    return torch.stack(logs).cpu().numpy()


def _finish(logs: Float[np.ndarray, "time batch count"]) -> LyapunovExponents:
    steps = logs.shape[0]
    exponents = logs.mean((0, 1))
    blocks = np.array_split(logs, min(_BLOCKS, steps))
    means = np.concatenate([block.mean(0) for block in blocks])
    finite = np.isfinite(exponents)
    stderr = np.zeros_like(exponents)
    if len(means) > 1:
        stderr[finite] = means[:, finite].std(0, ddof=1) / math.sqrt(len(means))
    halves = [half.mean((0, 1))[0] for half in np.array_split(logs, 2)] if steps > 1 else [exponents[0]] * 2
    order = np.argsort(-exponents, kind="stable")
    return LyapunovExponents(
        status="estimate",
        digits=None,
        assumptions=("the trajectories visit what the network visits in the long run",),
        cost=str(_COST),
        exponents=exponents[order],
        stderr=stderr[order],
        drift=float(halves[1] - halves[0]) if np.isfinite(halves).all() else 0.0,
        horizon=steps,
        linear=False,
    )


def _of_matrix(matrix: Float[np.ndarray, "size size"], count: int) -> LyapunovExponents:
    exponents, errors = log_moduli(matrix)
    worst = float(errors[:count].max())
    return LyapunovExponents(
        status="exact",
        digits=max(0, min(15, math.floor(-math.log10(worst)))) if worst > 0 else 15,
        assumptions=("the Jacobian, which was the same at all states that were tried, is the same everywhere",),
        cost="O(S^3) time for S state numbers: the network is linear",
        exponents=exponents[:count],
        stderr=errors[:count],
        drift=0.0,
        horizon=0,
        linear=True,
    )
