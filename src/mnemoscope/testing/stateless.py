"""Checks of networks without a state: those that answer once, and sequences in, sequences out."""

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
from mnemoscope.testing.subject import Factory, Network, Subject, class_of

__all__ = ["STATELESS_CHECKS", "StatelessSubject", "is_stateless"]

SIZES = {"features": 3, "rank": 4, "length": 5, "classes": 2}
TIME, BATCH, LONG = 5, 4, 784
NOT_SIZES = (0, -3, 2.5, math.nan, "8", True)


def is_stateless(factory: Any) -> bool:
    """Say whether a class, or what is built without arguments, says that it has no state."""
    made: Any = class_of(factory)
    if made is None:
        try:
            made = factory()
        except Exception:  # the checks say what is wrong with it
            return False
    return getattr(made, "kind", "recurrent") != "recurrent"


class StatelessSubject(Subject):
    """A factory of networks without a state.

    Called as ``factory(features=, rank=, length=, classes=, **options)`` where it takes these, else with the sizes that
    the class names in `small_sizes`, or without arguments.
    """

    def __init__(self, factory: Factory) -> None:
        self.factory = factory
        self.name = getattr(getattr(factory, "func", factory), "__name__", type(factory).__name__)
        signature = inspect.signature(factory)
        for sizes in (SIZES, dict(getattr(class_of(factory), "small_sizes", {})), {}):
            try:
                signature.bind(**sizes)
            except TypeError:
                continue
            self.sizes: dict[str, Any] = sizes
            return
        raise expected(
            "factory", f"callable with {', '.join(SIZES)}, with its small_sizes, or without arguments", factory
        )

    def build(self, **options: Any) -> Network:
        """Build a network for evaluation."""
        known = inspect.signature(self.factory).parameters
        open_ended = any(p.kind is p.VAR_KEYWORD for p in known.values())
        for option in options:
            if not open_ended and option not in known:
                raise Skipped(f"the factory has no option {option!r}")
        network: Any = self.factory(**(self.sizes | options))
        if not isinstance(network, torch.nn.Module):
            raise CheckFailed(f"return a torch.nn.Module from the factory, not {type(network).__name__}")
        return network.eval()

    def inputs(self, network: Network, *, time: int = 0, batch: int = BATCH, width: int | None = None) -> Tensor:
        """Draw input of the network's type, in the network's order of time and batch."""
        steps = time or getattr(network, "length", getattr(network, "panels", TIME))
        shape = network.input_shape if width is None else (width,)
        order = (batch, steps) if network.batch_first else (steps, batch)
        return torch.randn(*order, *shape, dtype=next(network.parameters()).dtype)

    def axes(self, network: Network) -> tuple[int, int]:
        """Return where the batch stands in input and output."""
        own = 0 if network.batch_first else 1
        return own, 0 if network.output_at == "once" else own


_check = partial(check, made=StatelessSubject)


@_check("accept input of shape (time, batch, *input_shape), and return one answer, or one output for each step")
def check_answers(subject: StatelessSubject) -> None:
    """Input gives answers (batch, classes), or outputs step by step, of its type; also for batches of one and none."""
    network = subject.build()
    for batch in (BATCH, 1, 0) if network.output_at == "once" else (BATCH, 1):
        x = subject.inputs(network, batch=batch)
        y = network(x)
        wanted = (batch,) if network.output_at == "once" else x.shape[:2]
        wanted = (*wanted, *network.output_shape)
        require(tuple(y.shape) == wanted, f"return output of shape {wanted}, not {tuple(y.shape)}")
        require(y.dtype == x.dtype, f"return output of the input's type, not {y.dtype}")
        require(bool(y.isfinite().all()), "keep the output finite")


@_check("accept a batch of one example")
def check_answers_alone(subject: StatelessSubject) -> None:
    """Each example of a batch has the answer that it has alone, whatever was run before."""
    network = subject.build(dtype=torch.float64) if _takes(subject, "dtype") else subject.build().double()
    x, (before, after) = subject.inputs(network), subject.axes(network)
    alone = torch.cat([network(example.unsqueeze(before)) for example in x.unbind(before)], dim=after)
    require_close(alone, network(x), "keep the examples of a batch apart, and no state between calls")


@_check("let no output depend on later inputs, or set causal = False on the network")
def check_answers_causal(subject: StatelessSubject) -> None:
    """Later inputs do not change earlier outputs, where the network says that it is causal."""
    network = subject.build()
    if network.output_at == "once" or not network.causal:
        raise Skipped("the network answers once, or says that it is not causal")
    x = subject.inputs(network)
    time = 1 - subject.axes(network)[0]
    later = x.clone()
    later.narrow(time, 3, TIME - 3).add_(1)
    first, second = (y.narrow(time, 0, 3) for y in (network(x), network(later)))
    require_close(second, first, "let no output depend on later inputs, or set causal = False on the network")


@_check("use differentiable operations only")
def check_answers_gradients(subject: StatelessSubject) -> None:
    """Gradients with respect to the input and to every parameter are those of finite differences (float64)."""
    network = subject.build().double()
    x = subject.inputs(network, batch=2).requires_grad_()
    named = {name: p.detach().clone().requires_grad_() for name, p in network.named_parameters() if p.numel()}

    def combine(x: Tensor, *values: Tensor) -> Any:
        return functional_call(network, dict(zip(named, values, strict=True)), (x,)).sin().sum()

    try:
        gradcheck(combine, (x, *named.values()), fast_mode=True)
    except GradcheckError as error:
        raise CheckFailed("correct the gradients: they are not those of finite differences") from error


