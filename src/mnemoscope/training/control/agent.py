"""Agent: an encoder of what is seen, any recurrent network, and heads for policy and value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from mnemoscope.core.errors import Description, expected
from mnemoscope.nn.adapt import adapt
from mnemoscope.nn.state import State
from mnemoscope.tasks.control import Environment
from mnemoscope.training.model import Model, linear, require_step

__all__ = ["Answer", "Heads", "answers", "build_agent", "enlarged", "renewed", "room", "stepper"]

_WIDTH = 64
"""Units of the hidden layer of each head."""


class Answer(NamedTuple):
    """What an agent says of observations: logarithms of the actions' probabilities, and the value."""

    log_probabilities: Float[Tensor, "*batch actions"]
    value: Float[Tensor, "*batch"]


class Heads(nn.Module):
    """Policy and value, each by one hidden layer of tanh units; the value is the last number."""

    def __init__(self, inputs: int, actions: int, generator: torch.Generator) -> None:
        super().__init__()
        self.policy = nn.Sequential(linear(inputs, _WIDTH, generator), nn.Tanh(), linear(_WIDTH, actions, generator))
        self.value = nn.Sequential(linear(inputs, _WIDTH, generator), nn.Tanh(), linear(_WIDTH, 1, generator))

    def forward(self, hidden: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch answers"]:
        """Return logits and value, one after the other."""
        return torch.cat([self.policy(hidden), self.value(hidden)], dim=-1)


def answers(given: Float[Tensor, "*batch answers"], like: Tensor) -> Answer:
    """Return what the numbers of `Heads` mean, in the number type of `like`."""
    given = given.to(like.dtype)
    return Answer(given[..., :-1].log_softmax(-1), given[..., -1])


def build_agent(layer: Any, environment: Environment, generator: torch.Generator) -> Model:
    """Put around a recurrent network what an environment needs; one line says what does not fit.

    Parameters
    ----------
    generator
        Draws the weights of encoder and heads.
    """
    if isinstance(layer, Model):
        raise expected("layer", "a recurrent network: its heads are put behind it", Description("a Model"))
    if not isinstance(layer, nn.Module):
        raise expected("layer", "a torch.nn.Module", Description(f"a {type(layer).__name__}"))
    made = adapt(layer)
    name = getattr(getattr(made, "card", None), "name", None) or type(getattr(made, "module", made)).__name__
    require_step(made, name)
    made.require_causal("control")
    if made.input_size != environment.input_size:
        raise expected(
            "input_size of the layer",
            f"{environment.input_size}, as the environment {environment.name} has",
            made.input_size,
        )
    like = next((p for p in made.parameters() if p.is_floating_point()), torch.zeros(()))
    encoder, heads = environment.encoder(generator), Heads(made.output_size, environment.actions, generator)
    for part in (encoder, heads):
        if part is not None:
            part.to(device=like.device, dtype=like.dtype.to_real() if like.is_complex() else like.dtype)
    if len(made.input_shape) > 1:  # a network of matrices reads the numbers in its own shape
        encoder = nn.Sequential(encoder or nn.Identity(), nn.Unflatten(-1, made.input_shape))
    return Model(encoder, made, heads)


@contextmanager
def room(model: Model, steps: int) -> Iterator[None]:
    """Give a memory that grows room for so many steps: what an episode takes, never less."""
    layer: Any = model.layer
    before = layer.capacity
    if layer.grows:
        layer.capacity = steps if before is None else max(before, steps)
    try:
        yield
    finally:
        layer.capacity = before


def renewed(layer: Any, state: State, begins: Bool[Tensor, " batch"], fresh: State) -> State:
    """Return a state in which the examples where an episode begins have that of the beginning."""

    def choose(new: Tensor, old: Tensor) -> Tensor:
        shape = [1] * old.dim()
        shape[layer.batch_axis] = len(begins)
        return torch.where(begins.reshape(shape), new, old)

    return tree_map(choose, fresh, state)


def enlarged(model: Model, state: State, like: Tensor, copies: int) -> State:
    """Return a state with as many slots as there is room for; the new ones are empty."""
    fresh = model.layer.init_state(copies, device=like.device, dtype=like.dtype)

    def put(new: Tensor, old: Tensor) -> Tensor:
        if new.shape == old.shape:
            return old
        new[tuple(slice(size) for size in old.shape)] = old
        return new

    return tree_map(put, fresh, state)


def stepper(model: Model) -> Callable[[Any, State], tuple[Float[Tensor, "batch answers"], State]]:
    """Return the agent for many steps: from an observation and a state to the heads' numbers and the next state."""
    layer: Any = model.layer
    advance = layer.stepper()

    def step(seen: Any, state: State) -> tuple[Tensor, State]:
        x = seen if model.embedding is None else model.embedding(seen)
        y, state = advance(x, state)
        return model.answers(y.flatten(1)), state

    return step
