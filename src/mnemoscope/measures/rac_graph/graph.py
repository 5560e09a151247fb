"""The tensor network of a deep RAC, built node by node: tensors, the bonds between them, and places to draw them at."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

from mnemoscope.core.memory import require
from mnemoscope.theory.formulas.rac_graph import network_leaves, network_tensors

__all__ = ["KINDS", "Node", "RACGraph", "build_graph"]

KINDS = ("input", "initial", "W_I", "W_H", "delta", "W_O")
"""The kinds of tensors; ``initial`` is a learned state before the first input."""

_BYTES = 8000  # of a tensor with its bonds, in the graph and in the flow network of its cut


class Node(NamedTuple):
    """A tensor of the network.

    Attributes
    ----------
    kind
        One of `KINDS`.
    layer
        From 1; 0 for inputs, L for W_O.
    step
        From 1: of the input x_t, or of the state h_t that the tensor helps to compute.
    bonds
        The indices of the tensor, in the order of its axes.
    x, y
        Where it is drawn: leaves from left to right, layers from the bottom up.
    """

    kind: str
    layer: int
    step: int
    bonds: tuple[int, ...]
    x: float
    y: float


@dataclass(frozen=True)
class RACGraph:
    """The tensor network of a RAC.

    Attributes
    ----------
    M, R, L, T
        Input channels, hidden channels, layers, steps.
    nodes
        The tensors.
    sizes
        Of the bonds, M or R; every bond belongs to exactly two tensors.
    """

    M: int
    R: int
    L: int
    T: int
    nodes: tuple[Node, ...]
    sizes: tuple[int, ...]

    def count(self, kind: str) -> int:
        """Return how many tensors are of a kind."""
        return sum(node.kind == kind for node in self.nodes)

    def copies(self) -> tuple[int, ...]:
        """Return how many leaves each input has, for x_1, .., x_T."""
        found = Counter(node.step for node in self.nodes if node.kind == "input")
        return tuple(found[t] for t in range(1, self.T + 1))

    def units(self, start: tuple[int, ...]) -> tuple[int, ...]:
        """Return the tensors W_H of layer 1 that join start to end: their numbers in `nodes`."""
        return tuple(
            k
            for k, node in enumerate(self.nodes)
            if node.kind == "W_H" and node.layer == 1 and (node.step - 1 in start) != (node.step - 2 in start)
        )

    def hyperedges(self) -> tuple[int, ...]:
        """Return the hyperedge of each bond: the three legs of a delta node are one."""
        found = list(range(len(self.sizes)))

        def root(bond: int) -> int:
            while found[bond] != bond:
                found[bond] = found[found[bond]]
                bond = found[bond]
            return bond

        for node in self.nodes:
            if node.kind == "delta":
                for bond in node.bonds:
                    found[root(bond)] = root(node.bonds[-1])
        return tuple(root(bond) for bond in range(len(found)))


def build_graph(M: int, R: int, T: int, L: int, *, initial: bool = False) -> RACGraph:
    """Return the tensor network of a RAC after T steps; `initial`: with a vector for the state before the first."""
    leaves = network_leaves(T, L)
    require(
        f"a tensor network of {leaves} leaves (T={T}, L={L})",
        _BYTES * sum(network_tensors(T, L).values()),
        "mnemoscope.theory counts its parts and cuts it at any size without building it",
    )
    builder = _Builder(M, R, initial)
    top = builder.state(L, T)
    builder.add("W_O", L, T, (top,), builder.leaves, L + 0.5)
    return RACGraph(M, R, L, T, tuple(builder.nodes), tuple(builder.sizes))


class _Builder:
    """Adds tensors; a state is drawn above the last leaf of what computes it."""

    def __init__(self, M: int, R: int, initial: bool) -> None:
        self.M, self.R, self.initial = M, R, initial
        self.nodes: list[Node] = []
        self.sizes: list[int] = []
        self.leaves = 0

    def bond(self, size: int) -> int:
        self.sizes.append(size)
        return len(self.sizes) - 1

    def add(self, kind: str, layer: int, step: int, bonds: tuple[int, ...], x: float, y: float) -> None:
        self.nodes.append(Node(kind, layer, step, bonds, x, y))

    def state(self, layer: int, step: int) -> int:
        """Add everything that computes h of a layer after a step, and return the bond on which it leaves."""
        if layer == 0:
            return self.input(step)
        h, at = None, 0.0
        for t in range(1, step + 1):
            below = self.state(layer - 1, t)
            entering = self.bond(self.R)
            self.add("W_I", layer, t, (entering, below), self.leaves, layer - 0.5)
            carried = self.carried(layer, t, h, (at + self.leaves) / 2)
            h = entering if carried is None else self.product(layer, t, carried, entering)
            at = self.leaves
        assert h is not None
        return h

    def input(self, step: int) -> int:
        self.leaves += 1
        bond = self.bond(self.M)
        self.add("input", 0, step, (bond,), self.leaves, 0)
        return bond

    def carried(self, layer: int, step: int, h: int | None, middle: float) -> int | None:
        """Add what brings the past to the product, and return its bond; at the first step there may be none."""
        if h is None and not self.initial:
            return None
        bond = self.bond(self.R)
        if h is None:
            self.add("initial", layer, step, (bond,), self.leaves - 0.5, layer)
        else:
            self.add("W_H", layer, step, (bond, h), middle, layer)
        return bond

    def product(self, layer: int, step: int, carried: int, entering: int) -> int:
        out = self.bond(self.R)
        self.add("delta", layer, step, (carried, entering, out), self.leaves, layer)
        return out
