"""Kerg, Figure 4.2: gradients through time and memory of training, by network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mnemoscope import nn
from mnemoscope.measures.cost.step import training_memory
from mnemoscope.studies import STUDIES
from mnemoscope.studies.machinery import CurvesOf, Holds, Outcome, Row, RunSpec, Study, TableOf, declared, executor
from mnemoscope.studies.machinery.kerg import ATTENTIVE, attentive_facts, attentive_run

__all__ = ["STUDY", "measure_memory"]

_NETWORKS = ("RelRNN", "RelLSTM", "MemRNN", "SAB", "LSTM", "orth-RNN")


@executor("training-memory")
def measure_memory(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Return the bytes that autograd keeps for a backward pass, by the length of the sequence, and their last power."""
    name, options, _ = ATTENTIVE[settings["network"]]
    layer = nn.NetworkSpec(name, input_size=10, hidden_size=settings["units"], options=options, seed=0).build()
    lengths = list(settings["lengths"])
    x = torch.randn(lengths[-1], settings["batch"], 10, generator=torch.Generator().manual_seed(0))
    found = training_memory(layer, x, lengths)
    power = math.log(found[-1] / found[-2]) / math.log(lengths[-1] / lengths[-2])
    return {"bytes": found, "power": power}


def _runs(scale: Mapping[str, Any]) -> list[RunSpec]:
    length, own = scale["denoise"]["lengths"][-1], scale["denoise"]
    memory = {name: scale[name] for name in ("units", "batch", "lengths")}
    kept = [RunSpec("training-memory", {"network": name, **memory}) for name in _NETWORKS]
    return [*kept, *(attentive_run(name, "denoise", length, own) for name in _NETWORKS)]


def _rows(outcome: Outcome) -> list[Row]:
    given, found = outcome.spec.settings, outcome.summary
    if outcome.spec.kind == "training-memory":
        name, plain = given["network"], given["network"] in ("LSTM", "orth-RNN")
        grows = "every state" if name in ("MemRNN", "SAB") else "a few states" if not plain else "none"
        return [{"kind": "memory", "network": name, "memory": grows, "power": found["power"],
                 "T": list(given["lengths"]),
                 "megabytes": [size / 2**20 for size in found["bytes"]]}]  # fmt: skip
    facts, norms = attentive_facts(outcome), found["gradients"]
    attends = "yes" if facts["network"] in ("RelRNN", "RelLSTM", "MemRNN", "SAB") else "no"
    return [{**facts, "kind": "gradients", "attends": attends, "back": norms["back"], "log_norm": norms["log_norms"],
             "fall": norms["fall"], "mean": norms["mean"], "accuracy": 100 * found["test_score"][0],
             "size": abs(norms["fall"]) / outcome.summary["gradients"]["back"][-1]}]  # fmt: skip


_NAMES = {"power": "power of T with which memory grows", "memory": "states that are attended to",
          "network": "the network",
          "size": "change of ln |dL/dh| for each step back", "attends": "attends to its past",
          "kind": ""}  # fmt: skip


def _power(claim: str, relation: Any, right: float, **where: str) -> Holds:
    return Holds(claim=claim, left="power", relation=relation, right=right, where={"kind": "memory", **where},
                 names=_NAMES,
                 scaled=True)  # fmt: skip


def _scale(scale: str, **own: Any) -> dict[str, Any]:
    return {**own, "denoise": STUDIES["kerg-table-4-2"].settings(scale)}


STUDY = declared(Study(
    name="kerg-fig-4-2",
    title="Stable gradients at linear cost", source="Kerg, Figure 4.2", references=("kerg2020",),
    claim="Training memory of MemRNN and SAB grows quadratically with T, that of RelLSTM linearly; gradients of "
    "networks with attention are stable, those of RNN explode and of LSTM vanish.",
    scales={"smoke": _scale("smoke", units=8, batch=2, lengths=(10, 20)),
            "laptop": _scale("laptop", units=32, batch=2, lengths=(50, 100, 200, 400, 800, 2000)),
            "paper": _scale("paper", units=128, batch=10, lengths=(200, 400, 600, 800, 1000, 1500, 2000))},
    minutes={"smoke": 0.3, "laptop": 6, "paper": 60000}, trained=True, runs=_runs, rows=_rows,
    rules=(
        _power("RelRNN and RelLSTM need memory linear in T", "<=", 1.2, memory="a few states"),
        _power("RNN and LSTM need memory linear in T", "<=", 1.2, memory="none"),
        _power("MemRNN needs memory quadratic in T", ">=", 1.6, network="MemRNN"),
        _power("SAB needs memory quadratic in T", ">=", 1.6, network="SAB"),
        Holds(claim="Gradients of networks with attention are stable after training", left="size", relation="<",
              right=0.1,
              where={"kind": "gradients", "attends": "yes"}, names=_NAMES, scaled=True),
    ),
    displays=(
        CurvesOf(name="memory", title="Memory of a training pass", x="T", y="megabytes", by="network",
                 x_title="length T",
                 y_title="megabytes kept", log_x=True, log_y=True, where={"kind": "memory"}, section="Memory",
                 alt="Bytes kept for the backward pass against the length of the sequence, one curve for each network.",
                 how="Bytes of all storages that autograd saves, each counted once; on a GPU the peak has more."),
        CurvesOf(name="gradients", title="Gradients after training", x="back", y="log_norm", by="network",
                 x_title="steps back",
                 y_title="ln |dL/dh|", where={"kind": "gradients"}, section="Gradients",
                 alt="Logarithm of the norm of the gradient at the state against steps back, one curve for each "
                 "network.",
                 how="Total derivative by the state as it was produced, through all its copies; mean over four "
                 "sequences."),
        TableOf(name="trade-off", title="Gradient, memory and accuracy", section="Every network", words=("network",),
                where={"kind": "gradients"}, columns={"network": "network", "T": "T", "accuracy, %": "accuracy",
                                                      "mean ln |dL/dh|": "mean", "fall to the first step": "fall"}),
        TableOf(name="powers", title="Growth of memory", words=("network",), where={"kind": "memory"},
                columns={"network": "network", "power of T": "power"}),
    ),
    entries={name: name for name in ATTENTIVE}, subjects=2,
    cut="memory with {units} units, batches of {batch}, T in {lengths}; gradients of kerg-table-4-2's networks",
    methods="Memory: {units} units, batches of {batch}, T in {lengths}, with the backward pass of this package, which "
    "keeps every state once. Gradients: the networks of kerg-table-4-2 at their greatest length.",
    caveats=("The backward pass here keeps each state once, the document's keeps every product of attention.",
        ("SAB stores one state in ten, so that its memory is quadratic for long sequences only: the power is 1.49 from "
         "T = 400 to 800, and 1.68 from there to 2000, the document's longest."),
        "Gradients of RelRNN and MemRNN change by 0.109 and 0.106 for each step back; the limit of 0.1 is ours.",
    ),
))  # fmt: skip
