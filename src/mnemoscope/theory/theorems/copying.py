"""Copying by deep linear networks: how far back, with which weights, at what cost; and Henaff's clocks."""

from __future__ import annotations

import math

import numpy as np
import torch

from mnemoscope import nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.theory.formulas.linear import LinearLayer
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_SYMBOLS = 10
"""Of the copy task that the papers use."""
_MOST = 4096
"""The longest lag for which the cheapest network is looked for."""


def _linear_layers(s: NetworkView) -> bool:
    return s.first_order and s.linear and not s.complex


def _free(s: NetworkView) -> bool:
    return _linear_layers(s) and s.map is None


@theorem("depth-theorem-1", "lizaire2026", "Thm. 1, Lemmas 2 and 3")
def one_input(seed: int) -> Verdict:
    """A linear RNN of n units and L layers copies lag p of one input only if p <= L(n - 1), and that is attained.

    Check: nine sizes: the construction, run at the limit; degrees of random networks; delay lines in random bases.
    """
    draw = np.random.default_rng(seed)
    cases = [(n, layers) for n in (2, 3, 4) for layers in (1, 2, 3)]
    good = [_runs(theory.copy_limit(n, layers), n, layers, 1, draw) for n, layers in cases]
    higher = [
        theory.transfer_degrees(_random(draw, n, layers, 1, nilpotent)).numerator > layers * (n - 1)
        for n, layers in cases
        for nilpotent in (True, False)
    ]
    within, seen, attempts = _delay_lines_within(draw, [(n, layers, 1) for n, layers in cases])
    return Verdict(
        all(good) and not any(higher) and within,
        3 * len(cases) + attempts,
        f"lag L(n-1) copied by {sum(good)} of {len(good)} sizes; {sum(higher)} of {len(higher)} numerators above "
        f"it; {seen}",
    )


@theorem("depth-copy-all-inputs", "lizaire2026", "Thm. 1, for all inputs at once (Fig. 6)")
def all_inputs(seed: int) -> Verdict:
    """Lag p of all d inputs is copied by n units and L layers exactly when p d <= L(n - d).

    Check: eighteen sizes: the construction, run at the limit; and 216 delay lines in random bases, of which most copy.
    """
    draw = np.random.default_rng(seed)
    cases = [(n, layers, d) for d in (2, 3) for n in (d, d + 1, d + 3) for layers in (1, 2, 3)]
    good = [_runs(theory.copy_limit(n, layers, d), n, layers, d, draw) for n, layers, d in cases]
    within, seen, attempts = _delay_lines_within(draw, cases)
    evidence = f"limit reached by {sum(good)} of {len(good)} sizes; {seen}"
    return Verdict(all(good) and within, len(cases) + attempts, evidence)


@all_inputs.about("copying", _linear_layers)
def _(s: NetworkView) -> Instance:
    if s.n < s.d:
        text = f"With fewer units ({s.n}) than inputs ({s.d}) it cannot copy all inputs, not even the present ones."
        return Instance(text, None, "exact")
    lag = theory.copy_limit(s.n, s.layers, s.d)
    one = "" if s.d == 1 else f" (one input alone: {number(s.layers * (s.n - 1))})"
    room = f"p d <= L (n - d) = {s.layers} x ({s.n} - {s.d}) = {number(s.layers * (s.n - s.d))}"
    if s.map is None:
        text = f"The best weights of its size copy all {s.d} inputs {number(lag)} steps back, no further: {room}{one}."
        return Instance(text, lag, "exact")
    text = f"No weights of its size copy all {s.d} inputs more than {number(lag)} steps back: {room}{one}."
    return Instance(text, lag, "bound")


