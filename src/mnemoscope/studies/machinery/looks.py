"""Looks at a trained network: its Schur form, attention, gradients through time, heads of its memory, longer tests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from mnemoscope.measures import attention as measure_attention
from mnemoscope.nn.attention import Attentive
from mnemoscope.tasks import Task
from mnemoscope.training.model import Model

__all__ = ["LOOKS", "Probability", "gradients_by_step"]

Look = Callable[..., Mapping[str, Any]]
LOOKS: dict[str, Look] = {}
"""Looks by name: functions (model, task, settings) that return plain JSON."""

_CELLS, _ANGLES = 48, 16


class Probability(nn.Module):
    """A readout without parameters: a number h in (-1, 1) says the probability (1 + h)/2, whose logit is 2 artanh h."""

    def forward(self, h: Tensor) -> Tensor:
        """Return the logits."""
        return 2 * torch.atanh(h.clamp(-1 + 1e-6, 1 - 1e-6))


def _look(name: str) -> Callable[[Look], Look]:
    def register(look: Look) -> Look:
        LOOKS[name] = look
        return look

    return register


@_look("theta")
def schur_form(model: Model, task: Task) -> dict[str, Any]:
    """Return what nnRNN has learned: |Theta| (the largest of each block of cells), its angles, subdiagonals, gammas."""
    layer: Any = model.layer
    (stored,) = layer.parametrizations.values()
    form, parameters = stored[0], [getattr(stored, f"original{k}") for k in range(len(stored[0].shapes))]
    named = form.named(parameters)
    theta = form.form(*parameters).detach().abs().double().numpy()
    turns = np.angle(np.exp(1j * named["theta"].detach().double().numpy()))
    counts, edges = np.histogram(np.abs(turns), bins=_ANGLES, range=(0.0, math.pi))
    lower = np.concatenate([np.diag(theta, -k) for k in range(2, len(theta))])
    return {
        "map": _coarse(theta).tolist(),
        "cell": -(-len(theta) // _CELLS),
        "angles": (counts / counts.sum()).tolist(),
        "angle_middles": ((edges[1:] + edges[:-1]) / 2).tolist(),
        "subdiagonals": [float(np.diag(theta, -k).mean()) for k in range(1, min(len(theta), 33))],
        "lower": float(np.sqrt(np.mean(lower**2))),
        "lower_norm": float(np.linalg.norm(lower)),
        "gamma": float(named["gamma"].detach().abs().mean()),
        "narrow": float(np.abs(np.mean(np.exp(1j * np.abs(turns) * 2)))),
    }


def _coarse(matrix: np.ndarray) -> np.ndarray:
    """Return a matrix of at most 48 x 48 cells, each the largest of a block."""
    first = np.arange(0, len(matrix), -(-len(matrix) // _CELLS))
    return np.maximum.reduceat(np.maximum.reduceat(matrix, first, axis=0), first, axis=1).round(4)


@_look("attention")
def attention(model: Model, task: Task, *, sequences: int = 8, steps: int | None = None) -> dict[str, Any]:
    """Return the weights of one sequence as a map, and relevant events, dependency depth and kappa of several."""
    batch = _sequences(task, sequences)
    x = _inputs(model, batch.inputs)[:steps]
    with _room(model.layer, len(x)):
        one, several = (measure_attention(model.layer, inputs=part) for part in (x[:, :1], x))
    last = one.weights[-task_symbols(task) :].mean(0) if task_symbols(task) else one.weights.mean(0)
    top = np.sort(one.weights, axis=1)[:, ::-1]
    return {
        "map": _coarse(one.weights).tolist(),
        "cell": -(-len(one.weights) // _CELLS),
        "recall": last.tolist(),
        "relevant": several.relevant,
        "depth": several.depth,
        "kappa": several.kappa,
        "largest": float(top[1:, 0].mean()),
    }


def task_symbols(task: Task) -> int:
    """Return how many steps at the end of a sequence recall symbols; 0 where there are none."""
    symbols = getattr(task, "symbols", None)
    return int(symbols if symbols is not None else task.sizes()[1] if hasattr(task, "sizes") else 0)


@_look("gradients")
def gradients(model: Model, task: Task, *, sequences: int = 4) -> dict[str, Any]:
    """Return ln |dL/dh_t| of the task's loss, in the mean over sequences, from the last step back."""
    found = gradients_by_step(model, task, sequences)
    logs = np.log(np.maximum(found, 1e-300)).mean(1)[::-1]
    shown = np.unique(np.linspace(0, len(logs) - 1, 41).round().astype(int))
    return {"back": shown.tolist(), "log_norms": logs[shown].tolist(), "spread": float(logs.max() - logs.min()),
            "fall": float(logs[0] - logs[-1]), "mean": float(logs.mean())}  # fmt: skip


