"""Second-order networks as polynomials of their inputs: degrees, images, and what a zero does to them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from mnemoscope import measures, nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.core.ring import PRIMES, Prime
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_STEPS = 8
_OPTIONS: dict[str, dict[str, Any]] = {"birnn": {}, "2rnn": {"nonlinearity": "identity"}, "cpbirnn": {}}


def _drawn(name: str, d: int, n: int, L: int, seed: int, **more: Any) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return nn.create(name, input_size=d, hidden_size=n, num_layers=L, generator=generator, **_OPTIONS[name], **more)


@theorem("depth-polynomial-order", "lizaire2026", "App. A.6")
def order(seed: int) -> Verdict:
    """The states of a linear BIRNN or 2RNN of L layers after T steps are polynomials of an order of at most T^L.

    Check: exact degrees of BIRNN, 2RNN and CPBIRNN at four (T, L): C(T+L-1, L), below T^L for all T, L > 1.
    """
    cases = [(name, T, L) for name in _OPTIONS for T, L in ((1, 2), (2, 2), (4, 2), (3, 3))]
    found = [(measures.polynomial_degree(_drawn(name, 2, 2, L, seed), T).degree, T, L) for name, T, L in cases]
    right = all(degree == theory.birnn_degree(T, L) <= T**L for degree, T, L in found)
    return Verdict(right, len(found), f"T=4, L=2: degree {found[2][0]}, T^L = 16; T=3, L=3: {found[3][0]}, T^L = 27")


@order.about("degree", lambda s: s.polynomial)
def _(s: NetworkView) -> Instance:
    value = theory.birnn_degree(_STEPS, s.layers)
    first = theory.birnn_input_degree(1, _STEPS, s.layers)
    most = "at most " if s.is_a(nn.MIRNN) else ""
    published = f" (the published T^L = {number(_STEPS**s.layers)} is only an upper bound)" if s.layers > 1 else ""
    text = (
        f"After T = {_STEPS} steps its states are polynomials of the inputs of {most}degree C(T+L-1, L) = "
        f"{number(value)}, and {most}{number(first)} in the first input, for almost all weights{published}."
    )
    return Instance(text, value, "bound" if most else "exact")


@theorem("depth-exponential-degree", "lizaire2026", "§3.2", severity="wrong result")
def exponential(seed: int) -> Verdict:
    """The maximal degree of a BIRNN's polynomials grows exponentially with depth (as T^L).

    Right: it is C(T+L-1, L): for a given T a polynomial in L of degree T-1; L+1 at T = 2.
    Check: exact degrees at T = 2 over six depths, where the exponential would be 2^L.
    """
    depths = (1, 2, 3, 4, 6, 8)
    found = [measures.polynomial_degree(_drawn("birnn", 2, 2, L, seed), 2).degree for L in depths]
    evidence = f"T=2, L={depths}: degrees {found}, not {[2**L for L in depths]}"
    return Verdict(found == [L + 1 for L in depths], len(depths), evidence)


@theorem("depth-theorem-3-strict", "lizaire2026", "Thm. 3, strictness")
def strict(seed: int) -> Verdict:
    """h_2 of a linear BIRNN or 2RNN of L layers has at most degree L in x_1, and A = delta in L+1 layers reaches L+1.

    Check: exact degrees of random weights at four depths, and of the construction at three.
    """
    cases = list(itertools.product(("birnn", "2rnn"), (1, 2, 3, 4)))
    random = [measures.polynomial_degree(_drawn(name, 2, 2, L, seed), 2).by_input[0] == L for name, L in cases]
    built = []
    for L in (2, 3, 4):
        network = _drawn("birnn", 2, 2, L, seed)
        with torch.no_grad():
            for weight in network.parameters():
                weight.copy_(torch.from_numpy(theory.diagonal_tensor(2, 2)))
        built.append(int(measures.polynomial_degree(network, 2).by_input[0]))
    evidence = f"random weights at the bound in {sum(random)} of {len(random)}; A = delta, L = 2, 3, 4: {built}"
    return Verdict(all(random) and built == [2, 3, 4], len(random) + len(built), evidence)


@strict.about("degree", lambda s: s.polynomial and s.layers > 1)
def _(s: NetworkView) -> Instance:
    text = (
        f"After two steps it has at most degree L = {s.layers} in the first input, which one layer fewer cannot have: "
        f"depth adds functions that width does not."
    )
    return Instance(text, s.layers, "bound")


@theorem("depth-theorem-3-inclusion", "lizaire2026", "Thm. 3, inclusion", severity="missing condition")
def inclusion(seed: int) -> Verdict:
    """Whatever a linear BIRNN of L layers computes, one of L+1 layers of the same width computes too.

    Right: true with residual connections, and for 2RNNs; without them h_t is homogeneous, of degree C(t+L-1, L) or
    zero.
    Check: inputs scaled by 7, exactly: powers of 7 in h_2 of one and two layers; with residuals A = 0 copies.
    """
    field, rng = Prime(PRIMES[0]), np.random.default_rng(seed)
    x = rng.integers(0, 1000, (2, 10, 2), dtype=np.uint64)
    scales = []
    for L in (1, 2):
        network = _drawn("birnn", 2, 2, L, seed)
        weights = network.exact_weights(field)
        h, more = (network.evaluate(field, weights, each)[0][1] for each in (x, field.mul(x, field.array(7))))
        scales.append([e for e in range(1, 6) if np.array_equal(more, field.mul(h, field.array(7**e)))])
    deep, shallow = _drawn("birnn", 2, 2, 2, seed, residual=True), _drawn("birnn", 2, 2, 1, seed)
    with torch.no_grad():
        deep.weight_bilinear_l1.zero_()
    weights = deep.exact_weights(field)
    above = deep.evaluate(field, weights, x)[0]
    below = shallow.evaluate(field, {"weight_bilinear_l0": weights["weight_bilinear_l0"]}, x)[0]
    evidence = f"x -> 7x multiplies h_2 by 7^{scales[0][0]} with one layer, by 7^{scales[1][0]} with any two layers"
    return Verdict(
        scales == [[2], [3]] and bool(np.array_equal(above, below)),
        3,
        evidence + "; with residuals and A = 0 the second layer copies",
    )


@inclusion.about("degree", lambda s: s.products and not s.is_a(nn.RAC) and not s.option("residual") and s.layers > 1)
def _(s: NetworkView) -> Instance:
    text = (
        f"Without residual connections it does not compute everything that {s.layers - 1} of its {s.layers} layers "
        f"would: its states are homogeneous polynomials. residual=True repairs that."
    )
    return Instance(text, None, "exact")


@theorem("depth-theorem-4", "lizaire2026", "Thm. 4, proof", severity="missing condition")
def image(seed: int) -> Verdict:
    """For R < n a CPBIRNN of rank R+1 has an image of x_1 -> h_1 of dimension R+1, one of rank R at most R.

    Right: the dimension is min(d, n, R) at every depth, so R < d is needed too.
    Check: the exact dimension at 48 combinations of d, n, R and L.
    """
    cases = list(itertools.product((1, 2, 4), (3, 4), (1, 2, 3, 4), (1, 2)))
    found = {
        (d, n, R, L): measures.polynomial_degree(_drawn("cpbirnn", d, n, L, seed, rank=R), 1).image_dimension
        for d, n, R, L in cases
    }
    right = all(dimension == theory.cp_image_dimension(d, n, R) for (d, n, R, _), dimension in found.items())
    witness = [found[2, 4, R, 2] for R in (1, 2, 3)]
    evidence = f"d=2, n=4, L=2, R=1, 2, 3: dimensions {witness}, not 1, 2, 3"
    return Verdict(right and witness != [1, 2, 3], len(cases), evidence)


@image.about("degree", lambda s: s.is_a(nn.CPBIRNN) and s.one_way)
def _(s: NetworkView) -> Instance:
    rank = int(s.option("rank"))
    value = theory.cp_image_dimension(s.d, s.n, rank)
    text = (
        f"What its first step can do with an input has min(d, n, R) = min({s.d}, {s.n}, {rank}) = {value} dimensions, "
        f"at every depth, for almost all weights."
    )
    return Instance(text, value, "exact")


@theorem("zero-erases-products", "", "")
def erased(seed: int) -> Verdict:
    """A network whose every state is a product with every input forgets all that it holds at an input of zeros.

    Proof: the product with 0 is 0 in the first layer, and so is that with an output of 0 in the next.

    Check: BIRNN and CPBIRNN of one and two layers over 6 steps, the third input zero: states before and after it.
    """
    rng = np.random.default_rng(seed)
    cases = [(name, L) for name in ("birnn", "cpbirnn") for L in (1, 2)]
    after, before = 0.0, np.inf
    for name, L in cases:
        x = torch.from_numpy(rng.normal(size=(6, 1, 2))).float()
        x[2] = 0
        with torch.no_grad():
            y = _drawn(name, 2, 3, L, seed)(x)[0].abs()
        after, before = max(after, float(y[2:].max())), min(before, float(y[:2].max()))
    return Verdict(after == 0 < before, len(cases), f"at least {before:.1e} before the zero, {after:g} ever after")


@erased.about("degree", lambda s: s.products and not s.option("residual", False))
def _(_: NetworkView) -> Instance:
    text = "A single input of zeros erases all that it remembers, for ever: every state is a product with every input."
    return Instance(text, 0.0, "exact")
