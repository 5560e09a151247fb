"""Gate of state tracking: which groups the transitions of a network rule out, without training it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Complex
from torch import Tensor, nn

from mnemoscope.core.arrays import non_negative, positive
from mnemoscope.core.errors import UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.tracking.parts import Parts, find_parts, jittered, moments, nonlinear_unit
from mnemoscope.measures.trajectory import drive
from mnemoscope.nn.state import State
from mnemoscope.theory.formulas.tracking import LADDER, TransitionFacts, rule_out_groups

if TYPE_CHECKING:
    from mnemoscope.measures.pace import Pace
    from mnemoscope.report import chart

__all__ = ["DYCK", "Exclusion", "TrackingGate", "tracking_gate"]

_WHAT = "tracking_gate"

DYCK = "Dyck-(2,m)"
"""The last rung of the ladder, which eigenvalues never rule out: its automaton is no group."""

_DECLARED = {
    "non-negative": TransitionFacts(True, True, False, True, 1),
    "projections": TransitionFacts(True, True, False, False, 1),
    "fading negative": TransitionFacts(True, True, False, False, 1),
    "real diagonal": TransitionFacts(True, False, False, True, 1),
    "reflections": TransitionFacts(True, False, False, False, 1),
    "fixed diagonal": TransitionFacts(False, False, True, True, 1),
}
"""Facts that `Network.transitions` declares, of one layer."""

_ALWAYS = "for all weights"

_MOMENTS = (3, 24)
_NUMBERS = 2**20
"""Numbers of the Jacobians that are held at once."""

_LARGEST = 512
"""Numbers in a state up to which eigenvalues are computed that rule out nothing."""


@dataclass(frozen=True)
class Exclusion:
    """A group that is ruled out.

    Attributes
    ----------
    group
        Its name on the ladder.
    theorem
        By which, a name of `mnemoscope theory`.
    because
        Why, in a few words.
    holds
        ``"for all weights"``, by what the network declares, or ``"for these weights"``, by what was measured.
    """

    group: str
    theorem: str
    because: str
    holds: str


@result
class TrackingGate(Result):
    """What the transitions of a network are made of, and which groups that rules out.

    Attributes
    ----------
    linear
        Whether the network is linear in its own state, h' = A(x) h + b(x), layer by layer. Of one that is not,
        eigenvalues rule out nothing.
    negative, complex_pairs, above_one
        Whether an eigenvalue was ever real and negative, not real, or of a modulus above 1; None where there are too
        many to compute, and they rule out nothing.
    input_dependent
        Whether transitions differ between moments.
    structure
        Of every layer: ``"diagonal"``, ``"diagonal in one basis"`` (the same at all moments), ``"commuting"`` (without
        such a basis) or ``"not diagonal in one basis"``.
    layers
        Layers with a memory of their own, one after the other; of a triangular transition a number is one, which reads
        those before it.
    least, radius, imaginary
        Least real eigenvalue, largest modulus, largest imaginary part.
    declared
        What the network says of its transitions for all weights; empty where it says nothing.
    excluded
        Groups that are ruled out, each with its theorem.
    allowed
        Rungs of the ladder that are not: this is no promise that they are learned.
    eigenvalues
        At every moment; at one where all are the same.
    """

    measure: ClassVar[str] = "tracking"
    references: ClassVar[tuple[str, ...]] = ("grazzi2025", "merrill2024", "khavari2025")

    linear: bool
    negative: bool | None
    complex_pairs: bool | None
    above_one: bool | None
    input_dependent: bool
    structure: str
    layers: int
    least: float
    radius: float
    imaginary: float
    declared: str
    excluded: tuple[Exclusion, ...]
    allowed: tuple[str, ...]
    eigenvalues: Complex[np.ndarray, "moments size"]

    def __str__(self) -> str:
        if not self.linear:
            return "nonlinear in its state: eigenvalues rule out nothing" + self._seen()
        kind = "depend on the input" if self.input_dependent else "are the same at every input"
        chained = self.layers > 1 and not self.declared and not self.structure.startswith("not")
        where = f" in each of {self.layers} layers" if chained else ""
        made = f"linear in its state, transitions {kind}, {self.structure}{where}{self._seen()}"
        if not self.excluded:
            return f"{made}: nothing is ruled out"
        by: dict[str, list[str]] = {}
        for each in self.excluded:
            only = f", {each.holds}" if self.declared and each.holds != _ALWAYS else ""
            by.setdefault(each.theorem + only, []).append(each.group)
        said = "; ".join(f"{', '.join(groups)} ({theorem})" for theorem, groups in by.items())
        return f"{made}: rules out {said}"

    def facts(self) -> dict[str, str]:
        """Return the scalar fields, what is ruled out and what is not."""
        ruled = ", ".join(f"{each.group} ({each.holds})" for each in self.excluded) or "nothing"
        return {**super().facts(), "ruled out": ruled, "not ruled out": ", ".join(self.allowed)}

    def _seen(self) -> str:
        if self.negative is None:
            return ""
        words = {"negative": self.negative, "complex": self.complex_pairs, "above 1": self.above_one}
        seen = [word for word, found in words.items() if found]
        return f" (eigenvalues are {', '.join(seen)})" if seen else " (eigenvalues are in [0, 1])"

    def plot(self) -> chart.Chart:
        """Draw the eigenvalues of all moments in the complex plane, with the unit circle."""
        from mnemoscope.report.figure import Figure, Mark, Plane
        from mnemoscope.report.vega import chart

        rim = Mark(kind="circle", value=1.0, label="unit circle")
        shown = self.eigenvalues.ravel()
        shown = shown[:: max(1, len(shown) // 2000)]
        drawing = Plane(points={"transitions": shown.tolist()}, title="eigenvalues", marks=(rim,))
        return chart(Figure(title="Eigenvalues of the transitions, all moments", drawing=drawing))


def _count(size: int) -> int:
    """Return at how many moments the transitions of a state of this size are taken."""
    return int(np.clip(_NUMBERS // size**2, *_MOMENTS))


def _paced(n: Mapping[str, float], pace: Pace) -> float:
    """Return seconds: a large state whose network is nonlinear in it is not looked at."""
    seen = (n["T"] + 64) * pace.step.base + 0.05
    if n["S"] > _LARGEST and not pace.gated:
        return seen
    return seen + n["K"] * n["S"] * (pace.pull.each + pace.arithmetic * (2e-7 * n["S"] + 2e-9 * n["S"] ** 2))


_COST = Cost(
    time={"K S^3": 2e-9, "K S^2": 2e-7, "T": 2e-3},
    memory="K S^2",
    sizes={"K": lambda given: given["count"] or _count(int(given["S"])), "T": lambda given: 2 * given["washout"] + 32},
    letters={"K": "moments at which transitions are taken"},
    paced=_paced,
)


@measure("tracking", kinds=("recurrent",), needs=("jacobian",), quick={"count": 4}, cost=_COST)
def tracking_gate(
    network: nn.Module | Dynamics,
    *,
    count: int | None = None,
    tolerance: float = 1e-6,
    scale: float = 1.0,
    washout: int = 0,
    inputs: Tensor | None = None,
    seed: int = 0,
    device: str | None = None,
) -> TrackingGate:
    r"""Say which groups a network cannot track, by the eigenvalues of its transitions along driven trajectories.

    .. math:: h_t = A(x_t) \, h_{t-1} + b(x_t)

    To track a group is to say the product of all its elements so far, one coming at each step. The transitions A of
    a recurrence that is linear in its state decide it: with eigenvalues that are never negative nothing is tracked,
    with real ones that share a basis no element of order 3, with a shared basis nothing that is not solvable. The
    derivative of the step by the state is taken at moments along the trajectories, and divided into the parts that act
    on themselves (`mnemoscope.measures.tracking.parts`): layer by layer, whoever wrote the network. Where such a part
    depends on itself nonlinearly, eigenvalues rule out nothing, and that is what is said.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    count
        Moments at which transitions are taken; None: from 3 to 24, by the size of the state.
    tolerance
        How far from zero a negative or an imaginary part counts, and how far above 1 a modulus.
    scale
        Standard deviation of the Gaussian inputs.
    washout
        Steps before the first: none, since states that shrink or grow say most near their start.
    inputs
        Inputs of one's own, (time, batch, input), in place of Gaussian ones.
    seed
        Of inputs and moments.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    TrackingGate

    References
    ----------
    Grazzi et al. (2025), Merrill et al. (2024), Khavari et al. (2025).

    Examples
    --------
    >>> import mnemoscope as ms
    >>> print(ms.measures.tracking_gate(ms.nn.NetworkSpec("rnn", hidden_size=8).build()).allowed)
    ('Z2', 'Z3', 'Z60', 'S3', 'A5', 'S5', 'Dyck-(2,m)')
    >>> print(ms.measures.tracking_gate(ms.nn.NetworkSpec("mamba", hidden_size=4).build()).allowed)
    ('Dyck-(2,m)',)
    """
    tolerance, scale = positive("tolerance", tolerance), non_negative("scale", scale)
    dynamics = Dynamics.of(network, _WHAT, device=device)
    if dynamics.network.grows:
        name = type(dynamics.original).__name__
        raise UserError(
            f"{_WHAT} needs a state of fixed size, got {name}, whose state grows: eigenvalues say nothing of what it "
            "tracks"
        )
    generator = torch.Generator().manual_seed(seed)
    wanted = _wanted(count, dynamics)
    inputs = None if inputs is None else torch.as_tensor(inputs)
    if inputs is not None and (inputs.ndim != 3 or len(inputs) * inputs.shape[1] < 2):
        raise expected("inputs", "of shape (time, batch, input), 2 steps or more", tuple(inputs.shape))
    path = drive(
        dynamics,
        steps=32 if inputs is None else len(inputs),
        trajectories=8 if inputs is None else inputs.shape[1],
        scale=scale,
        washout=washout,
        generator=generator,
        inputs=None if inputs is None else inputs.to(**dynamics.factory),
    )
    with few_threads(dynamics.size), torch.no_grad():
        x, state = moments(path, wanted, generator)
        nonlinear = _nonlinear(dynamics, x, state, generator)
        if nonlinear and dynamics.size > _LARGEST:
            parts = Parts((), linear=False, layers=1)
        else:
            parts = find_parts(dynamics, x, state, test=not nonlinear)
        return _judged(dynamics, replace(parts, linear=parts.linear and not nonlinear), tolerance)


def _nonlinear(dynamics: Dynamics, x: Tensor, state: State, generator: torch.Generator) -> bool:
    """Tell whether a network is seen to be nonlinear in its state, at its weights or at others near them."""
    if dynamics.network.transitions:
        return False
    if nonlinear_unit(dynamics, x, state):
        return True
    try:
        return nonlinear_unit(jittered(dynamics, generator), x, state)
    except (UserError, RuntimeError, ValueError):  # weights that cannot be moved are what they are
        return False


def _wanted(count: int | None, dynamics: Dynamics) -> int:
    if count is None:
        blocks = dynamics.network.transition_blocks
        return _count(dynamics.size) if blocks is None else _MOMENTS[1]
    if positive_int("count", count) < 2:
        raise expected("count", "at least 2 moments, to be compared", count)
    return count


def _judged(dynamics: Dynamics, parts: Parts, tolerance: float) -> TrackingGate:
    declared = dynamics.network.transitions
    linear = parts.linear or bool(declared)
    known = bool(parts.transitions)
    values = parts.eigenvalues() if known else np.zeros((0, 0), dtype=complex)
    real = np.abs(values.imag) <= tolerance
    imaginary = float(np.abs(values.imag).max(initial=0.0))
    least = float(np.where(real, values.real, np.inf).min(initial=np.inf)) if known else np.nan
    radius = float(np.abs(values).max(initial=0.0)) if known else np.nan
    commuting = known and (parts.diagonal or parts.commuting)
    facts = TransitionFacts(
        real=bool(real.all()),
        non_negative=bool(real.all()) and least >= -tolerance,
        fixed=known and parts.fixed,
        commuting=commuting,
        layers=parts.layers,
        passive=known and parts.passive(tolerance),
    )
    excluded = _exclusions(dynamics.network, facts if parts.linear else None)
    ruled = {each.group for each in excluded}
    return TrackingGate(
        status="estimate",
        digits=None,
        assumptions=_assumptions(linear),
        cost=str(_COST),
        linear=linear,
        negative=least < -tolerance if known else None,
        complex_pairs=not real.all() if known else None,
        above_one=radius > 1 + tolerance if known else None,
        input_dependent=not (known and parts.fixed),
        structure=_structure(parts, commuting),
        layers=parts.layers,
        least=least,
        radius=radius,
        imaginary=imaginary if known else np.nan,
        declared=declared,
        excluded=excluded,
        allowed=tuple(each for each in (*LADDER, DYCK) if each not in ruled),
        eigenvalues=values,
    )


def _exclusions(network: Any, measured: TransitionFacts | None) -> tuple[Exclusion, ...]:
    """Return what is ruled out by declaration, for all weights, and what more by measurement, for these."""
    found: dict[str, Exclusion] = {}
    declared = _DECLARED.get(network.transitions)
    if declared is not None:
        layers = int(getattr(network, "num_layers", 1))
        for ruling in rule_out_groups(declared._replace(layers=layers)):
            found[ruling.group] = Exclusion(*ruling, _ALWAYS)
    if measured is not None:
        for ruling in rule_out_groups(measured):
            found.setdefault(ruling.group, Exclusion(*ruling, "for these weights"))
    return tuple(found[group] for group in LADDER if group in found)


def _structure(parts: Parts, commuting: bool) -> str:
    if not parts.transitions:
        return "unknown"
    if parts.diagonal:
        return "diagonal"
    if commuting:
        return "diagonal in one basis" if parts.diagonalisable else "commuting"
    return "not diagonal in one basis"


def _assumptions(linear: bool) -> tuple[str, ...]:
    if not linear:
        return ("a network that is nonlinear in its state can use its nonlinearity to track: nothing is excluded",)
    return (
        "eigenvalues were taken at moments of driven trajectories: other inputs may show others",
        "one element of a group comes at each step, states are bounded, of finite precision, at lengths without bound",
        "what is not ruled out need not be learned",
    )
