"""Deep linear networks and networks with phi in depth alone: one wide layer, histories that they confuse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import torch

from mnemoscope import measures, nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView


@theorem("depth-theorem-6", "lizaire2026", "Thm. 6, Prop. 1")
def embedding(seed: int) -> Verdict:
    """One linear layer of n L units can be the states of all L layers of any deep one, and most such layers are none.

    Check: eight embedded deep networks, eight random wide layers, and the theorem's own example: which of them are
    deep.
    """
    draw = np.random.default_rng(seed)
    sizes = [(d, n, layers) for d in (1, 2) for n in (2, 3) for layers in (2, 3)]
    embedded, others = [], []
    for d, n, layers in sizes:
        U = [draw.normal(size=(n, d if k == 0 else n)) for k in range(layers)]
        wide = theory.latent_embedding(U, [draw.normal(size=(n, n)) for _ in range(layers)])
        embedded.append(theory.is_deep(wide.weight_ih, wide.weight_hh, n))
        units = n * layers
        others.append(theory.is_deep(draw.normal(size=(units, d)), draw.normal(size=(units, units)) / n, n))
    own = theory.is_deep([[1, 0], [2, 0], [1, 0], [0, 1]], np.zeros((4, 4)), 2)
    return Verdict(
        all(embedded) and not any(others) and not own,
        2 * len(sizes) + 1,
        f"{sum(embedded)} of {len(sizes)} embeddings are deep, {sum(others)} random layers, not the theorem's",
    )


@embedding.about("tracking", lambda s: s.first_order and s.linear and s.layers > 1 and not s.complex)
def _(s: NetworkView) -> Instance:
    wide = s.n * s.layers
    text = (
        f"One linear layer of n L = {number(wide)} units can do all that it does, with "
        f"{number(wide * (wide + s.d + 1))} parameters; most layers of that width are no network of {s.layers} layers."
    )
    return Instance(text, wide, "exact")


@theorem("depth-lemma-4", "lizaire2026", "Lemma 4")
def confused(seed: int) -> Verdict:
    """One layer, linear or with phi in depth, confuses histories that a 2RNN tells apart once n < d t.

    Check: three sizes: null histories in fractions, and both networks run on the witness in float64.
    """
    draw = np.random.default_rng(seed)
    sizes, exact, rational = [(1, 3), (2, 5), (3, 4)], [], np.frompyfunc(Fraction, 1, 1)
    for d, n in sizes:
        u, v = draw.normal(size=(n, d)), draw.normal(size=(n, n))
        state = np.array([Fraction(0)] * n, dtype=object)
        for x in theory.confused_difference(u, v, n // d + 1):
            state = rational(v) @ state + rational(u) @ x
        exact.append(not state.any())
    generator = torch.Generator().manual_seed(seed)
    networks = [nn.RNN(d, n, activation="depth", generator=generator) for d, n in sizes]
    found = [measures.state_tracking_witness(network, seed=seed) for network in networks]
    apart = max(float(witness.gap) for witness in found)
    return Verdict(
        all(exact) and apart < 1e-10 and min(witness.tracker_gap for witness in found) >= 1,
        2 * len(sizes),
        f"states equal in fractions, {apart:.0e} apart in float64; the 2RNN answers +-1 and 0",
    )


@confused.about("tracking", lambda s: s.linear or (s.straight and s.option("activation") == "depth" and not s.complex))
def _(s: NetworkView) -> Instance:
    size = s.state_size or 0
    steps = size // s.d + 1
    text = (
        f"There are two different histories of {steps} steps that lead it to the same state, and so to the same "
        f"outputs ever after: {number(steps * s.d)} numbers came in, the state holds {number(size)} linear functions "
        f"of them. A second-order network tells them apart."
    )
    return Instance(text, steps, "exact")


@theorem("depth-theorem-5", "lizaire2026", "Thm. 5", severity="missing condition")
def homeomorphisms(seed: int) -> Verdict:
    """No RNN with arbitrary nonlinearities in depth alone computes what one layer of a 2RNN does.

    Right: the proof assumes homeomorphisms: with phi = cos one depth-activated layer computes parity at any length.
    Check: one unit, h_t = h_{t-1} + (1 - x_t)/2, y = cos(pi h), on twenty runs of 1,000 signs against their products.
    """
    x = np.random.default_rng(seed).choice([-1.0, 1.0], size=(1000, 20))
    layer = nn.LinearRNN(1, 1, dtype=torch.float64)
    weights = {"weight_ih_l0": [[-0.5]], "weight_hh_l0": [[1.0]], "bias_l0": [0.5]}
    layer.load_state_dict({name: torch.tensor(value, dtype=torch.float64) for name, value in weights.items()})
    with torch.no_grad():
        y = torch.cos(torch.pi * layer(torch.as_tensor(x)[:, :, None])[0][:, :, 0]).numpy()
    error = float(np.abs(y - x.cumprod(axis=0)).max())
    return Verdict(error < 1e-9, x.size, f"parity of 1000 steps by one unit with phi = cos, largest error {error:.0e}")


@theorem("depth-equation-2", "lizaire2026", "Eq. 2", severity="misprint")
def equation_2(seed: int) -> Verdict:
    """A layer with activation in depth is h = V h + U phi(h of the layer below) + b.

    Right: so phi acts on the raw input, and one layer adds up over steps; meant is h = V h + U y + b, y = phi(h).
    Check: one layer of 4 units in both readings: the literal one adds up over histories, the one that is meant does
    not.
    """
    generator = torch.Generator().manual_seed(seed)
    layer = nn.RNN(1, 4, activation="depth", bias=False, generator=generator, dtype=torch.float64)
    U, V = (layer.get_parameter(f"{name}_l0").detach().numpy() for name in ("weight_ih", "weight_hh"))
    past, now = np.zeros((5, 1)), np.zeros((5, 1))
    past[-2], now[-1] = 2 * np.random.default_rng(seed).choice([-1.0, 1.0], size=2)

    def literal(x: np.ndarray) -> np.ndarray:
        h = np.zeros(4)
        for entry in np.tanh(x):
            h = V @ h + U @ entry
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
