"""A network with what a task needs around it: tokens embedded before it, answers read out behind it."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from mnemoscope.core.errors import Description, UserError, expected
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.panels import Panels
from mnemoscope.nn.registry import card, get
from mnemoscope.nn.spec import NetworkSpec
from mnemoscope.nn.state import index_batch
from mnemoscope.tasks import Task
from mnemoscope.tasks.batch import steps_before
from mnemoscope.tasks.control import Environment

__all__ = ["Model", "build_model", "linear", "require_step", "spec_for", "task_sizes"]

_TOKENS = 0.1
"""Embeddings start uniform on +-0.1."""


class Model(nn.Module):
    """Embedding, layer, readout.

    Parameters
    ----------
    embedding
        Makes vectors of token numbers, or of observations; None where the inputs are vectors.
    layer
        A network of any kind.
    readout
        Makes answers of the layer's outputs, step by step; None when the outputs are the answers.
    pool
        Whether the readout gets the mean of the outputs over the steps of a sequence, for one answer.
    pairs
        Whether sequences come in pairs (time, batch, 2), both through the same layer: the readout gets the pooled
        outputs a and b as [a, b, a b, a - b].
    """

    def __init__(
        self,
        embedding: nn.Module | None,
        layer: nn.Module,
        readout: nn.Module | None,
        *,
        pool: bool = False,
        pairs: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.layer = adapt(layer)
        self.readout = readout
        self.pool, self.pairs = pool or pairs, pairs
        self.once: bool = self.layer.output_at == "once" or self.pool
        self._before = bool(getattr(self.layer, "batch_first", False))
        self._causal = bool(getattr(self.layer, "causal", True))
        self._vectors = len(getattr(self.layer, "input_shape", (1,))) == 1

    @property
    def network_within(self) -> Any:
        """The layer, which `mnemoscope.nn.save` writes."""
        return self.layer

    def arranged(self, inputs: Any) -> Any:
        """Return the inputs as the layer reads them: steps that are matrices or images flattened for one of vectors."""
        if not self._vectors:
            return inputs
        x = inputs.dense() if isinstance(inputs, Panels) else inputs
        return x.flatten(2) if isinstance(x, Tensor) and x.ndim > 3 else x

    def read(self, inputs: Any) -> Any:
        """Return what the layer reads of the inputs: tokens embedded, observations encoded, vectors as they are."""
        if self.embedding is None:
            return self.arranged(inputs)
        return self.embedding(inputs.long() if isinstance(self.embedding, nn.Embedding) else inputs)

    def hidden(
        self, inputs: Any, hx: Any = None, lengths: Tensor | None = None
    ) -> tuple[Float[Tensor, "time batch features"], Any]:
        """Return the layer's outputs, (time, batch, features), and its last state; None where it has no state.

        `lengths` matter to a layer that reads the future, and to a mean over the steps: others give the same up to the
        end of a sequence.
        """
        if self.pairs:
            inputs, lengths = inputs.flatten(1, 2), None if lengths is None else lengths.flatten()
        x = self.read(inputs)
        if self.layer.output_at == "once":
            answers: Tensor = self.layer(x.transpose(0, 1) if self._before and isinstance(x, Tensor) else x)
            return answers.unsqueeze(0), None
        ends = None if self._causal or lengths is None or bool((lengths == len(x)).all()) else lengths
        x = x.transpose(0, 1) if self._before else x
        y, state = self._run(x, hx, ends)
        y = y.transpose(0, 1) if self._before else y
        y = y if y.ndim <= 3 else y.flatten(2)
        return (self._pooled(y, lengths) if self.pool else y), state

    def _pooled(
        self, y: Float[Tensor, "time batch n"], lengths: Tensor | None
    ) -> Float[Tensor, "1 sequences features"]:
        """Return the mean over the steps of each sequence; of pairs what is compared."""
        if lengths is None:
            mean = y.mean(0)
        else:
            read = steps_before(lengths.to(y.device), len(y)).unsqueeze(-1)
            wide = torch.promote_types(y.dtype, torch.float32)  # in 16 bits a length of 1,001 is one of 1,000
            total = y.masked_fill(~read, 0.0).sum(0, dtype=wide)
            mean = (total / lengths.to(y.device, wide).unsqueeze(1)).to(y.dtype)
        if self.pairs:
            a, b = mean.view(-1, 2, mean.shape[-1]).unbind(1)
            mean = torch.cat([a, b, a * b, a - b], -1)
        return mean.unsqueeze(0)

    def _run(self, x: Tensor, hx: Any, ends: Tensor | None) -> tuple[Tensor, Any]:
        if not self.layer.stateful:
            return (self.layer(x) if ends is None else self.layer(x, lengths=ends)), None
        if ends is None:
            y, state = self.layer(x) if hx is None else self.layer(x, hx)
            return y, state
        steps, axis = (x.shape[1], 0) if self._before else (x.shape[0], 1)
        if hx is not None or not hasattr(self.layer, "batch_axis"):
            packed = pack_padded_sequence(x, ends.cpu(), batch_first=self._before, enforce_sorted=False)
            y, state = self.layer(packed, hx)
            return pad_packed_sequence(y, batch_first=self._before, total_length=steps)[0], state
        # Sorted here, from lengths that nobody waits for: a packed sequence with an order of its own is checked.
        order = ends.argsort(descending=True, stable=True)
        back = order.argsort().to(x.device)
        x = x.index_select(axis, order.to(x.device))
        y, state = self.layer(pack_padded_sequence(x, ends[order].cpu(), batch_first=self._before))
        y = pad_packed_sequence(y, batch_first=self._before, total_length=steps)[0].index_select(axis, back)
        return y, index_batch(state, back, self.layer.batch_axis)

    def forward(self, inputs: Any, hx: Any = None, lengths: Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the answers, (time, batch, answers), and the last state; of one that answers once (batch, answers)."""
        hidden, state = self.hidden(inputs, hx, lengths)
        return self.answers(hidden), state

    def answers(self, hidden: Float[Tensor, "time batch features"]) -> Tensor:
        """Return the answers of the layer's outputs."""
        y: Tensor = hidden if self.readout is None else self.readout(hidden)
        return y.squeeze(0) if self.once else y

    def parameter_groups(
        self, lr: float, lr_orthogonal: float | None = None, lr_state_space: float | None = None
    ) -> list[dict[str, Any]]:
        """Return groups for an optimiser: as the layer divides itself, embedding and readout at the first rate."""
        others = [p for part in (self.embedding, self.readout) if part is not None for p in part.parameters()]
        if not hasattr(self.layer, "parameter_groups"):
            return [{"params": [*self.layer.parameters(), *others], "lr": lr}]
        more = {} if lr_state_space is None else {"lr_state_space": lr_state_space}
        first, *rest = self.layer.parameter_groups(lr, lr_orthogonal, **more)
        return [{**first, "params": [*first["params"], *others]}, *rest]

    def penalty(self) -> Tensor | None:
        """Return what the layer asks to be added to the loss; None when it never asks."""
        return self.layer.penalty() if self.layer.declares else None

    def after_step(self) -> None:
        """Do what the layer must do after a step of the optimiser."""
        if hasattr(self.layer, "after_step"):
            self.layer.after_step()

    @property
    def recurrent_parameters(self) -> set[str]:
        """The names of the parameters of recurrent matrices, and of those that a map makes them of."""
        own = (name for name, _ in self.layer.named_parameters() if self.layer.role_of(name) == "recurrent")
        return {f"layer.{name}" for name in own}


