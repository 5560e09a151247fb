"""Start-End separation rank: of recurrent arithmetic circuits, and of whatever passes through few units."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable

import numpy as np
import torch

from mnemoscope import measures, nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.measures.separation.grid import RingWalk, evaluate_grid
from mnemoscope.theory import mc
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_HORIZONS = (4, 6, 8)
"""Steps at which ranks are given, as they are measured."""
_LONG = 20
_FIELD = Prime(PRIMES[0])


def _rac(s: NetworkView) -> bool:
    return s.is_a(nn.RAC) and s.one_way


def _network(M: int, R: int, L: int, seed: int) -> nn.RAC:
    generator = torch.Generator().manual_seed(seed)
    return nn.RAC(M, R, num_layers=L, output_size=1, generator=generator, dtype=torch.float64)


def _held(name: str, seed: int, *grids: tuple[tuple[int, ...], ...]) -> Verdict:
    """Compare a bound with exact ranks of random weights, on grids (M, R, T, L) of sizes."""
    held = tried = 0
    said = []
    for M, R, T, L in grids:
        lab = measures.separation_conjecture(M, R, T, L, 1, seed)
        b = lab.bounds.index(name)
        held += int(lab.held[:, b].sum())
        tried += int(((lab.values[:, b] >= 0)[:, None] * (lab.ranks >= 0)).sum())
        said.append(f"{name} held in {lab.facts()[name]}")
    return Verdict(held == tried > 0, tried, "; ".join(said))


def _ranks(values: dict[int, int]) -> str:
    return ", ".join(f"{number(value)} at T = {T}" for T, value in values.items())


@theorem("ziv-theorem-1-shallow", "ziv2020", "Thm. 1 (1)")
def shallow(seed: int) -> Verdict:
    """The separation rank of almost every RAC with one layer is min(R, M^(T/2)).

    Check: exact ranks of random weights at 24 sizes, M = 2, 3, R = 1 to 5, T = 2, 4, 6.
    """
    return _held("theorem 1, depth 1", seed, ((2, 3), (1, 2, 3, 5), (2, 4, 6), (1,)))


@shallow.about("separation", lambda s: _rac(s) and s.layers == 1)
def _(s: NetworkView) -> Instance:
    ranks = {T: theory.separation_theorem(s.d, s.n, T, 1) for T in _HORIZONS}
    text = (
        f"Its Start-End separation rank on {s.d} templates is min(R, M^(T/2)) for almost all weights: "
        f"{_ranks(ranks)}. One layer of R = {s.n} units never exceeds {s.n}, at any length."
    )
    return Instance(text, ranks[_HORIZONS[-1]], "exact")


@theorem("ziv-theorem-1-deep", "ziv2020", "Thm. 1 (2)")
def deep(seed: int) -> Verdict:
    """The separation rank of almost every RAC with two layers is at least mc(min(M, R), T/2).

    Check: exact ranks of random weights at 27 sizes, which exceed the bound unless T = 2 or min(M, R) = 1.
    """
    grid = (1, 2, 3), (1, 2, 3), (2, 4, 6), (2,)
    found, lab = _held("theorem 1, depth 2", seed, grid), measures.separation_conjecture(*grid, 1, seed)
    trivial = (lab.cases[:, 2] == 2) | (lab.cases[:, :2].min(axis=1) == 1)
    as_said = bool(((lab.attained[:, lab.bounds.index("theorem 1, depth 2")] == 1) == trivial).all())
    return Verdict(found.confirmed and as_said, found.cases, found.evidence + "; attained only at T=2 or min(M, R)=1")


@deep.about("separation", lambda s: _rac(s) and s.layers == 2)
def _(s: NetworkView) -> Instance:
    ranks = {T: theory.separation_theorem(s.d, s.n, T, 2) for T in _HORIZONS}
    text = f"Its Start-End separation rank is at least {_ranks(ranks)}, for almost all weights (Theorem 1)."
    return Instance(text, ranks[_HORIZONS[-1]], "bound")


@theorem("ziv-shallow-width", "ziv2020", "Thm. 1, its consequence")
def shallow_width(seed: int) -> Verdict:
    """A RAC with one layer that computes the same as almost every RAC with two has at least mc(min(M, R), T/2) units.

    Check: exact ranks of random circuits of two layers at eight sizes, and of one layer that is one unit too narrow.
    """
    wrong, cases = 0, [(M, R, T) for M in (2, 3) for R in (2, 3) for T in (4, 6)]
    for M, R, T in cases:
        units = theory.shallow_width(M, R, T)
        rank = measures.separation_rank(_network(M, R, 2, seed), T).rank
        narrow = measures.separation_rank(_network(M, units - 1, 1, seed), T).rank
        wrong += not narrow < units <= rank
    M, R, T = cases[-1]
    evidence = f"{wrong} exceptions; M={M}, R={R}, T={T}: {theory.shallow_width(M, R, T)} units in one layer"
    return Verdict(wrong == 0, len(cases), evidence)


@shallow_width.about("separation", lambda s: _rac(s) and s.layers > 1)
def _(s: NetworkView) -> Instance:
    units = theory.shallow_width(s.d, s.n, _LONG)
    almost = "for almost all weights" if s.layers == 2 else "as two layers do for almost all weights"
    text = (
        f"A single layer that computes the same over T = {_LONG} steps needs at least {number(units)} units, {almost}; "
        f"this network has {s.layers} layers of {s.n}."
    )
    return Instance(text, units, "bound" if s.layers == 2 else "conjecture")


@theorem("ziv-depth-two-rank", "", "after Ziv 2020, Thm. 1 (2)", status="measured")
def depth_two(seed: int) -> Verdict:
    """On one-hot templates the rank at depth 2 is min(R mc(R, T/2), min(M, R) M^(T/2-1)).

    Check: exact ranks of random weights at 18 sizes, M, R = 2 to 4, T = 4, 6.
    """
    return _held("depth-2 formula", seed, ((2, 3, 4), (2, 3, 4), (4, 6), (2,)))


@depth_two.about("separation", lambda s: _rac(s) and s.layers == 2)
def _(s: NetworkView) -> Instance:
    ranks = {T: theory.depth_two_rank(s.d, s.n, T) for T in _HORIZONS}
    text = f"On one-hot templates the rank of two layers was {_ranks(ranks)} in every case that was tried."
    return Instance(text, ranks[_HORIZONS[-1]], "conjecture")


@theorem("ziv-conjecture-1", "ziv2020", "Conj. 1", status="measured")
def conjecture(seed: int) -> Verdict:
    """The separation rank of almost every RAC with L layers is at least min(mc(min(M, R), mc(T/2, L-1)), M^(T/2)).

    Check: exact ranks of random weights at 18 sizes of three layers and 8 of four.
    """
    return _held("conjecture 1", seed, ((2, 3, 4), (2, 3, 4), (4, 6), (3,)), ((2, 3), (2, 3), (2, 4), (4,)))


@conjecture.about("separation", lambda s: _rac(s) and s.layers > 2)
def _(s: NetworkView) -> Instance:
    ranks = {T: theory.conjecture_bound(s.d, s.n, T, s.layers) for T in _HORIZONS}
    text = f"Its Start-End separation rank is at least {_ranks(ranks)}, if Conjecture 1 is right."
    return Instance(text, ranks[_HORIZONS[-1]], "conjecture")


@theorem("ziv-separation-upper", "", "after Ziv 2020, Thm. 1")
def upper(seed: int) -> Verdict:
    """The separation rank is at most min(prod_l mc(R, mc(T/2, L-l)), prod_j mc(min(M, R), mc(j, L-1))).

    Proof: mc(n, k) monomials of degree k have n variables. The output is a polynomial of the states at T/2, of degree
    mc(T/2, L-l) in the R of layer l; and, as a function of the end, of degree mc(j, L-1) in what the first layer makes
    of the j-th last input, of which min(M, R) numbers are independent.

    Check: exact ranks on one-hot templates at 36 sizes, and at four on enough random templates, where it is met.
    """
    found = _held("upper bound", seed, ((2, 3), (2, 3), (2, 4, 6), (1, 2, 3)))
    sizes = ((2, 2, 4, 2, 4), (2, 3, 4, 2, 4), (3, 2, 2, 3, 4), (2, 2, 4, 3, 5))
    met = sum(
        measures.separation_rank(_network(M, R, L, seed), T, count, seed=seed).rank
        == theory.separation_upper(M, R, T, L)
        for M, R, T, L, count in sizes
    )
    evidence = f"{found.evidence}; met on random templates in {met} of {len(sizes)}"
    return Verdict(found.confirmed and met == len(sizes), found.cases + len(sizes), evidence)


@upper.about("separation", lambda s: _rac(s) and s.layers > 1)
def _(s: NetworkView) -> Instance:
    ranks = {T: theory.separation_upper(s.d, s.n, T, s.layers, templates=s.d) for T in _HORIZONS}
    text = f"Its Start-End separation rank on {s.d} templates is at most {_ranks(ranks)}, for all weights."
    return Instance(text, ranks[_HORIZONS[-1]], "bound")


@theorem("ziv-float-rank", "ziv2020", "Claims 1 and 2, computed", severity="wrong result")
def float_rank(seed: int) -> Verdict:
    """The rank of a grid can be read from its singular values in float64.

    Right: count modulo a large prime; show the float rank with its gap, and as unreliable when the gap is closed.
    Check: float and exact ranks of 18 random circuits of two and three layers, T = 6.
    """
    wrong, believed, witness = 0, 0, ""
    cases = list(itertools.product((2, 3), (2, 3, 4), (2, 3, 4), (6,)))
    for L, M, R, T in cases:
        network = _network(M, R, L, seed)
        exact, floats = measures.separation_rank(network, T), measures.separation_rank(network, T, exact=False)
        if floats.rank != exact.rank:
            wrong += 1
            believed += bool(floats.reliable)
            witness = f"{floats.rank} instead of {exact.rank} at M={M}, R={R}, T={T}, L={L} (gap {floats.gap:.2g})"
    evidence = f"wrong in {wrong} of {len(cases)}, {believed} of these called reliable; {witness}"
    return Verdict(wrong > 0 and 4 * believed < wrong, len(cases), evidence)


@theorem("ziv-templates", "ziv2020", "§2.2.2, Claim 2", severity="wrong result")
def templates(seed: int) -> Verdict:
    """M templates show the separation rank of a deep RAC, which is at most M^(T/2).

    Right: for L >= 2 the function is not multilinear: with more templates than channels the rank can exceed M^(T/2).
    Check: exact ranks at M = R = 2, T = 4, L = 2 with 2 to 5 templates, and at L = 1 with 2 to 4.
    """
    ranks = measures.separation_saturation(_network(2, 2, 2, seed), 4, (2, 3, 4, 5), seed=seed).ranks.tolist()
    linear = measures.separation_saturation(_network(2, 3, 1, seed), 4, (2, 3, 4), seed=seed).ranks.tolist()
    right = ranks == [4, 6, 6, 6] and len(set(linear)) == 1
    return Verdict(right, 7, f"M=R=2, T=4, L=2: ranks {ranks} with 2, 3, 4, 5 templates; at L=1 always {linear[0]}")


@theorem("ziv-initial-state", "ziv2020", "Eq. 1.2, A.3, B.2", severity="missing condition")
def initial_state(seed: int) -> Verdict:
    """The first product is neutral for h_0 = pinv(W_H) 1, and h_0 may be any state.

    Right: h_0 = 0 gives the zero function, pinv fails for singular W_H: start from the left factor W_H h_0 = 1 itself.
    Check: one singular W_H of rank 2 of 3: pinv misses 1, h_0 = 0 gives zero outputs, ones as the factor are neutral.
    """
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


@theorem("ziv-attaining-weights", "ziv2020", "B.2")
def attaining(seed: int) -> Verdict:
    """The weights of Theorem 1's proof have the separation rank mc(min(M, R), T/2).

    Check: the weights at twelve sizes, built modulo a prime, and their exact ranks.
    """
    cases = list(itertools.product((2, 3), (2, 3, 4), (4, 6)))
    ranks = [_rank_of(theory.attaining_weights(_FIELD, M, R, T, base=3 + seed), M, T) for M, R, T in cases]
    right = sum(rank == mc(min(M, R), T // 2) for rank, (M, R, T) in zip(ranks, cases, strict=True))
    digits = int(10**3 * math.log10(3)) + 1
    evidence = f"equal in {right} of {len(cases)}; with z=3, T=6 one has {digits} digits"
    return Verdict(right == len(cases), len(cases), evidence)


@theorem("ziv-conjecture-motivation", "ziv2020", "A.4", severity="wrong result")
def motivation(seed: int) -> Verdict:
    """The assignment with W_H1 = I supports Conjecture 1 at any depth.

    Right: its rank is at most mc(M, T/2); a generic W_H1, rank-one W_I2, W_H = I above, W_I3 of ones meet the bound.
    Check: exact ranks of both assignments at nine sizes of depth 3.
    """
    sizes = [(2, 2, 4), (2, 3, 4), (3, 3, 4), (3, 4, 4), (2, 2, 6), (2, 3, 6), (3, 3, 6), (2, 4, 6), (2, 2, 8)]
    low, met, witness = 0, 0, ""
    for M, R, T in sizes:
        bound = theory.conjecture_bound(M, R, T, 3)
        generic = theory.conjecture_weights(_FIELD, M, R, T, 3, seed=seed)
        met += _rank_of(generic, M, T) >= bound
        rank = _rank_of(generic | {"weight_hh_l0": _FIELD.array(np.eye(R))}, M, T)
        low += rank <= mc(M, T // 2) < bound
        witness = witness or f"M={M}, R={R}, T={T}, L=3: rank {rank} with W_H1 = I, bound {bound}"
    evidence = f"{witness}; a generic W_H1 met the bound in {met} of {len(sizes)}"
    return Verdict(low == met == len(sizes), 2 * len(sizes), evidence)


@theorem("ziv-conjecture-coincides", "ziv2020", "§2.3.2, after Conj. 1", severity="missing condition")
def coincides(seed: int) -> Verdict:
    """At L = 1 and 2 the bound of Conjecture 1 is that of Theorem 1.

    Right: at L = 2 it is; at L = 1 the printed formula is min(M, R), below min(R, M^(T/2)) when R > M and T > 2.
    Check: both formulas at 105 sizes and two depths, and one exact rank between them.
    """
    sizes = list(itertools.product(range(1, 6), range(1, 8), (2, 4, 6)))
    two = all(theory.conjecture_bound(*size, 2) == theory.separation_theorem(*size, 2) for size in sizes)
    differ = [size for size in sizes if theory.conjecture_bound(*size, 1) != theory.separation_theorem(*size, 1)]
    expected = [(M, R, T) for M, R, T in sizes if min(R, M ** (T // 2)) > M]
    rank, printed = measures.separation_rank(_network(2, 3, 1, seed), 4).rank, theory.conjecture_bound(2, 3, 4, 1)
    right = two and differ == expected and rank == theory.separation_lower(2, 3, 4, 1) > printed
    return Verdict(right, 2 * len(sizes), f"M=2, R=3, T=4, L=1: formula {printed}, Theorem 1 and rank {rank}")


@theorem("ziv-claim-4-sum", "ziv2020", "Claim 4", severity="misprint")
def claim_4(_: int) -> Verdict:
    """The sum over T/2 < t_2 <= .. <= t_L <= T of t_2 is mc(T/2, L-1).

    Right: with the summand 1 it is.
    Check: both sums, written out, for T = 2 to 8 and L = 2 to 5.
    """
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
    network = nn.RAC(M, len(weights["weight_hh_l0"]), num_layers=layers, output_size=1, generator=torch.Generator())
    walk = RingWalk(network, _FIELD, weights, _FIELD.array(np.eye(M)), 0)
    return _FIELD.rank(evaluate_grid(walk, T).reshape(M ** (T // 2), -1))


@theorem("separation-linear", "", "after Ziv 2020, §2.2")
def of_linear(seed: int) -> Verdict:
    """The Start-End separation rank of a linear network is at most 2, at every length, width and depth.

    Proof: the output is f(start) + g(end), two products f 1 + 1 g.

    Check: linear networks of one to three layers and 4 units at T = 4, 6: ranks of their grids.
    """
    generator = torch.Generator().manual_seed(seed)
    cases = [(L, T) for L in (1, 2, 3) for T in (4, 6)]
    made = [nn.LinearRNN(2, 4, L, generator=generator, dtype=torch.float64) for L, _ in cases]
    ranks = [measures.separation_rank(layer, T).rank for layer, (_, T) in zip(made, cases, strict=True)]
    return Verdict(max(ranks) <= 2, len(cases), f"ranks {ranks}")


@of_linear.about("separation", lambda s: s.linear)
def _(_: NetworkView) -> Instance:
    text = (
        "Its Start-End separation rank is at most 2, at every length, width and depth: its output is a function of the "
        "start plus a function of the end."
    )
    return Instance(text, 2, "bound")


@theorem("separation-automaton", "rabusseau2019", "")
def of_automata(seed: int) -> Verdict:
    """The separation rank of one layer of n units that is linear in its state, as an automaton, is at most n.

    Of one that is affine in its state it is at most n + 1.

    Check: five networks of 2 units and 3 inputs over 6 steps: exact ranks of random weights.
    """
    names = {"birnn": 2, "cpbirnn": 2, "2rnn": 3, "cprnn": 3, "mirnn": 3}
    ranks = {}
    for name, most in names.items():
        options = {} if most == 2 else {"nonlinearity": "identity"}
        generator = torch.Generator().manual_seed(seed)
        layer = nn.create(name, input_size=3, hidden_size=2, generator=generator, **options)
        ranks[name] = measures.separation_rank(layer, horizon=6).rank
    right = all(rank <= names[name] for name, rank in ranks.items())
    return Verdict(right, len(ranks), "ranks " + ", ".join(f"{rank} of {name}" for name, rank in ranks.items()))


@of_automata.about("separation", lambda s: s.polynomial and not s.is_a(nn.RAC) and s.layers == 1)
def _(s: NetworkView) -> Instance:
    units = s.n if s.products else s.n + 1
    ranks = {T: min(units, s.d ** (T // 2)) for T in _HORIZONS}
    what = "linear in the state" if s.products else "affine in the state"
    text = (
        f"Its Start-End separation rank on {s.d} templates is at most {_ranks(ranks)}: the output is {what} at "
        f"half-time, which has {s.n} units, as that of a weighted automaton of so many states."
    )
    return Instance(text, ranks[_HORIZONS[-1]], "bound")
