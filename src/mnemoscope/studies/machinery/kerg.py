"""Networks and settings of Kerg's chapters 3 and 4, and the rows of their trainings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mnemoscope.studies.machinery.displays import Row
from mnemoscope.studies.machinery.study import Outcome, RunSpec
from mnemoscope.tasks.datasets import is_there

__all__ = [
    "ATTENTIVE",
    "ORTHOGONAL",
    "attentive_facts",
    "attentive_run",
    "attentive_scales",
    "curve_rows",
    "digits",
    "orthogonal_run",
    "result_row",
    "text",
]

_MOD = {"nonlinearity": "modrelu"}
ORTHOGONAL: dict[str, tuple[str, dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    "nnRNN": ("nnrnn", {"block": "published"}, {
        "copy": (128, 5e-4, 1e-6, 0.99), "pmnist": (512, 1.5e-4, 1.5e-5, 0.99), "150": (1024, 8e-4, 8e-5, 0.9),
        "300": (1024, 8e-4, 6e-5, 0.9)}),
    "expRNN": ("exprnn", {}, {
        "copy": (128, 1e-3, 1e-4, 0.99), "pmnist": (512, 5e-4, 5e-5, 0.99), "150": (1024, 5e-3, 1e-4, 0.9),
        "300": (1024, 5e-3, 1e-4, 0.9)}),
    "EURNN": ("eurnn", {}, {
        "copy": (128, 1e-3, None, 0.5), "pmnist": (512, 1e-4, None, 0.9), "150": (1024, 1e-3, None, 0.9),
        "300": (1024, 1e-3, None, 0.9)}),
    "RNN-orth": ("orth-rnn", _MOD, {
        "copy": (128, 2e-4, None, 0.99), "pmnist": (512, 5e-5, None, 0.99), "150": (1024, 1e-4, None, 0.9),
        "300": (1024, 1e-4, None, 0.9)}),
    "LSTM": ("lstm", {}, {
        "copy": (128, 5e-4, None, 0.99), "pmnist": (512, 5e-4, None, 0.9), "150": (1024, 8e-3, None, 0.9),
        "300": (1024, 8e-3, None, 0.9)}),
    "RNN": ("rnn", {**_MOD, "init": "glorot"}, {
        "copy": (128, 1e-3, None, 0.9), "pmnist": (512, 1e-4, None, 0.9), "150": (1024, 1e-5, None, 0.9),
        "300": (1024, 1e-5, None, 0.9)}),
}  # fmt: skip
"""Networks of chapter 3: registry name, options, and by task units, rate, orthogonal rate and alpha of RMSprop."""

_NORMALITY = {"copy": (1e-4, 1e-6), "pmnist": (0.15, 1e-4), "150": (1.0, 1e-4), "300": (1e-4, 1e-4)}


def orthogonal_run(network: str, task: str, scale: Mapping[str, Any], **more: Any) -> RunSpec:
    """Return a training of chapter 3 with the published settings of appendix A, where the scale does not say others.

    Parameters
    ----------
    network
        A name of `ORTHOGONAL`.
    task
        ``"copy"``, ``"pmnist"``, or ``"150"`` and ``"300"`` for text in windows of so many characters.
    scale
        ``iterations``, ``batch_size``, ``seeds``, ``task_settings``; ``units`` and ``rates`` where they are not the
        published ones.
    more
        Settings of this run alone; ``options`` are added to the network's.
    """
    name, options, published = ORTHOGONAL[network]
    units, rate, orthogonal, alpha = published[task]
    options = {**options, **more.pop("options", {})}
    if name in ("exprnn", "nnrnn"):
        options["init"] = "henaff" if task == "copy" else "cayley"
    if name == "nnrnn":
        options["delta"], options["decay"] = _NORMALITY[task]
    settings = {"network": name, "hidden_size": scale.get("units", units), "options": options, "alpha": alpha}
    settings |= {"seeds": list(range(scale["seeds"])), "batch_size": scale["batch_size"]}
    settings |= {"optimizer": "rmsprop", "task_settings": dict(scale.get("task_settings", {}))}
    settings |= {key: scale[key] for key in _COURSE if key in scale}
    if "rates" in scale:
        settings["rates"] = list(scale["rates"])
    else:
        settings |= {"lr": rate, "lr_orthogonal": orthogonal}
    if name == "nnrnn":  # the same for all studies, so that they share these runs
        settings["looks"] = {"theta": {"every": True}} | ({} if task in ("copy", "pmnist") else {"gradients": {}})
    data = {"task": "copy"} if task == "copy" else digits(scale) if task == "pmnist" else text(scale)
    return RunSpec("fit", {**settings, **data, **more})


_ADAM, _RMS = {"optimizer": "adam"}, {"optimizer": "rmsprop"}
_ORTH = {"core": "orth-rnn"}
ATTENTIVE: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "RelRNN": ("relrnn", _ORTH, _RMS),
    "RelLSTM": ("rellstm", {}, _ADAM),
    "MemRNN": ("memrnn", _ORTH, _RMS),
    "SAB": ("sab", {}, _ADAM),
    "RelRNN, modReLU": ("relrnn", {**_ORTH, **_MOD}, _RMS),
    "orth-RNN": ("orth-rnn", _MOD, _RMS),
    "expRNN": ("exprnn", {}, _RMS),
    "LSTM": ("lstm", {}, _ADAM),
    "h-detach": ("h-detach-lstm", {}, _ADAM),
    "GORU": ("goru", {}, {**_RMS, "lr": 1e-3}),
}
"""Networks of chapter 4: registry name, options, settings of the training; rates are 2e-4 where none is given."""

_UNBOUNDED = ("orth-RNN", "expRNN", "GORU", "RelRNN, modReLU")
_ATTENDING = ("RelRNN", "RelRNN, modReLU", "RelLSTM", "MemRNN", "SAB")
_RANKED = ("RelRNN", "orth-RNN", "expRNN", "LSTM", "GORU")
_SLOW = ("RelLSTM", "SAB")

_SMOKE = {"units": 8, "iterations": 4, "batch_size": 4, "validate_every": 2, "tests": 8, "small": (2, 2),
          "ranked": {"iterations": 4, "seeds": 1}, "rate": 1e-3, "factors": (1, 2)}  # fmt: skip
_LAPTOP = {"units": 48, "iterations": 3000, "batch_size": 20, "validate_every": 250, "tests": 100,
           "ranked": {"iterations": 6000, "seeds": 3, "target": 0.999}, "slow": {"iterations": 6000, "target": 0.999},
           "every": 2, "small": (5, 4), "rate": 3e-3, "factors": (1, 2, 4, 20)}  # fmt: skip
_PAPER = {"units": 128, "batch_size": 10, "validate_every": 1000, "tests": 10000, "factors": (1, 2, 4, 20)}


def attentive_scales(**own: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the settings of all trainings of chapter 4 at every scale, with a study's own beside them."""
    shared: dict[str, dict[str, Any]] = {"smoke": _SMOKE, "laptop": _LAPTOP, "paper": _PAPER}
    return {scale: {**shared[scale], **more} for scale, more in own.items()}


