"""Claims on the Start-End separation rank of recurrent arithmetic circuits: Ziv chapter 2, appendices A and B."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import torch

from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.measures.separation.conjecture import ConjectureLab, conjecture_lab
from mnemoscope.measures.separation.grid import RingWalk, evaluate_grid
from mnemoscope.measures.separation.rank import separation_rank
from mnemoscope.measures.separation.saturation import separation_saturation
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.separation import (
    attaining_weights,
    conjecture_bound,
    conjecture_weights,
    mc,
    separation_lower,
    separation_theorem,
    separation_upper,
)

__all__: list[str] = []

_FIELD = Prime(PRIMES[0])


@claim(
    "ziv-theorem-1-shallow",
    "Ziv Thm. 1 (1)",
    "the separation rank of almost every RAC with one layer is min(R, M^(T/2))",
    "proved",
)
def shallow(seed: int) -> Verdict:
    """Compare with exact ranks of random weights."""
    return _verdict(conjecture_lab((2, 3), (1, 2, 3, 5), (2, 4, 6), (1,), 1, seed), "theorem 1, depth 1")


@claim(
    "ziv-theorem-1-deep",
    "Ziv Thm. 1 (2)",
    "the separation rank of almost every RAC with two layers is at least mc(min(M, R), T/2)",
    "proved",
)
def deep(seed: int) -> Verdict:
    """Compare with exact ranks of random weights, which exceed the bound unless T = 2 or min(M, R) = 1."""
    lab = conjecture_lab((1, 2, 3), (1, 2, 3), (2, 4, 6), (2,), 1, seed)
    found = _verdict(lab, "theorem 1, depth 2")
    b = lab.bounds.index("theorem 1, depth 2")
    trivial = (lab.cases[:, 2] == 2) | (lab.cases[:, :2].min(axis=1) == 1)
    as_said = bool(((lab.attained[:, b] == 1) == trivial).all())
    return Verdict(found.confirmed and as_said, found.cases, found.evidence + "; attained only at T=2 or min(M, R)=1")


@claim(
    "ziv-depth-two-rank",
    "Ziv Thm. 1 (2), sharpened",
    "on one-hot templates the rank at depth 2 is min(R mc(R, T/2), min(M, R) M^(T/2-1))",
    "measured",
)
def depth_two(seed: int) -> Verdict:
    """Compare with exact ranks of random weights."""
    return _verdict(conjecture_lab((2, 3, 4), (2, 3, 4), (4, 6), (2,), 1, seed), "depth-2 formula")


@claim(
    "ziv-conjecture-1",
    "Ziv Conj. 1",
    "the separation rank of almost every RAC with L layers is at least min(mc(min(M, R), mc(T/2, L-1)), M^(T/2))",
    "measured",
)
def conjecture(seed: int) -> Verdict:
    """Compare with exact ranks of random weights at depths 3 and 4."""
    lab = conjecture_lab((2, 3, 4), (2, 3, 4), (4, 6), (3,), 1, seed)
    deeper = conjecture_lab((2, 3), (2, 3), (2, 4), (4,), 1, seed)
    found = [_verdict(each, "conjecture 1") for each in (lab, deeper)]
    return Verdict(all(v.confirmed for v in found), sum(v.cases for v in found), "; ".join(v.evidence for v in found))


@claim(
    "ziv-separation-upper",
    "Ziv Thm. 1, upper bound of our own",
    "the separation rank is at most min(prod_l mc(R, mc(T/2, L-l)), prod_j mc(min(M, R), mc(j, L-1)))",
    "proved",
)
def upper(seed: int) -> Verdict:
    """Compare with exact ranks on one-hot templates, and on enough random ones, where it is met."""
    found = _verdict(conjecture_lab((2, 3), (2, 3), (2, 4, 6), (1, 2, 3), 1, seed), "upper bound")
    met = 0
    sizes = ((2, 2, 4, 2, 4), (2, 3, 4, 2, 4), (3, 2, 2, 3, 4), (2, 2, 4, 3, 5))
    for M, R, T, L, count in sizes:
        met += separation_rank(_network(M, R, L, seed), T, count, seed=seed).rank == separation_upper(M, R, T, L)
    evidence = f"{found.evidence}; met on random templates in {met} of {len(sizes)}"
    return Verdict(found.confirmed and met == len(sizes), found.cases + len(sizes), evidence)


@claim(
    "ziv-float-rank",
    "Ziv Claims 1 and 2, computed",
    "the rank of a grid can be read from its singular values in float64",
    "false",
    "count modulo a large prime; show the float rank with its gap, and as unreliable when the gap is closed",
)
def float_rank(seed: int) -> Verdict:
    """Find float ranks that differ from the exact ones, most of them called unreliable."""
    wrong, believed, cases, witness = 0, 0, 0, ""
    for L, M, R, T in itertools.product((2, 3), (2, 3, 4), (2, 3, 4), (6,)):
        network = _network(M, R, L, seed)
        exact, floats = separation_rank(network, T), separation_rank(network, T, exact=False)
        cases += 1
        if floats.rank != exact.rank:
            wrong += 1
            believed += floats.reliable
            witness = f"{floats.rank} instead of {exact.rank} at M={M}, R={R}, T={T}, L={L} (gap {floats.gap:.2g})"
    evidence = f"wrong in {wrong} of {cases}, {believed} of these called reliable; {witness}"
    return Verdict(wrong > 0 and 4 * believed < wrong, cases, evidence)


@claim(
    "ziv-templates",
    "Ziv §2.2.2, Claim 2",
    "M templates show the separation rank of a deep RAC, which is at most M^(T/2)",
    "false",
    "for L >= 2 the function is not multilinear: with more templates than channels the rank can exceed M^(T/2)",
)
def templates(seed: int) -> Verdict:
    """Count templates at M = R = 2, T = 4, L = 2: rank 4 with two, 6 with three or more."""
    ranks = separation_saturation(_network(2, 2, 2, seed), 4, (2, 3, 4, 5), seed=seed).ranks.tolist()
    linear = separation_saturation(_network(2, 3, 1, seed), 4, (2, 3, 4), seed=seed).ranks.tolist()
    right = ranks == [4, 6, 6, 6] and len(set(linear)) == 1
    return Verdict(right, 7, f"M=R=2, T=4, L=2: ranks {ranks} with 2, 3, 4, 5 templates; at L=1 always {linear[0]}")


@claim(
    "ziv-initial-state",
    "Ziv Eq. 1.2, A.3, B.2",
    "the first product is neutral for h_0 = pinv(W_H) 1, and h_0 may be any state",
    "false",
    "h_0 = 0 gives the zero function, pinv fails for singular W_H: start from the left factor W_H h_0 = 1 itself",
)
def initial_state(seed: int) -> Verdict:
    """Show that a singular W_H has no such h_0, that h_0 = 0 kills the output, and that ones as the factor work."""
    draw = np.random.default_rng(seed)
    hidden = draw.normal(size=(3, 2)) @ draw.normal(size=(2, 3))
    miss = float(np.abs(hidden @ np.linalg.pinv(hidden) @ np.ones(3) - 1).max())
    network = _network(2, 3, 1, seed)
    with torch.no_grad():
        network.get_parameter("weight_hh_l0").copy_(torch.from_numpy(hidden))
    inputs = torch.from_numpy(draw.normal(size=(3, 1, 2)))
    zero = float(network(inputs, torch.zeros(1, 1, 3, dtype=torch.float64))[0].detach().abs().max())
    first = network.get_parameter("weight_out") @ network.get_parameter("weight_ih_l0") @ inputs[0, 0]
    right = torch.allclose(network(inputs)[0][0, 0], first)
    evidence = f"W_H pinv(W_H) 1 misses 1 by {miss:.2g} at rank 2 of 3; from h_0 = 0 the largest output is {zero:g}"
    return Verdict(miss > 1e-6 and zero == 0 and right, 3, evidence)


@claim(
    "ziv-attaining-weights",
    "Ziv B.2",
    "the weights of Theorem 1's proof have the separation rank mc(min(M, R), T/2)",
    "proved",
)
def attaining(seed: int) -> Verdict:
    """Build them modulo a prime and count."""
    cases = list(itertools.product((2, 3), (2, 3, 4), (4, 6)))
    right = sum(
        _rank_of(attaining_weights(_FIELD, M, R, T, base=3 + seed), M, T) == mc(min(M, R), T // 2) for M, R, T in cases
    )
    digits = int(10**3 * math.log10(3)) + 1
    return Verdict(
        right == len(cases), len(cases), f"equal in {right} of {len(cases)}; with z=3, T=6 one has {digits} digits"
    )


@claim(
    "ziv-conjecture-motivation",
    "Ziv A.4",
    "the assignment with W_H1 = I supports Conjecture 1 at any depth",
    "false",
    "its rank is at most mc(M, T/2); a generic W_H1, rank-one W_I2, W_H = I above, W_I3 of ones meet the bound",
)
def motivation(seed: int) -> Verdict:
    """Count the rank of both assignments at depth 3."""
    sizes = [(2, 2, 4), (2, 3, 4), (3, 3, 4), (3, 4, 4), (2, 2, 6), (2, 3, 6), (3, 3, 6), (2, 4, 6), (2, 2, 8)]
    low, met, witness = 0, 0, ""
    for M, R, T in sizes:
        bound = conjecture_bound(M, R, T, 3)
        generic = conjecture_weights(_FIELD, M, R, T, 3, seed=seed)
        met += _rank_of(generic, M, T) >= bound
        rank = _rank_of(generic | {"weight_hh_l0": _FIELD.array(np.eye(R))}, M, T)
        low += rank <= mc(M, T // 2) < bound
        witness = witness or f"M={M}, R={R}, T={T}, L=3: rank {rank} with W_H1 = I, bound {bound}"
    evidence = f"{witness}; a generic W_H1 met the bound in {met} of {len(sizes)}"
    return Verdict(low == met == len(sizes), 2 * len(sizes), evidence)


@claim(
    "ziv-conjecture-coincides",
    "Ziv §2.3.2, after Conj. 1",
    "at L = 1 and 2 the bound of Conjecture 1 is that of Theorem 1",
    "false",
    "at L = 2 it is; at L = 1 the printed formula is min(M, R), below min(R, M^(T/2)) when R > M and T > 2",
)
def coincides(seed: int) -> Verdict:
    """Compare the formulas, and show a rank between them."""
    sizes = list(itertools.product(range(1, 6), range(1, 8), (2, 4, 6)))
    two = all(conjecture_bound(*size, 2) == separation_theorem(*size, 2) for size in sizes)
    differ = [size for size in sizes if conjecture_bound(*size, 1) != separation_theorem(*size, 1)]
    expected = [(M, R, T) for M, R, T in sizes if min(R, M ** (T // 2)) > M]
    rank = separation_rank(_network(2, 3, 1, seed), 4).rank
    right = two and differ == expected and rank == separation_lower(2, 3, 4, 1) > conjecture_bound(2, 3, 4, 1)
    evidence = f"M=2, R=3, T=4, L=1: formula {conjecture_bound(2, 3, 4, 1)}, Theorem 1 and rank {rank}"
    return Verdict(right, 2 * len(sizes), evidence)


@claim(
    "ziv-claim-4-sum",
    "Ziv Claim 4",
    "sum over T/2 < t_2 <= .. <= t_L <= T of t_2 is mc(T/2, L-1)",
    "false",
    "with the summand 1 it is",
)
def claim_4(seed: int) -> Verdict:
    """Add up both sums."""
    cases = list(itertools.product((2, 4, 6, 8), (2, 3, 4, 5)))
    right = all(sum(1 for _ in _chains(T, L)) == mc(T // 2, L - 1) for T, L in cases)
    wrong = [(T, L) for T, L in cases if sum(chain[0] for chain in _chains(T, L)) != mc(T // 2, L - 1)]
    printed = sum(chain[0] for chain in _chains(6, 3))
    evidence = f"T=6, L=3: printed sum {printed}, mc(3, 2) = {mc(3, 2)} = number of chains"
    return Verdict(right and len(wrong) == len(cases), len(cases), evidence)


def _chains(T: int, L: int) -> Iterable[tuple[int, ...]]:
    return itertools.combinations_with_replacement(range(T // 2 + 1, T + 1), L - 1)


def _rank_of(weights: dict[str, np.ndarray], M: int, T: int) -> int:
    """Return the rank of a RAC on one-hot templates, in the field that its weights were built in."""
    layers = sum(name.startswith("weight_hh") for name in weights)
    network = RAC(M, len(weights["weight_hh_l0"]), num_layers=layers, output_size=1, generator=torch.Generator())
    walk = RingWalk(network, _FIELD, weights, _FIELD.array(np.eye(M)), 0)
    return _FIELD.rank(evaluate_grid(walk, T).reshape(M ** (T // 2), -1))


def _verdict(lab: ConjectureLab, name: str) -> Verdict:
    b = lab.bounds.index(name)
    tried = int(((lab.values[:, b] >= 0)[:, None] * (lab.ranks >= 0)).sum())
    held = int(lab.held[:, b].sum())
    return Verdict(held == tried > 0, tried, f"{name} held in {lab.facts()[name]}")


def _network(M: int, R: int, L: int, seed: int) -> RAC:
    generator = torch.Generator().manual_seed(seed)
    return RAC(M, R, num_layers=L, output_size=1, generator=generator, dtype=torch.float64)
