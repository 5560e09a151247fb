"""Start-End separation rank: how strongly the answer ties the beginning of a sequence to its end."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, Self

from mnemoscope.measures import SeparationRank
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Axis, Quantity
from mnemoscope.profiles.row import Row
from mnemoscope.profiles.section import Call, Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure, Headline, Mark

__all__ = ["HORIZONS", "Separation"]

HORIZONS = (4, 6, 8)
"""Steps of the sequences."""

_TEMPLATES = 3
"""Inputs that sequences are made of: the grid has 3^T sequences."""

_HOW = (
    f"An output after the last of T steps, on all sequences of {_TEMPLATES} inputs, as a matrix: beginnings by ends. "
    "The soft rank is exp of the entropy of its squared singular values, averaged over all outputs; ranks of networks "
    "of products are exact on these sequences, of output 0 and the rational values of the weights."
)


def _rank(steps: int) -> Quantity:
    meaning = f"separation rank over {steps} steps: 1 is no tie at all"
    return Quantity(name=f"rank_{steps}", title=f"separation rank at T = {steps}", least=1.0, how=_HOW, meaning=meaning)


def _soft_rank(steps: int) -> Quantity:
    last = steps == HORIZONS[-1]
    axis = Axis(
        name="tying start to end",
        remedy="products of the state with the input (rac, mirnn, 2rnn), or more layers",
        says=f"its output after {steps} steps is a sum of about {{value}} products of a function of the first half and "
        "one of the second (soft separation rank)",
        column="separation",
        place=6,
    )
    return Quantity(
        name=f"soft_{steps}",
        title=f"soft separation rank at T = {steps}",
        unit="soft",
        better="higher",
        least=1.0,
        floor=0.05,
        how=_HOW,
        compared=last,
        axis=axis if last else None,
    )


@section("separation", title="Separation rank", order=70)
class Separation(ProfileSection):
    """The rank of the answers, start by end.

    ``rank_T`` is exact for polynomial networks and soft (exp of the entropy of the squared singular values) for all
    others; ``soft_T`` is soft for all, and what networks of both sorts can be compared by.
    """

    kinds = ("recurrent", "sequence")
    needs_causal = True
    version = 2
    averaged = ("ranks", "soft")
    references = SeparationRank.references
    text = (
        "How many products of a function of the first half of a sequence and a function of its second half it takes to "
        "write the output. Rank 1 means that the answer treats both halves apart."
    )
    quantities = (*map(_rank, HORIZONS), *map(_soft_rank, HORIZONS))
    leading = f"soft_{HORIZONS[-1]}"

    rebuilds = True
    """Whether networks are built again with three inputs; beside a block, whose width is its input's, all stay."""

    def among(self, kinds: Collection[str | None]) -> Self:
        """Return the section for networks of these kinds."""
        found = type(self)()
        found.rebuilds = "sequence" not in kinds
        return found

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure at every horizon: on one-hot inputs of three, or on random ones where d is fixed."""
        given = context.inputs is not None  # templates are then steps of these
        if self.rebuilds and not given and context.rebuild is not None and context.facts.input_size != _TEMPLATES:
            return tuple(Call("separation-rank", {"horizon": steps, "every": True}, _TEMPLATES) for steps in HORIZONS)
        more = {} if context.facts.input_size == _TEMPLATES and not given else {"templates": _TEMPLATES}
        return tuple(Call("separation-rank", {"horizon": steps, "every": True, **more}) for steps in HORIZONS)

    def run(self, network: Any, context: Context) -> Measurement:
        """Find the ranks of one network."""
        calls = self.calls(context)
        width = calls[0].input_size
        asked = network if width is None or context.rebuild is None else context.rebuild(width)
        found: list[SeparationRank] = [call(asked, context) for call in calls]
        soft = [math.exp(each.entropy if each.mean_entropy is None else each.mean_entropy) for each in found]
        ranks = [float(each.rank) if each.exact else value for each, value in zip(found, soft, strict=True)]
        how = "exact" if found[0].exact else "soft"
        scalars = {f"rank_{steps}": Scalar(value=rank, unit=how) for steps, rank in zip(HORIZONS, ranks, strict=True)}
        scalars |= {f"soft_{steps}": Scalar(value=rank) for steps, rank in zip(HORIZONS, soft, strict=True)}
        return Measurement(
            scalars=scalars,
            data={
                "horizons": list(HORIZONS),
                "ranks": ranks,
                "soft": soft,
                "exact": found[0].exact,
                "lower": [each.lower for each in found],
                "upper": [each.upper for each in found],
                "largest": [min(each.shape) for each in found],
                "input_size": int(getattr(asked, "input_size", 0)),
            },
            notes=(*_built(context, width), *(f"Assumed: {each}." for each in found[-1].assumptions)),
        )

    def headline(self, view: SectionView) -> Headline | None:
        """Return the rank over the longest sequences, exact where it can be."""
        return view.headline(self.quantity(f"rank_{HORIZONS[-1]}"))

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the soft ranks of all networks, and the exact rank of the subject between its bounds."""
        soft = Curves(
            series=view.curve("horizons", "soft"),
            x_title="steps T",
            y_title="soft rank",
            points=True,
        )
        last = self.quantity(f"soft_{HORIZONS[-1]}")
        figures = [
            view.figure("soft-rank", "Ties between beginning and end", soft, _HOW, "separation-rank"),
            view.ranking(last, "soft-rank-longest", f"After {HORIZONS[-1]} steps", measure="separation-rank"),
        ]
        exact = [row for row in view.subjects if view.data(row)["exact"]]
        if exact:
            figures.append(self._bounded(view, exact))
        return figures

    def _bounded(self, view: SectionView, exact: Sequence[Row]) -> Figure:
        own = {row.key for row in exact}
        drawn = Curves(
            series=[each for each in view.curve("horizons", "ranks") if each.entry in own],
            x_title="steps T",
            y_title="separation rank",
            log_y=True,
            points=True,
            marks=tuple(mark for row in exact for mark in _bounds(view, row, len(exact) > 1)),
        )
        return view.figure("exact-rank", "Exact, between the theorem's bounds", drawn, _HOW, "separation-rank")


def _built(context: Context, width: int | None) -> tuple[str, ...]:
    if width is None:
        return ()
    return (f"Built with {width} inputs instead of {context.facts.input_size}: with one there is nothing to tie.",)


def _bounds(view: SectionView, row: Row, named: bool) -> list[Mark]:
    found = view.data(row)
    owner = f" of {row.label}" if named else ""
    return [
        Mark(kind="xy", label=f"{title}{owner}", x=found["horizons"], y=found[side])
        for side, title in (("lower", "lower bound"), ("upper", "upper bound"))
        if all(each is not None for each in found[side])
    ]
