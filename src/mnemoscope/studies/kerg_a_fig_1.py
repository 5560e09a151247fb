"""Kerg, appendix A Figure 1: networks of equal parameters on the copy task and on permuted digits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies import SCALES, STUDIES
from mnemoscope.studies.machinery import CurvesOf, Holds, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.kerg import ORTHOGONAL, curve_rows, orthogonal_run, result_row

__all__ = ["STUDY"]

_SIZES: dict[str, dict[str, tuple[int, dict[str, Any]]]] = {
    "copy": {"nnRNN": (128, {}), "expRNN": (176, {}), "EURNN": (256, {"rotations": 108}), "RNN-orth": (128, {}),
             "LSTM": (63, {}), "RNN": (128, {})},
    "pmnist": {"nnRNN": (512, {}), "expRNN": (722, {}), "EURNN": (1024, {"rotations": 500}), "RNN-orth": (512, {}),
               "LSTM": (257, {}), "RNN": (512, {})},
}  # fmt: skip
_SMALL = {"nnRNN": (64, {}), "expRNN": (90, {}), "EURNN": (126, {"rotations": 64}), "RNN-orth": (64, {}),
          "LSTM": (32, {}), "RNN": (64, {})}  # fmt: skip
"""Units at which the networks have the parameters of nnRNN with 64 units that reads digits, as near as they can."""


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    found = []
    for task, published in _SIZES.items():
        own = scale[task]
        sizes = published if own.get("units", 0) in (0, *(n for n, _ in published.values())) else _SMALL
        for name in ORTHOGONAL:
            units, options = sizes[name] if own.get("units") != 8 else (8, {})
            more: dict[str, Any] = {"options": options, "hidden_size": units}
            if (task, name, units) == ("copy", "LSTM", 63):
                more["lr"] = 1e-3
            found.append(orthogonal_run(name, task, own, **more))
    return found


def _rows(outcome: Outcome) -> list[Row]:
    given = outcome.spec.settings
    name = next(label for label, (network, *_) in ORTHOGONAL.items() if network == given["network"])
    orthogonal = "yes" if name in ("RNN-orth", "EURNN", "expRNN", "nnRNN") else "no"
    facts = {"network": name, "task": given["task"], "orthogonal": orthogonal}
    column = "loss" if given["task"] == "copy" else "score"
    return [*curve_rows(outcome, column, **facts), result_row(outcome, **facts, units=given["hidden_size"])]


_NAMES = {"share": "test loss over that without memory", "network": "the network", "task": "the task",
          "percent": "test accuracy", "orthogonal": "started orthogonal", "kind": ""}  # fmt: skip
_COPY, _DIGITS = {"task": "copy", "kind": "result"}, {"task": "pmnist", "kind": "result"}

STUDY = declared(Study(
    name="kerg-a-fig-1",
    title="Equal parameters instead of equal units", source="Kerg, appendix A Figure 1", references=("kerg2019",),
    claim="At equal parameters (18.9K, 269K) there is little difference to equal units: nnRNN learns as orthogonal "
    "networks do.",
    scales={scale: STUDIES["kerg-fig-3-2"].settings(scale) for scale in SCALES},
    minutes={"smoke": 0.3, "laptop": 15, "paper": 90000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        Holds(claim="Networks that start orthogonal solve the copy task with 18.9K parameters", left="share",
              relation="<",
              right=0.1, where=_COPY | {"orthogonal": "yes"}, names=_NAMES, scaled=True),
        Holds(claim="RNN fails on the copy task", left="share", relation=">=", right=0.9,
              where=_COPY | {"network": "RNN"},
              names=_NAMES, scaled=True),
        Ranked(claim="nnRNN matches expRNN on permuted digits", column="percent", by="network",
               groups=("expRNN", "nnRNN"), where=_DIGITS, margin=-2.0, names=_NAMES),
    ),
    displays=(
        CurvesOf(name="copy", title="The copy task, T = 200, 18.9K parameters", x="step", y="loss", by="network",
                 x_title="updates", y_title="cross entropy", log_y=True, points=False, decades=7,
                 where={"task": "copy", "kind": "curve"}, section="Copy task",
                 alt="Cross entropy on the copy task against updates at equal parameters, one curve for each network.",
                 how="Mean over the seeds on validation, band from the least to the largest."),
        CurvesOf(name="digits", title="Permuted digits", x="step", y="score", by="network", x_title="updates",
                 y_title="validation accuracy", where={"task": "pmnist", "kind": "curve"}, section="Permuted digits",
                 alt="Validation accuracy on permuted digits against updates at equal parameters, one curve per "
                 "network.",
                 how="Mean over the seeds, band from the least to the largest."),
        TableOf(name="table", title="Tests", section="Every network", words=("task", "network"),
                where={"kind": "result"},
                columns={"task": "task", "network": "network", "units": "units", "parameters": "parameters",
                         "rate": "rate", "loss": "mean_loss", "loss / without memory": "share",
                         "accuracy, %": "mean_score"}),
    ),
    entries={name: name for name in ORTHOGONAL}, subjects=len(ORTHOGONAL),
    cut="copy: {copy[iterations]} updates, {copy[seeds]} seeds; digits of 14 x 14 pixels, about 4,900 parameters, "
    "{pmnist[iterations]} updates, {pmnist[seeds]} seeds",
    methods="As kerg-fig-3-2, at the units of Kerg's Tables A.1 and A.2 for equal parameters; EURNN's 108 and 500 "
    "layers of rotations follow from the printed counts [o]. Copy: {copy}. Digits: {pmnist}.",
    caveats=("Runs of equal size are shared with kerg-fig-3-2.",
             "Below paper scale digits are averaged to 14 x 14 pixels and the networks have about 4,900 parameters.",
             "RNN-orth diverged on the copy task, from the first update on, clipped or not: see kerg-fig-3-2.",
    ),
))  # fmt: skip
