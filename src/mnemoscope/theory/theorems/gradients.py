"""Gradients on their way back through time: orthogonal, triangular and free recurrent matrices, Lyapunov exponents."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from mnemoscope import measures, nn, theory
from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.draw import general
from mnemoscope.theory.theorems.view import NetworkView

_STEPS = 100
_ROUNDING = 1e-6
"""Rate that single precision cannot tell from zero."""


def _rate(gain: float) -> float:
    """Return ln of a gain per step; of one that single precision cannot tell from 1, zero."""
    found = math.log(gain) if gain > 0 else -math.inf
    return 0.0 if abs(found) < _ROUNDING else found


def _words(rate: float) -> str:
    return number(rate) if math.isfinite(rate) else "minus infinity"


def _slopes_at_most_one(s: NetworkView) -> bool:
    """Whether the state Jacobian is D V with |D| <= 1; a complex modReLU with positive biases has larger slopes."""
    return s.first_order and s.layers == 1 and (s.straight or not s.complex)


def _orthogonal(s: NetworkView) -> str:
    return "stays orthogonal in training" if s.stays_orthogonal else "is orthogonal as these weights are"


def _made(name: str, seed: int, **options: Any) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return nn.create(name, input_size=2, hidden_size=6, dtype=torch.float64, generator=generator, **options)


def _linear(W: Float[np.ndarray, "n n"]) -> nn.LinearRNN:
    layer = nn.LinearRNN(1, len(W), bias=False, dtype=torch.float64)
    layer.weight_hh_l0 = torch.from_numpy(W)
    return layer


@theorem("kerg-polynomial-powers", "kerg2022thesis", "Prop. 3.4.2")
def polynomial_powers(seed: int) -> Verdict:
    """With ones on the diagonal and x above it, (A^t)_ij is a polynomial in x of degree j - i.

    It has no constant term, and the coefficient of x^l is O(C(t, l)); in exact form C(t, l) C(k-1, l-1), k = j - i.

    Check: twelve matrices of up to 6 units with a rational x: every entry of a power in fractions.
    """
    random = np.random.default_rng(seed)
    cases, wrong = 0, 0
    for _ in range(12):
        size, power = int(random.integers(2, 7)), int(random.integers(1, 12))
        x = Fraction(int(random.integers(-9, 10)), int(random.integers(1, 8)))
        row = [Fraction(int(j == 0)) for j in range(size)]
        for _ in range(power):  # the first row of the next power: each entry gains x times all before it
            row = [row[j] + x * sum(row[:j], Fraction(0)) for j in range(size)]
        wrong += sum(row[k] != theory.triangular_power_entry(k, power, x) for k in range(1, size))
        cases += size - 1
    return Verdict(wrong == 0, cases, f"{wrong} of {cases} entries of A^t differ from the exact form, in fractions")


@theorem("kerg-polynomial-gradients", "kerg2022thesis", "§3.4.3")
def polynomial_gradients(seed: int) -> Verdict:
    """Gradients of a triangular network with unit eigenvalues grow polynomially, not exponentially.

    The order is at most n - 1.

    Check: six triangles, n = 2 to 7: powers in fractions, gradients at 300 lags against sum_j C(k, j) |N^j|.
    """
    random = np.random.default_rng(seed)
    bent, reached, rates, cases = 0, 0.0, [], 6
    lags = np.arange(300)
    for case in range(cases):
        n = 2 + case
        N = np.triu(random.integers(-64, 65, size=(n, n)) / 16, 1)
        A = np.frompyfunc(Fraction, 1, 1)(N + np.eye(n))
        powers: list[Any] = [np.frompyfunc(Fraction, 1, 1)(np.eye(n))]
        for _ in range(n + 2):
            powers.append(powers[-1] @ A)
        bent += bool(np.diff(np.array(powers), n=n, axis=0).any())  # a polynomial in t of degree n - 1 has none left
        logs = [
            measures.gradient_norms(_linear(N + value * np.eye(n)), inputs=torch.zeros(300, 1, 1)).log_norms[:300]
            for value in (1.0, 1.1)
        ]
        norms = [np.linalg.norm(np.linalg.matrix_power(N, j), 2) for j in range(n)]
        bound = sum(norms[j] * np.array([math.comb(int(k), j) for k in lags], dtype=float) for j in range(n))
        reached = max(reached, float((np.exp(logs[0] - logs[0][0]) / bound).max()))
        rates.append(abs(float(logs[1][-1] - logs[1][150]) / 149 - math.log(1.1)))
    return Verdict(
        bent == 0 and reached <= 1 + 1e-9 and max(rates) < 0.06,
        cases * 300,
        f"{bent} of {cases} powers are no polynomials of order n - 1; gradients reach {reached:.3f} of the "
        f"polynomial at "
        f"most; with eigenvalues 1.1 they grow by ln 1.1 a step, to {max(rates):.3f}",
    )


@polynomial_gradients.about("gradients", lambda s: s.is_a(nn.NNRNN) and s.straight and s.option("block") != "published")
def _(s: NetworkView) -> Instance:
    order = -(-s.n // 2) - 1  # block triangular with blocks of moduli gamma: a walk has fewer jumps than blocks
    text = (
        f"The powers of its V grow at most as gamma^k times a polynomial of degree {order} in the lag k, gamma = "
        f"{number(s.radius)} being the largest modulus: at gamma = 1 gradients grow polynomially, never exponentially."
    )
    return Instance(text, order, "bound")


@theorem("ziv-orthogonal-relu", "arjovsky2016", "§2, restated in Ziv 2020, §1.2.1")
def orthogonal_relu(seed: int) -> Verdict:
    """With V orthogonal and ReLU, the gradient at an earlier state is never larger than the gradient at the last.

    Check: six random orthogonal networks of 8 units over 60 steps, one of them with all units off.
    """
    generator = torch.Generator().manual_seed(seed)
    worst, cases = 0.0, 6
    for case in range(cases):
        layer = nn.IRNN(2, 8, dtype=torch.float64, generator=generator)
        layer.weight_hh_l0 = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64)).Q
        x = torch.randn(60, 1, 2, generator=generator, dtype=torch.float64)
        if case == 0:
            layer.bias_l0 = torch.full((8,), -100.0)
        with torch.no_grad():
            active = (layer(x)[0] > 0)[:, 0].numpy()
        norms = measures.gradient_norms(layer, inputs=x, seed=seed + case).norms
        worst = max(worst, float((norms / norms[0] - theory.orthogonal_relu_bound(active)).max()))
    return Verdict(worst < 1e-12, cases, f"the largest excess over the bound is {max(worst, 0.0):.1e} of |dL/dh_T|")


@orthogonal_relu.about("gradients", lambda s: _slopes_at_most_one(s) and not s.straight and s.orthogonal)
def _(s: NetworkView) -> Instance:
    text = (
        f"Its V {_orthogonal(s)} and {s.phi} has no slope above 1, so gradients never grow on their way back: rate at "
        f"most 0. That they do not vanish is not promised."
    )
    return Instance(text, 0.0, "bound")


@theorem("gradient-constant", "arjovsky2016", "§2")
def constant(seed: int) -> Verdict:
    """An orthogonal V without a nonlinearity in the recurrence keeps the norm of every gradient.

    Check: three linear networks with orthogonal V over 60 steps: the largest change of a gradient's norm.
    """
    names = ("exprnn", "scornn", "ornn")
    made = [_made(name, seed, nonlinearity="identity") for name in names]
    logs = [measures.gradient_norms(layer, horizon=60, trajectories=2, seed=seed).log_norms for layer in made]
    worst = max(float(np.abs(log - log[0]).max()) for log in logs)
    return Verdict(worst < 1e-9, len(names), f"gradients change by at most a factor of 1 + {worst:.1e}")


@constant.about("gradients", lambda s: s.straight and s.orthogonal)
def _(s: NetworkView) -> Instance:
    text = (
        f"Its V {_orthogonal(s)} and no nonlinearity acts on the state between steps, so gradients keep their norm "
        f"exactly, however far back they go: rate 0, and every Lyapunov exponent 0."
    )
    return Instance(text, 0.0, "exact")


@theorem("gradient-norm", "pascanu2013", "§2.1")
def norm(seed: int) -> Verdict:
    """With slopes of at most 1, one step back multiplies a gradient's norm by at most the largest singular value of V.

    Check: nine networks over 50 steps, tanh, ReLU and linear with V = 1.1 Q: every step of every gradient against |V|.
    """
    worst, cases = -math.inf, 9
    for case in range(cases):
        layer = _made("rnn", seed + case, nonlinearity=("tanh", "relu", "identity")[case % 3])
        if case % 3 == 2:  # the bound is met
            layer.weight_hh_l0 = 1.1 * torch.linalg.qr(layer.weight_hh_l0.detach()).Q
        found = measures.gradient_norms(layer, horizon=50, trajectories=1, seed=seed).log_norms
        rate = math.log(float(np.linalg.norm(layer.weight_hh_l0.detach().numpy(), 2)))
        steps = np.diff(found[np.isfinite(found)])
        worst = max(worst, float(steps.max(initial=-math.inf)) - rate)
    return Verdict(worst <= 1e-9, cases, f"the largest step exceeds ln |V| by {worst:.1e} nats")


@norm.about("gradients", lambda s: _slopes_at_most_one(s) and not s.orthogonal)
def _(s: NetworkView) -> Instance:
    top = s.recurrent_norm
    rate = _rate(top)
    then = f"below {number(math.exp(_STEPS * rate))} of it {_STEPS} steps back" if rate < 0 else "growth is possible"
    text = (
        f"One step back multiplies a gradient's norm by at most the largest singular value of V, {number(top)}: a rate "
        f"of at most {_words(rate)} per step with these weights; {then}."
    )
    return Instance(text, rate, "bound")


@theorem("gradient-deep", "pascanu2013", "§2.1, for stacked layers")
def deep(seed: int) -> Verdict:
    """With slopes of at most 1, Jacobians of L layers over k steps are below powers of the triangle of their norms.

    That is max |V_l|^k times a polynomial of degree L - 1 in k.

    Check: eight stacks of two and three layers with random slopes: products of 40 Jacobians against the norms'
    triangle.
    """
    random = np.random.default_rng(seed)
    worst, cases = 0.0, 8
    for case in range(cases):
        L, n = 2 + case % 2, 3
        V, U = random.normal(size=(2, L, n, n))
        norms = np.zeros((L, L))
        for i in range(L):
            for j in range(i + 1):  # how the state of layer i follows that of layer j one step before
                norms[i, j] = np.linalg.norm(V[j], 2) * math.prod(np.linalg.norm(U[k], 2) for k in range(j + 1, i + 1))
        product, power = np.eye(L * n), np.eye(L)
        for _ in range(40):
            product, power = _jacobian(U, V, random.uniform(-1, 1, size=(L, n))) @ product, norms @ power
            worst = max(worst, float(np.linalg.norm(product, 2) / np.linalg.norm(power, 2)))
    return Verdict(worst <= 1 + 1e-9, cases * 40, f"products reach at most {worst:.3f} of the bound")


def _jacobian(U: np.ndarray, V: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Return d(h_1, .., h_L)_t / d(h_1, .., h_L)_{t-1} of stacked layers h_l = phi(V_l h_l + U_l h_{l-1})."""
    L, n, _ = V.shape
    found, below = np.zeros((L * n, L * n)), np.zeros((n, L * n))
    for layer in range(L):
        own = U[layer] @ below
        own[:, layer * n : (layer + 1) * n] += V[layer]
        below = slopes[layer][:, None] * own
        found[layer * n : (layer + 1) * n] = below
    return found


