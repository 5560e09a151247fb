"""Recall ceiling: bits of key-value pairs that a network learns to recall, beside those of its state."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Context, Measurement, Scalar, section
from mnemoscope.profiles.trained_section import TRAINING, TrainedSection
from mnemoscope.report import Curves, Figure, Series

__all__ = ["RecallSection"]

_VOCABULARY, _LENGTH = 32, 48
_VARIANTS = {
    "mqar": "plain recall",
    "mqar-forgetting": "recall with values replaced",
    "mqar-compositional": "recall over two links",
}

_HOW = (
    f"Pairs of {_VOCABULARY // 2} keys and as many values in {_LENGTH} steps: the most that at least half of three "
    "seeds recall at an accuracy of 0.99, times log2 of the values."
)


def _bits(variant: str) -> Quantity:
    return Quantity(
        name=variant.replace("-", "_"),
        title=f"bits of {_VARIANTS[variant]}",
        unit="bits",
        better="higher",
        least=0.0,
        how=_HOW,
        meaning="bits of key-value pairs are recalled" if variant == "mqar" else "",
    )


@section("recall", title="How much it recalls by keys", order=94)
class RecallSection(TrainedSection):
    """Bits recalled of multi-query associative recall and of its variants, and the bits of the state."""

    references = ("arora2024",)
    text = (
        "Keys with a value each, then the keys again: which value belonged to it? In the variants half of the keys are "
        "given another value, or a key leads to another key and that one to the value. A state of so many bits can "
        "hold no more than these; most networks learn to use far fewer."
    )
    quantities = tuple(map(_bits, _VARIANTS))

    def run(self, network: Any, context: Context) -> Measurement:
        """Search the most pairs of every variant."""
        from mnemoscope.training.recalls import recall

        found = recall(
            build=self.builder(context),
            vocabulary=_VOCABULARY,
            length=_LENGTH,
            seeds=self.seeds(context),
            start=1,
            iterations=self.iterations(context),
            minutes=self.minutes(context),
            folder=self.folder(context),
            **TRAINING,
        )
        if not any(len(each.levels) for each in found.capacities):
            raise UserError("the time was over before the first number of pairs was trained")
        scalars, data = {}, {}
        for name, bits, search in zip(found.variants, found.bits, found.capacities, strict=True):
            if len(search.levels):
                open_end = "" if search.complete else "unfinished"
                scalars[name.replace("-", "_")] = Scalar(value=float(bits), at_least=open_end)
                scores = np.nan_to_num(search.scores).mean(1)
                data[name] = {"pairs": search.levels.tolist(), "scores": scores.tolist()}
        held = "Its state grows." if found.state_bits is None else f"Its state has {found.state_bits:,} bits."
        return Measurement(scalars=scalars, data=data, notes=(held,))

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the accuracy against the pairs, for every variant."""
        found = []
        for variant, words in _VARIANTS.items():
            series = [
                Series(entry=row.key, x=data["pairs"], y=data["scores"])
                for row in view.rows
                if (data := view.data(row).get(variant))
            ]
            if series:
                curves = Curves(
                    series=series, x_title="pairs", y_title="accuracy, mean over seeds", log_x=True, points=True
                )
                figure = view.figure(f"recall-{variant}", words[:1].upper() + words[1:], curves, _HOW)
                found.append(dataclasses.replace(figure, command=self.typed(view)))
        return found
