"""Separation rank on growing grids of templates, until it no longer grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Int
from torch import nn

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.core.result import Result, result
from mnemoscope.measures.dynamics import prepare
from mnemoscope.measures.registry import Cost, measure
from mnemoscope.measures.separation.inputs import grid_side
from mnemoscope.measures.separation.rank import SeparationRank, separation_rank

if TYPE_CHECKING:
    from mnemoscope.report import chart

__all__ = ["SeparationSaturation", "separation_saturation"]


@result
class SeparationSaturation(Result):
    """Separation ranks by the number of templates.

    Attributes
    ----------
    templates
        How many templates the grid had: each is the one before with some more.
    ranks
        Its rank.
    sizes
        Its smaller side, which no rank exceeds.
    upper
        Upper bound on the largest grid, for RACs; else None.
    saturated
        Whether the last two ranks are equal and below their grids' sizes, or the upper bound is reached.
    exact
        Whether the ranks are exact.
    """

    measure: ClassVar[str] = "separation-saturation"
    references: ClassVar[tuple[str, ...]] = ("levine2017",)

    templates: Int[np.ndarray, " grids"]
    ranks: Int[np.ndarray, " grids"]
    sizes: Int[np.ndarray, " grids"]
    upper: int | None
    saturated: bool
    exact: bool

    def __str__(self) -> str:
        steps = ", ".join(f"{rank} with {count}" for rank, count in zip(self.ranks, self.templates, strict=True))
        return f"separation rank {steps} templates: {'saturated' if self.saturated else 'still growing'}"

    def plot(self) -> chart.Chart:
        """Draw rank and size of the grid against the number of templates."""
        from mnemoscope.report import chart

        series = {"rank": (self.templates, self.ranks), "size of the grid": (self.templates, self.sizes)}
        if self.upper is not None:
            series["upper bound"] = (self.templates, np.full(len(self.ranks), self.upper))
        return chart.lines(
            series, x="templates", y="separation rank", title="Rank by number of templates", log_y=True, points=True
        )


_AFFORDABLE = 1024
"""Rows of the largest grid, where nobody says how many templates to take."""


def _largest(templates: tuple[int, ...] | None, channels: int, horizon: int) -> float:
    """Return the rows of the largest grid."""
    return _AFFORDABLE if templates is None else grid_side(max(templates), channels, horizon)


_COST = Cost(
    time={"G^2 S^2": 3e-10, "G^3": 6e-9, "G^2": 3e-6},
    memory="G^2",
    sizes={"G": lambda given: _largest(given["templates"], given["d"], given["horizon"])},
    letters={"G": "rows of the largest grid, K^(T/2) for K templates"},
)


@measure("separation-saturation", kinds=("recurrent",), needs=(), cost=_COST)
def separation_saturation(
    network: nn.Module,
    horizon: int = 6,
    templates: tuple[int, ...] | None = None,
    partition: tuple[int, ...] | None = None,
    unit: int = 0,
    seed: int = 0,
) -> SeparationSaturation:
    """Return the separation rank of a network on grids of more and more random templates.

    A deep RAC is not linear in any one input. With more templates than channels its rank can exceed M^(T/2), and a rank
    on few templates is only a lower bound. What no longer grows is the separation rank of the function.

    Parameters
    ----------
    network
        A recurrent network, or a module that `mnemoscope.adapt` understands.
    horizon
        Steps T of a sequence.
    templates
        Numbers of templates, increasing; None: one more than before, from the number of inputs on (at least 2), until
        the rank no longer grows or the next grid would have more than 1,024 rows.
    partition
        The steps of the start set, from 0; by default the first half.
    unit
        Which output, after the last step.
    seed
        Draws the templates.

    Examples
    --------
    >>> import torch, mnemoscope as ms
    >>> rac = ms.nn.RAC(2, 2, num_layers=2, output_size=1, generator=torch.Generator().manual_seed(0))
    >>> print(separation_saturation(rac, horizon=4, templates=(2, 3, 4)))
    separation rank 4 with 2, 6 with 3, 6 with 4 templates: saturated
    """
    found: list[SeparationRank] = []
    for count in _counts(templates, network, horizon):
        found.append(separation_rank(network, horizon, count, partition, unit, seed))
        if templates is None and _at_rest(found):
            break
    counts = [len(each.templates) for each in found]
    ranks, sizes = [each.rank for each in found], [min(each.shape) for each in found]
    exact = all(each.exact for each in found)
    return SeparationSaturation(
        status=found[-1].status,
        digits=16 if exact else None,
        assumptions=("two equal ranks in a row are the end of growth",),
        cost="O(K^T) steps of the network, O(K^(3T/2)) for the rank, for each number K of templates",
        templates=np.array(counts),
        ranks=np.array(ranks),
        sizes=np.array(sizes),
        upper=found[-1].upper,
        saturated=_at_rest(found),
        exact=exact,
    )


def _counts(templates: tuple[int, ...] | None, network: nn.Module, horizon: int) -> Iterator[int]:
    """Give the numbers of templates to try: those that were asked for, or as many as are affordable."""
    if templates is not None:
        counts = [positive_int("templates", count) for count in templates]
        if not counts or counts != sorted(set(counts)):
            raise expected("templates", "increasing numbers", templates)
        yield from counts
        return
    count = max(2, prepare(network, what="separation_saturation").input_size)
    yield count
    while grid_side(count := count + 1, count, positive_int("horizon", horizon)) <= _AFFORDABLE:
        yield count


def _at_rest(found: Sequence[SeparationRank]) -> bool:
    """Whether the last two ranks are equal and below their grids' sizes, or the function's upper bound is reached."""
    last = found[-1]
    resting = len(found) > 1 and last.rank == found[-2].rank < min(found[-2].shape)
    return resting or last.rank == last.upper != min(last.shape)