def spec_for(spec: NetworkSpec, task: Task | Environment) -> NetworkSpec:
    """Return the description of a network with the sizes that a task decides, where they are not given."""
    if spec.saved:
        return spec
    network = get(spec.what) if isinstance(spec.what, str) else spec.what
    if isinstance(task, Environment):
        require_step(network, spec.name)
    else:
        _check_kind(spec, task)
    decided = task_sizes(network, task)
    width = decided.pop("input_size", None) if spec.input_size is None else spec.input_size
    readout = {} if spec.parameters is None else {"readout_size": task.output_size}
    return spec.replace(input_size=width, options={**decided, **spec.options}, **readout)


def _check_kind(spec: NetworkSpec, task: Task) -> None:
    """Raise about a task that networks of this kind cannot answer, before one is built."""
    kind = getattr(get(spec.what) if isinstance(spec.what, str) else spec.what, "kind", "")
    if kind == "relational" and task.kind != "relational":
        raise UserError(
            f"{spec.name} answers questions about images, which {task.name} does not ask: it takes relational tasks, "
            "such as same-different"
        )
    sizes = {"features": task.input_size, "length": task.steps, "classes": task.output_size}
    if kind == "classifier" and not set(sizes) & set(spec.options):
        typed = " ".join(f"--set {name}={size}" for name, size in {**sizes, "rank": 8}.items())
        raise UserError(f"{spec.name} answers once for a sequence, and its sizes are its own: {typed}")


def require_step(network: Any, name: str) -> None:
    """Raise unless a network, or its class, has a state and answers at every step, as an environment asks for."""
    once = getattr(network, "output_at", "steps") == "once"
    if once or not getattr(network, "stateful", True):
        what = "answers once, at the end of a sequence" if once else "has no state"
        raise UserError(
            f"control needs a network with a step, and {name} {what}: see `mnemoscope networks --kind recurrent`"
        )


