"""Claims on tensor-train networks: TT chapter 4."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from mnemoscope.core.prime import PRIMES, Prime
from mnemoscope.measures.tensor_train.cp import cp_rank
from mnemoscope.measures.tensor_train.odd_even import odd_even_rank
from mnemoscope.nn.networks.rac import RAC
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.tensor_train import attaining_cores, generic_odd_even_rank, odd_even_bound

__all__: list[str] = []

_SIZES = ((2, 2, 4), (2, 3, 6), (3, 2, 4), (3, 3, 4), (4, 2, 6), (5, 2, 4), (5, 3, 4), (2, 4, 8))


def _cores(n: int, r: int, d: int, equal: bool, rng: np.random.Generator) -> list[np.ndarray]:
    inner = [rng.standard_normal((r, n, r)) for _ in range(1 if equal else d - 2)]
    return [rng.standard_normal((n, r)), *(inner * (d - 2) if equal else inner), rng.standard_normal((r, n))]


@claim(
    "tt-theorem-1",
    "TT Thm. 1",
    "almost every tensor train with equal inner cores has CP-rank at least q^(d/2), q = min(n, r-1)",
    "proved",
)
def theorem(seed: int) -> Verdict:
    """Compare with the exact odd-even rank of random equal cores, which is a lower bound of the CP-rank."""
    rng = np.random.default_rng(seed)
    found = [(odd_even_rank(_cores(n, r, d, True, rng)).rank, odd_even_bound(n, r, d)) for n, r, d in _SIZES]
    evidence = "rank, bound: " + ", ".join(f"{rank}, {bound}" for rank, bound in found[:5])
    return Verdict(all(rank >= bound for rank, bound in found), len(found), evidence)


@claim(
    "tt-generic-rank",
    "TT Thm. 1, sharpened",
    "the odd-even rank of almost every tensor train is min(n, r) min(n, r^2)^(d/2-1), for equal and different cores",
    "measured",
)
def generic(seed: int) -> Verdict:
    """Compare with exact ranks of random cores of both kinds; more is impossible."""
    rng = np.random.default_rng(seed)
    cases = [(size, equal) for size in _SIZES for equal in (False, True)]
    wrong = [c for c in cases if odd_even_rank(_cores(*c[0], c[1], rng)).rank != generic_odd_even_rank(*c[0])]
    above = sum(generic_odd_even_rank(*size) > odd_even_bound(*size) for size in _SIZES)
    evidence = f"{len(wrong)} exceptions; above the theorem's bound at {above} of {len(_SIZES)} sizes, all with r <= n"
    return Verdict(not wrong, len(cases), evidence)


@claim(
    "tt-construction",
    "TT Thm. 1, proof",
    "the constructed equal cores have an odd-even rank of at least q^(d/2): in fact min(n, r)^(d/2)",
    "proved",
)
def construction(seed: int) -> Verdict:
    """Compute its exact rank, also at a length whose tensor has 3^40 entries."""
    sizes = [(n, r, d) for n, r in itertools.product((2, 3, 4), (2, 3, 4, 5)) for d in (2, 4, 6)] + [(3, 4, 40)]
    wrong = [(n, r, d) for n, r, d in sizes if odd_even_rank(attaining_cores(n, r, d)).rank != min(n, r) ** (d // 2)]
    return Verdict(not wrong, len(sizes), f"{len(wrong)} exceptions up to n=3, r=4, d=40: rank 3^20 = {3**20}")


@claim(
    "tt-construction-ranks",
    "TT Thm. 1, proof",
    "the constructed tensor has TT-ranks (r, .., r)",
    "false",
    "only for r <= n; for r > n they are (n, 1, n, .., 1, n), and no first TT-rank exceeds n",
)
def construction_ranks(seed: int) -> Verdict:
    """Compute the exact ranks of all unfoldings."""
    witness = odd_even_rank(attaining_cores(2, 4, 6)).tt_ranks.tolist()
    sizes = [(n, r) for n in (2, 3, 4) for r in (2, 3, 4, 5)]
    right = [odd_even_rank(attaining_cores(n, r, 6)).tt_ranks.tolist() == _true_ranks(n, r) for n, r in sizes]
    evidence = f"n=2, r=4, d=6: TT-ranks {witness}, not (4, 4, 4, 4, 4)"
    return Verdict(witness != [4] * 5 and all(right), len(sizes), evidence)


def _true_ranks(n: int, r: int) -> list[int]:
    return [r] * 5 if r <= n else [n, 1, n, 1, n]


@claim(
    "tt-lemma-2",
    "TT Lemma 2",
    "no matricisation has a rank above the CP-rank",
    "proved",
)
def lemma(seed: int) -> Verdict:
    """Build tensors of a known number of terms as tensor trains with diagonal cores, and take every partition."""
    rng = np.random.default_rng(seed)
    cases, worst = 0, 0.0
    for n, r, d in ((2, 2, 4), (2, 3, 4), (3, 2, 5), (3, 4, 4)):
        factors = rng.integers(-9, 10, (d, n, r))
        inner = [np.einsum("ia,ab->aib", factor, np.eye(r, dtype=np.int64)) for factor in factors[1:-1]]
        cores = [factors[0], *inner, factors[-1].T]
        for size in range(1, d):
            for rows in itertools.combinations(range(d), size):
                cases += 1
                worst = max(worst, odd_even_rank(cores, partition=rows).rank / r)
    return Verdict(worst <= 1, cases, f"largest rank / number of terms: {worst:.3g}")


@claim(
    "tt-cp-interval",
    "TT Thm. 1",
    "the constructed tensor with n < r has CP-rank exactly n^(d/2): so many terms suffice",
    "measured",
)
def interval(seed: int) -> Verdict:
    """Fit it with that many terms; fewer are impossible."""
    found = cp_rank(attaining_cores(2, 3, 4), restarts=8, seed=seed)
    evidence = f"n=2, r=3, d=4: proved at least {found.lower}, fitted with {found.fitted}, error {found.errors[-1]:.1e}"
    return Verdict(found.lower == found.fitted == 4, 1, evidence)


@claim(
    "tt-shallow-rac",
    "TT ch. 4, Ziv §2.2",
    "a shallow RAC is a tensor train with equal cores G[j, d, k] = W_H[k, j] W_I[k, d]",
    "proved",
)
def shallow_rac(seed: int) -> Verdict:
    """Compare both modulo a prime, with whole-number weights, whose products are not rounded."""
    rac = RAC(3, 2, output_size=2, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for weight in rac.parameters():
            weight.copy_((100 * weight).round())
    train, field, rng = rac.to_tt(5), Prime(PRIMES[0]), np.random.default_rng(seed)
    x = rng.integers(0, 1000, (5, 20, 3), dtype=np.uint64)
    deep, _ = rac.evaluate(field, rac.exact_weights(field), x)
    flat = train.evaluate(field, train.exact_weights(field), np.ascontiguousarray(x.swapaxes(0, 1)))
    equal = int((deep[-1] == flat).sum())
    return Verdict(equal == flat.size, flat.size, f"{equal} of {flat.size} scores equal modulo 2^61 - 1")
