"""Equal parameters: what is counted, and the size at which a network has as many as asked for.

Networks are compared at equal numbers of parameters of their recurrent part. That is every parameter of the network but
those of an embedding (modules `torch.nn.Embedding`, the feature map of a classifier) and of a readout (``weight_out``
of the networks of products): these depend on the task, and are the same for all networks of one output size. A complex
parameter counts as two numbers, one that is used twice counts once, and what is not learned (buffers, signs,
permutations) does not count.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import nn

from mnemoscope.core.errors import Description, UserError, expected, positive_int
from mnemoscope.nn.classifier import Classifier
from mnemoscope.nn.registry import get
from mnemoscope.nn.sizing import largest_within

__all__ = ["COUNTED", "Sized", "parameters_of", "size_for", "sized"]

COUNTED = (
    "parameters of the recurrent part: all that the network learns, without an embedding and without a readout; "
    "complex numbers count twice"
)
"""What is counted, in words for a page."""

_READOUTS = ("weight_out", "weight_out_reverse")
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
_AFTER = 64
"""How many sizes after one that the network refuses are tried."""
_FLAT = 256
"""The size by which a network must have more parameters than it began with."""

Count = Callable[[int], int]


class Sized(NamedTuple):
    """A size and what it has.

    Attributes
    ----------
    size
        The hidden size n (for a classifier: the rank).
    parameters
        Of the recurrent part, at this size.
    """

    size: int
    parameters: int


def parameters_of(network: nn.Module) -> int:
    """Return the number of parameters of the recurrent part; the module's docstring says what counts.

    Examples
    --------
    >>> import mnemoscope as ms
    >>> parameters_of(ms.nn.LSTM(10, 64)), parameters_of(ms.nn.RAC(3, 5, output_size=7))
    (19456, 40)
    """
    if not isinstance(network, nn.Module):
        raise expected("network", "a torch.nn.Module", Description(f"a {type(network).__name__}"))
    left_out = {id(parameter) for parameter in _around(network)}
    counted = (p for p in network.parameters() if id(p) not in left_out)
    return sum(p.numel() * (2 if p.is_complex() else 1) for p in counted)


def size_for(
    network: str | Callable[..., nn.Module], parameters: int, input_size: int, num_layers: int = 1, **options: Any
) -> int:
    """Return the hidden size at which a network's recurrent part has nearest to so many parameters.

    Of the largest size with at most so many and the next one, that whose count is nearer; the smaller of equals.

    Parameters
    ----------
    network
        A registry name, ``file.py:Class``, or a class or function that builds a network from ``input_size`` and
        ``hidden_size``, by these names or as its first two arguments.
    parameters
        How many, of the recurrent part.
    input_size
        Numbers per step of the input, d; features of a classifier, whose size is its rank.
    num_layers
        Layers, where the network has them.
    options
        Options of the network, such as ``rank=8`` of a cprnn, which stays as it is.

    Examples
    --------
    >>> size_for("lstm", 4096, input_size=4), size_for("scornn", 4096, input_size=4)
    (29, 86)
    """
    return sized(network, parameters, input_size, num_layers, **options).size


def sized(
    network: str | Callable[..., nn.Module], parameters: int, input_size: int, num_layers: int = 1, **options: Any
) -> Sized:
    """Return what `size_for` returns, with the count there.

    Examples
    --------
    >>> sized("lstm", 4096, input_size=4)
    Sized(size=29, parameters=4060)
    """
    budget = positive_int("parameters", parameters)
    name = network if isinstance(network, str) else getattr(network, "__name__", "the network")
    factory: Any = get(network) if isinstance(network, str) else network
    if not callable(factory) or isinstance(factory, nn.Module):
        raise expected("network", "a name, a class or a function that builds a network", network)
    build = _builder(name, factory, positive_int("input_size", input_size), num_layers, options)
    return _search(name, partial(_count, build), budget)


def _around(network: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the parameters of embeddings and readouts."""
    for module in network.modules():
        if isinstance(module, _EMBEDDINGS):
            yield from module.parameters()
        if isinstance(module, Classifier) and module.feature_map is not None:
            yield from module.feature_map.parameters()
        yield from (p for name, p in module.named_parameters(recurse=False) if name in _READOUTS)


def _builder(
    name: str, factory: Any, input_size: int, num_layers: int, options: dict[str, Any]
) -> Callable[[int], Any]:
    """Return a function of the size that builds the network."""
    if isinstance(factory, type) and issubclass(factory, Classifier):
        # What a count does not depend on much, where it is not told: an example's length and classes.
        rest = {"length": factory.counted_at["length"], "classes": factory.counted_at["classes"], **options}
        return lambda size: factory(features=input_size, rank=size, **rest)
    layers = positive_int("num_layers", num_layers)
    takes = inspect.signature(factory).parameters
    open_ended = any(p.kind is p.VAR_KEYWORD for p in takes.values())
    if layers > 1 and not (open_ended or "num_layers" in takes):
        raise expected("num_layers", f"1, as {name} has no layers", layers)
    keywords = {**({"num_layers": layers} if layers > 1 or "num_layers" in takes else {}), **options}
    if "hidden_size" not in takes and not open_ended:
        return lambda size: factory(input_size, size, **keywords)
    keywords |= {"input_size": input_size} if open_ended or "input_size" in takes else {}
    return lambda size: factory(hidden_size=size, **keywords)


def _count(build: Callable[[int], Any], size: int) -> int:
    with torch.random.fork_rng(devices=[]):  # to count must not change what is drawn next
        made = build(size)
    if not isinstance(made, nn.Module):
        raise expected("the network", "a torch.nn.Module", Description(f"a {type(made).__name__}"))
    return parameters_of(made)


def _search(name: str, count: Count, budget: int) -> Sized:
    @cache
    def at(size: int) -> Sized:
        return _first_that_works(name, count, size)

    least = at(1)
    if least.parameters > budget:
        raise expected("parameters", f"at least {least.parameters}, which {name} has at size {least.size}", budget)

    def counted(size: int) -> int:
        found = at(size).parameters
        if size >= _FLAT and found == least.parameters:
            raise UserError(f"{name} has {found} parameters at every size: none is found for {budget}")
        return found

    low = largest_within(counted, budget, least.size)
    below, above = at(low), at(low + 1)
    return above if above.parameters - budget < budget - below.parameters else below


def _first_that_works(name: str, count: Count, size: int) -> Sized:
    """Return the first size from here on that the network can have: some ask for even ones, or for enough units."""
    refusals = []
    for candidate in range(size, size + max(_AFTER, size)):
        try:
            return Sized(candidate, count(candidate))
        except Exception as error:  # a stranger's constructor may refuse a size as it likes
            refusals.append(" ".join(str(error).split()) or type(error).__name__)
    where = "" if len(set(refusals)) == 1 else f" at any size from {size} to {candidate}"
    raise UserError(f"{name} cannot be built{where}: {refusals[0]}")
