"""Effective state-size: how much of a state carries the past into the future."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core import memory
from mnemoscope.core.arrays import non_negative, positive
from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.hankel import output_jacobians
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.trajectory import Path, drive

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["EffectiveStateSize", "effective_state_size"]

_WHAT = "effective_state_size"
_STEPS = (64, 256)
_OUTPUTS = 32
"""Outputs that are looked at alone."""


@result
class EffectiveStateSize(Result):
    """Ranks of the maps from past inputs to future outputs, along driven trajectories.

    Attributes
    ----------
    total
        Mean of the tolerance rank over trajectories and over the middle third of the steps, where past and future are
        both long: a rank near either end is limited by what is left of the sequence.
    stderr
        Its standard error over trajectories; 0 where there is one.
    steps
        The steps i at which the past is cut from the future.
    ranks
        Tolerance rank at each: singular values above `tolerance` times the largest.
    entropy_ranks
        exp(entropy of sigma / sum sigma) at each: the same without a threshold.
    channels
        Mean tolerance rank of each output alone.
    singular_values
        At the step in the middle, mean over trajectories, descending.
    state_size
        Real numbers in the state.
    tolerance
        Share of the largest singular value from which on a direction counts.
    """

    measure: ClassVar[str] = "effective-state-size"
    references: ClassVar[tuple[str, ...]] = ("parnichkun2025",)

    total: float
    stderr: float
    steps: Int[np.ndarray, " steps"]
    ranks: Float[np.ndarray, " steps"]
    entropy_ranks: Float[np.ndarray, " steps"]
    channels: Float[np.ndarray, " output"]
    singular_values: Float[np.ndarray, " size"]
    state_size: int
    tolerance: float

    @property
    def utilisation(self) -> float:
        """Share of the state that is used: the total over the state size."""
        return self.total / self.state_size

    @property
    def entropy_total(self) -> float:
        """Mean of the entropy rank over the middle third of the steps."""
        return float(self.entropy_ranks[_middle(self.steps)].mean())

    def __str__(self) -> str:
        spread = f" ± {self.stderr:.2g}" if self.stderr else ""
        used = f"{self.total:.4g}{spread} of {self.state_size} numbers of the state are used"
        return f"{used} ({self.utilisation:.0%}) at tolerance {self.tolerance:g}; entropy rank {self.entropy_total:.4g}"

    def plot(self) -> chart.Chart:
        """Draw both ranks against the step at which past and future are cut."""
        from mnemoscope.report import chart

        series = {"tolerance rank": (self.steps, self.ranks), "entropy rank": (self.steps, self.entropy_ranks)}
        return chart.lines(series, x="step i", y="effective state-size", title="How much of the state is used")


def _middle(steps: Int[np.ndarray, " steps"]) -> slice:
    """Return the middle third of the cuts, at least one."""
    edge = len(steps) // 3
    return slice(edge, len(steps) - edge)


_COST = Cost(
    time={"B T S^3": 2e-9, "B T S": 2e-6},
    memory="B T S^2",
    sizes={"T": lambda known: known["horizon"] or np.clip(3.5 * known["S"] / known["d"], *_STEPS), "B": "trajectories"},
)


@measure("effective-state-size", kinds=("recurrent",), needs=("jacobian",), quick={"horizon": 32}, cost=_COST)
def effective_state_size(
    network: nn.Module | Dynamics,
    *,
    horizon: int | None = None,
    trajectories: int = 2,
    cuts: int = 9,
    tolerance: float = 1e-3,
    scale: float = 1.0,
    washout: int = 50,
    inputs: Float[Tensor, "time batch input"] | None = None,
    seed: int = 0,
    device: str | None = None,
) -> EffectiveStateSize:
    r"""Find how many directions of a state carry past inputs to future outputs.

    .. math::
        \mathrm{ESS}_i = \mathrm{rank}\, T_{i:,\,:i}, \qquad T_{ts} = \frac{\partial y_t}{\partial x_s}

    The block of T that maps the inputs before step i to the outputs from it on goes through the state between them:
    T[i:, :i] = O_i R_i, what is seen of the state times what is reached of it. Factors of both, S x S at most, are
    carried along the trajectory, forwards and backwards; the T x T operator is never formed. For a linear network with
    a long past and future the singular values are the Hankel singular values. Gates are not frozen: T is the Jacobian
    along the trajectory, with all that inputs do to gates in it.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    horizon
        Steps T of the operator, at least 2; None: enough for the whole state to show in the middle third, from 64 to
        256.
    trajectories
        Independent trajectories.
    cuts
        Steps i at which ranks are taken, evenly spread.
    tolerance
        A direction counts when its singular value is above this share of the largest.
    scale
        Standard deviation of the Gaussian inputs.
    washout
        Steps before the first, so that the state is a usual one.
    inputs
        Inputs of one's own, (time, batch, input), in place of Gaussian ones.
    seed
        Of inputs and washout.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    EffectiveStateSize

    References
    ----------
    Parnichkun et al. (2025).

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> network = ms.nn.LinearRNN(1, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    >>> found = ms.measures.effective_state_size(network, tolerance=1e-9, horizon=40)
    >>> found.total, found.state_size
    (8.0, 8)
    """
    tolerance, scale = positive("tolerance", tolerance), non_negative("scale", scale)
    count = positive_int("cuts", cuts)
    runs = positive_int("trajectories", trajectories) if inputs is None else inputs.shape[1]
    dynamics = Dynamics.of(network, _WHAT, device=device)
    steps = _steps(horizon, dynamics) if inputs is None else len(inputs)
    if steps < 2:
        raise expected("horizon", "at least 2, a past and a future", steps)
    _COST.require_end(_WHAT, B=runs, T=steps, S=dynamics.size)
    path = drive(
        dynamics,
        steps=steps,
        trajectories=runs,
        scale=scale,
        washout=washout,
        generator=torch.Generator().manual_seed(seed),
        inputs=inputs,
    )
    places = np.unique(np.linspace(1, steps - 1, min(count, steps - 1)).round().astype(int))
    memory.require(_WHAT, 8 * runs * steps * dynamics.size**2, "a shorter horizon or fewer trajectories would fit")
    with few_threads(dynamics.size), torch.no_grad():
        values, alone = _singular_values(path, places.tolist())
    ranks = (values > tolerance * values[..., :1]).sum(-1)
    shares = values / values.sum(-1, keepdim=True).clamp(min=torch.finfo(values.dtype).tiny)
    entropy = torch.exp(-torch.xlogy(shares, shares).sum(-1))
    each = ranks[_middle(places)].double().mean(0)
    return EffectiveStateSize(
        status="estimate",
        digits=None,
        assumptions=(
            "the operator is the Jacobian of outputs by inputs along Gaussian inputs"
            if inputs is None
            else "the operator is the Jacobian of outputs by inputs along the given inputs",
            f"outputs alone: {len(alone)} of {dynamics.network.output_size}, at the step in the middle",
        ),
        cost=str(_COST),
        total=float(each.mean()),
        stderr=float(each.std() / runs**0.5) if runs > 1 else 0.0,
        steps=places,
        ranks=ranks.double().mean(1).cpu().numpy(),
        entropy_ranks=entropy.mean(1).cpu().numpy(),
        channels=(alone > tolerance * alone[..., :1]).sum(-1).double().mean(1).cpu().numpy(),
        singular_values=values[len(places) // 2].mean(0).cpu().numpy(),
        state_size=dynamics.size,
        tolerance=tolerance,
    )


def _steps(horizon: int | None, dynamics: Dynamics) -> int:
    if horizon is not None:
        return positive_int("horizon", horizon)
    return int(np.clip(3.5 * dynamics.size / dynamics.input_size, *_STEPS))


def _singular_values(path: Path, places: list[int]) -> tuple[Tensor, Tensor]:
    """Return the singular values of T[i:, :i] at every cut, and those of single outputs at the one in the middle.

    Going forwards, ``reach`` is a factor of what the inputs did to the state; going backwards, ``seen`` of what the
    state does to the outputs. An orthogonal map keeps each as small as the state.
    """
    steps, middle = len(path.inputs), places[len(places) // 2]
    found = path.jacobians(0, steps)
    reach, reached = found.input[0], {}
    for t in range(1, steps):
        if t in places:
            reached[t] = reach
        reach = _narrowed(torch.cat([found.state[t] @ reach, found.input[t]], dim=-1))
    outputs = [output_jacobians(path.dynamics, path.inputs[t], path.states[t])[0] for t in range(1, steps)]
    width = outputs[0].shape[1]
    chosen = torch.linspace(0, width - 1, min(width, _OUTPUTS), device=reach.device).round().long()
    seen = outputs[-1].mT[..., :0]
    rows = outputs[-1][None][:0]
    values: dict[int, Tensor] = {}
    alone = torch.zeros(0)
    for t in reversed(range(1, steps)):
        onward, own = found.state[t], outputs[t - 1]
        seen = _narrowed(torch.cat([onward.mT @ seen, own.mT], dim=-1))
        if t >= middle:
            here = own[:, chosen][None]
            rows = torch.cat([here, rows @ onward]) if len(rows) else here
        if t == middle:
            alone = torch.linalg.svdvals(rows.permute(2, 1, 0, 3) @ reached[t])
        if t in places:
            values[t] = torch.linalg.svdvals(seen.mT @ reached[t])
    longest = max(each.shape[-1] for each in values.values())
    padded = [torch.nn.functional.pad(values[t], (0, longest - values[t].shape[-1])) for t in places]
    return torch.stack(padded), alone


def _narrowed(factor: Float[Tensor, "batch size columns"]) -> Float[Tensor, "batch size columns"]:
    """Return a factor of the same L L^T with no more columns than rows."""
    if factor.shape[-1] <= factor.shape[-2]:
        return factor
    narrow: Tensor = torch.linalg.qr(factor.mT, mode="r").R.mT
    return narrow
