"""Memory of outputs: what the last output of a sequence tells of earlier inputs, with or without a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.blackbox import Blackbox
from mnemoscope.measures.capacity.estimate import CHUNK, PARTS, SIGNIFICANT
from mnemoscope.measures.capacity.readout import Readout
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.growth import fit_growth
from mnemoscope.measures.inputs import given_sequences
from mnemoscope.measures.registry import Cost, measure

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["OutputMemory", "output_memory"]

_WHAT = "output_memory"

_UNITS = 128
"""Outputs that are looked at: of more, evenly spaced ones."""

_COMPARED = 64
"""Sequences on which the outputs of whole sequences and of their last steps are compared."""

_CONSTANT = 1e-9
"""Standard deviation of an output, as a share of its root mean square, below which it is constant."""

_SETTLED = 0.01
"""Share of the total in the last tenth of the window above which the window, and not the network, ended the curve."""

_RIDGE = 1e-7

_SHORTEST = 4
"""Steps that every network is expected to take."""


@result
class OutputMemory(Result):
    """Result of `output_memory`. Lag 0 is the last input.

    Attributes
    ----------
    fisher
        J(k), the Fisher information of the last output about the input k steps before, under noise on every output as
        large as its own activity.
    total, stderr
        Its sum over all lags, and the standard error over sequences.
    gradients
        Root mean square over sequences of the norm of the derivative by the input k steps before, each output in units
        of its standard deviation, for one output on average.
    rate
        Slope of the logarithm of that norm, per step back.
    capacity
        Past inputs of lag k, of all channels together, whose variance a linear readout of the last output recovers;
        empty where too few sequences were given.
    capacity_total, capacity_stderr
        Its sum, which for independent inputs cannot exceed the number of outputs; NaN where it is empty.
    effective_rank, rank_stderr
        exp(entropy of s^2 / sum s^2) of the singular values of the derivative by all inputs of the window: how many
        different combinations of the past the outputs tell.
    cuts, lost
        Lengths c, and the share of the outputs' variance that is lost when only the last c inputs are given; empty for
        a network of one length.
    prefix_gap
        Largest difference between an output within a sequence and the output after the sequence up to there, as a share
        of the largest output: 0 where running by prefixes is running at once; None for a network of one length.
    size, outputs
        Outputs that move and were looked at; all outputs.
    horizon
        Steps of the sequences, the window of lags.
    settled
        Whether the curve has ended within the window.
    """

    measure: ClassVar[str] = "output-memory"
    references: ClassVar[tuple[str, ...]] = ("ganguli2008", "jaeger2001")

    fisher: Float[np.ndarray, " lags"]
    total: float
    stderr: float
    gradients: Float[np.ndarray, " lags"]
    rate: float
    capacity: Float[np.ndarray, " lags"]
    capacity_total: float
    capacity_stderr: float
    effective_rank: float
    rank_stderr: float
    cuts: Int[np.ndarray, " cuts"]
    lost: Float[np.ndarray, " cuts"]
    prefix_gap: float | None
    size: int
    outputs: int
    horizon: int
    settled: bool

    @property
    def half_life(self) -> int | None:
        """The lag by which half of the Fisher information is reached; None where there is none."""
        if not self.total > 0:
            return None
        return int(np.searchsorted(np.cumsum(self.fisher), self.total / 2))

    def facts(self) -> dict[str, str]:
        """Return the scalar fields, and the half-life."""
        window = "" if self.settled else f" (at least: window {self.horizon})"
        return {**super().facts(), "half life": f"{self.half_life}{window}"}

    def __str__(self) -> str:
        seen = "" if np.isnan(self.capacity_total) else f", capacity {self.capacity_total:.4g}"
        return (
            f"outputs: Fisher memory {self.total:.4g} ± {self.stderr:.2g} with half-life {self.facts()['half life']}"
            f"{seen}, effective rank {self.effective_rank:.4g} of {self.size}"
        )

    def plot(self) -> chart.Chart:
        """Draw what is left of an input after k steps, by each of the three curves as a share of its largest."""
        from mnemoscope.report import chart

        curves = {"Fisher information": self.fisher, "gradient": self.gradients, "linear readout": self.capacity}
        lags = np.arange(self.horizon) + 1
        series = {name: (lags, curve / curve.max()) for name, curve in curves.items() if len(curve) and curve.max() > 0}
        return chart.lines(series, x="lag k + 1 (steps; the present is 1)", y="share of the largest", log_x=True)


_COST = Cost(
    time={"P T S d": 3e-9, "B o T S d": 9e-9, "P o^2": 3e-9, "P T d o": 2e-9, "T": 1e-3},
    memory="P T d",
    sizes={"P": lambda g: _samples(g["samples"], min(g["S"], _UNITS)), "T": "horizon", "B": "trajectories", "o": "S"},
    letters={"o": "outputs"},
)


@measure(
    "output-memory",
    kinds=("recurrent", "sequence"),
    quick={"horizon": 64, "trajectories": 4, "samples": 1024},
    cost=_COST,
)
def output_memory(
    network: nn.Module | Dynamics,
    *,
    horizon: int = 128,
    trajectories: int = 8,
    samples: int | None = None,
    scale: float = 1.0,
    inputs: Float[Tensor, "time batch input"] | None = None,
    seed: int = 0,
) -> OutputMemory:
    r"""Find what the last output of a sequence tells of earlier inputs, from whole-sequence passes alone.

    Of a block without a state nothing but its outputs can be asked. With
    :math:`G_k = \partial y_T / \partial u_{T-k}` along driven sequences and
    :math:`\Sigma = \mathrm{diag}(\mathrm{Var}\, y_i)`, noise as large as each output's own activity,

    .. math::
        J(k) = v^\top \langle G_k^\top \Sigma^{-1} G_k \rangle v, \qquad
        g(k) = \sqrt{\langle \|\Sigma^{-1/2} G_k\|_F^2 \rangle / o},

    v the unit input that maximises the sum of J, and o the number of outputs. The capacity of lag k is the share of the
    variance of the inputs k steps before that a linear readout of :math:`y_T` recovers, summed over channels, as
    `memory_capacity` estimates it. For a linear network under white inputs the sum over k and channels of
    :math:`\Sigma^{-1} G_k G_k^\top` has ones on its diagonal, so that with one input the total is o where the window
    holds the whole memory: half-life, rank and capacity tell linear networks apart.

    Parameters
    ----------
    network
        A network with or without a state, or any module that `mnemoscope.adapt` understands.
    horizon
        Steps of the sequences, and so the window of lags.
    trajectories
        Sequences along which derivatives are taken.
    samples
        Sequences of which variances and readouts are estimated; None: 16 for each output, and at least 2,048.
    scale
        Standard deviation of the Gaussian inputs.
    inputs
        Sequences of one's own, (time, sequences, input_size), in place of Gaussian ones; those longer than the horizon
        are cut into as many.
    seed
        Of the inputs.

    Returns
    -------
    OutputMemory

    References
    ----------
    Ganguli, Huh and Sompolinsky (2008); Jaeger (2001).

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> block = torch.nn.Conv1d(1, 4, 1)  # reads each step alone
    >>> block = ms.adapt(block, kind="sequence", layout="bht")
    >>> found = ms.measures.output_memory(block, horizon=8, samples=256)
    >>> found.half_life, round(found.effective_rank, 6), round(float(found.lost.max()), 6)
    (0, 1.0, 0.0)
    """
    box = Blackbox.of(network, _WHAT)
    inputs = network.inputs if inputs is None and isinstance(network, Dynamics) else inputs
    with few_threads(box.network.output_size):
        x = _sequences(box, horizon, samples, scale, inputs, seed)
        y = box.answers(x)
        units, spread = _moving(y)
        runs = min(positive_int("trajectories", trajectories), x.shape[1])
        scaled = box.jacobian(x[:, :runs], units) / spread[:, None, None]
        scaled = scaled.flip(2)  # lag 0, the last input, first
        fisher, total, stderr = _fisher(scaled)
        norms = scaled.square().sum((1, 3)).mean(0).div(len(units)).sqrt().numpy()
        ranks = _ranks(scaled)
        capacity, capacity_total, capacity_stderr = _capacity(x, y[:, units].numpy())
        cuts, lost = _lost(box, x[:, :_COMPARED], y[:_COMPARED], units, spread)
        gap = _prefix_gap(box, x[:, :2])
    with np.errstate(divide="ignore"):
        rate = fit_growth(np.log(norms)).rate
    tail = fisher[-max(1, len(fisher) // 10) :].sum()
    return OutputMemory(
        status="estimate",
        digits=None,
        assumptions=_assumptions(inputs is None, len(units), y.shape[1], len(x), box.network.causal),
        cost=str(_COST),
        fisher=fisher,
        total=total,
        stderr=stderr,
        gradients=norms,
        rate=float(rate),
        capacity=capacity,
        capacity_total=capacity_total,
        capacity_stderr=capacity_stderr,
        effective_rank=float(ranks.mean()),
        rank_stderr=_stderr(ranks),
        cuts=cuts,
        lost=lost,
        prefix_gap=gap,
        size=len(units),
        outputs=y.shape[1],
        horizon=len(x),
        settled=bool(tail <= _SETTLED * total),
    )


def _samples(asked: int | None, outputs: int) -> int:
    return max(2048, 16 * outputs) if asked is None else asked


def _sequences(
    box: Blackbox, horizon: int, samples: int | None, scale: float, inputs: Any, seed: int
) -> Float[Tensor, "time batch input"]:
    """Return Gaussian inputs, or those that were given, checked."""
    width = box.input_size
    if inputs is not None:
        return _cut(given_sequences(inputs, width), box.steps or positive_int("horizon", horizon), samples, seed)
    steps = positive_int("horizon", horizon) if box.steps is None else box.steps
    while box.steps is None and steps > _SHORTEST and not box.runs(steps):
        steps //= 2
    asked = None if samples is None else positive_int("samples", samples)
    count = _samples(asked, min(box.network.output_size, _UNITS))
    drawn = torch.randn(steps, count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return positive("scale", scale) * drawn


def _cut(
    sequences: Float[Tensor, "time batch input"], steps: int, samples: int | None, seed: int
) -> Float[Tensor, "steps windows input"]:
    """Return windows of given sequences, at most so many as there would be samples, drawn in a random order."""
    steps = min(steps, len(sequences))
    windows = torch.cat(torch.split(sequences[: len(sequences) // steps * steps], steps), dim=1)
    order = torch.randperm(windows.shape[1], generator=torch.Generator().manual_seed(seed))
    return windows[:, order[: samples or len(order)]]


def _moving(y: Float[Tensor, "batch output"]) -> tuple[list[int], Float[Tensor, " units"]]:
    """Return the outputs that move, at most so many, with their standard deviations."""
    if not bool(y.isfinite().all()):
        raise UserError(
            f"{_WHAT} needs outputs that stay finite, and these are NaN or infinite; take a shorter horizon"
        )
    spread = y.std(0, correction=0)
    moves = (spread > _CONSTANT * y.square().mean(0).sqrt()).nonzero().flatten()
    if not len(moves):
        raise UserError(f"{_WHAT} needs outputs that move with the inputs, and all are constant")
    chosen = moves[torch.linspace(0, len(moves) - 1, min(len(moves), _UNITS)).round().long()]
    return chosen.tolist(), spread[chosen]


def _fisher(scaled: Float[Tensor, "batch units lags input"]) -> tuple[np.ndarray, float, float]:
    """Return J(k) along the input that maximises its sum, the sum, and its standard error over sequences."""
    whole = torch.einsum("bukd,buke->de", scaled, scaled)
    along = torch.linalg.eigh(whole).eigenvectors[:, -1]
    each = (scaled @ along).square().sum(1)
    return each.mean(0).numpy(), float(each.sum(1).mean()), _stderr(each.sum(1))


def _ranks(scaled: Float[Tensor, "batch units lags input"]) -> Float[Tensor, " batch"]:
    """Return exp of the entropy of the squared singular values, sequence by sequence; 0 where all are zero."""
    rows = scaled.flatten(2)
    power = torch.linalg.eigvalsh(rows @ rows.mT).clamp(min=0)
    whole = power.sum(1, keepdim=True)
    shares = power / torch.where(whole > 0, whole, 1.0)
    return torch.where(whole[:, 0] > 0, torch.exp(-torch.xlogy(shares, shares).sum(1)), 0.0)


def _stderr(values: Tensor) -> float:
    return float(values.std() / len(values) ** 0.5) if len(values) > 1 else 0.0


def _capacity(
    x: Float[Tensor, "time batch input"], y: Float[np.ndarray, "batch units"]
) -> tuple[np.ndarray, float, float]:
    """Return how many inputs of each lag a linear readout recovers; nothing where sequences are too few for one."""
    steps, batch, width = x.shape
    each = batch // PARTS
    if each < 2 * (y.shape[1] + 2):
        return np.zeros(0), float("nan"), float("nan")
    readout = Readout(y[: each * PARTS].reshape(PARTS, each, -1), _RIDGE)
    past = x.flip(0)[:, : each * PARTS].permute(0, 2, 1).reshape(steps * width, PARTS, each).numpy()
    past = past - past.mean((1, 2), keepdims=True)
    moved = np.flatnonzero(past.std((1, 2)) > 0)
    curve = np.zeros((PARTS, steps))
    for first in range(0, len(moved), CHUNK):
        places = moved[first : first + CHUNK]
        found = readout.recovered(np.ascontiguousarray(past[places].transpose(1, 2, 0)))
        found = np.where(found.mean(axis=0) > SIGNIFICANT * readout.chance, found, 0.0)
        for part, row in enumerate(found):
            np.add.at(curve[part], places // width, row)
    totals = curve.sum(1)
    # Each pair of parts is used twice, with the roles of training and scoring exchanged: half as many are independent.
    return curve.mean(0), float(totals.mean()), float(totals.std(ddof=1) * np.sqrt(2 / PARTS))


def _lost(
    box: Blackbox, x: Tensor, y: Tensor, units: list[int], spread: Tensor
) -> tuple[Int[np.ndarray, " cuts"], Float[np.ndarray, " cuts"]]:
    """Return the share of the variance that is lost when only the last c inputs are given, for c = 1, 2, 4, .."""
    if box.steps is not None:
        return np.zeros(0, dtype=int), np.zeros(0)
    cuts, lost = [], []
    for power in range((len(x) - 1).bit_length()):
        try:
            alone = box.answers(x[-(2**power) :])
        except Exception:  # a stranger's forward may raise anything at a length that is too short for it
            continue
        cuts.append(2**power)
        lost.append(float(((alone - y)[:, units] / spread).square().mean()))
    return np.array(cuts, dtype=int), np.array(lost)


@torch.no_grad()
def _prefix_gap(box: Blackbox, x: Tensor) -> float | None:
    """Return how far outputs within a sequence are from those after the sequence up to there."""
    if box.steps is not None:
        return None
    whole = box.outputs(x).double()
    places = sorted({max(1, len(x) // 4), max(1, len(x) // 2), max(1, len(x) - 1)})
    gaps = [float((box.last(x[:t]).double() - whole[t - 1]).abs().max()) for t in places]
    largest = float(whole.abs().max())
    return max(gaps) / largest if largest > 0 else 0.0


def _assumptions(drawn: bool, looked: int, outputs: int, steps: int, causal: bool) -> tuple[str, ...]:
    said = [f"sequences of {steps} steps of independent Gaussian inputs" if drawn else "the sequences that were given"]
    said += ["noise on every output as large as its own activity, at the last step alone"]
    said += [f"{looked} of {outputs} outputs, which move and are evenly spaced"] if looked < outputs else []
    said += (
        [] if causal else ["earlier outputs read what follows them; the last one, which is asked, has nothing after it"]
    )
    return tuple(said)
