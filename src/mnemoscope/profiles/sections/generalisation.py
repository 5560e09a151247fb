"""Generalisation: how well a trained relational network answers for symbols that training never showed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from mnemoscope.core.errors import UserError
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Context, Measurement, ProfileSection, Scalar, section
from mnemoscope.report import Curves, Figure, Series

__all__ = ["Generalisation"]

_SEEDS, _LEVELS = 3, 3
_PER_MINUTE, _LEAST, _MOST = 200, 20, 5000
"""Steps of one training: so many for each minute that is given, within bounds; the document has 5,000."""
_TRAINING: dict[str, Any] = {"optimizer": "adam", "lr": 5e-4, "batch_size": 96, "validate_every": 0, "test_size": 1000}


@section("generalisation", title="Symbols that training never showed", order=91)
class Generalisation(ProfileSection):
    """Test accuracy against the number m of symbols that are held out of training."""

    kinds = ("relational",)
    listed_for_others = False
    once = True
    threads = True
    trains = True
    references = ("kerg2022",)
    text = (
        "Networks of several seeds are trained with some of 100 symbols and tested with the others, each seed on a "
        "split of its own. A network that has learned the relation loses nothing as more symbols are held out."
    )
    quantities = (
        Quantity(
            name="hardest",
            title="accuracy at the hardest split",
            better="higher",
            least=0.0,
            how="Mean over seeds of the test accuracy with the fewest symbols to learn from.",
            meaning="of the answers are right for symbols that it has never seen",
        ),
        Quantity(
            name="easiest",
            title="accuracy at the easiest split",
            better="higher",
            least=0.0,
            how="The same with the fewest symbols held out.",
        ),
    )

    def kept_as(self, context: Context) -> str:
        """Return a name for every number of minutes."""
        return f"{self.name}/{context.train_minutes:g}"

    def reason_against(self, network: Any, context: Context) -> str | None:
        """Say that training has to be asked for, and needs weights that can be drawn anew."""
        against = super().reason_against(network, context)
        if against is not None:
            return against
        if context.train_minutes is None:
            return "not asked for: --train"
        return None if context.make is not None else "the weights are somebody's own: give the name of the network"

    def seconds(self, network: Any, context: Context) -> float:
        """Return the minutes that training was given."""
        return 60 * (context.train_minutes or 0.0)

    def run(self, network: Any, context: Context) -> Measurement:
        """Train at the easiest, a middle and the hardest split of the first task that fits the network."""
        from mnemoscope.measures.relations import fitting_task
        from mnemoscope.tasks.relational import SymbolTask

        task = fitting_task(network)
        if not isinstance(task, SymbolTask):
            raise UserError(f"the first task that fits it, {task.name}, has no symbols to hold out")
        steps = max(_LEAST, min(_MOST, round(_PER_MINUTE * (context.train_minutes or 0.0))))
        low, high = task.limits()
        assert high is not None
        levels = sorted({max(low, 1), (low + high) // 2, high})
        scores = [[_score(task, m, context, context.seed + k, steps) for k in range(_SEEDS)] for m in levels]
        found = {"task": task.name, "held_out": levels, "scores": scores, "minutes": context.train_minutes}
        how = (
            f"{steps:,} steps of Adam at {_TRAINING['lr']:g} on batches of {_TRAINING['batch_size']} (published: 5,000)"
        )
        said = (
            f"Trained on {task.name} with {_SEEDS} seeds for {how}; chance is {1 / task.output_size:.0%}.",
            "Bands are from the least to the largest of the seeds.",
        )
        scalars = {"hardest": _scalar(scores[-1]), "easiest": _scalar(scores[0])}
        return Measurement(scalars=scalars, data=found, notes=said)

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return the accuracy against the symbols held out."""
        series = [
            Series(
                entry=row.key,
                x=found["held_out"],
                y=[mean(each) for each in found["scores"]],
                lower=[min(each) for each in found["scores"]],
                upper=[max(each) for each in found["scores"]],
            )
            for row in view.rows
            if (found := view.data(row)).get("scores")
        ]
        drawn = Curves(series=series, x_title="symbols held out, of 100", y_title="test accuracy", points=True)
        how = "Mean over seeds, each trained on its own split of the symbols; bands from the least to the largest."
        figure = view.figure("generalisation", "Accuracy on symbols that training never showed", drawn, how)
        typed = "\n".join(
            f"mnemoscope profile {row.command} --train --minutes {view.data(row)['minutes']:g}"
            for row in view.subjects
            if row.command and view.data(row).get("scores")
        )
        return [dataclasses.replace(figure, command=typed, references=self.references)]


def _score(task: Any, held_out: int, context: Context, seed: int, steps: int) -> float:
    from mnemoscope.training import fit

    chosen = dataclasses.replace(task, held_out=held_out, split=seed)
    assert context.make is not None
    layer = context.make(seed, None)
    folder = None if context.folder is None else context.folder / f"held-out-{held_out}-seed-{seed}-steps-{steps}"
    run = fit(layer, chosen, seed=seed, iterations=steps, folder=folder, progress=False, **_TRAINING)
    (test,) = run.tests.values()
    return float(test["score"])


def _scalar(scores: Sequence[float]) -> Scalar:
    return Scalar(value=mean(scores), stderr=stdev(scores) / len(scores) ** 0.5)
