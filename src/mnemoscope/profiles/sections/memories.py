"""Section on the memory of a trained network: longer sequences, the forgetting curve, reach of its predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from mnemoscope.core.errors import MnemoscopeError, UserError
from mnemoscope.profiles.drawing import SectionView
from mnemoscope.profiles.quantity import Quantity
from mnemoscope.profiles.section import Context, Measurement, Scalar, section
from mnemoscope.profiles.trained_section import TRAINING, TrainedSection
from mnemoscope.report import Curves, Figure, Series

__all__ = ["Memories"]

_COPYING = {"delay": 10, "symbols": 2, "alphabet": 4}

_HOW = (
    "Networks of three seeds are trained on copying 2 symbols over 10 steps, and on Tiny Shakespeare where its text is "
    "there, then tested on longer sequences."
)


@section("memories", title="How long it really remembers", order=93)
class Memories(TrainedSection):
    """Length generalisation with and without carried states, forgetting curve and remembrance of trained networks."""

    references = ("buitragoruiz2025", "liu2024")
    text = (
        "What is left of what was learned when sequences are longer than in training, with the state carried on or set "
        "back; how much better than statistics alone it repeats what it has read, by length; and how far back its "
        "predictions look."
    )
    quantities = (
        Quantity(
            name="ratio",
            title="share kept at 8 times the length",
            better="higher",
            how=f"{_HOW} What is left of the score above statistics at eight times the length, state carried.",
            meaning="of what it learned of copying is left at eight times the delay",
        ),
        Quantity(
            name="copied",
            title="copy accuracy above statistics",
            better="higher",
            how=f"{_HOW} At the delay of training: accuracy less that of the most frequent answer.",
        ),
        Quantity(
            name="text_steps",
            title="characters that predictions look back",
            unit="steps",
            better="higher",
            least=0.0,
            how=f"{_HOW} Effective remembrance on text.",
        ),
    )

    def run(self, network: Any, context: Context) -> Measurement:
        """Train on copying, and on text where there is one."""
        from mnemoscope.tasks import create

        tasks = {"copying": create("copying", **_COPYING)}
        notes = []
        try:
            text: Any = create("shakespeare")
            len(text.text.test)
            tasks["text"] = text
        except MnemoscopeError:
            notes.append("No text: `mnemoscope data` says where Tiny Shakespeare is expected.")
        found: dict[str, Any] = {}
        for name, task in tasks.items():
            kept = self._trained(task, context, self.minutes(context) / len(tasks))
            if kept is None:
                notes.append(f"The time was over before {name} was trained.")
            else:
                found[name] = kept
        if not found:
            raise UserError("the time was over before the first task was trained")
        return Measurement(scalars=_scalars(found), data=found, notes=tuple(notes))

    def _trained(self, task: Any, context: Context, minutes: float) -> dict[str, Any] | None:
        from mnemoscope.training.memories import remembering

        folder = self.folder(context)
        result = remembering(
            None,
            task,
            build=self.builder(context),
            seeds=self.seeds(context),
            iterations=self.iterations(context),
            minutes=minutes,
            folder=None if folder is None else folder / task.name,
            **TRAINING,
        )
        if not result.complete or np.isnan(result.carried).all():
            return None
        return {
            "lengths": (result.length * result.multiples).tolist(),
            "carried": _means(result.carried),
            "reset": _means(result.reset),
            "ratio": [_known(each) for each in (result.ratio, result.ratio_lower, result.ratio_upper)],
            "forgetting_lengths": result.forgetting_lengths.tolist(),
            "forgetting": _means(result.forgetting),
            "gains": result.forgetting[:, _nearest(result.forgetting_lengths, _COPYING["delay"])].tolist(),
            "remembrance_lengths": result.remembrance_lengths.tolist(),
            "remembrance": _means(result.remembrance),
            "remembered": result.remembered.tolist(),
        }

    def figures(self, view: SectionView) -> Sequence[Figure]:
        """Return forgetting curves, scores by length and remembrance, of copying and of text."""
        drawn = (
            ("forgetting_lengths", "forgetting", "length", "accuracy above statistics", "Forgetting curve"),
            ("lengths", "carried", "length", "score, state carried", "Longer than in training"),
            ("lengths", "reset", "length", "score, state set back", "Longer, the state set back"),
            ("remembrance_lengths", "remembrance", "steps k that are left", "total variation", "Effective remembrance"),
        )
        found = []
        for task in ("copying", "text"):
            for x, y, x_title, y_title, title in drawn:
                series = [
                    Series(entry=row.key, x=data[x], y=data[y])
                    for row in view.rows
                    if (data := view.data(row).get(task)) and data[x]
                ]
                if series:
                    curves = Curves(series=series, x_title=x_title, y_title=y_title, log_x=True, points=True)
                    name = f"memories-{task}-{y}"
                    figure = view.figure(name, f"{title}: {task}", curves, _HOW)
                    found.append(dataclasses.replace(figure, command=self.typed(view)))
        return found


def _scalars(found: dict[str, Any]) -> dict[str, Scalar]:
    scalars = {}
    if "copying" in found:
        value, lower, upper = found["copying"]["ratio"]
        wide = None if lower is None or upper is None else (upper - lower) / (2 * 1.96)
        note = "nothing was learned at the length of training" if value is None else ""
        scalars["ratio"] = Scalar(value=value, stderr=wide, note=note)
        scalars["copied"] = _mean(found["copying"]["gains"])
    if "text" in found:
        scalars["text_steps"] = _mean(found["text"]["remembered"])
    return scalars


def _mean(values: Sequence[float]) -> Scalar:
    known = [each for each in values if each == each]
    if not known:
        return Scalar(value=None, note="no training succeeded")
    spread = float(np.std(known, ddof=1)) / len(known) ** 0.5 if len(known) > 1 else None
    return Scalar(value=float(np.mean(known)), stderr=spread)


def _known(value: float) -> float | None:
    return None if value != value else float(value)


def _means(values: np.ndarray) -> list[float]:
    return [float(each) for each in np.nan_to_num(np.nanmean(values, axis=0))]


def _nearest(lengths: np.ndarray, wanted: int) -> int:
    return int(np.abs(lengths - wanted).argmin())