def _delay_lines_within(draw: np.random.Generator, sizes: list[tuple[int, int, int]]) -> tuple[bool, str, int]:
    """Return whether no delay lines copy all inputs beyond the limit while many copy, what was seen, on how many.

    In each layer every input has a delay line of random length, which reads the end of its line below; in a quarter of
    the layers the lines are exchanged. A change of basis in integers, of determinant one, hides this in each layer.
    """
    longest = [
        (np.flatnonzero(theory.copied_lags(_delay_lines(draw, *size)).all(axis=1)), theory.copy_limit(*size))
        for size in sizes
        for _ in range(12)
    ]
    copying = [int(lags.max()) - limit for lags, limit in longest if len(lags)]
    reached, beyond = sum(gap == 0 for gap in copying), sum(gap > 0 for gap in copying)
    seen = f"of {len(longest)} delay lines in random bases {len(copying)} copy, {reached} to the limit, {beyond} beyond"
    return not beyond and reached > 0 and 2 * len(copying) > len(longest), seen, len(longest)


def _delay_lines(draw: np.random.Generator, n: int, layers: int, d: int) -> list[LinearLayer]:
    found, ends, below = [], np.arange(d), np.eye(d)
    for _ in range(layers):
        starts = np.sort([0, *draw.choice(np.arange(1, n), size=d - 1, replace=False)]) if n > 1 else np.zeros(1, int)
        order = draw.permutation(d)
        U, V = np.zeros((n, len(below))), np.eye(n, k=-1)
        U[starts, ends[order]], V[starts] = 1, 0
        ends[order] = np.append(starts[1:], n) - 1
        if draw.random() < 0.25:
            U = np.roll(U, 1, axis=1)
        S = np.eye(n) + np.tril(draw.integers(-2, 3, size=(n, n)), -1)
        inverse = np.rint(np.linalg.inv(S))
        found.append(LinearLayer(S @ U @ below, S @ V @ inverse, np.zeros(n)))
        below = inverse
    return found


