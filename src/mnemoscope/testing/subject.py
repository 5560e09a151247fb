"""The network under test: how the checks build it, feed it and read its state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_leaves

from mnemoscope.core.errors import Description, expected
from mnemoscope.nn.state import State
from mnemoscope.testing.report import CheckFailed, Skipped

__all__ = ["Factory", "Network", "Subject", "class_of"]

Factory = Callable[..., nn.Module]
"""Builds a network: ``factory(input_size, hidden_size, **options)``, or ``factory()``."""

Network = Any
"""A `torch.nn.Module` with the verbs of a recurrent network; which of them it has is what the checks ask."""

TIME, BATCH = 5, 3
INPUT_SIZE, WIDTH = 3, 4
"""Sizes at which networks are built."""
CAPACITY = 12
"""Steps that a memory that grows can hold in a check."""
_DEFAULTS = {"num_layers": 1, "bidirectional": False, "batch_first": False, "dtype": None}


class Subject:
    """A factory of networks, and the one way in which all checks use what it builds.

    Parameters
    ----------
    factory
        A class, or a function ``(input_size, hidden_size, **options)``; or a function without arguments, whose
        sizes and options the checks cannot choose.
    """

    input_size: Any = INPUT_SIZE
    hidden_size: Any = WIDTH

    def __init__(self, factory: Factory) -> None:
        if isinstance(factory, nn.Module) or not callable(factory):
            raise expected("factory", "a class or a function that builds the network (lambda: MyRNN(3, 8))", factory)
        self.factory = factory
        self.name = getattr(getattr(factory, "func", factory), "__name__", type(factory).__name__)
        self._signature = _signature(factory)
        small = getattr(class_of(factory), "small_sizes", {})
        self.input_size = small.get("input_size", self.input_size)
        self.hidden_size = small.get("hidden_size", self.hidden_size)
        sizes = {"input_size": self.input_size, "hidden_size": self.hidden_size}
        self._by_keyword = not _binds(self._signature, *sizes.values()) and _binds(self._signature, **sizes)
        self.sized = self._by_keyword or _binds(self._signature, *sizes.values())
        if not self.sized and not _binds(self._signature):
            came = Description(f"{self.name}{self._signature}")
            raise expected(self.name, f"called as {self.name}(input_size, hidden_size) or {self.name}()", came)

    def build(self, *, input_size: Any = None, hidden_size: Any = None, **options: Any) -> Network:
        """Build a network for evaluation; `Skipped` says that the factory has no such option."""
        if options or input_size is not None or hidden_size is not None:
            self.require_sizes()
        if getattr(class_of(self.factory), "grows", False):
            options = {"capacity": CAPACITY, **options}
        for option in options:
            if not self.may_take(option):
                raise Skipped(f"the factory has no option {option!r}")
        try:
            network = self.call(
                self.input_size if input_size is None else input_size,
                self.hidden_size if hidden_size is None else hidden_size,
                **options,
            )
        except (TypeError, ValueError, NotImplementedError) as error:
            if any(option in str(error) for option in options):
                raise Skipped(" ".join(str(error).split())) from error
            raise
        if not isinstance(network, nn.Module):
            raise CheckFailed(f"return a torch.nn.Module from the factory, not {type(network).__name__}")
        kind = getattr(network, "kind", "recurrent")
        if kind != "recurrent":
            raise CheckFailed(f"check a network of the kind 'recurrent' here; this one says that it is {kind!r}")
        return network.eval()

    def build_deep(self, **options: Any) -> Network:
        """Build a network of two layers, where the factory can."""
        return self.build(num_layers=2, **options) if self.has("num_layers") else self.build(**options)

    def call(self, input_size: Any, hidden_size: Any, **options: Any) -> Any:
        """Call the factory as it wants to be called."""
        if not self.sized:
            return self.factory()
        if self._by_keyword:
            return self.factory(input_size=input_size, hidden_size=hidden_size, **options)
        return self.factory(input_size, hidden_size, **options)

    def require_sizes(self) -> None:
        """Skip the check unless the factory takes sizes."""
        if not self.sized:
            raise Skipped("the factory takes no arguments, so its sizes and options cannot be chosen")

    def may_take(self, option: str) -> bool:
        """Say whether the factory's signature leaves room for `option`."""
        parameters = self._signature.parameters.values()
        return any(p.name == option or p.kind is p.VAR_KEYWORD for p in parameters)

    def has(self, option: str) -> bool:
        """Say whether the factory builds with `option`, set to its default in `torch.nn.RNN`."""
        try:
            self.build(**{option: _DEFAULTS[option]})
        except (Skipped, TypeError, ValueError, NotImplementedError):
            return False
        return True

    def inputs(self, network: Network, *, time: int = TIME, batch: int = BATCH, width: int | None = None) -> Tensor:
        """Draw input of the network's type, ``(time, batch, width)`` whatever order the network takes."""
        return torch.randn(time, batch, *((width,) if width else self.shape(network)), dtype=_real_dtype(network))

    def shape(self, network: Network) -> tuple[int, ...]:
        """Return the shape of one input."""
        found = getattr(network, "input_shape", None)
        return found if isinstance(found, tuple) and len(found) > 1 else (self.width(network),)

    def require_vectors(self, network: Network) -> None:
        """Skip the check for a network that reads matrices or images."""
        if len(self.shape(network)) > 1:
            raise Skipped("the network reads arrays")

    def width(self, network: Network) -> int:
        """Return the width of the network's input."""
        if self.sized and isinstance(self.input_size, int):
            return self.input_size
        found = getattr(network, "input_size", None)
        if not isinstance(found, int):
            raise CheckFailed("give the network an attribute input_size, or check a factory that takes the sizes")
        return found

    def run(self, network: Network, x: Any, hx: State | None = None) -> tuple[Any, State]:
        """Call the network on input in the order (time, batch, features), and return output in that order."""
        given = self.given(network, x)
        answer = network(given) if hx is None else network(given, hx)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise CheckFailed(f"return the pair (output, hx) from forward, not {type(answer).__name__}")
        y, state = answer
        for leaf in tree_leaves((y.data if isinstance(y, PackedSequence) else y, state)):
            if isinstance(leaf, Tensor) and not bool(leaf.isfinite().all()):
                raise CheckFailed("keep outputs and states finite: here are NaN or infinity")
        return self.given(network, y), state

    def given(self, network: Network, x: Any) -> Any:
        """Turn batched tensors from the order (time, batch) into that of the network, or back."""
        axes = len(self.shape(network))
        turned = isinstance(x, Tensor) and x.dim() >= 2 + min(axes, 1) and getattr(network, "batch_first", False)
        turned = turned and not (axes > 1 and x.dim() == 1 + axes)
        return x.transpose(0, 1) if turned else x

    def state(self, network: Network, *, batch: int = BATCH) -> State:
        """Return a state that is not the initial one: that after two random inputs, without history."""
        with torch.no_grad():
            return self.run(network, self.inputs(network, time=2, batch=batch))[1]

    def batch_axis(self, network: Network) -> int:
        """Find where the batch stands in the leaves of the state, by changing the batch."""
        two, three = (tree_leaves(self.state(network, batch=b)) for b in (2, 3))
        axes = {_changing_axis(a, b) for a, b in zip(two, three, strict=True)}
        if len(axes) != 1 or None in axes:
            raise CheckFailed("keep the batch at one common axis, with one entry per example, in every tensor of hx")
        return int(axes.pop() or 0)

    def require(self, network: Network, *verbs: str) -> None:
        """Skip the check unless the network has all of `verbs`."""
        for verb in verbs:
            if not hasattr(network, verb):
                raise Skipped(f"the network has no {verb}")

    def require_causal(self, network: Network) -> None:
        """Skip the check for a network that says that it reads the future."""
        if getattr(network, "bidirectional", False) or not getattr(network, "causal", True):
            raise Skipped("the network says that it is not causal")


def class_of(factory: Any) -> type | None:
    """Return the class that a factory builds, or that a partial call is made of; None where that is not seen."""
    found = getattr(factory, "func", factory)
    return found if isinstance(found, type) else None


def _real_dtype(network: Network) -> torch.dtype:
    """Return the real type of the network's parameters."""
    own: list[torch.dtype] = [p.dtype for p in network.parameters() if p.is_floating_point() or p.is_complex()]
    return own[0].to_real() if own else torch.get_default_dtype()


def _signature(factory: Factory) -> inspect.Signature:
    try:
        return inspect.signature(factory)
    except ValueError:  # a builtin without one: leave the judgement to the call
        return inspect.signature(lambda *args, **kwargs: None)


def _binds(signature: inspect.Signature, *args: Any, **kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _changing_axis(two: Any, three: Any) -> int | None:
    if not isinstance(two, Tensor) or not isinstance(three, Tensor) or two.dim() != three.dim():
        return None
    axes = [axis for axis, pair in enumerate(zip(two.shape, three.shape, strict=True)) if pair == (2, 3)]
    return axes[0] if len(axes) == 1 and two.numel() * 3 == three.numel() * 2 else None
