"""Depth, Figure 9: characters of Shakespeare by RNNs, CPRNNs and S4 of several depths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import mean
from typing import Any

from mnemoscope.studies.machinery import CurvesOf, Outcome, Ranked, Row, RunSpec, Study, TableOf, declared

__all__ = ["STUDY"]

_DEPTHS = (1, 2, 4)
_NAMES = {"bpc": "bits per character", "n": "width", "L": "depth", "network": "network"}
_NAMES |= {"shallow": "at most two layers"}
_WORDS = {"rnn": "RNN", "cprnn": "CPRNN", "s4": "S4"}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    common = {"task": "shakespeare", "data": "fixed", "optimizer": "adam", "stand_in": scale["stand_in"]}
    common |= {"iterations": scale["iterations"], "validate_every": scale["validate_every"]}
    common |= {"patience": scale["patience"], "seeds": list(range(scale["seeds"]))}
    found = []
    for width in scale["widths"]:
        for depth in scale["depths"]:
            sizes = {"num_layers": depth, "hidden_size": width}
            own: dict[str, dict[str, Any]] = {"rnn": {}, "cprnn": {"rank": 2 * width if width <= 128 else width}}
            found += [
                RunSpec("fit", {**common, **sizes, "network": name, "options": options, "lr": 1e-3, "batch_size": 128})
                for name, options in own.items()
            ]
            s4 = {"block": True, "order": 16, "dropout": 0.1}
            batch, rate = scale["s4"]
            found.append(RunSpec("fit", {**common, **sizes, "network": "s4", "options": s4, "lr": rate,
                                         "batch_size": batch}))  # fmt: skip
    return found


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    row = {"network": given["network"], "L": given["num_layers"], "n": given["hidden_size"]}
    bits = [(math.inf if loss is None else loss) / math.log(2) for loss in found["test_loss"]]
    row |= {"parameters": found["parameters"], "shallow": "yes" if given["num_layers"] <= 2 else "no"}
    return [row | {"bpc": bits, "took": found["steps"]}]


def _deeper(network: str, depths: tuple[int, ...], words: str) -> Ranked:
    return Ranked(claim=words, column="bpc", by="L", groups=depths, direction="falls", cases=("n",),
                  where={"network": network}, names=_NAMES)  # fmt: skip


STUDY = declared(Study(
    name="depth-fig-9",
    title="Depth and the next character of Shakespeare", source="Depth, Figure 9",
    references=("lizaire2026", "karpathy2015"),
    claim="On Tiny Shakespeare deeper RNNs are better at every width; CPRNNs gain from a second layer only, and are "
    "ahead of RNNs at depths 1 and 2; S4 gains from depth, and is behind both below a million parameters.",
    scales={
        "smoke": {"widths": (8,), "depths": (1, 2), "iterations": 2, "validate_every": 1, "patience": 200, "seeds": 1,
                  "s4": (32, 1e-4), "stand_in": True},
        "laptop": {"widths": (64,), "depths": _DEPTHS, "iterations": 300, "validate_every": 100, "patience": 200,
                   "seeds": 3, "s4": (128, 1e-3), "stand_in": False},
        "paper": {"widths": (64, 128, 256, 512, 1024), "depths": _DEPTHS, "iterations": 100_000,
                  "validate_every": 109, "patience": 200, "seeds": 3, "s4": (32, 1e-4), "stand_in": False},
    },
    minutes={"smoke": 0.2, "laptop": 8.5, "paper": 200_000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        _deeper("rnn", _DEPTHS, "Deeper RNNs are better"),
        _deeper("cprnn", (1, 2), "CPRNNs gain from a second layer"),
        _deeper("s4", _DEPTHS, "Deeper S4 is better"),
        Ranked(claim="CPRNNs are ahead of RNNs at depths 1 and 2", column="bpc", by="network",
               groups=("rnn", "cprnn"), direction="falls", cases=("n", "L"), where={"shallow": "yes"}, names=_NAMES),
        Ranked(claim="Below a million parameters S4 is behind RNNs", column="bpc", by="network", groups=("rnn", "s4"),
               direction="rises", cases=("n", "L"), names=_NAMES),
    ),
    displays=(
        CurvesOf(name="bpc-by-depth", title="Bits per character by depth", x="L", y="bpc", by="network",
                 where={"n": 64}, x_title="depth L", y_title="test bits per character", section="Depth and parameters",
                 alt="Bits per character against depth at width 64, one curve for each network.",
                 how="Width 64; mean over seeds, band from the least to the largest; weights of the best validation."),
        CurvesOf(name="bpc-by-parameters", title="Bits per character by parameters", x="parameters", y="bpc",
                 by="network", x_title="parameters", y_title="test bits per character", log_x=True,
                 alt="Bits per character against the number of parameters, one curve for each network.",
                 how="All widths and depths; mean over seeds, band from the least to the largest."),
        TableOf(name="networks", title="Test bits per character", section="Every network", words=("network",), columns={
            "network": lambda row: _WORDS[row["network"]], "depth": "L", "width": "n", "parameters": "parameters",
            "bits per character": lambda row: mean(row["bpc"])}),
    ),
    entries=_WORDS, subjects=3,
    methods="Networks of widths {widths} and depths {depths} read pieces of 64 characters of Tiny Shakespeare (0.8 to "
    "train, 0.1 to validate, the last 0.1 to test), embedding 107: RNNs and CPRNNs (rank 2n) with Adam at 1e-3 and "
    "batches of 128, S4 (N = 16, norm, GELU, dropout 0.1) with batches and rate {s4}; {iterations} steps, {seeds} "
    "seeds; the best on validation was tested.",
    cut="{iterations} steps where the document has up to hundreds of epochs of 109; widths {widths}; {seeds} seed(s); "
    "batches and rate of S4 {s4} instead of 32 and 1e-4",
    caveats=(
        ("Three hundred steps are three passes over the text: networks are compared by how fast they learn. That may "
         "be why four layers are worse, and S4, at ten times its published rate, ahead of RNNs: at 500 steps (one "
         "seed) it was no other."),
        "The text is cut in order; the release cuts it at random, so that its test pieces have trained neighbours.",
    ),
))  # fmt: skip
