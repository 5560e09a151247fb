"""Finding of Fisher memory along driven trajectories: the result of any network, exact or estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.result import Result, result
from mnemoscope.measures.fisher.linearised import SETTLED
from mnemoscope.measures.registry import Cost

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.report import chart

__all__ = ["COST", "DENSE", "NOTHING", "WHAT", "NetworkFisherMemory", "estimated", "exact", "rounded", "unsettled"]

WHAT = "network_fisher_memory"
"""The measure, as errors name it."""

NOTHING = 1e-12
"""Information below which nothing can be said of how it is spread: the states are zero but for rounding."""

DENSE = 512
"""Numbers in a state up to which the whole covariance is formed."""

_TOGETHER = 0.6
"""Time of pulling a cotangent back through a step, among many, as a share of that of one state."""

_FADES, _WIDE = 3, 32
"""Blocks that a large state takes whose memory fades within the window, and directions in a block."""


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: of the driven steps, and for every lag until the curve settles of what is taken back."""
    batch, size = n["B"], n["S"]
    noise: Any = n["noise"]
    drive = (n["T"] + 2 * n["washout"]) * pace.step(batch)
    lags = n["T"] if n["horizon"] else pace.lags(SETTLED, n["T"])
    if pace.falls_apart and (not isinstance(noise, str) or (noise == "relative" and size > DENSE)):
        return drive + lags * (2e-4 + 8e-7 * batch * size * pace.arithmetic)
    if size <= DENSE and pace.linear:
        return 0.02 + 5e-9 * size**3 * pace.arithmetic
    if size <= DENSE:
        # Of many states at once, which is quicker than one after the other.
        formed = _TOGETHER * size * pace.pull.each
        return 0.2 + drive + lags * batch * (formed + 2.5e-10 * size**3 * pace.arithmetic + 1e-4)
    blocks = min(_FADES, n["krylov"]) if lags < n["T"] else n["krylov"]
    blocks = min(blocks, math.ceil((pace.read or size) / _WIDE))
    block = 3 * pace.pull.base + _WIDE * batch * (2.5 * pace.pull.each + 5e-8 * size)
    return drive + lags * (pace.pull(_WIDE * batch) + blocks * block)


COST = Cost(
    time={"B T S^2 M": 2.5e-10, "B T": 5e-5},
    memory="B T S d",
    sizes={
        "T": "horizon longest",
        "B": "trajectories",
        "M": lambda given: given["S"] if given["S"] <= DENSE else min(given["S"], 48 * given["krylov"]),
    },
    letters={"M": "directions, S of them up to S = 512"},
    paced=_paced,
)

_SMALL_NOISE = "the noise is so small that the network is linear within it"
_SAME = "the Jacobians, which were the same at all states that were tried, are the same everywhere"


@result
class NetworkFisherMemory(Result):
    """Fisher memory of a network along driven trajectories.

    Attributes
    ----------
    curve
        J(k): information about the input k steps ago, averaged over trajectories.
    total
        Its sum over all lags.
    stderr
        Standard error of the total over trajectories; zero for a linear network, where all are alike.
    curve_stderr
        Standard error of each J(k).
    direction
        The unit input direction along which the signal enters.
    totals
        The total of each trajectory.
    horizon
        Steps, which is also the number of noise terms and of lags.
    settled
        Whether a longer horizon would change nothing that can be seen.
    tail
        The share of the information about the noise that lies beyond the horizon, estimated; infinite where it does
        not fall.
    linear
        Whether the Jacobians are the same everywhere, so that nothing was linearised.
    noise
        Variance of the noise on every unit at every step; ``"relative"`` or ``"mixture"`` where units have their own.
    size
        Units with noise, N: no unit input direction can have a total above N |B|^2 / noise.
    missing
        Of a large state, by what share the total may be larger: it was met in a subspace, which gives a lower bound.
        Zero where the whole covariance was inverted.
    """

    measure: ClassVar[str] = "network-fisher"
    references: ClassVar[tuple[str, ...]] = ("ganguli2008",)

    curve: Float[np.ndarray, " lags"]
    total: float
    stderr: float
    curve_stderr: Float[np.ndarray, " lags"]
    direction: Float[np.ndarray, " input"]
    totals: Float[np.ndarray, " trajectories"]
    horizon: int
    settled: bool
    tail: float
    linear: bool
    noise: float | str
    size: int
    missing: float = 0.0

    @property
    def half_life(self) -> int | None:
        """The lag by which half of the total is reached; at least that unless `settled`. None of nothing."""
        if not self.total > NOTHING:
            return None
        reached = np.flatnonzero(np.cumsum(self.curve) >= self.total / 2)
        return int(reached[0]) if len(reached) else len(self.curve) - 1

    def __str__(self) -> str:
        spread = "" if self.linear else f" ± {self.stderr:.2g}"
        spread += f" (at most {self.missing:.1%} more)" if self.missing else ""
        end = "settled" if self.settled else "not settled"
        return f"Fisher memory {self.total:.8g}{spread} over {self.horizon} lags ({end}), {self.size} noisy units"

    def plot(self) -> chart.Chart:
        """Draw the curve with its band of one standard error, as far as it can be seen."""
        from mnemoscope.report import chart

        high = np.flatnonzero(self.curve > 1e-3 * self.curve.max(initial=0))
        lags = np.arange((int(high[-1]) if len(high) else 0) + 1)
        mean, error = self.curve[lags], np.nan_to_num(self.curve_stderr[lags])
        return chart.lines(
            {"J(k)": (lags, mean)},
            bands={"J(k)": (np.maximum(mean - error, 0), mean + error)},
            x="lag k (steps)",
            y="Fisher information J(k)",
            title=f"Fisher memory, total {self.total:.4g}" + ("" if self.linear else f" ± {self.stderr:.2g}"),
        )


