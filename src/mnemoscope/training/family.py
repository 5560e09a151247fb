"""Networks of several depths with as many parameters as asked for: "depth 1, 2, 3 with 2^14 parameters"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mnemoscope.core.errors import positive_int
from mnemoscope.nn import NetworkSpec
from mnemoscope.nn.parameters import count_parameters

__all__ = ["SizedNetwork", "family"]


class SizedNetwork(NamedTuple):
    """A network of a family: the widest of its depth within the budget."""

    network: str
    num_layers: int
    hidden_size: int
    parameters: int


def family(
    network: str,
    parameters: int,
    depths: Sequence[int] = (1, 2, 3),
    *,
    input_size: int,
    output_size: int = 0,
    count: str = "all",
    **options: Any,
) -> list[SizedNetwork]:
    """Return the network of each depth with so many parameters: the widest within, unless ``count="recurrent"``.

    For ``scornn``: L n(n-1)/2 + n d + (L-1) n^2 + L n + C n + C; ``count="published"`` puts n(n-1)/2 in place of each
    n^2 between layers.

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
        One of `mnemoscope.nn.parameters.COUNTS`.
    options
        Options of the network.

    Examples
    --------
    >>> [member.hidden_size for member in family("scornn", 2**13, input_size=34, output_size=34)]
    [76, 48, 39]
    """
    members = []
    for depth in depths:
        spec = NetworkSpec(
            network,
            input_size=input_size,
            num_layers=positive_int("depths", depth),
            parameters=parameters,
            count=count,
            readout_size=output_size,
            options=options,
        ).resolved()
        counted = count_parameters(spec.build(), count, output_size)
        members.append(SizedNetwork(network, depth, int(spec.sizes["hidden_size"]), counted))
    return members
