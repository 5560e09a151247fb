"""Lyapunov exponents: growth rates of small disturbances of the state along driven trajectories."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.arrays import non_negative
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.spectral.eigenvalues import eigenvalues
from mnemoscope.measures.tangent import Tangents
from mnemoscope.measures.trajectory import Path, constant_jacobians, drive

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.report import chart

__all__ = ["LyapunovExponents", "lyapunov_exponents"]


def log_moduli(matrix: Float[np.ndarray, "n n"]) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Return ln |eigenvalues|, the largest first, and a bound of the rounding error of each.

    Eigenvalues come with the error of each, and are exact where floats know too little of them (up to 256 rows).
    """
    values, errors, _ = eigenvalues(matrix)
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
_LEADING = 4
"""Exponents, as a share of all (one in so many), up to which they are found by vectors and not by Jacobians."""
_LARGEST = 2048
"""Rows of a constant Jacobian up to which its exponents are taken from its eigenvalues."""
_NEIGHBOURS = 4
_FRAME = 1.25
"""Bias of a mean over time, as a share of the difference of its halves, where the frame turns as 1/t."""


@result
class LyapunovExponents(Result):
    """The Lyapunov spectrum, or the leading part of it.

    Attributes
    ----------
    exponents
        Nats per step, the largest first; minus infinity for directions that are lost within a step.
    stderr
        Standard error of each, from the scatter between stretches of time and between trajectories, and from what the
        first frame may have left in it (`frame_error`); for a linear network what rounding may have done to its
        eigenvalue.
    frame_error
        The part of it by which another first frame would differ: seen as a trend in time beyond the scatter, or what a
        random frame owes that the transient has not shown.
    size
        How many exponents there are in all.
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

    exponents: Float[np.ndarray, " count"]
    stderr: Float[np.ndarray, " count"]
    frame_error: Float[np.ndarray, " count"]
    size: int
    drift: float
    horizon: int
    linear: bool

    @property
    def dimension(self) -> float:
        """Kaplan and Yorke's dimension: how many directions the largest exponents keep from shrinking together.

        At least so many where not all exponents are known and their sum has not fallen below zero (`dimension_known`).
        """
        sums = np.cumsum(self.exponents)
        kept = int((sums >= 0).sum())
        if kept == 0 or kept == len(sums):
            return float(kept)
        return kept + float(sums[kept - 1] / abs(self.exponents[kept]))

    @property
    def dimension_known(self) -> bool:
        """Whether the known exponents suffice for the dimension."""
        return len(self.exponents) == self.size or bool(self.exponents.sum() < 0)

    def above(self, level: float) -> tuple[float, bool]:
        """Return the share of all exponents that exceed a level, and whether it is known: else it is at least that."""
        count = int((self.exponents > level).sum())
        return count / self.size, count < len(self.exponents) or len(self.exponents) == self.size

    def __str__(self) -> str:
        top, error = self.exponents[0], self.stderr[0]
        sure = max(2 * error, _EDGE)
        says = "growing" if top > sure else "fading" if top < -sure else "at the edge"
        spread = "" if self.linear else f" ± {error:.2g}"
        count = len(self.exponents)
        known = f"{count} exponents" if count == self.size else f"{count} of {self.size} exponents"
        return f"largest Lyapunov exponent {top:.8g}{spread} nats per step ({says}), {known}"

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


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: of the driven steps, and of taking M cotangents back or forming the Jacobian."""
    batch, size, count = n["B"], n["S"], n["M"]
    if pace.linear and size <= _LARGEST:
        return size * pace.pull.each + 2e-9 * size**3 * pace.arithmetic
    steps = n["horizon"] + n["transient"]
    drive = (steps + 2 * n["washout"]) * pace.step(batch)
    if _LEADING * count <= size:
        return drive + steps * (pace.pull(batch * count) + 3e-4 + 1.5e-9 * batch * size * count**2)
    return drive + steps * (batch * (size * pace.pull.each + 4e-10 * size**3 * pace.arithmetic) + 1e-4)


