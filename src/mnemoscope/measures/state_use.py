"""Effective state-size: how much of a state carries the past into the future."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core import memory
from mnemoscope.core.arrays import non_negative, positive
from mnemoscope.core.errors import Description, UserError, choice, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.inputs import task_inputs
from mnemoscope.measures.operator import Stateless, Values, can_push, dense_values, factored_values, step_runner
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.trajectory import affine, drive
from mnemoscope.nn.ops.gates import hold_gates

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.report import chart

__all__ = ["EffectiveStateSize", "effective_state_size"]

_WHAT = "effective_state_size"
_STEPS = (64, 256)
_SEVERAL = 256
"""Numbers in a state up to which two trajectories are taken, beyond it one."""
GATES = ("held", "differentiated")
FORMS = ("factored", "dense")


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
    outputs
        The outputs that were looked at alone.
    channels
        Tolerance rank of each of them alone, at each step.
    singular_values
        At the step in the middle, mean over trajectories, descending.
    state_size
        Real numbers in the state; None for a network without one.
    window
        What `total` can be at most, by the length of the sequence and by the state.
    tolerance
        Share of the largest singular value from which on a direction counts.
    gates
        ``"held"``: they are constants of the operator; ``"differentiated"``: it has what inputs do to them in it.
    form
        ``"factored"`` through the state, or ``"dense"``.
    """

    measure: ClassVar[str] = "effective-state-size"
    references: ClassVar[tuple[str, ...]] = ("parnichkun2025",)

    total: float
    stderr: float
    steps: Int[np.ndarray, " steps"]
    ranks: Float[np.ndarray, " steps"]
    entropy_ranks: Float[np.ndarray, " steps"]
    outputs: Int[np.ndarray, " output"]
    channels: Float[np.ndarray, "output steps"]
    singular_values: Float[np.ndarray, " size"]
    state_size: int | None
    window: float
    tolerance: float
    gates: str
    form: str

    @property
    def utilisation(self) -> float | None:
        """Share of the state that is used: the total over the state size; None without a state."""
        return None if self.state_size is None else self.total / self.state_size

    @property
    def limited(self) -> bool:
        """Whether the sequence is too short for the whole state to show."""
        return self.state_size is not None and self.window < self.state_size

    @property
    def entropy_total(self) -> float:
        """Mean of the entropy rank over the middle third of the steps."""
        return float(self.entropy_ranks[_middle(self.steps)].mean())

    def __str__(self) -> str:
        spread = f" ± {self.stderr:.2g}" if self.stderr else ""
        counted = f"{self.total:.4g}{spread}"
        how = f"at tolerance {self.tolerance:g}; entropy rank {self.entropy_total:.4g}"
        if self.status != "exact":
            how += "; gates held" if self.gates == "held" else "; by the Jacobian"
        if not self.singular_values.any():
            return "no output depends on an input before its own step: nothing of the state is used"
        if self.state_size is None:
            return f"effective state-size {counted} of a network without a state {how}"
        used = f"{counted} of {self.state_size} numbers of the state are used ({self.utilisation:.0%}) {how}"
        return f"{used}; at most {self.window:.4g} can show in so few steps" if self.limited else used

    def plot(self) -> chart.Chart:
        """Draw both ranks against the step at which past and future are cut, and those of single outputs."""
        from mnemoscope.report import chart

        series = {"tolerance rank": (self.steps, self.ranks), "entropy rank": (self.steps, self.entropy_ranks)}
        series["mean of single outputs"] = (self.steps, self.channels.mean(0))
        return chart.lines(series, x="step i", y="effective state-size", title="How much of the state is used")


def _middle(steps: Int[np.ndarray, " steps"]) -> slice:
    """Return the middle third of the cuts, at least one."""
    edge = len(steps) // 3
    return slice(edge, len(steps) - edge)


def _length(known: Mapping[str, Any]) -> float:
    return float(known["horizon"] or np.clip(3.5 * known["S"] / known["d"], *_STEPS))


