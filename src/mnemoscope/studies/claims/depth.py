"""Claims on deep linear networks, their embedding in wide ones and state tracking: Depth §3, A.3 to A.5, A.10."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import torch

from mnemoscope.measures.tracking import state_tracking_witness
from mnemoscope.nn.networks.elman import RNN, LinearRNN
from mnemoscope.studies.claims.base import Verdict, claim
from mnemoscope.theory.formulas.copying import (
    copy_certificate,
    copy_frontier,
    copy_limit,
    copy_parameters,
    copy_weights,
    critical_width,
)
from mnemoscope.theory.formulas.linear import (
    LinearLayer,
    copied_lags,
    is_deep,
    latent_embedding,
    linear_layers,
    transfer_degrees,
)
from mnemoscope.theory.formulas.tracking import confused_difference

__all__: list[str] = []


@claim(
    "depth-theorem-1",
    "Depth Thm. 1, Lemmas 2 and 3",
    "a linear RNN of n units and L layers copies lag p of one input only if p <= L(n - 1), and that is attained",
    "proved",
)
def theorem_1(seed: int) -> Verdict:
    """Run the construction at the limit, and look at degrees of random and nilpotent networks one layer short of it."""
    draw = np.random.default_rng(seed)
    cases = [(n, layers) for n in (2, 3, 4) for layers in (1, 2, 3)]
    good = [_runs(copy_limit(n, layers), n, layers, 1, draw) for n, layers in cases]
    higher = [
        transfer_degrees(_random(draw, n, layers, 1, nilpotent)).numerator > layers * (n - 1)
        for n, layers in cases
        for nilpotent in (True, False)
    ]
    return Verdict(
        all(good) and not any(higher),
        3 * len(cases),
        f"lag L(n-1) copied by {sum(good)} of {len(good)} sizes; {sum(higher)} of {len(higher)} numerators above it",
    )


@claim(
    "depth-copy-all-inputs",
    "Depth Thm. 1, for all inputs at once (Fig. 6)",
    "lag p of all d inputs is copied by n units and L layers exactly when p d <= L(n - d)",
    "proved",
)
def all_inputs(seed: int) -> Verdict:
    """Run the construction at the limit; beyond it no exact lag of random nilpotent networks is found."""
    draw = np.random.default_rng(seed)
    cases = [(n, layers, d) for d in (2, 3) for n in (d, d + 1, d + 3) for layers in (1, 2, 3)]
    good = [_runs(copy_limit(n, layers, d), n, layers, d, draw) for n, layers, d in cases]
    longest = []
    for n, layers, d in cases:
        whole = np.flatnonzero(copied_lags(_random(draw, n, layers, d, True)).all(axis=1))
        longest.append(int(whole.max(initial=0)) - copy_limit(n, layers, d))
    return Verdict(
        all(good) and max(longest) <= 0,
        2 * len(cases),
        f"limit reached by {sum(good)} of {len(good)} sizes, exceeded by {sum(np.array(longest) > 0)} nilpotent draws",
    )


@claim(
    "depth-lemma-2-component",
    "Depth Lemma 2",
    "with ceil(p/(n - 1)) delay lines of n units one above the other, the first component of the last state is x_(t-p)",
    "false",
    "component 1 + L(n - 1) - p is; it exists for p >= (L - 1)(n - 1), below that shorten a layer's delay",
)
def component(seed: int) -> Verdict:
    """Run the lemma's own weights on an impulse and look where it stands p steps later."""
    cases = [(n, p) for n in (2, 3, 4) for p in range(1, 10)]
    places = {(n, p): _place_after(n, p) for n, p in cases}
    right = all(place == 1 - (-p // (n - 1)) * (n - 1) - p for (n, p), place in places.items())
    shorter = _runs(2, 3, 3, 1, np.random.default_rng(seed))  # component 5 of 3 does not exist
    return Verdict(
        right and places[3, 3] != 1 and shorter,
        len(cases) + 1,
        f"n=3, p=3, L=2: x_(t-p) stands in component {places[3, 3]}; n=3, L=3 copies lag 2 with shorter delays",
    )


@claim(
    "depth-theorem-2",
    "Depth Thm. 2",
    "for n >= 4, copying lag L(n - 1) takes more parameters with any smaller depth",
    "proved",
)
def theorem_2(seed: int) -> Verdict:
    """Count for all depths up to 12 and widths up to 40; below 4 the statement fails."""
    failing = set()
    cases = 0
    for n in range(2, 41):
        for deep in range(2, 13):
            for shallow in range(1, deep):
                wide = 1 - (-deep * (n - 1) // shallow)
                cases += 1
                if copy_parameters(wide, shallow) <= copy_parameters(n, deep):
                    failing.add(n)
    return Verdict(failing == {2, 3}, cases, f"among n = 2..40 it fails only at n = {sorted(failing)}")


@claim(
    "depth-theorem-2-sketch",
    "Depth Thm. 2, sketch of the proof",
    "the function of the proof is the copy of lag p = (L + 1)(n - 1)",
    "false",
    "p = L(n - 1): no network of n units and L layers copies (L + 1)(n - 1)",
)
def sketch(seed: int) -> Verdict:
    """Compare degrees."""
    sizes = [(n, layers) for n in (2, 4, 8) for layers in (1, 2, 5)]
    wrong = [copy_certificate((layers + 1) * (n - 1), n, layers).possible for n, layers in sizes]
    right = [copy_certificate(layers * (n - 1), n, layers).possible for n, layers in sizes]
    degrees = copy_certificate(9, 4, 2)
    return Verdict(
        not any(wrong) and all(right),
        2 * len(sizes),
        f"n=4, L=2: lag 9 needs degree {degrees.needed}, and {degrees.available} is the highest there is",
    )


@claim(
    "depth-critical-width",
    "Depth app. A.5.1",
    "the counts of L and l < L layers meet at n0 = 1 + l(1 + sqrt(12a + 1))/(2a), a = 2Ll - L - l, at most 3.30",
    "proved",
)
def critical(seed: int) -> Verdict:
    """Insert the root into the difference of the counts, and compare all pairs up to 30 layers."""
    widths = {(deep, low): critical_width(deep, low) for deep in range(2, 31) for low in range(1, deep)}
    worst = 0.0
    for (deep, low), n in widths.items():
        wide = 1 + deep * (n - 1) / low
        counts = (2 * low - 1) * wide**2 + (low + 1) * wide, (2 * deep - 1) * n**2 + (deep + 1) * n
        worst = max(worst, abs(counts[0] - counts[1]) / counts[1])
    top = max(widths, key=lambda pair: widths[pair])
    good = worst < 1e-12 and top == (2, 1) and math.isclose(widths[top], (3 + math.sqrt(13)) / 2)
    return Verdict(good, len(widths), f"largest {widths[top]:.6f} at L, l = {top}; counts meet to {worst:.0e}")


@claim(
    "depth-cheapest-network",
    "Depth Thm. 2, its consequence",
    "the network with the fewest parameters that copies a long lag of one input has n = 2, L = p: 10p - 2 parameters",
    "proved",
)
def cheapest(seed: int) -> Verdict:
    """Search all depths for every lag up to 300."""
    found = {lag: copy_frontier(lag)[0] for lag in range(1, 301)}
    others = [lag for lag, size in found.items() if size != (2, lag, 10 * lag - 2)]
    return Verdict(
        max(others) < 20,
        len(found),
        f"so at every lag from {max(others) + 1} to 300",
    )


@claim(
    "depth-theorem-6",
    "Depth Thm. 6, Prop. 1",
    "one linear layer of n L units can be the states of all L layers of any deep one, and most such layers are none",
    "proved",
)
def theorem_6(seed: int) -> Verdict:
    """Embed random deep networks, and ask of random wide ones, and of the theorem's own, whether they are deep."""
    draw = np.random.default_rng(seed)
    sizes = [(d, n, layers) for d in (1, 2) for n in (2, 3) for layers in (2, 3)]
    embedded, others = [], []
    for d, n, layers in sizes:
        deep = _random(draw, n, layers, d, False)
        wide = latent_embedding(*zip(*deep, strict=True))
        embedded.append(is_deep(wide.weight_ih, wide.weight_hh, n))
        units = n * layers
        others.append(is_deep(draw.normal(size=(units, d)), draw.normal(size=(units, units)) / n, n))
    own = is_deep([[1, 0], [2, 0], [1, 0], [0, 1]], np.zeros((4, 4)), 2)
    return Verdict(
        all(embedded) and not any(others) and not own,
        2 * len(sizes) + 1,
        f"{sum(embedded)} of {len(sizes)} embeddings are deep, {sum(others)} random layers, not the theorem's",
    )


@claim(
    "depth-lemma-4",
    "Depth Lemma 4",
    "one layer, linear or with phi in depth, confuses histories that a 2RNN tells apart once n < d t",
    "proved",
)
def lemma_4(seed: int) -> Verdict:
    """Find the null histories in fractions, and run both networks on the witness in float64."""
    draw = np.random.default_rng(seed)
    sizes = [(1, 3), (2, 5), (3, 4)]
    exact = []
    for d, n in sizes:
        u, v = draw.normal(size=(n, d)), draw.normal(size=(n, n))
        state = np.array([Fraction(0)] * n, dtype=object)
        for x in confused_difference(u, v, n // d + 1):
            state = np.frompyfunc(Fraction, 1, 1)(v) @ state + np.frompyfunc(Fraction, 1, 1)(u) @ x
        exact.append(not state.any())
    generator = torch.Generator().manual_seed(seed)
    found = [state_tracking_witness(RNN(d, n, activation="depth", generator=generator), seed=seed) for d, n in sizes]
    apart = max(float(witness.gap) for witness in found)
    good = all(exact) and apart < 1e-10 and min(witness.tracker_gap for witness in found) >= 1
    return Verdict(
        good, 2 * len(sizes), f"states equal in fractions, {apart:.0e} apart in float64; the 2RNN answers +-1 and 0"
    )


@claim(
    "depth-theorem-5",
    "Depth Thm. 5",
    "no RNN with arbitrary nonlinearities in depth alone computes what one layer of a 2RNN does",
    "false",
    "the proof assumes homeomorphisms: with phi = cos one depth-activated layer computes parity at any length",
)
def theorem_5(seed: int) -> Verdict:
    """Run h_t = h_{t-1} + (1 - x_t)/2, y = cos(pi h) on random signs, against the product of the inputs."""
    draw = np.random.default_rng(seed)
    x = draw.choice([-1.0, 1.0], size=(1000, 20))
    layer = LinearRNN(1, 1, dtype=torch.float64)
    weights = {"weight_ih_l0": [[-0.5]], "weight_hh_l0": [[1.0]], "bias_l0": [0.5]}
    layer.load_state_dict({name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()})
    with torch.no_grad():
        y = torch.cos(torch.pi * layer(torch.as_tensor(x)[:, :, None])[0][:, :, 0]).numpy()
    error = float(np.abs(y - x.cumprod(axis=0)).max())
    return Verdict(error < 1e-9, x.size, f"parity of 1000 steps by one unit with phi = cos, largest error {error:.0e}")


@claim(
    "depth-equation-2",
    "Depth Eq. 2",
    "a layer with activation in depth is h = V h + U phi(h of the layer below) + b",
    "false",
    "so phi bends the raw input, and one layer adds up over steps; meant is h = V h + U y + b, y = phi(h)",
)
def equation_2(seed: int) -> Verdict:
    """Compare both readings: the literal one adds up over histories, the one that is meant does not."""
    draw = np.random.default_rng(seed)
    layer = RNN(
        1, 4, activation="depth", bias=False, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    weights = [layer.get_parameter(f"{name}_l0").detach().numpy() for name in ("weight_ih", "weight_hh")]
    past, now = np.zeros((5, 1)), np.zeros((5, 1))
    past[-2], now[-1] = 2 * draw.choice([-1.0, 1.0], size=2)

    def literal(x: np.ndarray) -> np.ndarray:
        h = np.zeros(4)
        for entry in np.tanh(x):
            h = weights[1] @ h + weights[0] @ entry
        return h

    def meant(x: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return np.asarray(layer(torch.as_tensor(x))[0][-1].numpy())

    misses = [float(np.abs(f(past + now) - f(past) - f(now)).max()) for f in (literal, meant)]
    return Verdict(
        misses[0] < 1e-14 and misses[1] > 1e-6,
        2,
        f"f(past + now) - f(past) - f(now): {misses[0]:.0e} as printed, {misses[1]:.1e} as meant",
    )


def _place_after(n: int, lag: int) -> int:
    """Return the component, from 1, of the last state in which an impulse stands after `lag` steps in full lines."""
    layers = -(-lag // (n - 1))
    network = LinearRNN(1, n, layers, bias=False, dtype=torch.float64)
    last = torch.eye(n, dtype=torch.float64)[:, -1:]
    weights = {"weight_ih_l0": last} | {f"weight_hh_l{k}": torch.eye(n).roll(1, 1).triu(1) for k in range(layers)}
    weights |= {f"weight_ih_l{k}": last @ torch.eye(n, dtype=torch.float64)[:1] for k in range(1, layers)}
    network.load_state_dict(weights)
    with torch.no_grad():
        state = network(torch.eye(lag + 1, 1, dtype=torch.float64))[0][-1]
    return int(state.argmax()) + 1


def _runs(lag: int, n: int, layers: int, d: int, draw: np.random.Generator) -> bool:
    """Tell whether the constructed weights copy random inputs, bit for bit, in the network itself."""
    found = copy_weights(lag, n, layers, d)
    network = LinearRNN(d, n, layers, dtype=torch.float64)
    network.load_state_dict({name: torch.as_tensor(value) for name, value in found.weights.items()})
    x = draw.normal(size=(lag + 4, d))
    with torch.no_grad():
        y = network(torch.as_tensor(x))[0].numpy() @ found.readout.T
    return bool((y[lag:] == x[:4]).all() and not y[:lag].any())


def _random(draw: np.random.Generator, n: int, layers: int, d: int, nilpotent: bool) -> list[LinearLayer]:
    """Draw a network; nilpotent ones forget everything after a while, as those that copy do."""
    widths = [d] + [n] * (layers - 1)
    recurrent = [draw.normal(size=(n, n)) for _ in range(layers)]
    return linear_layers(
        [draw.normal(size=(n, width)) for width in widths], [np.tril(v, -1) if nilpotent else v for v in recurrent]
    )
