"""Claims on 2RNNs, BIRNNs and CPBIRNNs as polynomials: Depth section 3.2, appendices A.6 to A.9."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import torch

from mnemoscope.core.prime import PRIMES, Prime
from mnemoscope.measures.degree import polynomial_degree
from mnemoscope.nn.networks.birnn import BIRNN
from mnemoscope.nn.networks.cprnn import CPBIRNN
from mnemoscope.nn.networks.second_order import SecondOrderRNN
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.degree import birnn_degree, cp_image_dimension, diagonal_tensor, parity_weights

__all__: list[str] = []

_KINDS: dict[str, tuple[Any, dict[str, str]]] = {
    "BIRNN": (BIRNN, {}),
    "2RNN": (SecondOrderRNN, {"nonlinearity": "identity"}),
    "CPBIRNN": (CPBIRNN, {}),
}


def _drawn(kind: str, d: int, n: int, L: int, seed: int, **more: Any) -> Any:
    make, options = _KINDS[kind]
    return make(d, n, L, generator=torch.Generator().manual_seed(seed), **options, **more)


@claim(
    "depth-polynomial-order",
    "Depth App. A.6",
    "the states of a linear BIRNN or 2RNN of L layers after T steps are polynomials of an order of at most T^L",
    "proved",
)
def order(seed: int) -> Verdict:
    """Measure the degree; it is C(T+L-1, L), below T^L for all T, L > 1."""
    cases = [(kind, T, L) for kind in _KINDS for T, L in ((1, 2), (2, 2), (4, 2), (3, 3))]
    found = [(polynomial_degree(_drawn(kind, 2, 2, L, seed), T).degree, T, L) for kind, T, L in cases]
    right = all(degree == birnn_degree(T, L) <= T**L for degree, T, L in found)
    return Verdict(right, len(found), f"T=4, L=2: degree {found[2][0]}, T^L = 16; T=3, L=3: {found[3][0]}, T^L = 27")


@claim(
    "depth-exponential-degree",
    "Depth §3.2",
    "the maximal degree of a BIRNN's polynomials grows exponentially with depth (as T^L)",
    "false",
    "it is C(T+L-1, L): for a given T a polynomial in L of degree T-1; L+1 at T = 2",
)
def exponential(seed: int) -> Verdict:
    """Measure it at T = 2 over depths, where the exponential would be 2^L."""
    depths = (1, 2, 3, 4, 6, 8)
    found = [polynomial_degree(_drawn("BIRNN", 2, 2, L, seed), 2).degree for L in depths]
    evidence = f"T=2, L={depths}: degrees {found}, not {[2**L for L in depths]}"
    return Verdict(found == [L + 1 for L in depths], len(depths), evidence)


@claim(
    "depth-theorem-3-strict",
    "Depth Thm. 3, strictness",
    "h_2 of a linear BIRNN or 2RNN of L layers has at most degree L in x_1, and A = delta in L+1 layers reaches L+1",
    "proved",
)
def strict(seed: int) -> Verdict:
    """Measure random weights and the construction."""
    cases = list(itertools.product(("BIRNN", "2RNN"), (1, 2, 3, 4)))
    random = [polynomial_degree(_drawn(kind, 2, 2, L, seed), 2).by_input[0] == L for kind, L in cases]
    built = []
    for L in (2, 3, 4):
        network = _drawn("BIRNN", 2, 2, L, seed)
        with torch.no_grad():
            for weight in network.parameters():
                weight.copy_(torch.from_numpy(diagonal_tensor(2, 2)))
        built.append(int(polynomial_degree(network, 2).by_input[0]))
    evidence = f"random weights at the bound in {sum(random)} of {len(random)}; A = delta, L = 2, 3, 4: {built}"
    return Verdict(all(random) and built == [2, 3, 4], len(random) + len(built), evidence)


@claim(
    "depth-theorem-3-inclusion",
    "Depth Thm. 3, inclusion",
    "whatever a linear BIRNN of L layers computes, one of L+1 layers of the same width computes too",
    "false",
    "true with residual connections, and for 2RNNs; without them h_t is homogeneous, of degree C(t+L-1, L) or zero",
)
def inclusion(seed: int) -> Verdict:
    """Scale the inputs by c: h_2 of one layer grows by c^2, of two layers by c^3; with residuals A = 0 copies."""
    field, rng = Prime(PRIMES[0]), np.random.default_rng(seed)
    x = rng.integers(0, 1000, (2, 10, 2), dtype=np.uint64)
    factor = field.array(7)
    scales = []
    for L in (1, 2):
        network = _drawn("BIRNN", 2, 2, L, seed)
        weights = network.exact_weights(field)
        h, more = (network.evaluate(field, weights, each)[0][1] for each in (x, field.mul(x, factor)))
        grown = [e for e in range(1, 6) if np.array_equal(more, field.mul(h, field.array(7**e)))]
        scales.append(grown)
    copied = _copies(field, x, seed)
    evidence = f"x -> 7x multiplies h_2 by 7^{scales[0][0]} with one layer, by 7^{scales[1][0]} with any two layers"
    return Verdict(scales == [[2], [3]] and copied, 3, evidence + "; with residuals and A = 0 the second layer copies")


def _copies(field: Prime, x: np.ndarray, seed: int) -> bool:
    deep = _drawn("BIRNN", 2, 2, 2, seed, residual=True)
    with torch.no_grad():
        deep.weight_bilinear_l1.zero_()
    shallow = _drawn("BIRNN", 2, 2, 1, seed)
    weights = deep.exact_weights(field)
    above, _ = deep.evaluate(field, weights, x)
    below, _ = shallow.evaluate(field, {"weight_bilinear_l0": weights["weight_bilinear_l0"]}, x)
    return bool(np.array_equal(above, below))


@claim(
    "depth-theorem-4",
    "Depth Thm. 4, proof",
    "for R < n a CPBIRNN of rank R+1 has an image of x_1 -> h_1 of dimension R+1, one of rank R at most R",
    "false",
    "the dimension is min(d, n, R) at every depth, so R < d is needed too",
)
def image(seed: int) -> Verdict:
    """Measure the dimension over d, n, R and L."""
    cases = list(itertools.product((1, 2, 4), (3, 4), (1, 2, 3, 4), (1, 2)))
    found = {
        case: polynomial_degree(_drawn("CPBIRNN", case[0], case[1], case[3], seed, rank=case[2]), 1).image_dimension
        for case in cases
    }
    right = all(dimension == cp_image_dimension(d, n, R) for (d, n, R, _), dimension in found.items())
    witness = [found[2, 4, R, 2] for R in (1, 2, 3)]
    evidence = f"d=2, n=4, L=2, R=1, 2, 3: dimensions {witness}, not 1, 2, 3"
    return Verdict(right and witness != [1, 2, 3], len(cases), evidence)


@claim(
    "depth-parity-linear-2rnn",
    "Depth §4.2, Fig. 8",
    "a linear 2RNN with n = 5 units solves parity of 5 channels",
    "proved",
)
def parity(seed: int) -> Verdict:
    """Run A = delta, U = I, V = 0, b = -1 over random signs, 1000 steps: h + 1 is the parity."""
    network = SecondOrderRNN(5, 5, nonlinearity="identity", dtype=torch.float64)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in parity_weights(5).items()})
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (1000, 8, 5), generator=generator).double() * 2 - 1
    with torch.no_grad():
        wrong = int((network(signs)[0] + 1 != signs.cumprod(0)).sum())
    return Verdict(wrong == 0, signs.numel(), f"{wrong} of {signs.numel()} outputs wrong, over 1000 steps")
