"""Numbers of parameters: what is counted, and the size at which a network has as many as asked for.

Networks are compared at equal numbers of parameters of their recurrent part. That is every parameter of the network but
those of an embedding (modules `torch.nn.Embedding`, the feature map of a classifier), of the encoder of images that
relational networks share, and of a readout (weights of that role, as the networks of products have them): these depend
on the task, and are the same for all networks of one output size. A complex parameter counts as two numbers, one that
is used twice counts once, and what is not learned (buffers, signs, permutations) does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

import torch
from torch import nn

from mnemoscope.core.errors import Description, UserError, choice, expected, positive_int
from mnemoscope.nn.network import Network
from mnemoscope.nn.tensor_classifier import TensorClassifier

__all__ = ["COUNTED", "COUNTS", "Sized", "count_parameters", "size_within"]

COUNTS = {
    "recurrent": "the recurrent part: all that is learned, without an embedding, an encoder of images or a readout",
    "all": "every number that is learned, an affine readout included",
    "published": "as all, but matrices between layers count n(n-1)/2 each, as in the tables of Ziv",
}
"""Ways to count."""

COUNTED = (
    "parameters of the recurrent part: all that the network learns, without an embedding or an encoder of images and "
    "without a readout; complex numbers count twice"
)
"""The default way to count, in words for a page."""

_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)
_MOST = 10**8
"""Parameters: networks are built to be counted, up to four times as large as the answer."""
_AFTER = 64
"""Sizes that are tried after one that the network refuses."""
_FLAT = 256
"""The size by which a network must have more parameters than it began with."""


class Sized(NamedTuple):
    """A size of a network, and its parameters there.

    Attributes
    ----------
    size
        The hidden size n (for a classifier: the rank).
    parameters
        As they were counted.
    """

    size: int
    parameters: int


def count_parameters(network: nn.Module, count: str = "recurrent", readout_size: int = 0) -> int:
    """Return the number of parameters of a network.

    Parameters
    ----------
    network
        Any module.
    count
        One of `COUNTS`.
    readout_size
        C: with ``"all"`` and ``"published"`` an affine readout to so many numbers counts too, C (output_size + 1).

    Examples
    --------
    >>> import mnemoscope as ms
    >>> count_parameters(ms.nn.LSTM(10, 64)), count_parameters(ms.nn.RAC(3, 5, output_size=7))
    (19456, 40)
    >>> count_parameters(ms.nn.SCORNN(34, 76), "all", readout_size=34)
    8128
    """
    if not isinstance(network, nn.Module):
        raise expected("network", "a torch.nn.Module", Description(f"a {type(network).__name__}"))
    left_out = {id(p) for p in _around(network)} if choice("count", count, COUNTS) == "recurrent" else set()
    counted = sum(p.numel() * (2 if p.is_complex() else 1) for p in network.parameters() if id(p) not in left_out)
    if count != "recurrent" and readout_size:
        counted += readout_size * (int(network.output_size) + 1)  # type: ignore[arg-type]
    return counted - _unpublished(network) if count == "published" else counted


def size_within(
    name: str,
    build: Callable[[int], nn.Module],
    parameters: int,
    count: str = "recurrent",
    readout_size: int = 0,
) -> Sized:
    """Return the size at which a network has so many parameters.

    The recurrent part has nearest to so many: of the largest size with at most so many and the next one, that whose
    count is nearer. Counted otherwise, the network is the largest within the budget, as in Ziv.

    Parameters
    ----------
    name
        Of the network, in messages.
    build
        Makes it of a size. Some refuse sizes that are odd or small; the next that works is then taken.
    parameters
        How many.
    count, readout_size
        As in `count_parameters`.
    """
    budget = positive_int("parameters", parameters)
    if budget > _MOST:
        raise expected("parameters", f"at most {_MOST:,}", parameters)
    choice("count", count, COUNTS)

    def count_at(size: int) -> int:
        with torch.random.fork_rng(devices=[]):  # to count must not change what is drawn next
            return count_parameters(build(size), count, readout_size)

    @cache
    def at(size: int) -> Sized:
        return _first_that_works(name, count_at, size)

    least = at(1)
    if least.parameters > budget:
        raise expected("parameters", f"at least {least.parameters}, which {name} has at size {least.size}", budget)

    def counted(size: int) -> int:
        found = at(size).parameters
        if size >= _FLAT and found == least.parameters:
            raise UserError(f"{name} has {found} parameters at every size: none is found for {budget}")
        return found

    low = _largest_within(counted, budget, least.size)
    below = at(low)
    if count != "recurrent":
        return below
    above = at(low + 1)
    return above if above.parameters - budget < budget - below.parameters else below


def _around(network: nn.Module) -> Iterator[nn.Parameter]:
    """Yield the parameters of embeddings, encoders of images and readouts."""
    from mnemoscope.nn.relational import ImageEncoder

    for module in network.modules():
        if isinstance(module, (*_EMBEDDINGS, ImageEncoder)):
            yield from module.parameters()
        if isinstance(module, TensorClassifier) and module.feature_map is not None:
            yield from module.feature_map.parameters()
        if isinstance(module, Network):
            yield from (p for name, p in module.named_parameters() if module.role_of(name) == "readout")


def _unpublished(network: nn.Module) -> int:
    """Return by how much the matrices between layers exceed n(n-1)/2 each."""
    n = int(network.hidden_size)  # type: ignore[arg-type]
    return sum(
        p.numel() - n * (n - 1) // 2
        for name, p in network.named_parameters()
        if name.startswith("weight_ih_l") and not name.startswith("weight_ih_l0")
    )


def _first_that_works(name: str, count: Callable[[int], int], size: int) -> Sized:
    """Return the first size from here on that the network can have: some ask for even ones, or for enough units."""
    refusals = []
    for candidate in range(size, size + max(_AFTER, size)):
        try:
            return Sized(candidate, count(candidate))
        except Exception as error:  # a stranger's constructor may refuse a size as it likes
            refusals.append(error)
    said = " ".join(str(refusals[0]).split()) or type(refusals[0]).__name__
    if len({str(error) for error in refusals}) > 1:
        said = f"{name} cannot be built at any size from {size} to {candidate}: {said}"
    raise UserError(said if name in said else f"{name} cannot be built: {said}")


def _largest_within(count: Callable[[int], int], budget: int, least: int = 1) -> int:
    """Return the largest size whose count is at most the budget, by doubling and bisection."""
    low, high = least, 2 * least
    while count(high) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= budget else (low, middle)
    return low
