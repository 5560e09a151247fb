"""Depth, Figure 6: linear networks that copy their inputs with a lag, by width, units and parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mnemoscope.report import Column, Curves, Entry, Figure, Headline, Mark, Section, Series, Table
from mnemoscope.studies.study import Finding, Outcome, Part, RunSpec, Study, study
from mnemoscope.theory.formulas.copying import copy_parameters, copy_width

__all__ = ["DepthFig6"]

Point = dict[str, Any]

_LAG, _INPUTS, _DEPTHS = 8, 5, (1, 2, 4, 8)
_SOLVED = 0.01
"""Mean squared error below which a network copies: 1% of the variance of the inputs."""
_DONE = 1 - 1e-5
"""The score on validation, 1 - MSE, at which a training ends."""
_SCALES: dict[str, dict[str, Any]] = {
    "smoke": {"widths": (10, 45), "units": 80, "seeds": 2, "epochs": 2, "patience": 2},
    "laptop": {"widths": (5, 10, 15, 20, 25, 30, 45, 60), "units": 180, "seeds": 3, "epochs": 40, "patience": 40},
    "paper": {
        "widths": (5, 10, 15, 20, 25, 30, 40, 45, 50, 60, 80),
        "units": 640,
        "seeds": 5,
        "epochs": 1000,
        "patience": 400,
    },
}
"""Of every scale: widths n, as far as n L is at most `units`; seeds; epochs and patience."""


@study("depth-fig-6")
class DepthFig6(Study):
    """Lag copy by linear networks of four depths."""

    title: ClassVar[str] = "What depth saves a linear network that copies"
    source: ClassVar[str] = "Depth, Figure 6"
    claim: ClassVar[str] = (
        "To copy inputs with lag 8, a deeper linear network needs less width and fewer parameters, but more units."
    )
    references: ClassVar[tuple[str, ...]] = ("lizaire2026",)

    def plan(self, scale: str) -> list[RunSpec]:
        """Return one run, of all seeds, per depth and width; the cheapest first."""
        chosen = _SCALES[scale]
        sizes = [(n, depth) for depth in _DEPTHS for n in chosen["widths"] if n * depth <= chosen["units"]]
        specs = [_spec(width, depth, chosen) for width, depth in sizes]
        return sorted(specs, key=lambda spec: spec.settings["hidden_size"] * spec.settings["num_layers"])

    def analyse(self, outcomes: Sequence[Outcome], scale: str) -> Finding:
        """Find the least width, units and parameters that copy at every depth, and compare their order."""
        points = sorted((_point(outcome) for outcome in outcomes), key=lambda point: (point["L"], point["n"]))
        least = {depth: _least(points, depth) for depth in _DEPTHS}
        trend = "reproduced" if scale == "paper" else "trend reproduced at smaller scale"
        parts = (
            _order(least, "n", lambda a, b: b < a, "less width", trend),
            _order(least, "parameters", lambda a, b: b < a, "fewer parameters", trend),
            _order(least, "units", lambda a, b: b > a, "more units", trend),
            _threshold(points),
        )
        headlines = tuple(
            Headline(
                value=str(found["n"]) if (found := least[depth]) else "none",
                unit="units wide",
                meaning=f"copies at depth {depth}; {copy_width(_LAG, depth, _INPUTS)} is the exact minimum",
            )
            for depth in _DEPTHS
        )
        return Finding(parts=parts, headlines=headlines, data={"points": points}, caveats=_caveats(scale))

    def entries(self, finding: Finding) -> list[Entry]:
        """Return the depths."""
        return [Entry(key=f"L{depth}", label=f"depth {depth}", role="subject") for depth in _DEPTHS]

    def draw(self, finding: Finding, command: str) -> list[Section]:
        """Draw the three panels, with the exact thresholds, and list all points."""
        points = finding.data["points"]
        panels = (
            ("n", "hidden size n", "Which width copies", lambda n, depth: n),
            ("units", "hidden units n L", "How many units copy", lambda n, depth: n * depth),
            ("parameters", "parameters", "How many parameters copy", _parameters),
        )
        figures = tuple(self._panel(points, command, *panel) for panel in panels)
        return [
            Section(name="panels", title="Error by width, units and parameters", text=(_EXPLAINED,), figures=figures),
            Section(name="points", title="Every network", tables=(_table(points),)),
        ]

    def _panel(
        self, points: Sequence[Point], command: str, key: str, axis: str, title: str, place: Callable[[int, int], int]
    ) -> Figure:
        series = [_series(points, depth, key) for depth in _DEPTHS]
        marks = tuple(
            Mark(kind="x", value=place(copy_width(_LAG, depth, _INPUTS), depth), label=f"L = {depth}")
            for depth in _DEPTHS
        )
        return Figure(
            name=f"error-by-{key.replace('n', 'width') if key == 'n' else key}",
            title=title,
            drawing=Curves(
                series=series,
                x_title=axis,
                y_title="test error (MSE)",
                log_x=key != "n",
                log_y=True,
                marks=marks,
                points=True,
            ),
            alt=f"Test error of the lag-8 copy against {axis}, one curve per depth, with the sizes that suffice.",
            how="Geometric mean of the test errors over the seeds, band from the least to the largest; every network "
            "is the best on validation of its training. Lines: the least size that copies exactly, p d <= L (n - d).",
            command=command,
            references=self.references,
        )

    def methods(self, scale: str) -> str:
        """Return how the networks were trained, and what differs from the document."""
        chosen = _SCALES[scale]
        widths = ", ".join(map(str, chosen["widths"]))
        return (
            f"Linear recurrent networks of depth 1, 2, 4 and 8 with widths {widths}, as far as they have at most "
            f"{chosen['units']} units in all, were trained to copy five standard "
            "normal inputs with lag 8 on sequences of 16 steps (10,000 for training, 2,000 each for validation and "
            f"test), with {chosen['seeds']} seeds, Adam at a rate of 2e-3, batches of 128, for at most "
            f"{chosen['epochs']} epochs (published: 1000), patience {chosen['patience']} epochs, or until "
            "the validation error was below 1e-5, a linear readout, a zero initial state and parameters uniform on "
            "+-1/sqrt(n); the weights with the best validation error were "
            "tested. Errors count steps after the lag only."
        )


_EXPLAINED = (
    "A linear network of L layers and width n copies d inputs with lag p exactly if and only if p d <= L (n - d). The "
    "lines show that limit for every depth: left of its line no network of that depth can copy, however long it learns."
)


def _spec(width: int, depth: int, chosen: Mapping[str, Any]) -> RunSpec:
    return RunSpec(
        "fit",
        {
            "network": "linear-rnn",
            "input_size": _INPUTS,
            "hidden_size": width,
            "num_layers": depth,
            "task": "lag-copy",
            "task_settings": {"lag": _LAG, "length": 16, "dimensions": _INPUTS},
            "optimizer": "adam",
            "lr": 2e-3,
            "target": _DONE,
            "batch_size": 128,
            "epochs": chosen["epochs"],
            "patience": chosen["patience"],
            "seeds": list(range(chosen["seeds"])),
        },
    )


def _point(outcome: Outcome) -> Point:
    width, depth = outcome.spec.settings["hidden_size"], outcome.spec.settings["num_layers"]
    errors = [math.nan if error is None else float(error) for error in outcome.summary["test_loss"]]
    return {"n": width, "L": depth, "units": width * depth, "parameters": _parameters(width, depth), "errors": errors}


def _parameters(width: int, depth: int) -> int:
    return copy_parameters(width, depth, _INPUTS, output_size=_INPUTS)


def _middle(errors: Sequence[float]) -> float:
    """Return the geometric mean: errors of one network differ by orders of magnitude between seeds."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-300)))))


