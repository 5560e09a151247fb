"""Tensor trains against shallow networks: odd-even ranks, the construction that attains them, shallow circuits."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from mnemoscope import measures, nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_SIZES = ((2, 2, 4), (2, 3, 6), (3, 2, 4), (3, 3, 4), (4, 2, 6), (5, 2, 4), (5, 3, 4), (2, 4, 8))


def _cores(n: int, r: int, d: int, equal: bool, rng: np.random.Generator) -> list[np.ndarray]:
    inner = [rng.standard_normal((r, n, r)) for _ in range(1 if equal else d - 2)]
    return [rng.standard_normal((n, r)), *(inner * (d - 2) if equal else inner), rng.standard_normal((r, n))]


def _sizes(s: NetworkView) -> tuple[int, int, int]:
    return int(s.option("features")), int(s.option("rank")), int(s.option("length"))


def _even(s: NetworkView) -> bool:
    return s.is_a(nn.TT) and _sizes(s)[2] % 2 == 0


@theorem("tt-theorem-1", "alkin2024", "Thm. 1")
def lower(seed: int) -> Verdict:
    """Almost every tensor train with equal inner cores has CP-rank at least q^(d/2), q = min(n, r-1).

    Check: exact odd-even ranks of random equal cores at eight sizes: lower bounds of their CP-ranks.
    """
    rng = np.random.default_rng(seed)
    found = [(measures.odd_even_rank(_cores(*size, True, rng)).rank, theory.odd_even_bound(*size)) for size in _SIZES]
    evidence = "rank, bound: " + ", ".join(f"{rank}, {bound}" for rank, bound in found[:5])
    return Verdict(all(rank >= bound for rank, bound in found), len(found), evidence)


@lower.about("separation", _even)
def _(s: NetworkView) -> Instance:
    value = theory.odd_even_bound(*_sizes(s))
    text = (
        f"A shallow network (a CP decomposition) needs at least min(n, r-1)^(d/2) = {number(value)} terms to compute "
        f"what almost all of its weights compute: its odd-even rank."
    )
    return Instance(text, value, "bound")


@theorem("tt-generic-rank", "", "after Alkin 2024, Thm. 1", status="measured")
def generic(seed: int) -> Verdict:
    """The odd-even rank of almost every tensor train is min(n, r) min(n, r^2)^(d/2-1), for equal and different cores.

    Check: exact ranks of random cores at eight sizes, equal and different; more is impossible.
    """
    rng = np.random.default_rng(seed)
    cases = [(size, equal) for size in _SIZES for equal in (False, True)]
    ranks = [measures.odd_even_rank(_cores(*size, equal, rng)).rank for size, equal in cases]
    wrong = sum(rank != theory.generic_odd_even_rank(*size) for rank, (size, _) in zip(ranks, cases, strict=True))
    above = sum(theory.generic_odd_even_rank(*size) > theory.odd_even_bound(*size) for size in _SIZES)
    evidence = f"{wrong} exceptions; above the theorem's bound at {above} of {len(_SIZES)} sizes, all with r <= n"
    return Verdict(not wrong, len(cases), evidence)


@generic.about("separation", _even)
def _(s: NetworkView) -> Instance:
    value = theory.generic_odd_even_rank(*_sizes(s))
    text = (
        f"In every case that was tried its odd-even rank was min(n, r) min(n, r^2)^(d/2-1) = {number(value)}, with "
        f"equal cores as with different ones."
    )
    return Instance(text, value, "conjecture")


@theorem("tt-construction", "alkin2024", "Thm. 1, proof")
def construction(_: int) -> Verdict:
    """The constructed equal cores have an odd-even rank of at least q^(d/2): in fact min(n, r)^(d/2).

    Check: exact ranks at 37 sizes, also at a length whose tensor has 3^40 entries.
    """
    sizes = [(n, r, d) for n, r in itertools.product((2, 3, 4), (2, 3, 4, 5)) for d in (2, 4, 6)] + [(3, 4, 40)]
    ranks = {size: measures.odd_even_rank(theory.attaining_cores(*size)).rank for size in sizes}
    wrong = sum(rank != min(n, r) ** (d // 2) for (n, r, d), rank in ranks.items())
    return Verdict(not wrong, len(sizes), f"{wrong} exceptions up to n=3, r=4, d=40: rank 3^20 = {3**20}")


@construction.about("separation", lambda s: _even(s) and _sizes(s)[1] >= 2)
def _(s: NetworkView) -> Instance:
    n, r, d = _sizes(s)
    value = min(n, r) ** (d // 2)
    text = f"Equal cores of zeros and ones of this size are known with odd-even rank min(n, r)^(d/2) = {number(value)}."
    return Instance(text, value, "exact")


@theorem("tt-construction-ranks", "alkin2024", "Thm. 1, proof", severity="missing condition")
def construction_ranks(_: int) -> Verdict:
    """The constructed tensor has TT-ranks (r, .., r).

    Right: only for r <= n; for r > n they are (n, 1, n, .., 1, n), and no first TT-rank exceeds n.
    Check: exact ranks of all unfoldings at twelve sizes, d = 6.
    """
    sizes = [(n, r) for n in (2, 3, 4) for r in (2, 3, 4, 5)]
    found = {(n, r): measures.odd_even_rank(theory.attaining_cores(n, r, 6)).tt_ranks.tolist() for n, r in sizes}
    right = all(ranks == ([r] * 5 if r <= n else [n, 1, n, 1, n]) for (n, r), ranks in found.items())
    evidence = f"n=2, r=4, d=6: TT-ranks {found[2, 4]}, not (4, 4, 4, 4, 4)"
    return Verdict(found[2, 4] != [4] * 5 and right, len(sizes), evidence)


@theorem("tt-lemma-2", "alkin2024", "Lemma 2")
def matricisations(seed: int) -> Verdict:
    """No matricisation has a rank above the CP-rank.

    Check: four tensors of a known number of terms, as tensor trains with diagonal cores: every partition of their
    modes.
    """
    rng = np.random.default_rng(seed)
    cases, worst = 0, 0.0
    for n, r, d in ((2, 2, 4), (2, 3, 4), (3, 2, 5), (3, 4, 4)):
        factors = rng.integers(-9, 10, (d, n, r))
        inner = [np.einsum("ia,ab->aib", factor, np.eye(r, dtype=np.int64)) for factor in factors[1:-1]]
        cores = [factors[0], *inner, factors[-1].T]
        for size in range(1, d):
            for rows in itertools.combinations(range(d), size):
                cases += 1
                worst = max(worst, measures.odd_even_rank(cores, partition=rows).rank / r)
    return Verdict(worst <= 1, cases, f"largest rank / number of terms: {worst:.3g}")


@matricisations.about("separation", lambda s: s.is_a(nn.CP))
def _(s: NetworkView) -> Instance:
    rank = _sizes(s)[1]
    text = f"However its inputs are split in two, its separation rank is at most its {number(rank)} terms."
    return Instance(text, rank, "bound")


@theorem("tt-cp-interval", "alkin2024", "Thm. 1", status="measured")
def interval(seed: int) -> Verdict:
    """The constructed tensor with n < r has CP-rank exactly n^(d/2): so many terms suffice.

    Check: one size, n=2, r=3, d=4: fitted with so many terms; fewer are impossible.
    """
    found = measures.cp_rank(theory.attaining_cores(2, 3, 4), restarts=8, seed=seed)
    evidence = f"n=2, r=3, d=4: proved at least {found.lower}, fitted with {found.fitted}, error {found.errors[-1]:.1e}"
    return Verdict(found.lower == found.fitted == 4, 1, evidence)


@theorem("tt-shallow-rac", "alkin2024", "ch. 4, and Ziv 2020, §2.2")
def shallow_rac(seed: int) -> Verdict:
    """A shallow RAC is a tensor train with equal cores G[j, d, k] = W_H[k, j] W_I[k, d].

    Check: one circuit with whole-number weights and its train, compared modulo a prime on twenty inputs.
    """
    rac = nn.RAC(3, 2, output_size=2, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        for weight in rac.parameters():
            weight.copy_((100 * weight).round())
    train, field, rng = rac.to_tt(5), Prime(PRIMES[0]), np.random.default_rng(seed)
    x = rng.integers(0, 1000, (5, 20, 3), dtype=np.uint64)
    deep, _ = rac.evaluate(field, rac.exact_weights(field), x)
    flat = train.evaluate(field, train.exact_weights(field), np.ascontiguousarray(x.swapaxes(0, 1)))
    equal = int((deep[-1] == flat).sum())
    return Verdict(equal == flat.size, flat.size, f"{equal} of {flat.size} scores equal modulo 2^61 - 1")


@shallow_rac.about("separation", lambda s: s.is_a(nn.RAC) and s.one_way and s.layers == 1)
def _(s: NetworkView) -> Instance:
    text = f"It is a tensor train with equal cores, of TT-rank at most {s.n}: layer.to_tt(length) builds it."
    return Instance(text, s.n, "exact")


@theorem("classifier-multilinear", "cohen2016", "§3")
def multilinear(seed: int) -> Verdict:
    """The scores of tensor-train and CP networks are linear in the features of each input, of degree d in all together.

    Check: both networks of length 4 on random features: one input replaced by a combination of two, all scaled by 3.
    """
    generator = torch.Generator().manual_seed(seed)
    worst = 0.0
    for make in (nn.TT, nn.CP):
        network = make(3, 2, 4, 2, dtype=torch.float64, generator=generator)
        x, y = torch.randn(2, 5, 4, 3, dtype=torch.float64, generator=generator)
        with torch.no_grad():
            for place in range(4):
                one, mixed = x.clone(), x.clone()
                one[:, place], mixed[:, place] = y[:, place], 2 * x[:, place] - 3 * y[:, place]
                worst = max(worst, float((network(mixed) - 2 * network(x) + 3 * network(one)).abs().max()))
            worst = max(worst, float((network(3 * x) - 3**4 * network(x)).abs().max()))
    return Verdict(worst < 1e-10, 10, f"scores miss linearity by at most {worst:.1e}")


@multilinear.about("degree", lambda s: s.is_a(nn.TT, nn.CP))
def _(s: NetworkView) -> Instance:
    d = _sizes(s)[2]
    text = (
        f"Its scores are linear in the features of each of its {d} inputs, and of degree {d} in all of them together."
    )
    return Instance(text, d, "exact")
