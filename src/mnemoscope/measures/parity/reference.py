"""Reference parity: whether two implementations are one function, and in which gate they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from mnemoscope.core.errors import UserError, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.parity.forms import parting
from mnemoscope.measures.parity.gates import Found, Pair, where_they_differ
from mnemoscope.measures.parity.running import forward, in_type, recurrent_of, relative, tolerance
from mnemoscope.measures.parity.weights import matched, weights_of

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["ReferenceParity", "reference_parity"]

_WHAT = "reference_parity"
_BATCH, _SHORT = 3, 6


@result
class ReferenceParity(Result):
    """Difference between two implementations with the same weights.

    Attributes
    ----------
    difference
        Largest difference of outputs, relative to the largest output.
    parts
        The first step, from 1 on, at which they differ; 0 where they agree.
    gaps
        Relative difference of the outputs at every step.
    gates
        Gates that hide the whole difference when they are silenced in both; empty where none does.
    together
        Whether it takes two of them at once, as where they were exchanged; else each alone does.
    remaining
        For every gate the share of the difference that is left when it is silenced.
    weights
        Which weights of these gates do it alone, where silencing all of a gate shuts off others with it.
    """

    measure: ClassVar[str] = "parity"

    difference: float
    parts: int
    gaps: Float[np.ndarray, " step"]
    gates: tuple[str, ...]
    together: bool
    remaining: dict[str, float]
    weights: tuple[str, ...] = ()

    @property
    def agree(self) -> bool:
        """Whether they are one function, up to rounding."""
        return self.parts == 0

    def __str__(self) -> str:
        if self.agree:
            return f"the two agree to {self.difference:.1g} over {len(self.gaps)} steps"
        said = f"the two differ by {self.difference:.2g} from step {self.parts} on"
        if self.together:
            both = " and ".join(self.gates)
            return f"{said}, in {both} together, as where they were exchanged: silenced, nothing differs"
        if self.gates:
            which = f", by {' or '.join(self.weights)} alone" if self.weights else ""
            return f"{said}, in {' or '.join(self.gates)}{which}: silenced, nothing differs"
        return f"{said}, in no gate alone: they differ in what is done with the gates or with the state"

    def plot(self) -> chart.Chart:
        """Draw the difference at every step."""
        from mnemoscope.report import chart

        series = {"difference": (np.arange(1, len(self.gaps) + 1), np.maximum(self.gaps, 1e-17))}
        return chart.lines(series, x="step", y="difference of outputs", title="Two implementations", log_y=True)


def reference_parity(
    first: nn.Module,
    second: nn.Module,
    *,
    mapping: Mapping[str, str] | None = None,
    steps: int = 64,
    scale: float = 1.0,
    seed: int = 0,
) -> ReferenceParity:
    r"""Compare two implementations, after putting the weights of the first into a copy of the second.

    .. math:: \text{difference} = \max_t |y^B_t - y^A_t| \, / \, \max_t |y^A_t|

    in float64, from the initial state. Where they differ, each gate is silenced in both: by weights of zero, by weights
    a million times as large, which leave every unit of it open or shut, and by a bias that opens or shuts all of it. A
    gate with which the difference goes, while all others still do something, is where they differ.

    Parameters
    ----------
    first, second
        Recurrent networks, or any modules that `mnemoscope.adapt` understands.
    mapping
        Names of the second's weights to those of the first, where names and shapes do not say it.
    steps
        Length of the sequences.
    scale
        Standard deviation of the Gaussian inputs.
    seed
        Of the inputs.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> print(reference_parity(torch.nn.GRU(2, 4), ms.nn.GRU(2, 4)).agree)
    True
    """
    one, other = (in_type(recurrent_of(each, _WHAT), "float64").requires_grad_(False) for each in (first, second))
    for name in ("input_shape", "output_size"):
        sizes = [getattr(each, name) for each in (one, other)]
        if sizes[0] != sizes[1]:
            raise UserError(f"{_WHAT} needs networks of one {name}, got {sizes[0]} and {sizes[1]}")
    weights, other_weights = weights_of(one), weights_of(other)

    def sources(current: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return matched(current, other_weights, mapping)

    _put(other_weights, sources(weights))
    shape = (positive_int("steps", steps), _BATCH, *one.input_shape)
    x = scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    with torch.no_grad():
        wanted, found = forward(one, x)[0], forward(other, x)[0]
    difference, parts = relative(found, wanted), parting(found, wanted, tolerance(torch.float64))
    gaps = (found - wanted).abs().flatten(1).amax(1) / wanted.abs().max().clamp(min=1e-300)
    short = x[: max(parts, 1) + _SHORT]
    where = Found((), False, {}) if parts == 0 else where_they_differ(Pair(one, other, sources, short))
    return ReferenceParity(
        status="estimate",
        digits=None,
        assumptions=("inputs are Gaussian", "weights are those of the first"),
        cost="O(T) steps of both, and as many for every gate where they differ",
        difference=difference,
        parts=parts,
        gaps=gaps.numpy(),
        gates=where.gates,
        together=where.together,
        remaining=where.remaining,
        weights=where.weights,
    )


def _put(places: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, value in values.items():
            places[name].copy_(value)