def gradients_by_step(model: Model, task: Task, sequences: int) -> np.ndarray:
    """Return |dL/dh_t|, (steps, sequences): the total derivative by the state as it was produced, in double precision.

    The state also acts through its copies in a buffer or a memory; autograd sums over all ways from the tensor on.
    """
    before, training = next(model.parameters()).dtype, model.training
    layer: Any = model.double().layer
    model.eval()
    batch = _sequences(task, sequences)
    x = _inputs(model, batch.inputs).double()
    attentive = isinstance(layer, Attentive)
    with _room(layer, len(x)), layer.watched() if attentive else nullcontext([]) as produced:
        state, outputs = layer.init_state(x.shape[1]), []
        for step in x:
            y, state = layer.step(step, state)
            if not attentive:
                y, state = _with_leaf(y, state, produced)
            outputs.append(y)
        loss = task.loss(model.answers(torch.stack(outputs)), batch)
        found = torch.autograd.grad(loss * sequences, produced)
    model.to(before).train(training)
    return np.asarray(torch.stack([one.norm(dim=-1) for one in found]).numpy())


def _with_leaf(y: Tensor, state: Any, produced: list[Tensor]) -> tuple[Tensor, Any]:
    """Add a leaf of zeros to the state of a single layer, where it is given out and where it is carried on."""
    leaf = torch.zeros_like(y, requires_grad=True)
    produced.append(leaf)
    parts, form = tree_flatten(state)
    return y + leaf, tree_unflatten([parts[0] + leaf, *parts[1:]], form)


@contextmanager
def _room(layer: Any, steps: int) -> Iterator[None]:
    """Give a memory that grows room for so many steps."""
    if not getattr(layer, "grows", False):
        yield
        return
    before, layer.capacity = layer.capacity, steps
    try:
        yield
    finally:
        layer.capacity = before


@_look("longer")
def longer(model: Model, task: Task, *, axis: str, levels: Sequence[int], sequences: int = 100) -> dict[str, Any]:
    """Return score and loss on other settings of the task than it was trained on, all sequences of one length."""
    scores, losses = [], []
    model.eval()
    for level in levels:
        other = _at(task, axis, level)
        batch = _sequences(other, sequences)
        with torch.no_grad():
            answers = model(batch.inputs, lengths=batch.lengths)[0]
        scores.append(float(other.score(answers, batch)))
        losses.append(float(other.loss(answers, batch)))
    return {"levels": list(levels), "scores": scores, "losses": losses}


_LEAST = {"longest": "shortest", "items": "fewest"}
"""Settings that draw a length between two, with the other end of it."""


def _at(task: Any, axis: str, level: int) -> Task:
    ends = {_LEAST[axis]: level} if axis in _LEAST else {}
    other: Task = replace(task, **{axis: level}, **ends)
    return other


@_look("heads")
def heads(model: Model, task: Task, *, length: int) -> dict[str, Any]:
    """Return where the heads of a memory write and read at every step of one sequence of the task's greatest length.

    With it how many slots the first `length` steps write to, and how many steps that answer read, in order, where
    these were written: of the copy task's content.
    """
    layer: Any = model.layer
    with torch.no_grad():
        trace = layer.trace(_sequences(_at(task, task.difficulty, length), 1).inputs)
    write, read = (part[:, 0, 0].double().numpy() for part in (trace.write, trace.read))
    used = np.sort(np.argsort(-(write.max(0) + read.max(0)))[: _CELLS // 3])
    written, answered = write.argmax(1)[:length], read.argmax(1)[length + 1 : 2 * length + 1]
    return {
        "write": write[:, used].round(4).tolist(),
        "read": read[:, used].round(4).tolist(),
        "slots": used.tolist(),
        "sharp": float(np.mean([write.max(1).mean(), read.max(1).mean()])),
        "same": float(np.mean(written == answered)),
        "distinct": len(set(written.tolist())),
    }


def _sequences(task: Task, count: int) -> Any:
    return task.sample(count, torch.Generator().manual_seed(0))


def _inputs(model: Model, inputs: Any) -> Tensor:
    """Return what the layer reads."""
    with torch.no_grad():
        found: Tensor = model.arranged(inputs) if model.embedding is None else model.embedding(inputs)
    return found
