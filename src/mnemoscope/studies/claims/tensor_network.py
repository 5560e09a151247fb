"""Claims on the tensor network of a deep RAC: Ziv appendix A."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import torch

from mnemoscope.measures.rac_graph.graph import RACGraph, build_graph
from mnemoscope.measures.rac_graph.measure import tensor_network
from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.rac_graph import input_copies, network_leaves
from mnemoscope.theory.formulas.separation import mc

__all__: list[str] = []

_SIZES = ((4, 1), (2, 2), (4, 2), (3, 3), (6, 3), (4, 4))


@claim(
    "ziv-claim-3",
    "Ziv Claim 3",
    "no tensor network copies a vector: none maps every v in R^P to v (x) v",
    "proved",
)
def cloning(seed: int) -> Verdict:
    """A network is linear in v: the one that copies the basis is delta, and it fails at 2 e_1, also for P = 1."""
    sizes = range(1, 7)
    failed = []
    for P in sizes:
        delta = np.zeros((P, P, P))
        delta[(np.arange(P),) * 3] = 1
        basis = all((np.tensordot(e, delta, 1) == np.outer(e, e)).all() for e in np.eye(P))
        v = 2 * np.eye(P)[0]
        failed.append(basis and not (np.tensordot(v, delta, 1) == np.outer(v, v)).all())
    evidence = "delta copies e_1, .., e_P and gives 2 instead of 4 at 2 e_1; the proof's v = 1 is copied when P = 1"
    return Verdict(all(failed), len(sizes), evidence)


@claim(
    "ziv-tensor-network",
    "Ziv app. A.3",
    "with every input duplicated, the tensor network of a deep RAC contracts to what the RAC computes",
    "proved",
)
def contraction(seed: int) -> Verdict:
    """Contract it tensor by tensor with random whole numbers, and compare with the recurrence."""
    rng = np.random.default_rng(seed)
    wrong = []
    for T, L in _SIZES:
        weights = _whole_weights(2, 3, L, rng)
        x = rng.integers(-3, 4, (T, 2)).astype(object)
        if _contracted(build_graph(2, 3, T, L), weights, x) != _recurrence(weights, x):
            wrong.append((T, L))
    return Verdict(not wrong, len(_SIZES), f"{len(wrong)} exceptions for (T, L) = {', '.join(map(str, _SIZES))}, exact")


@claim(
    "ziv-claim-4",
    "Ziv Claim 4",
    "the Start-End unit occurs mc(T/2, L-1) times in layer 1 of the tensor network",
    "proved",
)
def units(seed: int) -> Verdict:
    """Count the units on networks that are built, with their leaves and copies of inputs."""
    sizes = [(2, 1), (2, 4), (4, 2), (4, 3), (6, 2), (6, 3), (8, 3)]
    found = [tensor_network((2, 2, L), T) for T, L in sizes]
    right = [
        one.units == mc(one.horizon // 2, one.num_layers - 1)
        and one.leaves == network_leaves(one.horizon, one.num_layers)
        and tuple(one.copies) == input_copies(one.horizon, one.num_layers)
        for one in found
    ]
    evidence = "units: " + ", ".join(f"T={T}, L={L}: {one.units}" for (T, L), one in zip(sizes, found, strict=True))
    return Verdict(all(right), len(sizes), evidence)


@claim(
    "ziv-network-growth",
    "Ziv app. A.3",
    "the tensor network of a RAC grows exponentially in size as its depth increases",
    "false",
    "it has C(T+L-1, L) leaves: polynomial in L (degree T-1) and in T (degree L), exponential only in both together",
)
def growth(seed: int) -> Verdict:
    """Compare leaves with the polynomial (L+T-1)^(T-1), counted on networks that are built where they are small."""
    built = all(build_graph(1, 1, T, L).count("input") == network_leaves(T, L) for T, L in _SIZES)
    depths = (1, 10, 100, 1000)
    below = [network_leaves(T, L) <= (L + T - 1) ** (T - 1) for T in (2, 4, 6) for L in depths]
    both = all(network_leaves(n, n) == comb(2 * n - 1, n) >= 2 ** (n - 1) for n in range(1, 40))
    few = ", ".join(f"L={L}: {network_leaves(6, L)}" for L in (1, 2, 4, 8, 16, 32))
    grown = network_leaves(6, 32) / network_leaves(6, 16)
    evidence = f"T=6: {few}; doubling L from 16 to 32 multiplies by {grown:.1f}, an exponential would square"
    return Verdict(built and all(below) and both and grown < 2**5, len(_SIZES) + len(below), evidence)


@claim(
    "ziv-min-cut",
    "Ziv app. A.2 and B.1",
    "the separation rank is the least Start-End cut of the tensor network at L=1, and never more than it at any L",
    "proved",
)
def cut(seed: int) -> Verdict:
    """Compare with exact ranks of random RACs, on more templates than there are input channels."""
    sizes = ((2, 3, 4, 1), (3, 2, 4, 1), (2, 5, 4, 1), (2, 2, 4, 2), (3, 2, 4, 2), (2, 2, 4, 3))
    found = []
    for M, R, T, L in sizes:
        generator = torch.Generator().manual_seed(seed)
        network = RAC(M, R, num_layers=L, output_size=1, generator=generator, dtype=torch.float64)
        rank = separation_rank(network, T, templates=4, seed=seed).rank
        found.append((L, rank, tensor_network(network, T).rank_bound))
    right = all(rank == most if L == 1 else rank <= most for L, rank, most in found)
    evidence = "L: rank, cut: " + "; ".join(f"{L}: {rank}, {most}" for L, rank, most in found)
    return Verdict(right, len(sizes), evidence)


def _whole_weights(M: int, R: int, L: int, rng: np.random.Generator) -> dict[str, Any]:
    shapes = {f"weight_ih_l{k}": (R, R if k else M) for k in range(L)}
    shapes |= {f"weight_hh_l{k}": (R, R) for k in range(L)}
    return {name: rng.integers(-4, 5, shape).astype(object) for name, shape in shapes.items()}


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