_COST = Cost(
    time={"B T S^2 M": 2.5e-10, "B T": 1e-4},
    memory="B T S",
    sizes={"T": "horizon", "B": "trajectories", "M": lambda given: given["count"] or given["S"]},
    letters={"M": "exponents"},
    paced=_paced,
)


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
    inputs: Any = None,
    seed: int = 0,
    device: str | None = None,
) -> LyapunovExponents:
    r"""Return the Lyapunov exponents of any recurrent network under Gaussian inputs.

    .. math::
        A_t Q_{t-1} = Q_t R_t, \quad \lambda_i = \frac{1}{T} \sum_t \ln |(R_t)_{ii}|, \quad
        A_t = \frac{\partial h_t}{\partial h_{t-1}}

    along trajectories, with a QR decomposition at every step. The leading exponents of a large state are found by as
    many cotangents, taken backward through the steps: the product of the transposed Jacobians in reverse has the same
    exponents, and no Jacobian is formed. Where the Jacobian is the same everywhere, as in a linear network, the
    exponents are ln |eigenvalues|, exactly.

    A frame that starts at random turns into its directions at the rate of the gaps between exponents, which are small
    in a large state: what is left of that shows as a trend in time, and where it is more than the scatter it is part of
    the error. So is what shows nowhere, since the exponents lie closer together than the time can tell apart: growth
    that a random frame has to gain before it is turned, and has not gained in the transient.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    count
        How many exponents, the largest; None: all.
    horizon
        Steps to average over.
    transient
        Steps that are not counted, in which the frame Q turns into its directions.
    trajectories
        Trajectories to average over.
    scale
        Standard deviation of the Gaussian inputs; 0: the network is left to itself.
    washout
        Steps before the transient, in which the state forgets where it started.
    inputs
        Sequences of one's own, (time, sequences, input_size), that drive the network in place of Gaussian ones: joined
        end to end, from a place of its own for each trajectory.
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
    Cost: O(trajectories T S^2 count) time for S numbers in the state; of more than a quarter of all exponents it is
    that of all, O(trajectories T S^3). R_ii below the rounding error of its column cannot be told from zero and counts
    as zero: an exponent below about -30 is reported as minus infinity.

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
    flow = Dynamics.of(network, _WHAT, device=device, inputs=inputs)
    steps, skipped = positive_int("horizon", horizon), _zero_or_more("transient", transient)
    before = _zero_or_more("washout", washout)
    positive_int("trajectories", trajectories)
    flow = flow.with_room(2 * before + skipped + steps)
    units = len(flow.read)
    wanted = units if count is None else positive_int("count", count)
    if wanted > units:
        raise expected("count", f"at most {units}, the numbers in the state", wanted)
    with few_threads(flow.size):
        fixed = constant_jacobians(flow) if units == flow.size <= _LARGEST else None
        if fixed is not None:
            return _of_matrix(fixed.state[0].cpu().numpy(), wanted)
        leading = _LEADING * wanted <= units
        _COST.require_end(_WHAT, S=flow.size, T=skipped + steps, B=trajectories, M=wanted if leading else flow.size)
        generator = torch.Generator().manual_seed(seed)
        path = drive(
            flow,
            steps=skipped + steps,
            trajectories=trajectories,
            scale=non_negative("scale", scale),
            washout=before,
            generator=generator,
        )
        growth = _backward_growth if leading else _forward_growth
        return _finish(growth(path, wanted, generator), skipped, units)


def _zero_or_more(name: str, value: int) -> int:
    return 0 if isinstance(value, int) and value == 0 else positive_int(name, value)


def _first_frame(path: Path, count: int, generator: torch.Generator) -> Float[Tensor, "batch size count"]:
    flow, batch = path.dynamics, path.inputs.shape[1]
    frame = torch.randn(batch, len(flow.read), count, generator=generator, dtype=torch.float64).to(**flow.factory)
    first = frame.new_zeros(batch, flow.size, count)
    first[:, flow.read] = torch.linalg.qr(frame).Q
    return first


def _orthonormal(
    moved: Float[Tensor, "batch size count"],
) -> tuple[Float[Tensor, "batch size count"], Float[Tensor, "batch count"]]:
    """Return an orthonormal frame of the moved one, and ln |R_ii|: minus infinity for what rounding alone has left."""
    frame, triangle = torch.linalg.qr(moved)
    size = triangle.diagonal(dim1=1, dim2=2).abs()
    lost = size <= (4 + moved.shape[1]) * torch.finfo(moved.dtype).eps * moved.norm(dim=1)
    return frame, torch.where(lost, -torch.inf, size.log())


def _forward_growth(path: Path, count: int, generator: torch.Generator) -> Float[np.ndarray, "time batch count"]:
    """Return ln |R_ii| of every step."""
    frame = _first_frame(path, count, generator)
    logs = []
    for part in path.forwards(0, _BLOCK):
        for jacobian in part.state:
            frame, grown = _orthonormal(jacobian @ frame)
            logs.append(grown)
    return torch.stack(logs).cpu().numpy()


def _backward_growth(path: Path, count: int, generator: torch.Generator) -> Float[np.ndarray, "time batch count"]:
    """Return ln |R_ii| of every step of the transposed product, the last step first."""
    frame = _first_frame(path, count, generator)
    tangents, logs = Tangents(path, keep=False), []
    for t in range(len(path.inputs) - 1, -1, -1):
        moved = tangents.pull(t, frame.permute(2, 0, 1))[0]
        frame, grown = _orthonormal(moved.permute(1, 2, 0))
        logs.append(grown)
    return torch.stack(logs).cpu().numpy()


def _finish(logs: Float[np.ndarray, "time batch count"], skipped: int, size: int) -> LyapunovExponents:
    before, logs = logs[:skipped], logs[skipped:]
    steps = logs.shape[0]
    exponents = logs.mean((0, 1))
    blocks = np.array_split(logs, min(_BLOCKS, steps))
    means = np.concatenate([block.mean(0) for block in blocks])
    finite = np.isfinite(exponents)
    scatter, trend, gained = (np.zeros_like(exponents) for _ in range(3))
    if len(means) > 1:
        scatter[finite] = means[:, finite].std(0, ddof=1) / math.sqrt(len(means))
    if steps > 1:
        first, second = (half.mean((0, 1)) for half in np.array_split(logs, 2))
        trend[finite] = second[finite] - first[finite]
    if skipped:
        gained[finite] = skipped * np.abs(exponents[finite] - before.mean((0, 1))[finite])
    # The halves of a mean without a trend differ by chance, with twice its standard error.
    seen = _FRAME * np.sqrt(np.maximum(trend**2 - 4 * scatter**2, 0.0))
    frame = np.maximum(seen, _unturned(np.abs(trend) + 2 * scatter, gained, steps, size))
    order = np.argsort(-exponents, kind="stable")
    frame = np.where(finite[order], np.maximum(frame[order], _neighbours(frame[order])), 0.0)
    return LyapunovExponents(
        status="estimate",
        digits=None,
        assumptions=("the trajectories visit what the network visits in the long run",),
        cost=str(_COST),
        exponents=exponents[order],
        stderr=np.hypot(scatter[order], frame),
        frame_error=frame,
        size=size,
        drift=float(trend[0]),
        horizon=steps,
        linear=False,
    )


def _unturned(
    trend: Float[np.ndarray, " count"], gained: Float[np.ndarray, " count"], steps: int, size: int
) -> Float[np.ndarray, " count"]:
    r"""Return what a first frame may still cost that has not turned yet, where exponents are too close for the time.

    A random frame overlaps with the i leading directions by about sqrt(i / S): when it has turned, its growth will have
    gained ln(S / i) / 2 nats, and about one more. What the transient has not shown of that may be missing from the
    mean. It is missing at a rate, too: exponents that spread by s let growth rise by s^2 a step, and are 2 s away. Such
    a bound counts as two standard errors.
    """
    index = np.arange(1, len(gained) + 1)
    place = np.minimum(index, size + 1 - index) if len(gained) == size else index
    owed = np.maximum(1 + np.log(size / place) / 2 - gained, 0.0) / steps
    found: np.ndarray = np.minimum(owed, 2 * np.sqrt(2 * trend / steps)) / 2
    return found


def _neighbours(values: Float[np.ndarray, " count"]) -> Float[np.ndarray, " count"]:
    """Return the root mean square over an exponent and those next to it.

    Directions turn into each other: one exponent gains what its neighbours lose, and its own trend may pass zero.
    """
    window = np.ones(min(2 * _NEIGHBOURS + 1, 2 * len(values) - 1))
    sums, counts = (np.convolve(each, window, mode="full") for each in (values**2, np.ones_like(values)))
    first = (len(window) - 1) // 2
    middle = slice(first, first + len(values))
    found: np.ndarray = np.sqrt(sums[middle] / counts[middle])
    return found


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
        frame_error=np.zeros(count),
        size=len(matrix),
        drift=0.0,
        horizon=0,
        linear=True,
    )