@deep.about("gradients", lambda s: s.first_order and s.layers > 1 and (s.phi == "identity" or not s.complex))
def _(s: NetworkView) -> Instance:
    rate = _rate(s.recurrent_norm)
    text = (
        f"Over k steps back gradients grow at most as {number(s.recurrent_norm)}^k, the largest singular value of its "
        f"{s.layers} matrices V, times a polynomial of degree {s.layers - 1} in k: a rate of at most {_words(rate)} "
        f"per step over long times, with these weights."
    )
    return Instance(text, rate, "bound")


@theorem("gradient-contraction", "pascanu2013", "§2.1, for linear recurrences")
def contraction(seed: int) -> Verdict:
    """Transitions of norm at most 1, as gates and reflections, let no gradient between states of a layer grow.

    Check: products of 50 diagonal and of 50 reflecting transitions; gradients of six networks over 30 steps.
    """
    random = np.random.default_rng(seed)
    product, turned = np.ones(5), np.eye(5)
    for _ in range(50):
        k = random.normal(size=5)
        product = product * random.uniform(-1, 1, size=5)
        turned = (np.eye(5) - random.uniform(0, 2) * np.outer(k, k) / (k @ k)) @ turned
    norms = float(np.abs(product).max()), float(np.linalg.norm(turned, 2))
    names = ("mingru", "minlstm", "rglru", "gla", "mamba2", "deltanet")
    made = [_made(name, seed) for name in names]
    logs = [measures.gradient_norms(layer, horizon=30, trajectories=1, seed=seed).log_norms for layer in made]
    growth = max(float(np.diff(log[np.isfinite(log)]).max(initial=-math.inf)) for log in logs)
    return Verdict(
        max(norms) <= 1 + 1e-12 and growth <= 1e-9,
        2 + len(names),
        f"norms of products {norms[0]:.1e} and {norms[1]:.3f}; the largest step of a gradient is {growth:.1e} nats",
    )