def task_sizes(network: Any, task: Task | Environment) -> dict[str, Any]:
    """Return the sizes of a network, by its class, that a task decides: of inputs; of panels and answers."""
    accepted = inspect.signature(network).parameters
    if getattr(network, "kind", "") == "relational":
        return {"input_size": task.input_shape, "panels": task.steps, "answers": task.output_size}
    keywords = any(p.kind is p.VAR_KEYWORD for p in accepted.values())
    if card(network) is not None and "input_size" not in accepted and not keywords:
        return {}  # a stranger's class may have another name for it, which its description finds
    if task.embedding is not None:
        return {"input_size": getattr(task, "embedding_size", 64)}
    shaped = getattr(network, "input_axes", 1) == len(task.input_shape)
    return {"input_size": task.input_shape if shaped and len(task.input_shape) > 1 else task.input_size}


def linear(inputs: int, outputs: int, generator: torch.Generator) -> nn.Linear:
    """Return an affine map, uniform on +-1/sqrt(inputs), drawn from a generator."""
    made = nn.Linear(inputs, outputs, device="meta").to_empty(device="cpu")
    for parameter in made.parameters():
        nn.init.uniform_(parameter, -(inputs**-0.5), inputs**-0.5, generator=generator)
    return made


def build_model(layer: Any, task: Task, readout: Any, generator: torch.Generator) -> Model:
    """Put around a layer what the task needs, or check that a `Model` has it; one line says what does not fit.

    Parameters
    ----------
    readout
        ``"linear"``, ``"mean"`` (linear, of the mean over the steps of a sequence), ``"none"`` (the layer's outputs are
        the answers) or a module. Tasks of pairs always take the mean.
    generator
        Draws the embedding and the readout.
    """
    if isinstance(layer, Model):
        _check_widths(layer, task)
        return layer
    if not isinstance(layer, nn.Module):
        raise expected("layer", "a torch.nn.Module", Description(f"a {type(layer).__name__}"))
    layer = adapt(layer)
    like = next((p for p in layer.parameters() if p.is_floating_point()), torch.zeros(()))
    embedding = _embedding(layer, task, generator)
    pairs = task.kind == "pairs"
    if pairs and layer.output_at == "once":
        raise expected(
            "the network", f"one that answers at every step, for the pairs of {task.name}", Description("once")
        )
    made = _readout(layer, task, readout, generator)
    model = Model(embedding, layer, made, pool=readout == "mean" and layer.output_at != "once", pairs=pairs)
    for part in (model.embedding, model.readout):
        if part is not None and part is not readout:
            part.to(device=like.device, dtype=like.dtype)
    _check_widths(model, task)
    return model


def _embedding(layer: Any, task: Task, generator: torch.Generator) -> nn.Module | None:
    if task.embedding is None:
        return None
    table = torch.empty(task.embedding, layer.input_size)
    nn.init.uniform_(table, -_TOKENS, _TOKENS, generator=generator)
    return nn.Embedding(task.embedding, layer.input_size, _weight=table)


def _readout(layer: Any, task: Task, readout: Any, generator: torch.Generator) -> nn.Module | None:
    if isinstance(readout, nn.Module):
        return readout
    if readout not in ("linear", "mean", "none"):
        raise expected("readout", "'linear', 'mean', 'none' or a torch.nn.Module", readout)
    if readout == "none" or layer.output_at == "once":
        return None
    return linear((4 if task.kind == "pairs" else 1) * layer.output_size, task.output_size, generator)


def _check_widths(model: Model, task: Task) -> None:
    """Compare the widths that model and task state, before anything is drawn or computed."""
    given = getattr(model.layer, "input_size", None)
    if task.embedding is not None and model.embedding is None:
        raise UserError(f"{task.name} gives token numbers: the model must have an embedding")
    if task.embedding is None and given is not None and given != task.input_size:
        wide = getattr(model.layer, "kind", "") == "sequence" and getattr(model.layer, "output_size", None) == given
        hint = f" (a block is as wide as its input: --hidden {task.input_size})" if wide else ""
        raise expected("input_size of the layer", f"{task.input_size}, as the task {task.name} has{hint}", given)
    last = model.layer if model.readout is None else model.readout
    width = getattr(last, "output_size" if model.readout is None else "out_features", None)
    if width is not None and width != task.output_size:
        where = "output_size of the layer" if model.readout is None else "out_features of the readout"
        raise expected(where, f"{task.output_size}, as the task {task.name} has", width)
