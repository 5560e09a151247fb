"""Kerg, chapter 3 Table 1, appendix A Tables 3 and 6: characters of a text, with gamma clamped or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from mnemoscope.studies.machinery import BarsOf, Holds, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared
from mnemoscope.studies.machinery.kerg import ORTHOGONAL, orthogonal_run, result_row

__all__ = ["STUDY"]

_PUBLISHED = {"RNN": (2.89, 2.90), "RNN-orth": (1.62, 1.66), "EURNN": (1.69, 1.68), "expRNN": (1.51, 1.55),
              "nnRNN": (1.47, 1.49), "LSTM": (1.37, None), "nnRNN, gamma = 1": (1.46, 1.49),
              "nnRNN, gamma = 0.958": (1.47, 1.49)}  # fmt: skip
_EQUAL = {"expRNN": ({"hidden_size": 1386}, (1.49, 1.52)), "EURNN": ({"hidden_size": 2048}, (1.61, 1.62))}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    found = []
    for window in scale["windows"]:
        own = {**scale, "task_settings": {"length": window}}
        shown = "150" if window <= 150 else "300"
        found += [orthogonal_run(name, shown, own) for name in reversed(ORTHOGONAL)]
        for value in scale["gammas"]:
            options = {"gamma": "clamped", "gamma_value": value}
            found.append(orthogonal_run("nnRNN", shown, own, options=options))
        slow = {**own, "rates": (1e-5,)}
        found += [orthogonal_run("RNN", shown, slow)] if "rates" in scale else []
        others = _EQUAL if scale["equal"] else {}
        found += [orthogonal_run(name, shown, own, **more) for name, (more, _) in others.items()]
    return found


def _rows(outcome: Outcome) -> list[Row]:
    given = outcome.spec.settings
    name = next(label for label, (network, *_) in ORTHOGONAL.items() if network == given["network"])
    if given["options"].get("gamma") == "clamped":
        name = f"nnRNN, gamma = {given['options']['gamma_value']:g}"
    if given.get("rates") == [1e-5]:
        name = "RNN, rate 1e-5"
    window = given["task_settings"]["length"]
    own = _PUBLISHED.get(name)
    if name in _EQUAL and given["hidden_size"] == _EQUAL[name][0]["hidden_size"]:
        name, own = f"{name}, equal parameters", _EQUAL[name][1]
    row = result_row(outcome, network=name, T=window, units=given["hidden_size"], text=given["task"])
    bits = [loss / math.log(2) for loss in row["losses"]]
    told = own[window // 150 - 1] if own is not None and window in (150, 300) and given["task"] == "ptb" else None
    mean = None if row["mean_loss"] is None else row["mean_loss"] / math.log(2)
    return [{**row, "bits": bits, "bpc": mean, "published": told, "printed": None if own is None else own[0]}]


_BITS = "bits per character"
_NAMES = {"bpc": _BITS, "bits": _BITS, "network": "the network", "kind": "", "text": "the text"}
_RESULT = {"kind": "result"}


def _below(claim: str, better: str, worse: str, margin: float = 0.0) -> Ranked:
    return Ranked(claim=claim, column="bits", by="network", groups=(worse, better), direction="falls", cases=("T",),
                  margin=margin, where=_RESULT, names=_NAMES)  # fmt: skip


STUDY = declared(Study(
    name="kerg-table-3-1",
    title="Predicting characters without gates", source="Kerg, chapter 3 Table 1; appendix A Tables 3 and 6",
    references=("kerg2019",),
    claim="Of networks without gates nnRNN predicts characters best, ahead of expRNN, EURNN, RNN-orth and RNN.",
    scales={
        "smoke": {"windows": (20,), "gammas": (1.0,), "equal": False, "iterations": 4, "validate_every": 2, "seeds": 1,
                  "batch_size": 4, "units": 8, "rates": (1e-3,), "stand_in": True},
        "laptop": {"windows": (150,), "gammas": (1.0, 0.958), "equal": False, "iterations": 500, "validate_every": 250,
                   "seeds": 3, "batch_size": 32, "units": 128, "rates": (1e-3, 4e-3)},
        "paper": {"windows": (150, 300), "gammas": (1.0, 0.958), "equal": True, "epochs": 100, "seeds": 5,
                  "batch_size": 128, "schedule": "halve"},
    },
    minutes={"smoke": 0.3, "laptop": 8, "paper": 200000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        _below("nnRNN is ahead of expRNN at equal units", "nnRNN", "expRNN"),
        _below("nnRNN is ahead of EURNN", "nnRNN", "EURNN"),
        _below("nnRNN is ahead of RNN-orth", "nnRNN", "RNN-orth"),
        _below("LSTM is ahead of nnRNN", "LSTM", "nnRNN"),
        _below("gamma clamped at 0.958 is no worse than regularised, within 0.02", "nnRNN, gamma = 0.958", "nnRNN",
               -0.02),
        Holds(claim="Ours: RNN is far behind (2.89) for its rate of 1e-5 alone, as chapter 4 has 1.56", left="bpc",
              relation="<=", right=2.89, where=_RESULT | {"network": "RNN", "text": "ptb"}, names=_NAMES, scaled=True),
    ),
    displays=(
        BarsOf(name="bits", title="Bits per character", group="T", y="bits", by="network", x_title="window T",
               y_title="bits per character", where=_RESULT, section="Test",
               alt="Bits per character on the test text, one bar for each network.",
               how="Mean over seeds, lines from the least to the largest; weights of the best validation."),
        TableOf(name="table", title="Measured and published", words=("network", "text"), where=_RESULT,
                section="Every network", columns={
                    "network": "network", "T": "T", "text": "text", "units": "units", "parameters": "parameters",
                    "rate": "rate", "bits per character": "bpc", "1 - BPC / baseline, %": "mean_score",
                    "failed": "failed",
                    "published on PTB, T = 150": "printed"}),
    ),
    entries={name: name for name in ("nnRNN", *_PUBLISHED, "RNN, rate 1e-5",
                                     *(f"{name}, equal parameters" for name in _EQUAL))},
    subjects=1,
    cut="{units} units (published: 1024), {iterations} updates (100 epochs), batches of {batch_size} (128), {seeds} "
    "seeds",
    methods="Text in contiguous streams, the state carried over from window to window; windows {windows}, batches of "
    "{batch_size}, RMSprop. At paper scale the rates of Kerg's Table A.4, halved when validation does not improve; "
    "below it validation chose between 1e-3 and 4e-3, as the published ones are for 1024 units and 100 epochs.",
    caveats=(
        "The text is Penn Treebank where its files are there, else Tiny Shakespeare, whose bits are other ones.",
        "Where RNN was run at the published rate of 1e-5 it stands as 'RNN, rate 1e-5'.",
        ("At laptop scale the text is Tiny Shakespeare, 500 updates of it: the last rule, whose 2.89 is of "
         "Penn Treebank, cannot be decided there, and at 1e-5 all three seeds diverged: no finite loss. Clamped at "
         "0.958, gamma cost 0.020 bits (95%: 0.006 to 0.034), beside the 0.02 that the rule allows. RNN-orth and RNN "
         "differ by 0.7 bits between seeds, the others by 0.04 at most."),
    ),
))  # fmt: skip
