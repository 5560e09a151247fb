"""What `network_fisher_memory` finds."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from jaxtyping import Float

from mnemoscope.core.result import Result, result
from mnemoscope.measures.band import banded
from mnemoscope.report import chart

__all__ = ["NetworkFisherMemory"]


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
        Variance of the noise on every unit at every step.
    size
        Units with noise, N: no unit input direction can have a total above N |B|^2 / noise.
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
    noise: float
    size: int

    def __str__(self) -> str:
        spread = "" if self.linear else f" ± {self.stderr:.2g}"
        end = "settled" if self.settled else "not settled"
        return f"Fisher memory {self.total:.8g}{spread} over {self.horizon} lags ({end}), {self.size} noisy units"

    def plot(self) -> chart.Chart:
        """Draw the curve with its band of one standard error, as far as it can be seen."""
        high = np.flatnonzero(self.curve > 1e-3 * self.curve.max(initial=0))
        lags = np.arange((int(high[-1]) if len(high) else 0) + 1)
        mean, error = self.curve[lags], np.nan_to_num(self.curve_stderr[lags])
        return banded(
            lags.astype(float),
            mean,
            np.maximum(mean - error, 0),
            mean + error,
            titles=("lag k (steps)", "Fisher information J(k)"),
            title=f"Fisher memory, total {self.total:.4g}" + ("" if self.linear else f" ± {self.stderr:.2g}"),
        )
