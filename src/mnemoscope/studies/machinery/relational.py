"""Common parts of the studies of relational networks: trainings by seed and split, their rows, published accuracies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from mnemoscope import nn, tasks
from mnemoscope.studies.machinery.displays import Row
from mnemoscope.studies.machinery.execution import executor
from mnemoscope.studies.machinery.rules import Ranked
from mnemoscope.studies.machinery.study import Outcome, RunSpec
from mnemoscope.tasks.relational import SymbolTask
from mnemoscope.tasks.relational.symbols import available
from mnemoscope.training import fit
from mnemoscope.training.model import task_sizes

__all__ = ["BATCHES", "VARIANTS", "ahead", "relational_rows", "relational_runs", "train_relational"]

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "CoRelNet": ("corelnet", {}),
    "CoRelNet-T": ("corelnet-t", {}),
    "ESBN": ("esbn", {}),
    "PrediNet": ("predinet", {}),
    "Transformer": ("relational-transformer", {}),
    "MNM": ("mnm", {}),
    "LSTM": ("relational-lstm", {}),
    "NTM": ("relational-ntm", {}),
    "RN": ("relation-network", {}),
    "CoRelNet cat": ("corelnet", {"cat": True}),
    "CoRelNet-T cat": ("corelnet-t", {"cat": True}),
    "ESBN cat": ("esbn", {"cat": True}),
    "CoRelNet asymmetric": ("corelnet", {"asymmetric": True}),
    "CoRelNet-T asymmetric": ("corelnet-t", {"asymmetric": True}),
    "ESBN asymmetric": ("esbn", {"asymmetric": True}),
    "Transformer symmetric": ("relational-transformer", {"symmetric": True}),
    "CoRelNet nhid": ("corelnet", {"nhid": "esbn"}),
    "CoRelNet L1": ("corelnet", {"l1": "weights"}),
    "ESBN L1": ("esbn", {"l1": "weights"}),
    "CoRelNet random encoder": ("corelnet", {"encoder": "random"}),
    "CoRelNet-T random encoder": ("corelnet-t", {"encoder": "random"}),
    "ESBN random encoder": ("esbn", {"encoder": "random"}),
    "CoRelNet diff": ("corelnet", {"matrix": "diff"}),
    "CoRelNet mix": ("corelnet", {"matrix": "mix"}),
}
"""Networks of the document with their variants, by their names there."""

BATCHES = {"rmts-3": 192, "same-different-6": 384, "identity-rules-4": 224, "identity-rules-4-missing": 160}
BATCHES |= {"identity-rules-4-flipped": 96, "identity-rules-4-flipped-missing": 64, "dist-n-restricted": 32}
"""Examples of a training step where they are not 96 (32 of games)."""


@executor("relational")
def train_relational(settings: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """Train one network per seed, each on its own split of the symbols; return test accuracies by test and seed.

    Settings: ``variant`` of `VARIANTS`, ``task``, ``task_settings``, ``seeds``, and any setting of
    `mnemoscope.training.fit`.
    """
    given = dict(settings)
    name, options = VARIANTS[given.pop("variant")]
    task_name, task_settings = given.pop("task"), dict(given.pop("task_settings", {}))
    strength = {"l1_strength": 5.0} if options.get("l1") and task_name == "rmts" else {}
    found: dict[str, list[float]] = {}
    for seed in given.pop("seeds"):
        own = {"split": seed} if issubclass(tasks.get(task_name), SymbolTask) else {}
        task = tasks.create(task_name, **task_settings, **own)
        sizes = task_sizes(nn.get(name), task)
        layer = nn.NetworkSpec(name, seed=seed, options={**options, **strength, **sizes}).build()
        run = fit(layer, task, seed=seed, folder=folder / f"seed-{seed}", progress=False, **given)
        for label, outcome in run.tests.items():
            found.setdefault(label, []).append(outcome["score"])
    return {"accuracy": found}


def relational_runs(
    scale: Mapping[str, Any], cases: Sequence[tuple[str, Mapping[str, Any]]], variants: Sequence[str]
) -> list[RunSpec]:
    """Return a training of every variant on every task with its settings: Adam at 5e-4, as was run for the document.

    Parameters
    ----------
    scale
        With ``iterations``, ``seeds``, ``test_size``.
    cases
        Tasks, by name, with their settings.
    variants
        Names of `VARIANTS`.
    """
    common = {"optimizer": "adam", "lr": 5e-4, "iterations": scale["iterations"], "seeds": list(range(scale["seeds"]))}
    common |= {"test_size": scale["test_size"], "validate_every": 0}
    found = []
    for task, settings in cases:
        game = task.startswith("games")
        own = dict(settings) if game else {"images": available(None), **settings}
        size = {"batch_size": 32 if game else BATCHES.get(task, 96)}
        found += [
            RunSpec("relational", {"variant": variant, "task": task, "task_settings": own, **size, **common})
            for variant in variants
        ]
    return found


def relational_rows(outcome: Outcome, published: Mapping[tuple[str, str, str], float] | None = None) -> list[Row]:
    """Return a row for every test of a training: accuracies of the seeds in percent, and the published one."""
    settings = outcome.spec.settings
    rows: list[Row] = []
    for test, scores in outcome.summary["accuracy"].items():
        name, variant = settings["task"], settings["variant"]
        percent = [100 * score for score in scores]
        held = settings["task_settings"].get("held_out")
        colour = settings["task_settings"].get("colour", "none")
        shown = f"{name}, coloured" if colour != "none" else name
        case = {"network": variant, "task": shown, "test": test, "m": held if held is not None else ""}
        beside = (published or {}).get((variant, name, test))
        rows.append(
            {**case, "case": _case(shown, test), "accuracy": percent, "mean": mean(percent), "published": beside}
        )
    return rows


def _case(task: str, test: str) -> str:
    return f"{task.removeprefix('games-')} ({test})" if task.startswith("games") else task


def ahead(claim: str, network: str, other: str, margin: float = 0.0, **where: Any) -> Ranked:
    """Return the rule that one network's accuracy is beyond another's by a margin in points, in every case."""
    return Ranked(claim=claim, column="accuracy", by="network", groups=(other, network), cases=("case", "m"),
                  margin=margin, where=where, names={"m": "symbols held out", "case": "task"})  # fmt: skip
