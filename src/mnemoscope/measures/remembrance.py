"""Effective remembrance: how much a prediction changes when all but the last steps of the past are taken away."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import Dynamics, few_threads, prepare
from mnemoscope.measures.inputs import arranged, input_sequences
from mnemoscope.measures.registry import Cost, measure

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["EffectiveRemembrance", "effective_remembrance", "remembrance_lengths", "remembrance_of"]

_WHAT = "effective_remembrance"
_ROUNDING = 1e-12
"""Share of an output's size below which its spread over sequences is rounding."""

Predict = Callable[[Any], Tensor]
"""Of inputs (time, batch, ..) the logits of the prediction after the last, (batch, classes)."""


@result
class EffectiveRemembrance(Result):
    """Distance between predictions from the whole past and from its end.

    Attributes
    ----------
    lengths
        k, how many of the last steps were left.
    curve
        Mean total variation at each.
    stderr
        Its standard error over sequences.
    unrelated
        The total variation between predictions of two unrelated sequences: what a prediction without any memory of
        this one would be away.
    steps
        The k from which on the curve stays below `share` times that, interpolated; where it never does, the longest k.
    beyond
        Whether it never does: then it remembers at least so long.
    share
        Of the unrelated distance, below which nothing counts as remembered.
    prediction
        What stood for the prediction.
    classes
        Of the prediction.
    horizon
        Steps of the whole past.
    """

    measure: ClassVar[str] = "remembrance"
    references: ClassVar[tuple[str, ...]] = ("buitragoruiz2025",)

    lengths: Int[np.ndarray, " lengths"]
    curve: Float[np.ndarray, " lengths"]
    stderr: Float[np.ndarray, " lengths"]
    unrelated: float
    steps: float
    beyond: bool
    share: float
    prediction: str
    classes: int
    horizon: int

    def __str__(self) -> str:
        least = "at least " if self.beyond else ""
        why = f" (window {self.horizon})" if self.beyond else ""
        return (
            f"inputs of up to {least}{self.steps:.4g} steps ago{why} change its predictions by more than "
            f"{self.share:.0%} of what unrelated sequences do; total variation {self.curve[0]:.3g} from the last "
            f"{'step' if self.lengths[0] == 1 else f'{self.lengths[0]} steps'} alone"
        )

    def plot(self) -> chart.Chart:
        """Draw the curve, with the distance of unrelated sequences."""
        from mnemoscope.report import chart

        ends = (self.lengths[0], self.lengths[-1])
        return chart.lines(
            {"this past": (self.lengths, self.curve), "unrelated": (ends, (self.unrelated, self.unrelated))},
            x="steps k of the past that are left",
            y="total variation",
            title="How far back predictions look",
            log_x=True,
            bands={"this past": (np.maximum(self.curve - 1.96 * self.stderr, 0), self.curve + 1.96 * self.stderr)},
        )


def remembrance_lengths(horizon: int) -> list[int]:
    """Return the lengths at which the curve is taken: 1, 2, 3, 4, 6, 8, 12, 16, .. below the horizon.

    Examples
    --------
    >>> remembrance_lengths(20)
    [1, 2, 3, 4, 6, 8, 12, 16]
    """
    found = {1, 2, 3} | {size << power for size in (2, 3) for power in range(horizon.bit_length())}
    return sorted(each for each in found if each < horizon)