def _least(points: Sequence[Point], depth: int) -> Point | None:
    """Return the narrowest network of a depth of which most seeds copy."""
    solved = [point for point in points if point["L"] == depth and np.median(point["errors"]) < _SOLVED]
    return min(solved, key=lambda point: point["n"], default=None)


def _order(
    least: Mapping[int, Point | None], key: str, holds: Callable[[int, int], bool], words: str, trend: str
) -> Part:
    found = {depth: None if point is None else point[key] for depth, point in least.items()}
    values = [value for value in found.values() if value is not None]
    ordered = len(values) == len(found) and all(holds(a, b) for a, b in pairwise(values))
    listed = ", ".join(
        f"{'none' if value is None else f'{value:,}'} at depth {depth}" for depth, value in found.items()
    )
    return Part(
        claim=f"A deeper network copies with {words}",
        measured=f"least {'width' if key == 'n' else key} that copies (error < {_SOLVED:g}): {listed}",
        verdict=trend if ordered else "not reproduced",
    )


def _threshold(points: Sequence[Point]) -> Part:
    """Hold the trained networks against the exact limit: none below it may copy."""
    below = [point for point in points if point["n"] < copy_width(_LAG, point["L"], _INPUTS)]
    best = min((min(point["errors"]) for point in below), default=math.nan)
    copies = sum(min(point["errors"]) < _SOLVED for point in below)
    return Part(
        claim="Ours: no network with p d > L (n - d) copies",
        measured=f"{copies} of {len(below)} such networks reached an error below {_SOLVED:g}; the least was {best:.3g}",
        verdict="not reproduced" if copies else "reproduced",
    )


def _series(points: Sequence[Point], depth: int, key: str) -> Series:
    chosen = [point for point in points if point["L"] == depth]
    return Series(
        entry=f"L{depth}",
        x=[point[key] for point in chosen],
        y=[_middle(point["errors"]) for point in chosen],
        lower=[min(point["errors"]) for point in chosen],
        upper=[max(point["errors"]) for point in chosen],
    )


def _table(points: Sequence[Point]) -> Table:
    titles = ("depth", "width", "units", "parameters", "can copy", "error, median", "least", "largest")
    rows = [
        [
            point["L"],
            point["n"],
            point["units"],
            point["parameters"],
            "yes" if point["n"] >= copy_width(_LAG, point["L"], _INPUTS) else "no",
            float(np.median(point["errors"])),
            min(point["errors"]),
            max(point["errors"]),
        ]
        for point in points
    ]
    columns = [Column(title=title, numeric=title != "can copy") for title in titles]
    return Table(name="networks", title="Test errors", columns=columns, rows=rows)


def _caveats(scale: str) -> tuple[str, ...]:
    shorter = (
        () if scale == "paper" else ("Training is shorter than published: networks at the limit may not be done.",)
    )
    exact = ", ".join(f"{_parameters(copy_width(_LAG, depth, _INPUTS), depth):,} at depth {depth}" for depth in _DEPTHS)
    return (
        *shorter,
        f"The exact limits have {exact} parameters: where more were needed, training has not found the limit.",
        "A copying network is one whose median error over the seeds is below 0.01; the document draws no such line.",
        "The grid of widths is coarse: the least width that copies is known up to the next smaller width tried.",
    )
