"""Trained ladder: how long groups and brackets are tracked, up to eight times the length of training."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Context, Measurement, Scalar, section
from mnemoscope.profiles.trained_section import TRAINING, TrainedSection
from mnemoscope.report import Curves, Figure, Mark, Series

__all__ = ["LadderSection"]

_RUNGS = ("Z2", "Z3", "Z60", "S3", "A5", "S5", "dyck")
_LENGTH, _FACTOR = 16, 8

_HOW = (
    f"Networks of three seeds are trained at {_LENGTH} steps and tested at up to {_FACTOR * _LENGTH}: the longest "
    "length over whose steps the accuracy is at least 0.99."
)


def _solved(rung: str) -> Quantity:
    named = "brackets, Dyck-(2, 4)" if rung == "dyck" else rung
    return Quantity(
        name=rung.lower(),
        title=f"length solved of {named}",
        unit="steps",
        better="higher",
        least=0.0,
        most=float(_LENGTH * _FACTOR),
        how=_HOW,
        meaning="steps of parity are tracked, trained at 16" if rung == "Z2" else "",
    )


@section("ladder", title="What it learns to track", order=92)
class LadderSection(TrainedSection):
    """The longest length solved on Z2, Z3, Z60, S3, A5, S5 and brackets, over a population."""

    references = ("liu2023", "grazzi2025", "hewitt2020")
    text = (
        "At every step the network says the product of all elements of a group so far, or which bracket would close. "
        "It is trained at one length and tested on longer sequences: who has learned the rule, and not the lengths, "
        "goes on. Rungs that the minutes did not reach are left out."
    )
    quantities = tuple(map(_solved, _RUNGS))

    def run(self, network: Any, context: Context) -> Measurement:
        """Climb as many rungs as the minutes allow."""
        from mnemoscope.training.ladders import climb

        found = climb(
            self.builder(context),
            rungs=_RUNGS,
            length=_LENGTH,
            factor=_FACTOR,
            seeds=self.seeds(context),
            iterations=self.iterations(context),
            minutes=self.minutes(context),
            folder=self.folder(context),
            **TRAINING,
        )
        if not found.rungs:
            raise UserError("the time was over before the first rung was trained")
        scalars = {}
        for rung, solved, mean in zip(found.rungs, found.solved, found.mean, strict=True):
            all_of_it = bool((solved == found.longest).all())
            spread = float(solved.std(ddof=1)) / len(solved) ** 0.5
            scalars[rung.lower()] = Scalar(
                value=float(mean), stderr=spread, at_least=f"tested to {found.longest}" if all_of_it else ""
            )
        data = {
            "rungs": list(found.rungs),
            "lengths": found.lengths.tolist(),
            "scores": [[_known(each) for each in scores.mean(0)] for scores in found.scores],
        }
        ended = () if found.complete else (f"Not all rungs were trained: {found.reason}.",)
        said = f"{self.iterations(context):,} steps of Adam, {len(found.seeds)} seeds."
        return Measurement(scalars=scalars, data=data, notes=(said, *ended))

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return accuracy against length, a figure for every rung."""
        found = []
        for rung in _RUNGS:
            series = [
                Series(entry=row.key, x=data["lengths"], y=data["scores"][data["rungs"].index(rung)])
                for row in view.rows
                if rung in (data := view.data(row)).get("rungs", ())
            ]
            if not series:
                continue
            drawn = Curves(
                series=series,
                x_title="length",
                y_title="accuracy, mean over seeds",
                log_x=True,
                marks=(Mark(kind="x", label="trained", value=float(_LENGTH)),),
            )
            name = "brackets" if rung == "dyck" else rung
            figure = view.figure(f"ladder-{rung.lower()}", f"How long {name} is tracked", drawn, _HOW)
            found.append(dataclasses.replace(figure, command=self.typed(view)))
        return found


def _known(value: float) -> float | None:
    """Return a number, or None where there is none."""
    return None if value != value else float(value)
