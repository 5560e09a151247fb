"""One step of training one network: forward, loss, backward, clipping, optimiser."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from mnemoscope.core.errors import Description, MnemoscopeError, UserError, expected
from mnemoscope.nn.maps.base import Transition
from mnemoscope.tasks import Batch, Task
from mnemoscope.training.data import Fixed, Source
from mnemoscope.training.model import Model
from mnemoscope.training.objective import Loss, Objective, quick_score
from mnemoscope.training.options import Options

__all__ = [
    "Step",
    "as_real",
    "check_answers",
    "evaluating",
    "needs_after_step",
    "prepared",
    "trained_parameters",
    "trial_batch",
]


class Step:
    """What training does to one network, step by step. It serves your own loop as well.

    >>> import mnemoscope as ms
    >>> task = ms.tasks.create("copy", delay=5)
    >>> model = ms.training.build_model(ms.nn.RNN(10, 8), task, "linear", ms.training.stream(0, "readout"))
    >>> step = ms.training.Step(model, task, ms.training.Options(iterations=10, lr=1e-3))
    >>> loss = step.train(task.sample(16))

    Parameters
    ----------
    model
        Whose parameters move, in place.
    task
        Whose loss it is.
    options
        Rates, optimiser, clipping, penalty, precision.
    loss
        An own loss, of answers and batch, instead of the task's.
    """

    def __init__(self, model: Model, task: Task, options: Options, loss: Loss | None = None) -> None:
        self.model, self.task, self.options = model, task, options
        self.size = 1
        self.objective = Objective(model, task, loss)
        self.names, self.parameters = trained_parameters(model)
        self.base_rates = base_rates(model, options)
        self.optimiser = options.optimiser(as_real(self.parameters), [self.base_rates[name] for name in self.names])
        self.clipping = options.clipping
        self._recurrent = [i for i, name in enumerate(self.names) if name in model.recurrent_parameters]
        self._like = self.parameters[0]
        penalty = model.penalty()
        asked = penalty is not None and penalty.requires_grad
        self._penalised = asked and options.penalty != 0
        if asked and not self._penalised:
            warnings.warn(
                f"{type(model.layer).__name__.removeprefix('Parametrized')} asks for its penalty to be added to the "
                "loss, and penalty=0 leaves it out: its matrix may grow until training diverges",
                stacklevel=4,
            )
        self.carry: Any = None
        self.carries = False
        self.last: tuple[Tensor, Batch] | None = None

    def train(self, batch: Batch) -> float:
        """Make one step on a batch, and return its loss before the step, without the penalty."""
        self.last = None  # so that its memory is free for this step: a fresh piece of this size is slow
        batch = prepared(batch, self._like, self.options)
        with autocast(self._like, self.options):
            hidden, state = self.model.hidden(batch.inputs, self.carry, batch.lengths)
            loss = self.objective(hidden, batch)
        if self.carries:
            self.carry = tree_map(Tensor.detach, state)
        total = loss + self.options.penalty * self.model.penalty() if self._penalised else loss  # type: ignore[operator]
        self.optimiser.take(as_real(torch.autograd.grad(total, self.parameters, allow_unused=True)))
        if self.clipping is not None:
            self.clipping(self.optimiser, self._recurrent, None)
        self.optimiser.step()
        self.model.after_step()
        self.last = hidden.detach(), batch
        return float(loss.detach())

    def __call__(self, batches: Sequence[Batch]) -> list[float]:
        """Make one step on the one batch of a sequence."""
        return [self.train(batches[0])]

    @torch.no_grad()
    def scores(self) -> list[float]:
        """Return the score on the batch of the last step, with the outputs before it."""
        assert self.last is not None
        hidden, batch = self.last
        with autocast(self._like, self.options):
            return [quick_score(self.task, self._answers, hidden, batch)]

    def _answers(self, hidden: Tensor) -> Tensor:
        return self.model.answers(hidden).to(self._like.dtype)

    @torch.no_grad()
    def outputs(self, batches: Sequence[Batch], carry: Any = None) -> tuple[list[Tensor], list[Batch], Any]:
        """Return the answers to a batch, the batch in the network's numbers, and the last state."""
        batch = prepared(batches[0], self._like, self.options)
        with autocast(self._like, self.options):
            answers, state = self.model(batch.inputs, carry, batch.lengths)
        return [answers.to(self._like.dtype)], [batch], state

    def set_rates(self, factors: Sequence[float]) -> None:
        """Multiply the rates that training began with."""
        self.optimiser.set_rates([factors[0] * self.base_rates[name] for name in self.names])

    def tensors(self) -> dict[str, Tensor]:
        """Return everything that the next step depends on, copied, but for the generators."""
        found = {f"model/{name}": tensor for name, tensor in full_state(self.model).items()}
        found |= {f"optimiser/{name}": tensor for name, tensor in self.optimiser.tensors().items()}
        leaves = [] if self.carry is None else tree_leaves(self.carry)
        found |= {f"carry/{i}": leaf for i, leaf in enumerate(leaves)}
        return {name: tensor.detach().clone() for name, tensor in found.items()}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over what `tensors` returned."""
        self.load_state(0, part(tensors, "model/"))
        self.optimiser.load(part(tensors, "optimiser/"))
        leaves = part(tensors, "carry/")
        if leaves:
            self.carry = self._carry_of([leaves[str(i)].to(self._like.device) for i in range(len(leaves))])

    def _carry_of(self, leaves: list[Tensor]) -> Any:
        layer = self.model.layer
        structure = tree_flatten(layer.init_state(1))[1]
        return tree_unflatten(leaves, structure)

    def state(self, member: int = 0) -> dict[str, Tensor]:
        """Return a copy of the network's parameters and buffers."""
        return {name: tensor.detach().clone() for name, tensor in full_state(self.model).items()}

    @torch.no_grad()
    def load_state(self, member: int, state: Mapping[str, Tensor]) -> None:
        """Take over what `state` returned."""
        load_weights(self.model, state)

    def finite(self) -> list[bool]:
        """Say whether all parameters are finite."""
        return [all(bool(p.isfinite().all()) for p in self.parameters)]

    def train_mode(self, training: bool) -> None:
        """Switch between learning and answering."""
        self.model.train(training)