def remembrance_of(
    predict: Predict, inputs: Any, *, prediction: str, share: float, cost: str, part: Callable[[Any, int], Any]
) -> EffectiveRemembrance:
    """Return the effective remembrance of whatever makes predictions.

    Parameters
    ----------
    predict
        Of inputs the logits after the last step.
    inputs
        Whole sequences, at least 2 steps and 2 of them.
    prediction
        What the prediction is, in words.
    share
        Below which part of the unrelated distance nothing counts as remembered.
    cost
        As the result says it.
    part
        Of inputs and k, their last k steps.
    """
    horizon = len(inputs)
    if horizon < 2:
        raise expected("horizon", "at least 2 steps, a past and the last", horizon)
    with torch.no_grad():
        whole = torch.softmax(predict(inputs).double(), -1)
        sequences, classes = whole.shape
        if classes < 2:
            raise UserError(
                f"{_WHAT} needs predictions of at least 2 classes, got 1: one prediction is like any other; give a "
                "readout with more"
            )
        if sequences < 2:
            raise expected("sequences", "at least 2, to compare unrelated ones", sequences)
        if not bool(whole.isfinite().all()):
            raise UserError(f"{_WHAT} needs predictions that are finite, got NaN after {horizon} steps")
        lengths = remembrance_lengths(horizon)
        each = torch.stack([_distance(whole, torch.softmax(predict(part(inputs, k)).double(), -1)) for k in lengths])
        unrelated = float(
            torch.stack([_distance(whole, whole.roll(by, 0)) for by in range(1, min(sequences, 9))]).mean()
        )
    curve = each.mean(1).cpu().numpy()
    steps, beyond = _crossing(lengths, curve, share * unrelated)
    return EffectiveRemembrance(
        status="estimate",
        digits=None,
        assumptions=(f"the prediction is {prediction}", "what is left of the past is read from the start state"),
        cost=cost,
        lengths=np.array(lengths),
        curve=curve,
        stderr=(each.std(1) / sequences**0.5).cpu().numpy(),
        unrelated=unrelated,
        steps=steps,
        beyond=beyond,
        share=share,
        prediction=prediction,
        classes=classes,
        horizon=horizon,
    )


def _distance(one: Float[Tensor, "batch classes"], other: Float[Tensor, "batch classes"]) -> Float[Tensor, " batch"]:
    """Return the total variation of every pair: half the sum of differences."""
    return (one - other).abs().sum(-1) / 2


def _crossing(lengths: Sequence[int], curve: Float[np.ndarray, " lengths"], bound: float) -> tuple[float, bool]:
    """Return where the curve falls below a bound for good, on a logarithmic scale of lengths, and whether never."""
    above = np.nonzero(curve > bound)[0]
    if not len(above):
        return 0.0, False
    last = int(above[-1])
    if last == len(curve) - 1:
        return float(lengths[-1]), True
    way = (curve[last] - bound) / (curve[last] - curve[last + 1])
    return float(np.exp(np.log(lengths[last]) + way * np.log(lengths[last + 1] / lengths[last]))), False


_COST = Cost(
    time={"T B S": 8e-9, "T S^2": 4e-9, "T": 1.5e-3},
    memory="T B S",
    sizes={"T": "horizon", "B": "sequences"},
    letters={"B": "sequences"},
    paced=lambda n, pace: 6 * n["T"] * pace.step(n["B"]) + 0.02,
)


