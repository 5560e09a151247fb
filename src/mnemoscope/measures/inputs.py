"""Input sequences of measures that show what a network does: drawn, or given by whoever asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from mnemoscope.core.arrays import positive
from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.nn.recurrent import Recurrent

__all__ = ["answering", "arranged", "given_sequences", "input_sequences", "own_stream", "task_inputs"]


def input_sequences(
    network: Recurrent, horizon: int, trajectories: int, scale: float, inputs: Any, seed: int
) -> Float[Tensor, "time batch ..."]:
    """Return Gaussian inputs in float64, or those that were given, checked."""
    shape = tuple(network.input_shape)
    if inputs is None:
        steps, batch = positive_int("horizon", horizon), positive_int("trajectories", trajectories)
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randn(steps, batch, *shape, generator=generator, dtype=torch.float64)
        return positive("scale", scale) * drawn
    found = torch.as_tensor(inputs, dtype=torch.float64)
    if found.dim() != 2 + len(shape) or tuple(found.shape[2:]) != shape or not found.numel():
        wanted = ", ".join(str(size) for size in shape)
        raise expected("inputs", f"of shape (time, trajectories, {wanted})", tuple(found.shape))
    if not bool(found.isfinite().all()):
        raise expected("inputs", "finite", Description("NaN or infinity"))
    return found


def given_sequences(inputs: Any, width: int) -> Float[Tensor, "time batch input"]:
    """Return sequences of one's own, checked: (time, sequences, width); of one (time, width), or (time,) of width 1."""
    found = torch.as_tensor(inputs, dtype=torch.float64)
    found = found[:, None] if found.dim() == 1 and width == 1 else found
    found = found[:, None] if found.dim() == 2 else found
    if found.dim() != 3 or found.shape[2] != width or not found.numel():
        wanted = f"of shape (time, sequences, {width}), or (time, {width}) of one"
        raise expected("inputs", wanted, tuple(torch.as_tensor(inputs).shape))
    if not bool(found.isfinite().all()):
        raise expected("inputs", "finite", Description("NaN or infinity"))
    return found


def own_stream(
    sequences: Float[Tensor, "time batch input"], trajectories: int, generator: torch.Generator
) -> Callable[[int], Float[Tensor, "steps trajectories input"]]:
    """Return what gives the next steps: every trajectory reads all sequences, joined end to end.

    Each does so in an order and from a place of its own, and begins anew where they end.
    """
    time, count, _ = sequences.shape
    orders = torch.stack([torch.randperm(count, generator=generator) for _ in range(trajectories)], dim=1)
    places = torch.randint(time * count, (trajectories,), generator=generator)

    def draw(steps: int) -> Tensor:
        at = places + torch.arange(steps)[:, None]
        places.add_(steps)
        return sequences[at % time, orders.gather(0, at // time % count)]

    return draw


def arranged(network: Recurrent, x: Float[Tensor, "time batch ..."]) -> Tensor:
    """Return inputs of the network's own type and order of time and batch."""
    like = next(network.parameters(), None)  # a reservoir may have none
    x = x.to(network.flatten_state(network.init_state(1)) if like is None else like)
    return x.transpose(0, 1) if network.batch_first else x


@contextmanager
def answering(network: Recurrent) -> Iterator[None]:
    """Let a network answer instead of learning: nothing is dropped or cut."""
    training = network.training
    network.eval()
    try:
        yield
    finally:
        network.train(training)


def task_inputs(
    name: str, width: int, trajectories: int, generator: torch.Generator
) -> Float[Tensor, "time batch input"]:
    """Return the inputs of a task in float64, of its usual settings.

    Tokens become one-hot vectors, or unit normal ones, drawn once for each token, where `width` is another number than
    that of the vocabulary.
    """
    from mnemoscope.tasks import create  # tasks that read files import what reads them

    task = create(name)
    found = task.sample(trajectories, generator).inputs
    if not isinstance(found, Tensor):
        raise UserError(
            f"the task {name} has images in panels for inputs, which no recurrent network reads step by step"
        )
    if task.embedding is not None:
        one_hot = width == task.embedding
        drawn = torch.randn(task.embedding, width, generator=generator, dtype=torch.float64)
        table = torch.eye(width, dtype=torch.float64) if one_hot else drawn
        return table[found]
    flat = found.to(torch.float64).flatten(2)
    if flat.shape[2] != width:
        raise UserError(f"the task {name} has {flat.shape[2]} inputs a step, got a network of {width}")
    return flat