def attentive_run(network: str, task: str, level: int, scale: Mapping[str, Any], **options: Any) -> RunSpec:
    """Return a training of chapter 4 with looks at gradients, attention and longer sequences, shared by its studies.

    Parameters
    ----------
    network
        A name of `ATTENTIVE`.
    task, level
        ``"copy"`` or ``"denoise"``, and T.
    scale
        ``units``, ``iterations``, ``batch_size``, ``validate_every``, ``tests`` (sequences), ``factors`` of T at which
        it is tested; ``ranked``, other ``iterations``, ``seeds`` and ``target`` of the networks that a rule ranks, and
        ``slow`` of those that learn late; ``every``, how often SAB stores a state; ``small``, symbols and alphabet of a
        smaller task; ``rate`` of Adam where it is not as published, of which networks with modReLU get a third.
    options
        Of the network, beside its own.
    """
    name, own, course = ATTENTIVE[network]
    own = {**own, **options}
    if not options:
        scale = {**scale, **scale.get("ranked" if network in _RANKED else "slow" if network in _SLOW else "", {})}
    if network == "SAB" and "every" in scale:
        own["every"] = scale["every"]
    settings: dict[str, Any] = {"network": name, "hidden_size": scale["units"], "lr": 2e-4, **course}
    settings["seeds"] = list(range(scale.get("seeds", 1)))
    if network in ("RelRNN", "MemRNN"):  # as published of RelRNN
        own = {"nonlinearity": "tanh" if task == "copy" or "rate" in scale else "modrelu", **own}
    if network in _ATTENDING and own.get("nonlinearity") == "modrelu":
        own = {"combine": "mean", **own}  # as released: the printed sum doubles the state at every step
    if "rate" in scale:
        settings |= {**_ADAM, "lr": scale["rate"] / (3 if network in _UNBOUNDED else 1)}
    elif (network, task) == ("RelRNN", "copy"):
        settings |= _ADAM
    names = {"copy": ("copying", "delay"), "denoise": ("selective-copy", "length")} if "small" in scale else {}
    title, axis = names.get(task, (task, "delay"))
    size = {"symbols": scale["small"][0], "alphabet": scale["small"][1]} if "small" in scale else {}
    settings |= {"task": title, "task_settings": {axis: level, **size}, "options": own, "clip_norm": 1.0}
    settings |= {
        name: scale[name] for name in ("iterations", "batch_size", "validate_every", "target") if name in scale
    }
    settings |= {"validation_size": scale["tests"], "test_size": scale["tests"]}
    levels = [level * factor for factor in scale["factors"]]
    looks: dict[str, Any] = {"gradients": {}, "longer": {"axis": axis, "levels": levels, "sequences": scale["tests"]}}
    looks |= {"attention": {}} if network in _ATTENDING else {}
    return RunSpec("fit", {**settings, "looks": looks})


