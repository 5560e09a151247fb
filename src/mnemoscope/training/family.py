"""Networks of several depths with as many parameters as asked for: "depth 1, 2, 3 with 2^14 parameters"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from mnemoscope.core.errors import choice, expected, positive_int
from mnemoscope.nn.registry import create, get
from mnemoscope.nn.sizing import largest_within

__all__ = ["COUNTS", "Member", "count_parameters", "family"]

COUNTS = {
    "true": "every number that is learned, the readout's included",
    "published": "matrices between layers counted as n(n-1)/2 each, as in the tables of Ziv",
}
"""Ways to count."""

_MOST = 10**8
"""Parameters: networks are built to be counted, up to four times as large as the answer."""


class Member(NamedTuple):
    """A network of a family: the widest of its depth within the budget."""

    network: str
    num_layers: int
    hidden_size: int
    parameters: int


def count_parameters(
    network: str,
    hidden_size: int,
    num_layers: int = 1,
    *,
    input_size: int,
    output_size: int = 0,
    count: str = "true",
    **options: Any,
) -> int:
    """Return how many parameters a network has, with an affine readout to `output_size` numbers.

    For ``scornn``: L n(n-1)/2 + n d + (L-1) n^2 + L n + C n + C; ``count="published"`` puts n(n-1)/2 in place of each
    n^2 between layers.

    Examples
    --------
    >>> count_parameters("scornn", 76, input_size=34, output_size=34)
    8128
    """
    with torch.random.fork_rng(devices=[]):  # to count must not change what is drawn next
        layer = create(network, input_size=input_size, hidden_size=hidden_size, num_layers=num_layers, **options)
    own: int = sum(p.numel() * (2 if p.is_complex() else 1) for p in layer.parameters())
    readout = output_size * (int(layer.output_size) + 1) if output_size else 0
    if choice("count", count, COUNTS) == "true":
        return own + readout
    n = int(layer.hidden_size)
    between: int = sum(
        p.numel() - n * (n - 1) // 2
        for name, p in layer.named_parameters()
        if name.startswith("weight_ih_l") and not name.startswith("weight_ih_l0")
    )
    return own + readout - between


def family(
    network: str,
    parameters: int,
    depths: Sequence[int] = (1, 2, 3),
    *,
    input_size: int,
    output_size: int = 0,
    count: str = "true",
    **options: Any,
) -> list[Member]:
    """Return the widest network of each depth with at most so many parameters.

    Parameters
    ----------
    network
        A registry name.
    parameters
        The budget P.
    depths
        Numbers of layers.
    input_size, output_size
        Of the task; with an output size the affine readout counts as well.
    count
        ``"true"``, or ``"published"``: see `COUNTS`.
    options
        Options of the network.

    Examples
    --------
    >>> [member.hidden_size for member in family("scornn", 2**13, input_size=34, output_size=34)]
    [76, 48, 39]
    """
    get(network)
    budget = positive_int("parameters", parameters)
    if budget > _MOST:
        raise expected("parameters", f"at most {_MOST:,}", parameters)
    sizes = {"input_size": positive_int("input_size", input_size), "output_size": output_size}
    members = []
    for depth in depths:
        layers = positive_int("depths", depth)

        def at(size: int, layers: int = layers) -> int:
            return count_parameters(network, size, layers, count=count, **sizes, **options)

        if at(1) > budget:
            raise expected("parameters", f"at least {at(1)}, which {network} of depth {layers} has at size 1", budget)
        width = largest_within(at, budget)
        members.append(Member(network, layers, width, at(width)))
    return members