def _count(size: float) -> int:
    return 2 if size <= _SEVERAL else 1


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: of products with whole Jacobians, or of directions that are pushed and made orthogonal."""
    batch, steps, size, rank = n["B"], n["T"], n["S"], n["R"]
    if rank >= size:
        products = 1e-10 * size**2 * rank + 3e-8 * steps * size
        return steps * (batch * products * pace.arithmetic + 1e-3)
    pushed = 3 * (pace.step.base + pace.step.each * batch * rank / 2)
    orthogonal = 1.5e-10 * batch * (size + rank) * rank**2 * pace.arithmetic
    return steps * (pushed + orthogonal + 2e-3)


_COST = Cost(
    time={"B T S^2 R": 1e-10, "B T^2 S": 3e-8, "T": 1e-3},
    memory="B T R^2",
    sizes={
        "T": _length,
        "B": lambda known: known["trajectories"] or _count(known["S"]),
        "R": lambda known: min(known["S"], _length(known) * known["d"]),
    },
    letters={"R": "directions that inputs reach, at most S"},
    paced=_paced,
)


@measure(
    "effective-state-size", kinds=("recurrent", "sequence"), needs=("jacobian",), quick={"horizon": 32}, cost=_COST
)
def effective_state_size(
    network: nn.Module | Dynamics,
    *,
    horizon: int | None = None,
    trajectories: int | None = None,
    cuts: int = 9,
    tolerance: float = 1e-3,
    scale: float = 1.0,
    washout: int = 50,
    inputs: Float[Tensor, "time batch input"] | None = None,
    task: str | None = None,
    gates: str | None = None,
    form: str | None = None,
    seed: int = 0,
    device: str | None = None,
) -> EffectiveStateSize:
    r"""Find how many directions of a state carry past inputs to future outputs.

    .. math::
        \mathrm{ESS}_i = \mathrm{rank}\, T_{i:,\,:i}, \qquad y = T u

    T is the operator that maps all inputs to all outputs. A linear network has one; so has one whose gates multiply
    its state and inputs and that does nothing else nonlinear, with the gates held at their values (exactly:
    y = T(u) u). Of any other network the Jacobian T = dy/du along the driven trajectory is taken, with the gates held
    where it declares them (the tanh of an LSTM is differentiated, its gates are not).

    The block of T that maps the inputs before step i to the outputs from it on goes through the state between them:
    T[i:, :i] = O_i R_i, what is seen of the state times what is reached of it. Factors of both, S x S at most, are
    carried along the trajectory, forwards and backwards; the T x T operator is formed only for networks without a
    state, or where it is smaller than a state whose directions cannot be pushed one by one. For a linear network with
    a long past and future the singular values are the Hankel singular values.

    Parameters
    ----------
    network
        A recurrent network or a block without a state, or any module that `mnemoscope.adapt` understands.
    horizon
        Steps T of the operator, at least 2; None: enough for the whole state to show in the middle third, from 64 to
        256.
    trajectories
        Independent trajectories; None: two, of states above 256 numbers one.
    cuts
        Steps i at which ranks are taken, evenly spread.
    tolerance
        A direction counts when its singular value is above this share of the largest.
    scale
        Standard deviation of the Gaussian inputs.
    washout
        Steps before the first, so that the state is a usual one; none before the inputs of a task.
    inputs
        Inputs of one's own, (time, batch, input), in place of Gaussian ones, which then say horizon and trajectories.
    task
        Name of a task whose inputs are taken, of its usual settings ("copying", "shakespeare"); tokens are one-hot
        vectors, or unit normal ones where the network has another number of inputs.
    gates
        "held" or "differentiated"; None: held where a network declares them.
    form
        "factored" or "dense"; None: the smaller one.
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
    if tolerance >= 1:
        raise expected("tolerance", "below 1, a share of the largest singular value", tolerance)
    count = positive_int("cuts", cuts)
    for name, value, known in (("gates", gates, GATES), ("form", form, FORMS)):
        if value is not None:
            choice(name, value, known)
    subject = Stateless.of(network, _WHAT, device) or Dynamics.of(network, _WHAT, device=device)
    wanted = None if horizon is None else positive_int("horizon", horizon)
    generator = torch.Generator().manual_seed(seed)
    drawn = _count(subject.size or 0) if trajectories is None else positive_int("trajectories", trajectories)
    x = _inputs(subject, inputs, task, wanted, drawn, scale, generator)
    steps, runs, width = x.shape
    if steps < 2:
        raise expected("horizon", "at least 2, a past and a future", steps)
    outputs = subject.network.output_size
    dense = form == "dense" if form else _smaller_whole(subject, steps * max(width, outputs))
    if subject.size is None and not dense:
        raise expected("form", "'dense' for a network without a state", form)
    places = np.unique(np.linspace(1, steps - 1, min(count, steps - 1)).round().astype(int))
    hold = nullcontext() if gates == "differentiated" else hold_gates()
    with few_threads(subject.size or 0), hold as held:
        values, alone, chosen = _values(subject, x, places, dense, 0 if task else washout, generator)
    declared = held is not None and held.any
    if gates == "held" and not declared:
        raise UserError(f"{_WHAT} with gates='held' needs a network that declares gates, and this one declares none")
    exact = isinstance(subject, Dynamics) and affine(subject)
    ranks, middle = _ranks(values, tolerance), _middle(places)
    each = ranks[middle].double().mean(0)
    return EffectiveStateSize(
        status="exact" if exact else "estimate",
        digits=None,
        assumptions=(
            _operator_is(exact, declared),
            "inputs are those given" if inputs is not None else f"inputs are {_source(task, scale)}",
            f"outputs alone: {len(chosen)} of {outputs}",
        ),
        cost=str(_COST),
        total=float(each.mean()),
        stderr=float(each.std() / runs**0.5) if runs > 1 else 0.0,
        steps=places,
        ranks=ranks.double().mean(1).cpu().numpy(),
        entropy_ranks=_entropy_ranks(values).mean(1).cpu().numpy(),
        outputs=np.array(chosen),
        channels=_ranks(alone, tolerance).double().mean(1).T.cpu().numpy(),
        singular_values=values[len(places) // 2].mean(0).cpu().numpy(),
        state_size=subject.size,
        window=_window(places[middle], steps, width, outputs, subject.size),
        tolerance=tolerance,
        gates="held" if declared else "differentiated",
        form="dense" if dense else "factored",
    )


def _smaller_whole(subject: Stateless | Dynamics, entries: int) -> bool:
    """Whether the operator is smaller than what would be carried: a state of which single directions cannot be."""
    if isinstance(subject, Stateless):
        return True
    return subject.size > entries and not can_push(subject)


def _inputs(
    subject: Stateless | Dynamics,
    given: Float[Tensor, "time batch input"] | None,
    task: str | None,
    horizon: int | None,
    runs: int,
    scale: float,
    generator: torch.Generator,
) -> Float[Tensor, "time batch input"]:
    """Return Gaussian inputs, those of a task, or those that were given."""
    width = subject.input_size
    if given is not None and task is not None:
        raise UserError("inputs and task cannot be given together: a task has its own inputs")
    if given is not None:
        found = torch.as_tensor(given)
        if found.dim() != 3 or found.shape[2] != width or not found.numel():
            raise expected("inputs", f"of shape (time, trajectories, {width})", tuple(found.shape))
        if not bool(found.isfinite().all()):
            raise expected("inputs", "finite", Description("NaN or infinity"))
    elif task is not None:
        found = task_inputs(task, width, runs, generator)[: horizon or _STEPS[1]]
    else:
        steps = int(np.clip(3.5 * (subject.size or 1) / width, *_STEPS)) if horizon is None else horizon
        found = scale * torch.randn(steps, runs, width, generator=generator, dtype=torch.float64)
    return found.to(**subject.factory)


def _values(
    subject: Stateless | Dynamics,
    x: Float[Tensor, "time batch input"],
    places: Int[np.ndarray, " steps"],
    dense: bool,
    washout: int,
    generator: torch.Generator,
) -> Values:
    steps, runs, width = x.shape
    size, outputs = subject.size or 0, subject.network.output_size
    rank = min(size, steps * width)
    needed = 8 * runs * steps * (steps * width * outputs if dense else rank * (rank + outputs))
    memory.require(_WHAT, needed, "a shorter horizon or fewer trajectories would fit")
    if isinstance(subject, Stateless):
        return dense_values(subject.run, x, places.tolist())
    _COST.require_end(_WHAT, B=runs, T=steps, S=size, R=rank)
    path = drive(subject, steps=steps, trajectories=runs, scale=1.0, washout=washout, generator=generator, inputs=x)
    if dense:
        return dense_values(step_runner(subject, path.states[0]), x, places.tolist(), size)
    with torch.no_grad():
        return factored_values(path, places.tolist())


def _window(places: Int[np.ndarray, " steps"], steps: int, inputs: int, outputs: int, size: int | None) -> float:
    """Return the mean over cuts of what a rank can be at most: the numbers before, those after, those of the state."""
    limits = np.minimum(places * inputs, (steps - places) * outputs)
    return float(np.minimum(limits, limits.max() if size is None else size).mean())


def _ranks(values: Float[Tensor, "... size"], tolerance: float) -> Tensor:
    return (values > tolerance * values[..., :1]).sum(-1)


def _entropy_ranks(values: Float[Tensor, "... size"]) -> Tensor:
    """Return exp(H) of the shares of the singular values; 0 where all are 0."""
    total = values.sum(-1, keepdim=True)
    shares = values / total.clamp(min=torch.finfo(values.dtype).tiny)
    return torch.exp(-torch.xlogy(shares, shares).sum(-1)) * (total[..., 0] > 0)


def _operator_is(exact: bool, declared: bool) -> str:
    if exact:
        return "the network is linear: the operator is the same along every trajectory"
    if declared:
        return (
            "the operator has the network's gates held at their values along the trajectory, and is the Jacobian of "
            "what else is nonlinear"
        )
    return "the operator is the Jacobian of outputs by inputs along the trajectory, what inputs do to gates included"


def _source(task: str | None, scale: float) -> str:
    return f"Gaussian of scale {scale:g}" if task is None else f"those of the task {task}"
