"""Tensor network of a deep recurrent arithmetic circuit: its size, its cuts, and why inputs are duplicated."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import torch

from mnemoscope import measures, nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.measures.rac_graph.graph import RACGraph, build_graph
from mnemoscope.theory import mc
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_SIZES = ((4, 1), (2, 2), (4, 2), (3, 3), (6, 3), (4, 4))
_STEPS = 8


@theorem("ziv-claim-3", "ziv2020", "Claim 3")
def cloning(seed: int) -> Verdict:
    """No tensor network copies a vector: none maps every v in R^P to v (x) v.

    Check: random chains of tensors are linear in v, and no linear map copies P + 1 vectors, for P = 1 to 6.
    """
    random = np.random.default_rng(seed)
    curved, cases = 0.0, range(1, 7)
    copied = []
    for P in cases:
        first, second = random.normal(size=(P, 3, P)), random.normal(size=(3, P, P, P))
        a, b = random.normal(size=(2, P))

        def network(v: np.ndarray, first: np.ndarray = first, second: np.ndarray = second) -> np.ndarray:
            return np.asarray(np.einsum("p,pqr,qrst->st", v, first, second))

        curved = max(curved, float(np.abs(network(2 * a - 3 * b) - 2 * network(a) + 3 * network(b)).max()))
        vectors = np.vstack([np.eye(P, dtype=int), 2 * np.eye(P, dtype=int)[:1]])
        copies = np.stack([np.outer(v, v).ravel() for v in vectors])
        # A linear map with these values exists exactly when they add nothing to the rank of the vectors.
        ranks = [np.linalg.matrix_rank(table) for table in (vectors, np.hstack([vectors, copies]))]
        copied.append(ranks[0] == ranks[1])
    return Verdict(
        curved < 1e-9 and not any(copied),
        len(cases),
        f"random networks miss linearity by {curved:.0e}; of P = 1..6, {sum(copied)} have a linear map that copies "
        f"e_1, "
        f".., e_P and 2 e_1 (the proof's v = 1 is copied when P = 1)",
    )


@theorem("ziv-tensor-network", "ziv2020", "app. A.3")
def contraction(seed: int) -> Verdict:
    """With every input duplicated, the tensor network of a deep RAC contracts to what the RAC computes.

    Check: six sizes contracted tensor by tensor with random whole numbers, against the recurrence: exact.
    """
    rng = np.random.default_rng(seed)
    wrong = 0
    for T, L in _SIZES:
        shapes = {f"weight_ih_l{k}": (3, 3 if k else 2) for k in range(L)}
        shapes |= {f"weight_hh_l{k}": (3, 3) for k in range(L)}
        weights = {name: rng.integers(-4, 5, shape).astype(object) for name, shape in shapes.items()}
        x = rng.integers(-3, 4, (T, 2)).astype(object)
        wrong += _contracted(build_graph(2, 3, T, L), weights, x) != _recurrence(weights, x)
    return Verdict(not wrong, len(_SIZES), f"{wrong} exceptions for (T, L) = {', '.join(map(str, _SIZES))}, exact")


def _contracted(graph: RACGraph, weights: dict[str, Any], x: Any) -> int:
    """Contract a network from its leaves: nodes stand in an order in which what is below comes first."""
    value: dict[int, Any] = {}
    for node in graph.nodes[:-1]:
        if node.kind == "input":
            value[node.bonds[0]] = x[node.step - 1]
        elif node.kind == "delta":
            value[node.bonds[2]] = value[node.bonds[0]] * value[node.bonds[1]]
        else:
            name = {"W_I": "weight_ih_l", "W_H": "weight_hh_l"}[node.kind]
            value[node.bonds[0]] = weights[f"{name}{node.layer - 1}"] @ value[node.bonds[1]]
    return int(sum(value[graph.nodes[-1].bonds[0]]))


def _recurrence(weights: dict[str, Any], x: Any) -> int:
    layers = len(weights) // 2
    state: list[Any] = [1] * layers
    h = x[0]
    for h in x:
        for k in range(layers):
            h = state[k] * (weights[f"weight_ih_l{k}"] @ h)
            state[k] = weights[f"weight_hh_l{k}"] @ h
    return int(sum(h))


@theorem("ziv-claim-4", "ziv2020", "Claim 4")
def units(_: int) -> Verdict:
    """The Start-End unit occurs mc(T/2, L-1) times in layer 1 of the tensor network.

    Check: seven networks that are built: their units, leaves and copies of inputs, counted.
    """
    sizes = [(2, 1), (2, 4), (4, 2), (4, 3), (6, 2), (6, 3), (8, 3)]
    found = [measures.tensor_network((2, 2, L), T) for T, L in sizes]
    right = [
        one.units == mc(T // 2, L - 1)
        and one.leaves == theory.network_leaves(T, L)
        and tuple(one.copies) == theory.input_copies(T, L)
        for (T, L), one in zip(sizes, found, strict=True)
    ]
    evidence = "units: " + ", ".join(f"T={T}, L={L}: {one.units}" for (T, L), one in zip(sizes, found, strict=True))
    return Verdict(all(right), len(sizes), evidence)


@units.about("separation", lambda s: s.is_a(nn.RAC) and s.one_way and s.layers > 1)
def _(s: NetworkView) -> Instance:
    leaves, meetings = theory.network_leaves(_STEPS, s.layers), theory.start_end_units(_STEPS, s.layers)
    text = (
        f"As a tensor network over T = {_STEPS} steps it has {number(leaves)} inputs, copies counted, and start and "
        f"end "
        f"meet in {number(meetings)} of its units (one layer: in {number(mc(_STEPS // 2, 0))})."
    )
    return Instance(text, meetings, "exact")


@theorem("ziv-network-growth", "ziv2020", "app. A.3", severity="wrong result")
def growth(_: int) -> Verdict:
    """The tensor network of a RAC grows exponentially in size as its depth increases.

    Right: it has C(T+L-1, L) leaves: polynomial in L (degree T-1) and in T (degree L), exponential only in both
    together.
    Check: leaves of six networks that are built, and formulas up to L = 1000 against the polynomial (L+T-1)^(T-1).
    """
    leaves = theory.network_leaves
    built = all(build_graph(1, 1, T, L).count("input") == leaves(T, L) for T, L in _SIZES)
    below = [leaves(T, L) <= (L + T - 1) ** (T - 1) for T in (2, 4, 6) for L in (1, 10, 100, 1000)]
    both = all(leaves(n, n) == comb(2 * n - 1, n) >= 2 ** (n - 1) for n in range(1, 40))
    few, grown = ", ".join(f"L={L}: {leaves(6, L)}" for L in (1, 2, 4, 8, 16, 32)), leaves(6, 32) / leaves(6, 16)
    evidence = f"T=6: {few}; doubling L from 16 to 32 multiplies by {grown:.1f}, an exponential would square"
    return Verdict(built and all(below) and both and grown < 2**5, len(_SIZES) + len(below), evidence)


@theorem("ziv-min-cut", "ziv2020", "app. A.2 and B.1")
def cut(seed: int) -> Verdict:
    """The separation rank is the least Start-End cut of the tensor network at L=1, and never more than it at any L.

    Check: exact ranks of six random circuits, on more templates than there are input channels, against their cuts.
    """
    sizes = ((2, 3, 4, 1), (3, 2, 4, 1), (2, 5, 4, 1), (2, 2, 4, 2), (3, 2, 4, 2), (2, 2, 4, 3))
    found = []
    for M, R, T, L in sizes:
        generator = torch.Generator().manual_seed(seed)
        network = nn.RAC(M, R, num_layers=L, output_size=1, generator=generator, dtype=torch.float64)
        rank = measures.separation_rank(network, T, templates=4, seed=seed).rank
        found.append((L, rank, measures.tensor_network(network, T).rank_bound))
    right = all(rank == most if L == 1 else rank <= most for L, rank, most in found)
    return Verdict(right, len(sizes), "L: rank, cut: " + "; ".join(f"{L}: {rank}, {most}" for L, rank, most in found))
