"""The checks of a classifier: (batch, length, features) in, one score for each class out."""

from __future__ import annotations

import inspect
import math
import pickle
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.func import functional_call, vmap

from mnemoscope.core.errors import expected
from mnemoscope.core.ring import Real
from mnemoscope.testing.checking import Check, check
from mnemoscope.testing.compare import require, require_close, require_refusal, require_same
from mnemoscope.testing.report import CheckFailed, Skipped
from mnemoscope.testing.subject import Factory, Network, Subject

__all__ = ["CLASSIFIER_CHECKS", "ClassifierSubject", "is_classifier"]

SIZES = {"features": 3, "rank": 4, "length": 5, "classes": 2}
BATCH, LONG = 4, 784
NOT_SIZES = (0, -3, 2.5, math.nan, "8", True)


def is_classifier(factory: Any) -> bool:
    """Say whether a class, or what a partial call is made of, says that it is a classifier."""
    return getattr(getattr(factory, "func", factory), "kind", None) == "classifier"


class ClassifierSubject(Subject):
    """A factory of classifiers: ``factory(features=, rank=, length=, classes=, **options)``."""

    def __init__(self, factory: Factory) -> None:
        self.factory = factory
        self.name = getattr(getattr(factory, "func", factory), "__name__", type(factory).__name__)
        try:
            inspect.signature(factory).bind(**SIZES)
        except TypeError:
            raise expected("factory", f"callable with {', '.join(SIZES)}", factory) from None

    def build(self, **options: Any) -> Network:
        """Build a classifier for evaluation."""
        network: Any = self.factory(**(SIZES | options))
        if not isinstance(network, torch.nn.Module):
            raise CheckFailed(f"return a torch.nn.Module from the factory, not {type(network).__name__}")
        return network.eval()

    def inputs(self, network: Network, *, time: int = 0, batch: int = BATCH, width: int | None = None) -> Tensor:
        """Draw input of the network's type, (batch, length, input_size)."""
        shape = (batch, time or network.length, width or network.input_size)
        return torch.randn(*shape, dtype=next(network.parameters()).dtype)


@check("accept input of shape (batch, length, input_size) and return (batch, classes)")
def check_scores(subject: Subject) -> None:
    """Input (batch, length, input_size) gives scores (batch, classes) of its type, also for a batch of one and none."""
    network = subject.build()
    for batch in (BATCH, 1, 0):
        y = network(subject.inputs(network, batch=batch))
        wanted = (batch, network.classes)
        require(tuple(y.shape) == wanted, f"return scores of shape {wanted}, not {tuple(y.shape)}")
        require(y.dtype == torch.get_default_dtype(), f"return scores of the input's type, not {y.dtype}")


@check("accept a batch of one example")
def check_scores_alone(subject: Subject) -> None:
    """Each example of a batch has the scores that it has alone, whatever was run before."""
    network = subject.build(dtype=torch.float64)
    x = subject.inputs(network)
    alone = torch.cat([network(example[None]) for example in x])
    require_close(alone, network(x), "keep the examples of a batch apart, and no state between calls")


@check("use differentiable operations only")
def check_scores_gradients(subject: Subject) -> None:
    """Gradients with respect to the input and to every parameter are those of finite differences (float64)."""
    network = subject.build(dtype=torch.float64)
    x = subject.inputs(network, batch=2).requires_grad_()
    named = {name: p.detach().clone().requires_grad_() for name, p in network.named_parameters()}

    def scores(x: Tensor, *values: Tensor) -> Any:
        return functional_call(network, dict(zip(named, values, strict=True)), (x,))

    try:
        gradcheck(scores, (x, *named.values()))
    except GradcheckError as error:
        raise CheckFailed("correct the gradients: they are not those of finite differences") from error


@check("keep the size of long products apart from their digits")
def check_scores_long(subject: Subject) -> None:
    """Scores of 784 vectors, large and small, are finite and not all zero, and choose the class that float64 does."""
    network = subject.build(length=LONG)
    double = deepcopy(network).double()
    for factor in (1e-4, 1.0, 1e4):
        x = factor * subject.inputs(network)
        y = network(x)
        sound = bool(y.isfinite().all()) and bool((y != 0).any(dim=1).all())
        require(sound, f"let {LONG} factors neither overflow nor underflow: carry their scale apart from the product")
        require_same(y.argmax(1), double(x.double()).argmax(1), "choose the class that float64 chooses, at any length")


