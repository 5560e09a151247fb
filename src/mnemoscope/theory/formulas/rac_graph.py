"""The tensor network of a deep recurrent arithmetic circuit, counted without being built.

A tensor network cannot copy a vector, so whatever a deep RAC uses twice appears twice, down to the inputs. T steps, L
layers, M input channels, R hidden channels; steps of a partition count from 0, as everywhere in Mnemoscope.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from math import comb, log

from mnemoscope.core.errors import expected, positive_int
from mnemoscope.theory.formulas.separation import mc

__all__ = ["input_copies", "network_leaves", "network_min_cut", "network_tensors", "start_end_units"]

_Cut = tuple[int, int]
_Below = tuple[_Cut, _Cut]


def network_leaves(T: int, L: int) -> int:
    """Return how many inputs the tensor network of a RAC has, copies counted: C(T + L - 1, L).

    Parameters
    ----------
    T, L
        Steps, layers.

    Examples
    --------
    >>> network_leaves(T=6, L=3)
    56
    """
    _check(T, L)
    return comb(T + L - 1, L)


def input_copies(T: int, L: int) -> tuple[int, ...]:
    """Return how often each input appears: mc(T - t + 1, L - 1) times x_t, for t = 1, .., T.

    Parameters
    ----------
    T, L
        Steps, layers.

    Examples
    --------
    >>> input_copies(T=6, L=3)
    (21, 15, 10, 6, 3, 1)
    """
    _check(T, L)
    return tuple(mc(T - t, L - 1) for t in range(T))


def start_end_units(T: int, L: int, start: Iterable[int] | None = None) -> int:
    """Return how many bonds of layer 1 join start to end: mc(T/2, L - 1) for halves (Claim 4 of Ziv).

    For another partition the units of all changes of side are added up.

    Parameters
    ----------
    T, L
        Steps, layers.
    start
        The steps, from 0, of the start set; by default the first half.

    Examples
    --------
    >>> start_end_units(T=6, L=3), start_end_units(T=6, L=3, start=(0, 2, 4))
    (6, 35)
    """
    _check(T, L)
    first = _start(T, start)
    return sum(mc(T - t, L - 1) for t in range(1, T) if (t in first) != (t - 1 in first))


def network_tensors(T: int, L: int) -> dict[str, int]:
    """Return how many tensors of each kind the network has: inputs, matrices W_I, W_H and W_O, and delta nodes.

    The state of layer l after step t appears mc(T - t + 1, L - l) times, each time with its own W_I; from the second
    step on also with its own W_H and delta.

    Parameters
    ----------
    T, L
        Steps, layers.

    Examples
    --------
    >>> network_tensors(T=4, L=2)
    {'input': 10, 'W_I': 14, 'W_H': 9, 'delta': 9, 'W_O': 1}
    """
    _check(T, L)
    entering = sum(comb(T + above, above + 1) for above in range(L))
    carried = sum(comb(T + above - 1, above + 1) for above in range(L))
    return {"input": network_leaves(T, L), "W_I": entering, "W_H": carried, "delta": carried, "W_O": 1}


def network_min_cut(M: int, R: int, T: int, L: int, start: Iterable[int] | None = None) -> tuple[int, int]:
    """Return the least cut between start and end inputs: how many hyperedges of size R and legs of size M it crosses.

    R^a M^b of the two numbers bounds the separation rank from above: the matrix of the function is a part of the
    matrix in which all copies vary independently, and that one factors through what is cut. A delta node with its three
    legs is one hyperedge. Equal subtrees have equal cuts, so T L small comparisons find it.

    Parameters
    ----------
    M, R, T, L
        Input channels, hidden channels, steps, layers.
    start
        The steps, from 0, of the start set; by default the first half.

    Examples
    --------
    >>> network_min_cut(M=4, R=3, T=6, L=1), network_min_cut(M=2, R=16, T=6, L=1)
    ((1, 0), (0, 3))
    """
    _check(T, L)
    positive_int("M", M)
    positive_int("R", R)
    first = _start(T, start)

    def least(cuts: Iterable[_Cut]) -> _Cut:
        return min(cuts, key=lambda cut: (cut[0] * log(R) + cut[1] * log(M), cut))

    # Each entry: the least cut below a bond when the tensor above it is on the end's side (0) or the start's (1).
    below: list[_Below] = [((0, int(t in first)), (0, int(t not in first))) for t in range(T)]
    for _ in range(L):
        layer = [_joined(None, below[0], least)]
        for t in range(1, T):
            layer.append(_joined(layer[-1], below[t], least))
        below = layer
    return least(below[-1])


def _joined(carried: _Below | None, entering: _Below, least: Callable[[Iterable[_Cut]], _Cut]) -> _Below:
    """Join the bonds under one hyperedge, which is cut unless all its tensors are on one side."""
    past = ((0, 0), (0, 0)) if carried is None else carried

    def crossed(above: int) -> Iterator[_Cut]:
        for (a, old), (b, new) in product(enumerate(past), enumerate(entering)):
            yield old[0] + new[0] + int(not a == b == above), old[1] + new[1]

    return least(crossed(0)), least(crossed(1))


def _start(T: int, start: Iterable[int] | None) -> set[int]:
    if start is None and T % 2:
        raise expected("T", "even, so that it has two halves", T)
    return set(range(T // 2)) if start is None else set(start)


def _check(T: int, L: int) -> None:
    positive_int("T", T)
    positive_int("L", L)