def estimated(
    curves: Float[np.ndarray, "lags trajectories"],
    direction: Float[np.ndarray, " input"],
    noise: float | str,
    *,
    tail: float,
    size: int,
    said: tuple[str, ...] = (),
    linear: bool = False,
    missing: float = 0.0,
) -> NetworkFisherMemory:
    """Return the mean over trajectories with its standard error; `said` is what else is assumed."""
    totals = curves.sum(0)
    alike = linear and len(totals) == 1
    return NetworkFisherMemory(
        status="estimate",
        digits=None,
        assumptions=(_SMALL_NOISE, *unsettled(tail), *said),
        cost=str(COST),
        curve=curves.mean(1),
        total=float(totals.mean()),
        stderr=0.0 if alike else float(_stderr(totals)),
        curve_stderr=_stderr(curves),
        direction=direction,
        totals=totals,
        horizon=len(curves),
        settled=tail < SETTLED,
        tail=tail,
        linear=linear,
        noise=noise,
        size=size,
        missing=missing,
    )


def exact(
    curve: Float[np.ndarray, " lags"],
    total: float,
    direction: Float[np.ndarray, " input"],
    noise: float | str,
    *,
    tail: float,
    digits: int | None,
    size: int,
) -> NetworkFisherMemory:
    """Return what is the same along every trajectory."""
    return NetworkFisherMemory(
        status="exact",
        digits=digits,
        assumptions=(_SAME, *unsettled(tail)),
        cost=str(COST),
        curve=curve,
        total=total,
        stderr=0.0,
        curve_stderr=np.zeros_like(curve),
        direction=direction,
        totals=np.array([total]),
        horizon=len(curve),
        settled=tail < SETTLED,
        tail=tail,
        linear=True,
        noise=noise,
        size=size,
    )


def _stderr(values: Float[np.ndarray, "*lags trajectories"]) -> Float[np.ndarray, "*lags"]:
    """Return the standard error of the mean over trajectories; NaN of one alone, which says nothing of its error."""
    count = values.shape[-1]
    if count == 1:
        return np.full(values.shape[:-1], np.nan)
    found: np.ndarray = values.std(-1, ddof=1) / math.sqrt(count)
    return found


def unsettled(tail: float) -> tuple[str, ...]:
    """Say what lies beyond the horizon, if anything does."""
    if tail < SETTLED:
        return ()
    share = "does not fall" if math.isinf(tail) else f"has a share of about {tail:.2g}"
    return (f"the curve is that of this horizon, and not settled: what older noise adds {share}",)


def rounded(error: float) -> tuple[str, ...]:
    """Say what rounding may have done, if that is more than a statistical error would hide."""
    if error < 1e-8:
        return ()
    return (f"rounding may have changed the numbers by a share of up to {min(error, 1.0):.1g}, as disturbances grow",)