def attentive_facts(outcome: Outcome) -> dict[str, Any]:
    """Return the network, the task and T of a training of chapter 4."""
    given = outcome.spec.settings
    name = next(label for label, (network, *_) in ATTENTIVE.items() if network == given["network"])
    if (given["task"] in ("copy", "copying"), name, given["options"].get("nonlinearity")) == (
        True,
        "RelRNN",
        "modrelu",
    ):
        name = "RelRNN, modReLU"
    task = "copy" if given["task"] in ("copy", "copying") else "denoise"
    level = given["task_settings"].get("delay", given["task_settings"].get("length"))
    return {"network": name, "task": task, "T": level}


_COURSE = ("iterations", "epochs", "validate_every", "validation_size", "test_size", "schedule")


def text(scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text of a run: the treebank where the user has it, else Tiny Shakespeare, else a drawn one."""
    for task, dataset in (("ptb", "ptb"), ("shakespeare", "tinyshakespeare")):
        if not scale.get("stand_in") and is_there(dataset):
            return {"task": task, "data": "stream"}
    return {"task": "shakespeare", "data": "stream", "stand_in": True}


def digits(scale: Mapping[str, Any]) -> dict[str, Any]:
    """Return the digits of a run: the user's, else drawn ones."""
    return (
        {"task": "pmnist"} if not scale.get("stand_in") and is_there("mnist") else {"task": "pmnist", "stand_in": True}
    )


def curve_rows(outcome: Outcome, column: str, **facts: Any) -> list[Row]:
    """Return a row for every validation along training, with the values of the seeds: ``loss`` or ``score``."""
    steps, values = outcome.summary["curve_steps"], outcome.summary[f"curve_{column}"]
    found: list[Row] = []
    for place, step in enumerate(steps):
        seen = [own[place] for own in values if own[place] is not None]
        found += [{**facts, "kind": "curve", "step": step, column: seen}] if seen else []
    return found


def result_row(outcome: Outcome, **facts: Any) -> Row:
    """Return the row of a training's tests, seed by seed and in the mean."""
    found = outcome.summary
    losses = [one for one in found["test_loss"] if one is not None]
    scores = [one for one in found["test_score"] if one is not None]
    failed = len(found["test_loss"]) - len(losses)
    means = {name: float(np.mean(own)) if own else None for name, own in (("loss", losses), ("score", scores))}
    share = None if means["loss"] is None else means["loss"] / found["baseline"]
    return {
        **facts, "kind": "result", "losses": losses, "scores": scores, "percent": [100 * one for one in scores],
        "shares": [one / found["baseline"] for one in losses], "share": share, "mean_loss": means["loss"],
        "mean_score": None if means["score"] is None else 100 * means["score"], "failed": failed,
        "parameters": found["parameters"], "rate": found["chosen_rate"][0],
    }  # fmt: skip
