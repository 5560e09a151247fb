"""Kerg, appendix B Figure 1: gradients of RelLSTM by the sizes of its buffer and of its relevant set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import CurvesOf, Holds, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.kerg import attentive_run

__all__ = ["STUDY"]

_FIXED = (5, 6, 15)  # at smoke, laptop and paper scale


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    own, fixed = scale["denoise"], scale["fixed"]
    sizes = [(fixed, rho) for rho in scale["sizes"]] + [(nu, fixed) for nu in scale["sizes"]]
    length = own["lengths"][-1]
    return [
        attentive_run("RelLSTM", "denoise", length, own, buffer=nu, relevant=rho) for nu, rho in dict.fromkeys(sizes)
    ]


def _rows(outcome: Outcome) -> list[Row]:
    options, norms = outcome.spec.settings["options"], outcome.summary["gradients"]
    nu, rho = options["buffer"], options["relevant"]
    changed = {"nu": nu, "rho": rho, "accuracy": 100 * outcome.summary["test_score"][0], "spread": norms["spread"]}
    curve = {"back": norms["back"], "log_norm": norms["log_norms"], "fall": abs(norms["fall"]) / norms["back"][-1]}
    found = {**changed, **curve}
    # Every scale keeps one size, which no other scale uses, while the other changes.
    sides = [("rho", rho)] * (nu in _FIXED) + [("nu", nu)] * (rho in _FIXED)
    return [{**found, "side": side, "size": size, "network": f"{side} = {size}",
             "least": "yes" if size <= 3 else "no"} for side, size in sides]  # fmt: skip


_NAMES = {"spread": "largest less least ln |dL/dh|", "size": "size", "side": "what changes",
          "least": "rho of 3 or less",
          "fall": "change for each step back"}  # fmt: skip


def _panel(side: str, title: str, **more: Any) -> CurvesOf:
    return CurvesOf(name=side, title=title, x="back", y="log_norm", by="network", x_title="steps back",
                    y_title="ln |dL/dh|",
                    where={"side": side}, alt=f"{title}: ln of the gradient's norm against steps back.",
                    how="Total derivative by the state as it was produced; mean over four sequences, after training.",
                    **more)  # fmt: skip


def _scale(scale: str, **own: Any) -> dict[str, Any]:
    return {**own, "denoise": STUDIES["kerg-table-4-2"].settings(scale)}


_SIZES = (2, 3, 5, 6, 8, 12, 15, 18, 25)

STUDY = declared(Study(
    name="kerg-b-fig-1",
    title="How small the relevant set may be", source="Kerg, appendix B Figure 1", references=("kerg2020",),
    claim="A relevant set that is too small (rho = 3) makes gradients unstable; the size of the buffer matters much "
    "less.",
    scales={"smoke": _scale("smoke", sizes=(2, 5), fixed=5), "laptop": _scale("laptop", sizes=(2, 6, 12), fixed=6),
            "paper": _scale("paper", sizes=(3, 8, 18, 25), fixed=15)},
    minutes={"smoke": 0.2, "laptop": 3, "paper": 30000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        Ranked(claim="The least rho has the least stable gradients", column="spread", by="least", groups=("no", "yes"),
               where={"side": "rho"}, names=_NAMES),
        Holds(claim="Gradients are stable for every nu", left="fall", relation="<", right=0.1, where={"side": "nu"},
              names=_NAMES, scaled=True),
    ),
    displays=(
        _panel("rho", "Sizes of the relevant set", section="Gradients"), _panel("nu", "Sizes of the buffer"),
        TableOf(name="table", title="Every size", section="Numbers", words=("changed",), columns={
            "changed": "side", "nu": "nu", "rho": "rho", "accuracy, %": "accuracy", "spread of ln |dL/dh|": "spread"}),
    ),
    entries={f"{side} = {size}": f"{side} = {size}" for side in ("rho", "nu") for size in _SIZES},
    subjects=2 * len(_SIZES),
    cut="the task and training of kerg-table-4-2 at this scale; sizes {sizes}, the other one {fixed} (published: 3 to "
    "25 and 15)",
    methods="RelLSTM as in kerg-table-4-2; nu or rho in {sizes}, the other one {fixed}. The document says MemLSTM; "
    "RelLSTM is meant.",
    caveats=("Gradients are those after the training that the scale allows: the table says how far each had learned.",
        ("At laptop scale the spreads of 3.14 and 3.18 hardly differ, and are those of one seed; nu = 2 changes by "
         "0.15 for each step back. RelLSTM was at 84 to 97% of the task when its updates ended."),
    ),
))  # fmt: skip
