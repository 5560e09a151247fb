"""Mode parity: whether all forms of a network are one function, in every number type and at every length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.parity.running import (
    STEPS,
    TYPES,
    Run,
    differentiated,
    forms_of,
    forward,
    in_type,
    recurrent_of,
    relative,
    tolerance,
)
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.nn.recurrent import Recurrent
from mnemoscope.nn.state import index_batch

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["ModeParity", "mode_parity"]

_WHAT = "mode_parity"
_BATCH = 2
_CUT = 17
"""Steps of the sequence that is cut at every place, and of the tests of causality, batch and determinism."""


@result
class ModeParity(Result):
    """Differences between the forms of a network; all are relative to the largest number that they are about.

    Attributes
    ----------
    forms
        What was compared with calling `step` for one input after the other.
    dtypes, lengths
        Number types, and lengths of the sequences.
    outputs, states, gradients
        Largest difference of outputs, last states, and gradients at inputs and parameters.
    parts
        The first step at which outputs differ by more than rounding explains, sqrt(eps) of the type; 0: none.
    cut
        Largest difference, in any form, when a sequence of 17 steps is cut anywhere and the state carried over.
    cut_at
        Where that is.
    causality
        Largest change of outputs before a step when inputs from that step on change.
    batch
        Largest difference between an example alone and in a batch.
    determinism
        Largest difference of two calls on the same input.
    range_dtypes, scales
        Number types and standard deviations of the inputs of the sweep below.
    largest
        Largest magnitude in the states along the longest sequence.
    overflow
        The first step with a NaN or an infinity in state or output; 0 where there is none.
    refused
        What a type or form said instead of running.
    """

    measure: ClassVar[str] = "mode-parity"

    forms: tuple[str, ...]
    dtypes: tuple[str, ...]
    lengths: Int[np.ndarray, " length"]
    outputs: Float[np.ndarray, "dtype form length"]
    states: Float[np.ndarray, "dtype form length"]
    gradients: Float[np.ndarray, "dtype form length"]
    parts: Int[np.ndarray, "dtype form length"]
    cut: float
    cut_at: int
    causality: float
    batch: float
    determinism: float
    range_dtypes: tuple[str, ...]
    scales: Float[np.ndarray, " scale"]
    largest: Float[np.ndarray, "dtype scale"]
    overflow: Int[np.ndarray, "dtype scale"]
    refused: dict[str, str]

    @property
    def agree(self) -> bool:
        """Whether every form is the same function, causal, deterministic, and keeps examples apart."""
        return not self.differences

    @property
    def differences(self) -> tuple[str, ...]:
        """What differs by more than rounding, a sentence each."""
        found = [sentence for i, name in enumerate(self.dtypes) if (sentence := self._parting(i, name))]
        limit = tolerance(TYPES[self.dtypes[0]]) if self.dtypes else 0.0
        told = {
            f"a state carried over a cut after step {self.cut_at} changes what follows": self.cut,
            "outputs depend on later inputs": self.causality,
            "examples of a batch touch each other": self.batch,
            "two calls on the same input differ": self.determinism,
        }
        return (*found, *(f"{words} (by {gap:.2g})" for words, gap in told.items() if not gap <= limit))

    def _parting(self, i: int, name: str) -> str:
        limit = np.array([tolerance(TYPES[name], int(length)) for length in self.lengths])
        for j, form in enumerate(self.forms):
            for gaps, words in (
                (self.outputs, ""),
                (self.states, "last states of "),
                (self.gradients, "gradients of "),
            ):
                if not np.all(gaps[i, j] <= limit):
                    place = int(np.argmax(~(gaps[i, j] <= limit)))
                    step = self.parts[i, j, place]
                    where = f", from step {step} on" if step and not words else f" after {self.lengths[place]} steps"
                    return f"{words}{form} and {STEPS} differ by {gaps[i, j, place]:.2g} in {name}{where}"
        return ""

    @property
    def overflows(self) -> tuple[str, ...]:
        """Where states or outputs stop being finite, a sentence for each type: ``float16 overflows at step 812``."""
        found = []
        for i, name in enumerate(self.range_dtypes):
            hits = np.flatnonzero(self.overflow[i])
            if len(hits):
                scale = "" if self.scales[hits[0]] == 1 else f" under inputs of size {self.scales[hits[0]]:g}"
                found.append(f"{name} overflows at step {self.overflow[i, hits[0]]}{scale}")
        return tuple(found)

    def __str__(self) -> str:
        if self.differences:
            return "; ".join((*self.differences, *self.overflows))
        reach = [max(self.outputs[i].max(), self.gradients[i].max()) for i in range(len(self.dtypes))]
        sizes = ", ".join(f"{gap:.1g} ({name})" for gap, name in zip(reach, self.dtypes, strict=True))
        named = " and ".join((", ".join((STEPS, *self.forms[:-1])), self.forms[-1]))
        said = f"{named} agree to {sizes} up to {self.lengths[-1]} steps; causal, deterministic, examples apart"
        return "; ".join((said, *self.overflows))

    def plot(self) -> chart.Chart:
        """Draw the largest difference of outputs against the length, for each form and type."""
        from mnemoscope.report import chart

        series = {
            f"{form}, {name}": (self.lengths, np.maximum(self.outputs[i, j], 1e-17))
            for i, name in enumerate(self.dtypes)
            for j, form in enumerate(self.forms)
        }
        return chart.lines(
            series, x="steps", y="largest difference", title="Forms of the network", log_x=True, log_y=True, points=True
        )


_COST = Cost(
    time={"K T S^2": 1e-9, "K T": 1.5e-3},
    memory="T S",
    sizes={"T": lambda known: sum(known["lengths"]), "K": lambda known: len(known["dtypes"])},
    letters={"K": "number types"},
    # Forward and back in two forms at least, with the gradients of weights.
    paced=lambda n, pace: 15 * n["K"] * n["T"] * pace.step.base + 15 * n["K"] * pace.maps + 0.05,
)


@measure(
    "mode-parity",
    kinds=("recurrent",),
    needs=("step",),
    quick={"lengths": (1, 8, 65), "dtypes": ("float64", "float32")},
    cost=_COST,
)
def mode_parity(
    network: nn.Module | Dynamics,
    *,
    lengths: Sequence[int] = (1, 8, 65, 512, 4096),
    dtypes: Sequence[str] = ("float64", "float32", "bfloat16"),
    scales: Sequence[float] = (1.0, 10.0, 100.0, 1000.0),
    range_dtypes: Sequence[str] = ("float32", "bfloat16", "float16"),
    seed: int = 0,
) -> ModeParity:
    r"""Compare the forms of a network with its step, in every number type and at every length.

    .. math::
        \text{outputs} = \frac{\max_{t, b, i} |y^{form}_{tbi} - y^{steps}_{tbi}|}{\max_{t, b, i} |y^{steps}_{tbi}|}

    and alike for the last state and for the gradients of a fixed linear function of the outputs at inputs and
    parameters, each tensor on its own scale. Whole sequences are run in every form that the network names, step by step
    by its `step`. A sequence is cut at every place with the state carried over; later inputs, other examples and a
    second call must change nothing. A sweep of the inputs' scale along the longest sequence shows where states leave
    the range of a type.

    Parameters
    ----------
    network
        A recurrent network, or any module that `mnemoscope.adapt` understands.
    lengths
        Of the sequences that are compared.
    dtypes
        Number types: float64, float32, bfloat16, float16.
    scales
        Standard deviations of the inputs of the sweep.
    range_dtypes
        Number types of the sweep.
    seed
        Of the inputs.

    Returns
    -------
    ModeParity

    Examples
    --------
    >>> import mnemoscope as ms
    >>> found = ms.measures.mode_parity(ms.nn.create("lru", input_size=2, hidden_size=8), lengths=(1, 20))
    >>> found.forms, found.agree
    (('recurrent', 'parallel'), True)
    """
    own = recurrent_of(network, _WHAT)
    own.require_causal(_WHAT)
    kept, left = _lengths(own, lengths)
    forms = forms_of(own)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(max(kept), _BATCH, *own.input_shape, generator=generator, dtype=torch.float64)
    refused: dict[str, str] = {}
    found: dict[str, Tensor] = {}
    for name in dtypes:
        try:
            found[name] = _compared(in_type(own, name), x.to(TYPES[name]), kept)
        except (UserError, RuntimeError, NotImplementedError, TypeError) as error:  # torch lacks kernels of some types
            refused[name] = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    if not found:
        raise UserError(f"{_WHAT} needs a network that runs: " + "; ".join(f"{k}: {v}" for k, v in refused.items()))
    first = next(iter(found))
    table = torch.stack(list(found.values())).numpy()
    cut, cut_at = _cut(in_type(own, first), x[:_CUT].to(TYPES[first]))
    apart = _apart(in_type(own, first), x[:_CUT].to(TYPES[first]))
    swept = _sweep(own, x[:, :1], scales, range_dtypes, refused)
    return ModeParity(
        status="estimate",
        digits=None,
        assumptions=("inputs are Gaussian", "weights are those the network has", *left),
        cost=str(_COST),
        forms=tuple(forms)[1:],
        dtypes=tuple(found),
        lengths=np.array(kept),
        outputs=table[:, :, :, 0],
        states=table[:, :, :, 1],
        gradients=table[:, :, :, 2],
        parts=table[:, :, :, 3].astype(int),
        cut=cut,
        cut_at=cut_at,
        **apart,
        scales=np.array(scales, dtype=float),
        refused=refused,
        **swept,
    )


def _lengths(network: Recurrent, lengths: Sequence[int]) -> tuple[list[int], tuple[str, ...]]:
    """Return the lengths to compare, those that a memory has room for, and what was left out."""
    wanted = sorted({positive_int("lengths", each) for each in lengths})
    if not wanted:
        raise expected("lengths", "at least one", Description("none"))
    room = network.capacity if network.grows and network.capacity is not None else wanted[-1]
    kept = [each for each in wanted if each <= room] or [room]
    return kept, () if kept == wanted else (f"its memory has room for {room} steps: longer lengths were left out",)


def _compared(network: Recurrent, x: Tensor, lengths: list[int]) -> Tensor:
    """Return differences of outputs, states and gradients, and the step of parting: (form, length, 4)."""
    forms = forms_of(network)
    table = torch.zeros(len(forms) - 1, len(lengths), 4, dtype=torch.float64)
    for k, length in enumerate(lengths):
        wanted = differentiated(network, forms[STEPS], x[:length], gradients=True)
        for j, name in enumerate(list(forms)[1:]):
            found = differentiated(network, forms[name], x[:length], gradients=True)
            table[j, k] = torch.tensor(_gaps(found, wanted, tolerance(x.dtype, length)))
    return table


def _gaps(found: Run, wanted: Run, limit: float) -> list[float]:
    gradients = [relative(a, b) for a, b in zip(found.gradients, wanted.gradients, strict=True)]
    return [
        relative(found.outputs, wanted.outputs),
        relative(found.state, wanted.state),
        max(gradients, default=0.0),
        parting(found.outputs, wanted.outputs, limit),
    ]


def parting(found: Tensor, wanted: Tensor, limit: float) -> int:
    """Return the first step, from 1 on, at which outputs differ by more than a share of the largest; 0: none."""
    gap = (found.double() - wanted.double()).abs().flatten(1).amax(1)
    apart = ~(gap <= limit * wanted.double().abs().max())  # NaN is not below anything
    return int(apart.nonzero()[0]) + 1 if bool(apart.any()) else 0


def _in_forms(network: Recurrent) -> Iterator[str]:
    """Give the names of a network's forms, with the network told to take each."""
    told = network.mode if len(network.modes) > 1 else None
    for mode in network.modes:
        if told is not None:
            network.mode = mode
        yield mode
    if told is not None:
        network.mode = told