@theorem("depth-lemma-2-component", "lizaire2026", "Lemma 2", severity="misprint")
def component(seed: int) -> Verdict:
    """With ceil(p/(n - 1)) stacked delay lines of n units, the first component of the last state is x_(t-p).

    Right: component 1 + L(n - 1) - p is; it exists for p >= (L - 1)(n - 1), below that shorten a layer's delay.
    Check: the lemma's own weights on an impulse, n = 2, 3, 4 and p = 1..9: where it stands p steps later.
    """
    cases = [(n, p) for n in (2, 3, 4) for p in range(1, 10)]
    places = {(n, p): _place_after(n, p) for n, p in cases}
    right = all(place == 1 - (-p // (n - 1)) * (n - 1) - p for (n, p), place in places.items())
    shorter = _runs(2, 3, 3, 1, np.random.default_rng(seed))  # component 5 of 3 does not exist
    return Verdict(
        right and places[3, 3] != 1 and shorter,
        len(cases) + 1,
        f"n=3, p=3, L=2: x_(t-p) stands in component {places[3, 3]}; n=3, L=3 copies lag 2 with shorter delays",
    )


@theorem("depth-theorem-2", "lizaire2026", "Thm. 2")
def theorem_2(_: int) -> Verdict:
    """For n >= 4, copying lag L(n - 1) takes more parameters with any smaller depth.

    Check: all depths up to 12 and widths from 2 to 40, counted; below 4 the statement fails.
    """
    failing, cases = set(), 0
    for n in range(2, 41):
        for deep in range(2, 13):
            for shallow in range(1, deep):
                wide = 1 - (-deep * (n - 1) // shallow)
                cases += 1
                if theory.copy_parameters(wide, shallow) <= theory.copy_parameters(n, deep):
                    failing.add(n)
    return Verdict(failing == {2, 3}, cases, f"among n = 2..40 it fails only at n = {sorted(failing)}")


@theorem("depth-theorem-2-sketch", "lizaire2026", "Thm. 2, sketch of the proof", severity="misprint")
def sketch(_: int) -> Verdict:
    """The function of the proof is the copy of lag p = (L + 1)(n - 1).

    Right: p = L(n - 1): no network of n units and L layers copies (L + 1)(n - 1).
    Check: nine sizes, by the degrees of their transfer functions.
    """
    sizes = [(n, layers) for n in (2, 4, 8) for layers in (1, 2, 5)]
    wrong = [theory.copy_certificate((layers + 1) * (n - 1), n, layers).possible for n, layers in sizes]
    right = [theory.copy_certificate(layers * (n - 1), n, layers).possible for n, layers in sizes]
    degrees = theory.copy_certificate(9, 4, 2)
    return Verdict(
        not any(wrong) and all(right),
        2 * len(sizes),
        f"n=4, L=2: lag 9 needs degree {degrees.needed}, and {degrees.available} is the highest there is",
    )


@theorem("depth-critical-width", "lizaire2026", "app. A.5.1")
def critical(_: int) -> Verdict:
    """The counts of L and l < L layers meet at n0 = 1 + l(1 + sqrt(12a + 1))/(2a), a = 2Ll - L - l, at most 3.30.

    Check: all pairs up to 30 layers: the root is put into both counts.
    """
    widths = {(deep, low): theory.critical_width(deep, low) for deep in range(2, 31) for low in range(1, deep)}
    worst = 0.0
    for (deep, low), n in widths.items():
        wide = 1 + deep * (n - 1) / low
        counts = (2 * low - 1) * wide**2 + (low + 1) * wide, (2 * deep - 1) * n**2 + (deep + 1) * n
        worst = max(worst, abs(counts[0] - counts[1]) / counts[1])
    top = max(widths, key=lambda pair: widths[pair])
    good = worst < 1e-12 and top == (2, 1) and math.isclose(widths[top], (3 + math.sqrt(13)) / 2)
    return Verdict(good, len(widths), f"largest {widths[top]:.6f} at L, l = {top}; counts meet to {worst:.0e}")


@critical.about("copying", lambda s: _free(s) and s.layers > 1 and s.d == 1)
def _(s: NetworkView) -> Instance:
    width = theory.critical_width(s.layers, s.layers - 1)
    pays = "it does" if s.n > width else "it does not"
    text = (
        f"{s.layers} layers copy their longest lag with fewer parameters than {s.layers - 1} when they are wider than "
        f"{number(width)} units: here, with {s.n}, {pays}."
    )
    return Instance(text, width, "exact")


@theorem("depth-cheapest-network", "lizaire2026", "Thm. 2, its consequence")
def cheapest(_: int) -> Verdict:
    """The network with the fewest parameters that copies a long lag of one input has n = 2, L = p: 10p - 2 parameters.

    Check: every lag up to 300, over all depths.
    """
    found = {lag: theory.copy_frontier(lag)[0] for lag in range(1, 301)}
    others = [lag for lag, size in found.items() if size != (2, lag, 10 * lag - 2)]
    return Verdict(max(others) < 20, len(found), f"so at every lag from {max(others) + 1} to 300")


@cheapest.about("copying", lambda s: _free(s) and s.n >= s.d and 1 <= theory.copy_limit(s.n, s.layers, s.d) <= _MOST)
def _(s: NetworkView) -> Instance:
    lag = theory.copy_limit(s.n, s.layers, s.d)
    n, layers, parameters = theory.copy_frontier(lag, s.d)[0]
    own = theory.copy_parameters(s.n, s.layers, s.d)
    text = (
        f"To copy {number(lag)} steps back it has {number(own)} parameters; {layers} layers of {n} units would do it "
        f"with {number(parameters)}, the fewest of all depths (in theory: so deep a linear network is hard to train)."
    )
    return Instance(text, parameters, "exact")


@theorem("henaff-clocks", "henaff2016", "§4")
def clocks(seed: int) -> Verdict:
    """A linear network of d rotations that all return after T + S steps solves the copy task of S symbols.

    At any delay T the other symbols disturb a score of 1 by a standard deviation of sqrt((S - 1) / (2 d)).

    Check: forty draws of 50 and 200 rotations at a delay of 30: scores of all ten letters, and their spread.
    """
    worst, right, letters = 0.0, 0, 0
    for blocks in (50, 200):
        scores = np.concatenate([_clock_scores(blocks, 30, 1000 * seed + draw) for draw in range(20)])
        spread = float(np.std(scores[:, 0] - 1))
        worst = max(worst, abs(spread / math.sqrt((_SYMBOLS - 1) / (2 * blocks)) - 1))
        right += int((scores[:, 0] > scores[:, 1:].max(axis=1)).sum()) if blocks == 200 else 0
        letters += len(scores) if blocks == 200 else 0
    return Verdict(
        worst < 0.25 and right > 0.97 * letters,
        40,
        f"{right} of {letters} letters read right with 200 rotations; the spread is within {100 * worst:.0f}% of "
        f"the law",
    )


def _clock_scores(blocks: int, delay: int, seed: int) -> np.ndarray:
    """Return the score of the right letter and those of the others, for each of the symbols."""
    V, U, W = theory.henaff_copy(blocks, delay, _SYMBOLS, 8, seed=seed)
    letters = np.random.default_rng(seed).integers(8, size=_SYMBOLS)
    h, found = np.zeros(len(V)), []
    for t in range(delay + 2 * _SYMBOLS):
        h = V @ h + (U[:, 1 + letters[t]] if t < _SYMBOLS else 0)
        if t >= delay + _SYMBOLS:
            scores, letter = W @ h, letters[t - delay - _SYMBOLS]
            found.append([scores[letter], *np.delete(scores, letter)])
    return np.array(found)


@clocks.about("copying", lambda s: _free(s) and s.layers == 1 and s.n >= 3 and s.d >= 3)
def _(s: NetworkView) -> Instance:
    blocks = (s.n - 1) // 2
    value = math.sqrt((_SYMBOLS - 1) / (2 * blocks))
    text = (
        f"There are weights, {blocks} rotations that all return after T + {_SYMBOLS} steps, with which it solves the "
        f"copy task of {_SYMBOLS} symbols at any delay T; the other symbols disturb a score of 1 by a standard "
        f"deviation of {number(value)}, which falls as 1/sqrt(n)."
    )
    return Instance(text, value, "exact")


def _place_after(n: int, lag: int) -> int:
    """Return the component, from 1, of the last state in which an impulse stands after `lag` steps in full lines."""
    layers = -(-lag // (n - 1))
    network = nn.LinearRNN(1, n, layers, bias=False, dtype=torch.float64)
    last = torch.eye(n, dtype=torch.float64)[:, -1:]
    weights = {"weight_ih_l0": last} | {f"weight_hh_l{k}": torch.eye(n).roll(1, 1).triu(1) for k in range(layers)}
    weights |= {f"weight_ih_l{k}": last @ torch.eye(n, dtype=torch.float64)[:1] for k in range(1, layers)}
    network.load_state_dict(weights)
    with torch.no_grad():
        state = network(torch.eye(lag + 1, 1, dtype=torch.float64))[0][-1]
    return int(state.argmax()) + 1


def _runs(lag: int, n: int, layers: int, d: int, draw: np.random.Generator) -> bool:
    """Tell whether the constructed weights copy random inputs, bit for bit, in the network itself."""
    found = theory.copy_weights(lag, n, layers, d)
    network = nn.LinearRNN(d, n, layers, dtype=torch.float64)
    network.load_state_dict({name: torch.as_tensor(value) for name, value in found.weights.items()})
    x = draw.normal(size=(lag + 4, d))
    with torch.no_grad():
        y = network(torch.as_tensor(x))[0].numpy() @ found.readout.T
    return bool((y[lag:] == x[:4]).all() and not y[:lag].any())


def _random(draw: np.random.Generator, n: int, layers: int, d: int, nilpotent: bool) -> list[LinearLayer]:
    """Return a random network; nilpotent ones forget everything after a while, as those that copy do."""
    widths = [d] + [n] * (layers - 1)
    recurrent = [draw.normal(size=(n, n)) for _ in range(layers)]
    return theory.linear_layers(
        [draw.normal(size=(n, width)) for width in widths], [np.tril(v, -1) if nilpotent else v for v in recurrent]
    )