def full_state(model: Model) -> dict[str, Tensor]:
    """Return parameters and buffers by name, with those that a state_dict leaves out."""
    return dict(model.named_parameters()) | dict(model.named_buffers())


@torch.no_grad()
def load_weights(model: Model, state: Mapping[str, Tensor]) -> None:
    """Take over parameters and buffers by name."""
    for name, own in full_state(model).items():
        own.copy_(state[name])


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def trained_parameters(model: Model) -> tuple[list[str], list[Tensor]]:
    """Return names and parameters that learn; one line when there are none or they are of different types."""
    found = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not found:
        raise expected("the network", "with parameters that learn", Description("none"))
    kinds = {(p.dtype.to_real() if p.is_complex() else p.dtype, p.device) for p in found.values()}
    if len(kinds) > 1:
        named = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise expected("the parameters", "of one type on one device", Description(named))
    return list(found), list(found.values())


def base_rates(model: Model, options: Options) -> dict[str, float]:
    """Return the rate of each parameter by name, as the network divides its parameters."""
    assert options.lr is not None
    names = {id(p): name for name, p in model.named_parameters()}
    groups = model.parameter_groups(options.lr, options.lr_orthogonal)
    return {names[id(p)]: float(group["lr"]) for group in groups for p in group["params"]}


def as_real(tensors: Sequence[Any]) -> list[Any]:
    """Return complex tensors as pairs of real numbers, others as they are."""
    return [t if t is None or not t.is_complex() else torch.view_as_real(t.detach().resolve_conj()) for t in tensors]


def prepared(batch: Batch, like: Tensor, options: Options) -> Batch:
    """Return the batch on the device and in the number type of the network."""
    if like.device.type != "cpu":
        batch = batch.to(like.device)
    dtype = (
        torch.bfloat16 if options.precision == "bfloat16" else like.dtype.to_real() if like.is_complex() else like.dtype
    )
    return batch._replace(
        inputs=tree_map(lambda part: part.to(dtype) if part.is_floating_point() else part, batch.inputs)
    )


def autocast(like: Tensor, options: Options) -> AbstractContextManager[Any]:
    """Return the context of mixed precision, where it was asked for."""
    return torch.autocast(like.device.type, torch.bfloat16) if options.precision == "bfloat16" else nullcontext()


@contextmanager
def evaluating(step: Any) -> Iterator[None]:
    """Answer instead of learning, and draw nothing from the generator that training draws from."""
    step.train_mode(False)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        step.train_mode(True)


def needs_after_step(model: Model) -> bool:
    """Say whether something follows a step of the optimiser; a map whose base never moves asks for nothing."""
    layer = model.layer
    transitions = getattr(layer, "_transitions", None)
    if transitions is None:
        return hasattr(layer, "after_step")
    return any(_follows(module) for transition, _ in transitions() for module in transition.modules())


def _follows(module: nn.Module) -> bool:
    own = getattr(type(module), "after_step", Transition.after_step)
    return own is not Transition.after_step and getattr(module, "every", 0) is not None


def trial_batch(task: Task, source: Source, size: int = 2) -> Batch:
    """Return a few sequences that nothing else depends on."""
    if isinstance(source, Fixed):
        return source.splits.train.take(slice(0, size))
    return task.sample(size, torch.Generator().manual_seed(0))


@torch.no_grad()
def check_answers(model: Model, task: Task, source: Source, options: Options) -> None:
    """Raise one line unless the model answers a batch in the shape that the task asks for."""
    like = trained_parameters(model)[1][0]
    batch = prepared(trial_batch(task, source), like, options)
    training = model.training
    model.eval()
    try:
        with torch.random.fork_rng(devices=[]), autocast(like, options):
            answers = model(batch.inputs, None, batch.lengths)[0]
    except MnemoscopeError:
        raise
    except RuntimeError as error:
        raise UserError(f"the network cannot answer {task.name}: {' '.join(str(error).split())[:300]}") from error
    finally:
        model.train(training)
    steps, size = batch.mask.shape
    wanted = (steps, size, task.output_size)
    known = [wanted, wanted[1:]] if batch.per_sequence else [wanted]
    if tuple(answers.shape) not in known:
        raise expected(
            "the answers of the network", f"of shape {wanted} (time, batch, output_size)", tuple(answers.shape)
        )