@torch.no_grad()
def _cut(network: Recurrent, x: Tensor) -> tuple[float, int]:
    """Return the largest difference that a cut makes in any form, and the step after which that is."""
    worst, place = 0.0, 0
    for _ in _in_forms(network):
        whole, _ = forward(network, x)
        for cut in range(1, len(x)):
            before, state = forward(network, x[:cut])
            gap = relative(torch.cat([before, forward(network, x[cut:], state)[0]]), whole)
            if not gap <= worst:
                worst, place = gap, cut
    return worst, place


@torch.no_grad()
def _apart(network: Recurrent, x: Tensor) -> dict[str, Any]:
    """Return what later inputs, other examples and a second call change, in the form in which it is most."""
    half = len(x) // 2
    later = torch.cat([x[:half], 1 - x[half:]])
    found = {"causality": 0.0, "batch": 0.0, "determinism": 0.0}
    for _ in _in_forms(network):
        whole, state = forward(network, x)
        again, _ = forward(network, x)
        alone, lonely = forward(network, x[:, :1])
        first = index_batch(state, torch.tensor([0], device=x.device), network.batch_axis)
        states = [network.flatten_state(each) for each in (lonely, first)]
        gaps = {
            "causality": relative(forward(network, later)[0][:half], whole[:half]) if half else 0.0,
            "batch": max(relative(alone, whole[:, :1]), relative(*states)),
            "determinism": relative(again, whole),
        }
        found = {name: max(gap, gaps[name]) for name, gap in found.items()}
    return found