@check("make evaluate(ring, exact_weights(ring), features) the scores in a ring")
def check_scores_exact(subject: Subject) -> None:
    """`evaluate` in floats gives what `forward` gives on the same features."""
    network, ring = subject.build(dtype=torch.float64), Real()
    subject.require(network, "evaluate", "exact_weights")
    x = subject.inputs(network)
    features = x if network.feature_map is None else network.feature_map(x)
    found = network.evaluate(ring, network.exact_weights(ring), features.detach().numpy())
    require_close(torch.from_numpy(found), network(x), "make evaluate the same function of the features as forward")


@check("let copy.deepcopy, pickle and load_state_dict carry the network")
def check_scores_copies(subject: Subject) -> None:
    """A deepcopy, a pickled copy and another network with the same state_dict are the same function, bit for bit."""
    network = subject.build()
    loaded = subject.build()
    loaded.load_state_dict(network.state_dict())
    x = subject.inputs(network)
    for twin in (deepcopy(network), pickle.loads(pickle.dumps(network)), loaded):
        require_same(twin(x), network(x), "keep all that forward uses in parameters and buffers")


@check("draw every initial value from the generator that is given")
def check_scores_generator(subject: Subject) -> None:
    """`generator=` alone decides the parameters; torch's global generator is not touched."""
    before = torch.get_rng_state()
    first, again, other = (
        dict(subject.build(generator=torch.Generator().manual_seed(seed)).named_parameters()) for seed in (1, 1, 2)
    )
    require_same(again, first, "draw every initial value from generator=, so that one seed gives one network")
    require(any(not torch.equal(first[k], other[k]) for k in first), "draw the initial values from generator=")
    require(torch.equal(before, torch.get_rng_state()), "draw nothing from torch's global generator")


@check("write forward with operations that torch.func.vmap can batch")
def check_scores_vmap(subject: Subject) -> None:
    """`torch.func.vmap` over stacked parameters gives what a loop over the networks gives."""
    networks = [subject.build(dtype=torch.float64) for _ in range(3)]
    base, x = networks[0], subject.inputs(networks[0])
    shared = dict(base.named_buffers())
    if shared:
        raise Skipped("the networks have buffers of their own")
    named = [dict(network.named_parameters()) for network in networks]
    stacked = {name: torch.stack([own[name].detach() for own in named]) for name in named[0]}
    batched = vmap(lambda parameters: functional_call(base, parameters, (x,)))(stacked)
    looped = torch.stack([network(x) for network in networks])
    require_close(batched, looped, "make vmap over stacked parameters give what a loop gives")


@check("refuse sizes that are not positive integers")
def check_scores_sizes(subject: Subject) -> None:
    """Sizes that are not positive integers (0, -3, 2.5, nan, "8", True) are refused in one line with name and value."""
    for name in SIZES:
        for value in NOT_SIZES:
            require_refusal(partial(subject.factory, **(SIZES | {name: value})), f"{name}={value!r}", name, value)


@check("refuse input that does not fit")
def check_scores_input(subject: Subject) -> None:
    """Sequences that are too long or too short, of another width, type or number of axes, are refused in one line."""
    network = subject.build()
    length, width = network.length, network.input_size
    for time in (length + 2, length - 1):
        x = subject.inputs(network, time=time)
        require_refusal(partial(network, x), f"a sequence of {time} vectors", length, time)
    x = subject.inputs(network, width=width + 2)
    require_refusal(partial(network, x), f"input of width {width + 2}", width, width + 2)
    x = subject.inputs(network)
    require_refusal(partial(network, x[0]), "input without a batch", tuple(x[0].shape))
    require_refusal(partial(network, x.long()), "integer input", "int64")
    require_refusal(partial(network, x.tolist()), "a list as input", "list")


CLASSIFIER_CHECKS: list[Check] = [value for name, value in list(vars().items()) if name.startswith("check_")]
"""All checks of classifiers, the plainest first."""