def _contracts(s: NetworkView) -> bool:
    # mLSTM stores its state divided by exp(m), and blocks add a convolution's buffer: other Jacobians.
    plain = s.layers == 1 and s.one_way and not s.option("block", False) and not s.is_a(nn.MLSTM)
    sorts = ("non-negative", "real diagonal", "projections", "reflections")
    return plain and (s.transitions in sorts or s.is_a(nn.RetNet))


@contraction.about("gradients", _contracts)
def _(_: NetworkView) -> Instance:
    text = (
        "Gradients never grow on their way back through its state: its transitions have norm at most 1, whatever the "
        "input and the weights. That they do not vanish is not promised."
    )
    return Instance(text, 0.0, "bound")


@theorem("gradient-margin", "vorontsov2017", "§2")
def margin(seed: int) -> Verdict:
    """A factorised V with margin m keeps its singular values within [1 - m, 1 + m] whatever its parameters are.

    Check: six networks with margins 0.05 to 0.5 whose parameters were moved far: singular values of V.
    """
    generator = torch.Generator().manual_seed(seed)
    worst, margins = -math.inf, (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
    for m in margins:
        layer: Any = nn.SoftOrth(2, 6, margin=m, dtype=torch.float64, generator=generator)
        with torch.no_grad():
            for parameter in layer.parametrizations["weight_hh_l0"].parameters(recurse=False):
                parameter.add_(5 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
        layer.after_step()
        values = torch.linalg.svdvals(layer.weight_hh_l0.detach())
        worst = max(worst, float((values - 1).abs().max()) - m)
    return Verdict(worst < 1e-9, len(margins), f"singular values leave the margin by at most {max(worst, 0.0):.1e}")


@margin.about(
    "gradients", lambda s: s.is_a(nn.SoftOrth) and s.option("mode") == "factorised" and _slopes_at_most_one(s)
)
def _(s: NetworkView) -> Instance:
    m = float(s.option("margin"))
    value = math.log1p(m)
    text = (
        f"However it is trained, the singular values of V stay within [{number(1 - m)}, {number(1 + m)}]: gradients "
        f"grow by at most {number(value)} nats per step back."
    )
    return Instance(text, value, "bound")


@theorem("lyapunov-eigenvalues", "benettin1980", "")
def exponents(seed: int) -> Verdict:
    """Lyapunov exponents are ln |eigenvalues| where the state Jacobian is the same everywhere.

    Check: four linear networks of 3 to 6 units: all exponents against the eigenvalues of V.
    """
    random = np.random.default_rng(seed)
    worst, sizes = 0.0, range(3, 7)
    for size in sizes:
        W = general(random, size, 0.95)
        found = measures.lyapunov_exponents(_linear(W)).exponents
        worst = max(worst, float(np.abs(found - np.sort(np.log(np.abs(np.linalg.eigvals(W))))[::-1]).max()))
    return Verdict(worst < 1e-6, len(sizes), f"exponents differ from ln |eigenvalues| by at most {worst:.1e}")


@exponents.about("gradients", lambda s: s.linear or s.straight)
def _(s: NetworkView) -> Instance:
    value = _rate(s.radius)
    text = (
        f"Its state Jacobian is the same everywhere, so its Lyapunov exponents are ln |eigenvalues| exactly, the "
        f"largest ln {number(s.radius)} = {_words(value)}: the rate of gradients over long times."
    )
    return Instance(text, value, "exact")
