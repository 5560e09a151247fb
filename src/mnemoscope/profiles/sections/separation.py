"""Start-End separation rank: how strongly the answer ties the beginning of a sequence to its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mnemoscope.measures import SeparationRank
from mnemoscope.profiles.drawing import command, curve, headline, notes, ranked, subject_rows
from mnemoscope.profiles.rows import Row, data, label
from mnemoscope.profiles.section import Call, Context, Part, PartResult, Scalar, part
from mnemoscope.report import Curves, Figure, Mark, Section

__all__ = ["HORIZONS", "Separation"]

HORIZONS = (4, 6, 8)
"""Steps of the sequences."""

_TEXT = (
    "How many products of a function of the first half of a sequence and a function of its second half it takes to "
    "write the output. Rank 1 means that the answer treats both halves apart."
)

_TEMPLATES = 3
"""Inputs that sequences are made of: the grid has 3^T sequences."""


@part("separation", title="Separation rank", order=70)
class Separation(Part):
    """The rank of the answers, start by end.

    ``rank_T`` is exact for polynomial networks and soft (exp of the entropy of the squared singular values) for all
    others; ``soft_T`` is soft for all, and what networks of both sorts can be compared by.
    """

    needs_causal = True
    averaged = ("ranks", "soft")

    def calls(self, context: Context) -> tuple[Call, ...]:
        """Return the measure at every horizon: on one-hot inputs of three, or on random ones where d is fixed."""
        if context.rebuild is not None and context.facts.get("input_size") != _TEMPLATES:
            return tuple(Call("separation-rank", {"horizon": steps}, _TEMPLATES) for steps in HORIZONS)
        one_hot = context.facts.get("input_size") == _TEMPLATES
        more = {} if one_hot else {"templates": _TEMPLATES}
        return tuple(Call("separation-rank", {"horizon": steps, **more}) for steps in HORIZONS)

    def seconds(self, network: Any, context: Context) -> float:
        """Return the time of 3^8 short sequences."""
        return 0.2 * max(1.0, float(context.facts.get("state_size") or 64) / 64)

    def run(self, network: Any, context: Context) -> PartResult:
        """Find the ranks of one network."""
        calls = self.calls(context)
        width = calls[0].input_size
        asked = network if width is None or context.rebuild is None else context.rebuild(width)
        found: list[SeparationRank] = [call(asked, context.seed) for call in calls]
        soft = [math.exp(each.entropy) for each in found]
        ranks = [float(each.rank) if each.exact else value for each, value in zip(found, soft, strict=True)]
        how = "exact" if found[0].exact else "soft"
        scalars = {f"rank_{steps}": Scalar(value=rank, unit=how) for steps, rank in zip(HORIZONS, ranks, strict=True)}
        scalars |= {
            f"soft_{steps}": Scalar(value=rank, unit="soft") for steps, rank in zip(HORIZONS, soft, strict=True)
        }
        return PartResult(
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

    def section(self, rows: Sequence[Row], subjects: Sequence[str]) -> Section | None:
        """Draw the soft ranks of all networks, and the exact rank of the subject between its bounds."""
        own = subject_rows(rows, subjects, self.name)
        if not own:
            return None
        steps = HORIZONS[-1]
        soft = Curves(
            series=curve(rows, self.name, "horizons", "soft"),
            x_title="steps T",
            y_title="soft rank",
            points=True,
        )
        how = (
            f"The output of unit 0 after the last of T steps, on all sequences of {_TEMPLATES} inputs, as a matrix: "
            "beginnings by ends. The soft rank is exp of the entropy of its squared singular values; ranks of networks "
            "of products are exact, of the rational values of their weights."
        )
        figures = [
            self._figure("soft-rank", "Ties between beginning and end", soft, how, rows, subjects),
            self._figure(
                "soft-rank-longest",
                f"After {steps} steps",
                ranked(rows, self.name, f"soft_{steps}", f"soft rank at T = {steps}", better="higher"),
                how,
                rows,
                subjects,
            ),
        ]
        exact = [row for row in own if data(row, self.name)["exact"]]
        if exact:
            figures.append(self._bounded(exact, how, rows, subjects))
        return Section(
            name=self.name,
            title=self.title,
            headline=headline(
                rows, subjects, self.name, f"rank_{steps}", f"separation rank over {steps} steps: 1 is no tie at all"
            ),
            text=(_TEXT,),
            figures=figures,
            notes=notes(rows, subjects, self.name),
        )

    def _bounded(self, exact: Sequence[Row], how: str, rows: Sequence[Row], subjects: Sequence[str]) -> Figure:
        drawn = Curves(
            series=curve(exact, self.name, "horizons", "ranks"),
            x_title="steps T",
            y_title="separation rank",
            log_y=True,
            points=True,
            marks=tuple(mark for row in exact for mark in _bounds(row, len(exact) > 1)),
        )
        return self._figure("exact-rank", "Exact, between the theorem's bounds", drawn, how, rows, subjects)

    def _figure(
        self, name: str, title: str, drawing: Any, how: str, rows: Sequence[Row], subjects: Sequence[str]
    ) -> Figure:
        return Figure(
            name=name,
            title=title,
            drawing=drawing,
            alt=f"{title}: the profiled network beside the references.",
            how=how,
            command=command(rows, subjects, self.name, "separation-rank"),
            references=SeparationRank.references,
        )

    def references(self) -> tuple[str, ...]:
        """Return who defined it."""
        return SeparationRank.references


def _built(context: Context, width: int | None) -> tuple[str, ...]:
    if width is None:
        return ()
    return (
        f"Built with {width} inputs instead of {context.facts.get('input_size')}: with one there is nothing to tie.",
    )


def _bounds(row: Row, named: bool) -> list[Mark]:
    found = data(row, "separation")
    owner = f" of {label(row)}" if named else ""
    return [
        Mark(kind="xy", label=f"{title}{owner}", x=found["horizons"], y=found[side])
        for side, title in (("lower", "lower bound"), ("upper", "upper bound"))
        if all(each is not None for each in found[side])
    ]