@measure("remembrance", kinds=("recurrent", "sequence"), needs=(), quick={"horizon": 64}, cost=_COST)
def effective_remembrance(
    network: nn.Module | Dynamics,
    *,
    horizon: int = 256,
    sequences: int = 64,
    readout: Callable[[Tensor], Tensor] | None = None,
    share: float = 0.05,
    scale: float = 1.0,
    inputs: Float[Tensor, "time batch ..."] | None = None,
    seed: int = 0,
    device: str | None = None,
) -> EffectiveRemembrance:
    r"""Measure how far back a network's predictions depend on its inputs.

    .. math:: \mathrm{EffRem}_T(k) = \tfrac12 \sum_y \big| p(y \mid x_1, .., x_T) - p(y \mid x_{T-k+1}, .., x_T) \big|

    the total variation between the prediction from the whole past and that from its last k steps, read from the start
    state; the mean over sequences, as a curve in k. It is 0 as soon as nothing older matters.

    A prediction is the softmax of what `readout` makes of the last output. Without one the outputs of a bare layer
    stand for it: each output is a class, with its mean over sequences taken away and divided by its standard
    deviation, so that neither units nor their order matter. A trained network with its readout, on the inputs of its
    task: `mnemoscope.training.remembering_of` and `mnemoscope remember`.

    Parameters
    ----------
    network
        A network with outputs at all steps, or any module that `mnemoscope.adapt` understands.
    horizon
        Steps T of the whole past, at least 2.
    sequences
        How many are read.
    readout
        Makes logits of outputs (batch, output); of a module a copy in the network's number type.
    share
        The prediction is remembered as long as the curve is above this share of the distance between predictions of
        unrelated sequences.
    scale
        Standard deviation of the Gaussian inputs.
    inputs
        Inputs of one's own, (time, batch, input), in place of Gaussian ones, which then say horizon and sequences.
    seed
        Of the inputs.
    device
        Where to compute; None: where the network is.

    Returns
    -------
    EffectiveRemembrance

    References
    ----------
    Buitrago Ruiz and Gu (2025).

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> layer = ms.nn.LinearRNN(1, 4, dtype=torch.float64)
    >>> layer.weight_hh_l0 = torch.eye(4, dtype=torch.float64).roll(1, 0).tril()
    >>> found = ms.measures.effective_remembrance(layer, horizon=32)  # a delay line forgets after 4 steps
    >>> [round(float(each), 12) for each in found.curve[found.lengths >= 4]]
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    if inputs is None and positive_int("horizon", horizon) < 2:
        raise expected("horizon", "at least 2 steps, a past and the last", horizon)
    share = positive("share", share)
    if share >= 1:
        raise expected("share", "below 1", share)
    layer = _layer(network, device)
    x = input_sequences(layer, horizon, positive_int("sequences", sequences), scale, inputs, seed)
    x = x.to(next((p.device for p in layer.parameters()), x.device))
    if x.shape[1] > 1 and bool((x == x[:, :1]).all()):
        raise expected("inputs", "others in every sequence, to compare unrelated ones", Description("the same in all"))

    def last(part: Tensor) -> Tensor:
        found = layer(arranged(layer, part))
        y = found[0] if layer.stateful else found
        y = y.transpose(0, 1) if layer.batch_first else y
        return (torch.cat([y.real, y.imag], -1) if y.is_complex() else y)[-1].flatten(1)

    with few_threads(getattr(layer, "state_size", None) or 0), torch.no_grad():
        if readout is None:
            seen = last(x)
            middle, spread = seen.mean(0), seen.std(0, correction=0)
            moves = spread > _ROUNDING * seen.abs().amax(0)  # an output that is always the same says nothing
            spread = torch.where(moves, spread, torch.inf)
            predict: Predict = lambda part: (last(part) - middle) / spread  # noqa: E731 - one of two ways
            prediction = (
                f"the softmax of the {seen.shape[1]} outputs, standardised over sequences: a layer without readout"
            )
        else:
            made = _readout(readout, last(x))
            predict = lambda part: made(last(part))  # noqa: E731
            prediction = "the softmax of the readout"
        return remembrance_of(
            predict, x, prediction=prediction, share=share, cost=str(_COST), part=lambda given, k: given[-k:]
        )


def _readout(readout: Callable[[Tensor], Tensor], outputs: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a readout in the number type of the outputs, after trying it on some."""
    if isinstance(readout, nn.Module):
        readout = copy.deepcopy(readout).eval().to(outputs)
    try:
        found = readout(outputs)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split())[:160]
        raise UserError(
            f"readout must take {outputs.shape[1]} outputs of every sequence, and raised: {reason}"
        ) from error
    if not isinstance(found, Tensor) or found.ndim != 2 or len(found) != len(outputs):
        got = tuple(found.shape) if isinstance(found, Tensor) else Description(f"a {type(found).__name__}")
        raise expected("what readout returns", f"logits of shape ({len(outputs)}, classes)", got)
    return readout


def _layer(network: Any, device: str | None) -> Any:
    """Return a copy of the network that answers: in float64 where it has a state."""
    if isinstance(network, Dynamics):
        return prepare(network, what=_WHAT, device=device)
    if not isinstance(network, nn.Module):
        raise expected("network", "a torch.nn.Module", Description(f"a {type(network).__name__}"))
    from mnemoscope.nn.adapt import adapt

    adapted: Any = adapt(network)
    if adapted.kind == "recurrent":
        return prepare(adapted, what=_WHAT, device=device)
    if adapted.kind != "sequence":
        raise UserError(f"{_WHAT} needs a network with outputs at all steps, got one of kind {adapted.kind!r}")
    twin = copy.deepcopy(adapted).eval().requires_grad_(False)
    return twin if device is None else twin.to(device)