@torch.no_grad()
def _sweep(
    network: Recurrent, x: Tensor, scales: Sequence[float], names: Sequence[str], refused: dict[str, str]
) -> dict[str, Any]:
    """Return how large states get under inputs of many scales, and when they are no longer finite.

    The scales stand side by side in one batch.
    """
    factors = torch.tensor(scales, dtype=torch.float64).reshape(1, -1, *[1] * (x.dim() - 2))
    largest, overflow, ran = [], [], []
    for name in names:
        try:
            rows = _ranges(in_type(network, name), (x * factors).to(TYPES[name]))
        except (UserError, RuntimeError, NotImplementedError, TypeError) as error:  # torch lacks kernels of some types
            refused[name] = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            continue
        finite = rows.isfinite()
        ran.append(name)
        largest.append(torch.where(finite, rows, 0.0).amax(0).numpy())
        overflow.append(torch.where(finite.all(0), 0, (~finite).int().argmax(0) + 1).numpy())
    shape = (0, len(scales))
    return {
        "range_dtypes": tuple(ran),
        "largest": np.stack(largest) if largest else np.zeros(shape),
        "overflow": np.stack(overflow) if overflow else np.zeros(shape, dtype=int),
    }


def _ranges(network: Recurrent, x: Tensor) -> Tensor:
    """Return the largest magnitude in state and output after every step, (time, batch), in float64."""
    step, state = network.stepper(), network.init_state(x.shape[1], device=x.device, dtype=x.dtype)
    rows = []
    for each in x:
        y, state = step(each, state)
        sizes = [network.flatten_state(state).abs().amax(1), y.abs().flatten(1).amax(1)]
        rows.append(torch.stack(sizes).double().nan_to_num(nan=float("inf"), posinf=float("inf")).amax(0))
    return torch.stack(rows)