@_check("keep the size of long products apart from their digits")
def check_scores_long(subject: StatelessSubject) -> None:
    """Scores of 784 vectors, large and small, are finite and not all zero, and choose the class that float64 does."""
    _require_tensor_classifier(subject)
    network = subject.build(length=LONG)
    double = deepcopy(network).double()
    for factor in (1e-4, 1.0, 1e4):
        x = factor * subject.inputs(network)
        y = network(x)
        sound = bool(y.isfinite().all()) and bool((y != 0).any(dim=1).all())
        require(sound, f"let {LONG} factors neither overflow nor underflow: carry their scale apart from the product")
        require_same(y.argmax(1), double(x.double()).argmax(1), "choose the class that float64 chooses, at any length")


@_check("make evaluate(ring, exact_weights(ring), features) the scores in a ring")
def check_scores_exact(subject: StatelessSubject) -> None:
    """`evaluate` in floats gives what `forward` gives on the same features."""
    _require_tensor_classifier(subject)
    network, ring = subject.build(dtype=torch.float64), Real()
    subject.require(network, "evaluate", "exact_weights")
    x = subject.inputs(network)
    features = x if network.feature_map is None else network.feature_map(x)
    found = network.evaluate(ring, network.exact_weights(ring), features.detach().numpy())
    require_close(torch.from_numpy(found), network(x), "make evaluate the same function of the features as forward")


@_check("let copy.deepcopy, pickle and load_state_dict carry the network")
def check_answers_copies(subject: StatelessSubject) -> None:
    """A deepcopy, a pickled copy and another network with the same state_dict are the same function, bit for bit."""
    network = subject.build()
    loaded = subject.build()
    loaded.load_state_dict(network.state_dict())
    twins = [deepcopy(network), loaded]
    if "<locals>" not in type(network).__qualname__:
        twins.append(pickle.loads(pickle.dumps(network)))
    x = subject.inputs(network)
    for twin in twins:
        require_same(twin(x), network(x), "keep all that forward uses in parameters and buffers")


@_check("draw every initial value from the generator that is given")
def check_answers_generator(subject: StatelessSubject) -> None:
    """`generator=` alone decides the parameters; torch's global generator is not touched."""
    before = torch.get_rng_state()
    first, again, other = (
        dict(subject.build(generator=torch.Generator().manual_seed(seed)).named_parameters()) for seed in (1, 1, 2)
    )
    require_same(again, first, "draw every initial value from generator=, so that one seed gives one network")
    require(any(not torch.equal(first[k], other[k]) for k in first), "draw the initial values from generator=")
    require(torch.equal(before, torch.get_rng_state()), "draw nothing from torch's global generator")


@_check("write forward with operations that torch.func.vmap can batch")
def check_answers_vmap(subject: StatelessSubject) -> None:
    """`torch.func.vmap` over stacked parameters gives what a loop over the networks gives."""
    networks = [subject.build().double() for _ in range(3)]
    base, x = networks[0], subject.inputs(networks[0])
    if dict(base.named_buffers()):
        raise Skipped("the networks have buffers of their own")
    named = [dict(network.named_parameters()) for network in networks]
    stacked = {name: torch.stack([own[name].detach() for own in named]) for name in named[0]}
    batched = vmap(lambda parameters: functional_call(base, parameters, (x,)))(stacked)
    looped = torch.stack([network(x) for network in networks])
    require_close(batched, looped, "make vmap over stacked parameters give what a loop gives")


@_check("refuse sizes that are not positive integers")
def check_scores_sizes(subject: StatelessSubject) -> None:
    """Sizes that are not positive integers (0, -3, 2.5, nan, "8", True) are refused in one line with name and value."""
    _require_tensor_classifier(subject)
    for name in SIZES:
        for value in NOT_SIZES:
            require_refusal(partial(subject.factory, **(SIZES | {name: value})), f"{name}={value!r}", name, value)


@_check("refuse input that does not fit")
def check_answers_input(subject: StatelessSubject) -> None:
    """Input of another width, type or number of axes, and of another length where that is fixed, is refused."""
    network = subject.build()
    width = network.input_shape[-1]
    if hasattr(network, "length"):
        for time in (network.length + 2, network.length - 1):
            x = subject.inputs(network, time=time)
            require_refusal(partial(network, x), f"a sequence of {time} vectors", network.length, time)
    x = subject.inputs(network)
    wide = torch.cat([x, x[..., :2]], dim=-1)
    require_refusal(partial(network, wide), f"input of width {width + 2}", width, width + 2)
    if network.output_at == "once":
        require_refusal(partial(network, x[0]), "input without a batch", tuple(x[0].shape))
    require_refusal(partial(network, x.long()), "integer input", "int64")
    require_refusal(partial(network, x.tolist()), "a list as input", "list")


def _takes(subject: StatelessSubject, option: str) -> bool:
    try:
        subject.build(**{option: None})
    except (Skipped, TypeError, ValueError):
        return False
    return True


def _require_tensor_classifier(subject: StatelessSubject) -> None:
    if subject.sizes != SIZES:
        raise Skipped("the network is no tensor classifier")


STATELESS_CHECKS: list[Check] = [value for name, value in list(vars().items()) if name.startswith("check_")]
"""All checks of networks without a state, the plainest first."""
