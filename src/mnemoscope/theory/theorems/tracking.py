"""State tracking: parity and finite automata; groups, by the eigenvalues of a recurrence's transitions.

Recurrences that are linear in the state, h_t = A(x_t) h_{t-1} + b(x_t), declare what A is (`Network.transitions`).
Their precision is finite, which `mnemoscope.theory.theorems.forgetting` makes precise, and lengths are not bounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float

from mnemoscope import nn, theory
from mnemoscope.theory.formulas.groups import end_of_derived_series, group_of
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView


@theorem("depth-parity-linear-2rnn", "lizaire2026", "§4.2, Fig. 8")
def parity(seed: int) -> Verdict:
    """A linear 2RNN with n = 5 units solves parity of 5 channels.

    Check: A = delta, U = I, V = 0, b = -1 over eight runs of 1,000 random signs: h + 1 is the parity.
    """
    network = nn.SecondOrderRNN(5, 5, nonlinearity="identity", dtype=torch.float64)
    network.load_state_dict({name: torch.from_numpy(value) for name, value in theory.parity_weights(5).items()})
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (1000, 8, 5), generator=generator).double() * 2 - 1
    with torch.no_grad():
        wrong = int((network(signs)[0] + 1 != signs.cumprod(0)).sum())
    return Verdict(wrong == 0, signs.numel(), f"{wrong} of {signs.numel()} outputs wrong, over 1000 steps")


def _tracks_parity(s: NetworkView) -> bool:
    return s.polynomial and s.layers == 1 and s.n >= s.d and int(s.option("rank", s.d)) >= s.d


@parity.about("tracking", _tracks_parity)
def _(s: NetworkView) -> Instance:
    text = (
        f"There are weights with which it tracks the parity of all {s.d} input channels exactly, at any length: its "
        f"{s.n} units multiply the signs."
    )
    return Instance(text, s.d, "exact")


@theorem("tracking-automaton", "rabusseau2019", "§3")
def automaton(seed: int) -> Verdict:
    """On one-hot letters a BIRNN of one layer is a weighted automaton of n states, and every such automaton is one.

    Check: six random automata of 2 to 7 states over 3 letters, as networks on words of 200 letters: states reached.
    """
    random = np.random.default_rng(seed)
    wrong, sizes = 0, range(2, 8)
    for states in sizes:
        moves = random.integers(states, size=(3, states))
        transitions = np.stack([np.eye(states)[moves[letter]] for letter in range(3)])
        machine = nn.WeightedAutomaton(np.eye(states)[0], transitions, np.eye(states))
        network = nn.BIRNN.from_automaton(machine)
        word, state = random.integers(3, size=200), 0
        with torch.no_grad():
            reached = network(torch.eye(3, dtype=torch.float64)[word][:, None])[0][:, 0].argmax(-1).tolist()
        for letter, found in zip(word.tolist(), reached, strict=True):
            state = int(moves[letter, state])
            wrong += state != found
    return Verdict(wrong == 0, 200 * len(sizes), f"{wrong} of {200 * len(sizes)} states wrong")


@automaton.about("tracking", lambda s: s.is_a(nn.BIRNN) and s.one_way and s.layers == 1)
def _(s: NetworkView) -> Instance:
    text = (
        f"On one-hot letters it is a weighted automaton of {s.n} states over {s.d} letters, and every such automaton "
        f"is one of its settings (with its initial state learned): it tracks any finite automaton of at most {s.n} "
        f"states."
    )
    return Instance(text, s.n, "exact")


_Symbols = list[tuple[float, ...]]
_Values = Callable[[np.random.Generator, int], Float[np.ndarray, " n"]]


def _outputs(symbols: _Symbols, random: np.random.Generator, values: _Values, *, commuting: bool) -> _Symbols:
    """Return what a layer of 3 units passes on, in eighths: A(x) = S diag(values) S^-1 and b(x), drawn for every x."""
    n, frame, table = 3, random.normal(size=(3, 3)), {}
    h, C, found = random.normal(size=n), random.normal(size=(2, n)), []
    for x in symbols:
        if x not in table:
            S, eigen = frame if commuting else random.normal(size=(n, n)), values(random, n)
            drive = np.where(
                np.abs(eigen) == 1, 0.0, random.normal(size=n)
            )  # what lasts is not driven, or it would grow
            table[x] = S @ np.diag(eigen) @ np.linalg.inv(S), S @ drive
        A, b = table[x]
        h = A @ h + b
        found.append(tuple(np.rint(8 * (C @ h)).tolist()))
    return found


def _periods(random: np.random.Generator, depth: int, values: _Values, *, commuting: bool) -> list[int]:
    """Return the period at which each layer's outputs end when the input is 1, 1, 1, ..; 0 above 16."""
    one: tuple[float, ...] = (1.0,)
    symbols = [one] * (400 * depth)
    found = []
    for _ in range(depth):
        symbols = _outputs(symbols, random, values, commuting=commuting)
        tail = symbols[-48:]
        found.append(next((p for p in range(1, 17) if tail[p:] == tail[:-p]), 0))
    return found


def _with_ones(signs: tuple[float, ...], fading: tuple[float, ...] = ()) -> _Values:
    """Return a draw of real eigenvalues with these signs, some of modulus one, the others (`fading`) below 0.8."""

    def values(random: np.random.Generator, n: int) -> Float[np.ndarray, " n"]:
        last = random.random(n) < 0.5
        size = np.where(last, 1.0, random.uniform(0, 0.8, n))
        return np.asarray(size * np.where(last, random.choice(signs, size=n), random.choice(fading or signs, size=n)))

    return values


@theorem("tracking-positive-eigenvalues", "grazzi2025", "Thm. 1")
def positive(seed: int) -> Verdict:
    """Layers whose transitions have real eigenvalues of at least 0 compute no parity, at any depth.

    After many ones their outputs no longer change, in finite precision, and the parity does. Negative and complex
    eigenvalues may be there too if their moduli stay below a number below 1: what they carry fades.

    Proof: repeat one input. A bounded number of an affine map with such eigenvalues ends at a fixed point. So in a
    smallest compact set that the input maps into itself the first layer stands still, then the second, which reads it,
    and so on: the outputs are one.

    Check: twenty-four stacks of three layers on 1,200 ones, half of them with negative eigenvalues above -0.8; layers
    with eigenvalues of -1; one unit with -1 on 2,000 bits.
    """
    random = np.random.default_rng(seed)
    still = [
        _periods(random, 3, _with_ones((1.0,), fading=signs), commuting=False)
        for signs in ((1.0,), (1.0, -1.0))
        for _ in range(12)
    ]
    moving = [_periods(random, 1, _with_ones((1.0, -1.0)), commuting=False)[0] for _ in range(24)]
    bits = random.integers(2, size=2000)
    wrong = int((np.cumprod(np.where(bits == 1, -1, 1)) != (-1) ** bits.cumsum()).sum())
    constant = sum(periods == [1, 1, 1] for periods in still)
    return Verdict(
        constant == len(still) and 2 in moving and wrong == 0,
        len(still) + len(moving) + 1,
        f"{constant} of {len(still)} stacks end in constant outputs; with negative eigenvalues {moving.count(2)} of "
        f"{len(moving)} layers alternate for ever; h = -h at every one has {wrong} of 2,000 parities wrong",
    )


@positive.about("tracking", lambda s: s.transitions in ("non-negative", "projections", "fading negative"))
def _(s: NetworkView) -> Instance:
    fading = ", or negative and above -1/2" if s.transitions == "fading negative" else ""
    text = (
        "It cannot track parity over arbitrary lengths, at any depth: the eigenvalues of its transitions are real and "
        f"not negative{fading}, so that after many ones its state no longer changes, in finite precision."
    )
    return Instance(text, 0.0, "exact")


@theorem("tracking-real-eigenvalues", "grazzi2025", "on counting modulo 3")
def real(seed: int) -> Verdict:
    """Stacked layers whose transitions are real and diagonal in one basis do not count modulo 3.

    On ones L layers have periods that divide 2^L. A rotation by 120 degrees counts modulo 3.

    Proof: as of tracking-positive-eigenvalues. A bounded number of an affine map with real eigenvalues ends with period
    1 or 2. Where the layers below repeat after p steps, p steps of this one are such a map: products of transitions
    that are diagonal in one basis are so again.

    Check: forty stacks of one to three layers on ones: their periods; a counter modulo 4 of two layers; a rotation.
    """
    random = np.random.default_rng(seed)
    stacks = [_periods(random, 1 + case % 3, _with_ones((1.0, -1.0)), commuting=True) for case in range(40)]
    wrong = sum(period == 0 or 2 ** (layer + 1) % period for stack in stacks for layer, period in enumerate(stack))
    longest = [max(stack[-1] for stack in stacks if len(stack) == depth) for depth in (1, 2, 3)]
    bits = random.integers(2, size=2000)
    low = np.cumprod(np.where(bits == 1, -1, 1))
    carry = (bits == 1) & (low == 1)  # the sum passes from odd to even: the second layer turns
    counted = (1 - low) // 2 + (1 - np.cumprod(np.where(carry, -1, 1)))
    four = int((counted != bits.cumsum() % 4).sum())
    turned = np.exp(2j * np.pi / 3 * bits.cumsum()), np.cumprod(np.exp(2j * np.pi / 3 * bits))
    three = float(np.abs(turned[0] - turned[1]).max())
    return Verdict(
        wrong == 0 and four == 0 and three < 1e-9 and longest[1] >= 4,
        len(stacks) + 2,
        f"{wrong} periods that do not divide 2^L; the longest with 1, 2, 3 layers are {longest}; two layers count "
        f"modulo "
        f"4 with {four} of 2,000 wrong, a rotation modulo 3 to {three:.0e}",
    )


@real.about("tracking", lambda s: s.transitions in ("non-negative", "real diagonal"))
def _(s: NetworkView) -> Instance:
    text = (
        "It counts modulo 3 at no depth: its transitions are diagonal and real, whose products have periods that are "
        "powers of 2."
    )
    return Instance(text, 2.0 ** (0 if s.transitions == "non-negative" else s.layers), "bound")


@theorem("tracking-reflections", "grazzi2025", "on products of reflections")
def reflections(seed: int) -> Verdict:
    """One layer of the delta rule with steps of size 2 tracks every permutation of its d_k keys, a swap a step.

    A = I - 2 k k^T is one swap; with steps of at most 1 the eigenvalues are not negative.

    Check: five keys: 1,000 random swaps as reflections; a 3-cycle by two; eigenvalues of twenty smaller steps.
    """
    random = np.random.default_rng(seed)
    state, order, wrong = np.arange(5.0), list(range(5)), 0
    for _ in range(1000):
        i, j = random.choice(5, size=2, replace=False)
        state = _swap(i, j, 5) @ state
        order[i], order[j] = order[j], order[i]
        wrong += np.rint(state).astype(int).tolist() != order
    turn = _swap(0, 1, 3) @ _swap(1, 2, 3)
    cycle = np.allclose(np.linalg.matrix_power(turn, 3), np.eye(3)) and not np.allclose(turn, np.eye(3))
    lowest = np.inf
    for _ in range(20):
        k = random.normal(size=5)
        k /= np.linalg.norm(k)
        lowest = min(lowest, float(np.linalg.eigvalsh(np.eye(5) - random.uniform(0, 1) * np.outer(k, k)).min()))
    return Verdict(
        wrong == 0 and bool(cycle) and lowest > -1e-12,
        1021,
        f"{wrong} of 1,000 permutations wrong; two swaps are a 3-cycle, which no one reflection is; smallest "
        f"eigenvalue "
        f"with steps below 1: {lowest:.3f}",
    )


def _swap(i: int, j: int, n: int) -> Float[np.ndarray, "n n"]:
    k = (np.eye(n)[i] - np.eye(n)[j]) / np.sqrt(2)
    return np.asarray(np.eye(n) - 2 * np.outer(k, k))


@reflections.about("tracking", lambda s: s.transitions == "reflections" and s.key_size is not None)
def _(s: NetworkView) -> Instance:
    text = (
        f"There are weights with which one of its layers tracks every permutation of {s.key_size} things exactly, a "
        f"swap "
        f"a step (the group S_{s.key_size}): its transitions can be reflections. A 3-cycle takes two steps."
    )
    return Instance(text, s.key_size, "exact")


@theorem("tracking-one-real-layer", "grazzi2025", "on counting modulo m, one layer")
def one_real_layer(seed: int) -> Verdict:
    """One layer whose transitions have real eigenvalues tracks no group with an element of order above 2.

    Where one element comes a step: repeated, it leads to outputs of period 1 or 2. The transitions need not commute.

    Check: forty layers with bases of their own for every input, on ones: their periods; two reflections in turn.
    """
    random = np.random.default_rng(seed)
    periods = [_periods(random, 1, _with_ones((1.0, -1.0)), commuting=False)[0] for _ in range(40)]
    wrong = sum(period not in (1, 2) for period in periods)
    turn = np.linalg.matrix_power(_swap(0, 1, 3) @ _swap(1, 2, 3), 3)
    return Verdict(
        wrong == 0 and 2 in periods and bool(np.allclose(turn, np.eye(3))),
        len(periods) + 1,
        f"{wrong} of {len(periods)} layers end in another period than 1 or 2; two reflections in turn have period 3",
    )


@one_real_layer.about("tracking", lambda s: s.transitions == "reflections" and s.layers == 1)
def _(_: NetworkView) -> Instance:
    text = (
        "With one element a step its one layer tracks neither Z_3 nor a group that has such an element (S_3, A_5, S_5):"
        " the eigenvalues of a step are real. Two layers, or several steps for an element, can."
    )
    return Instance(text, 2.0, "bound")


@theorem("tracking-solvable", "merrill2024", "on fixed and diagonal transitions")
def solvable(seed: int) -> Verdict:
    """Stacked layers with fixed or diagonal transitions track only solvable groups, unless TC^0 = NC^1.

    With numbers of O(log T) bits for T steps they are in TC^0. A_5 and S_5 are not solvable; Z_k, S_3, A_4 and S_4 are.

    Check: derived series of eight groups of permutations; and a word of diagonal transitions in another order.
    """
    groups = {f"Z_{k}": group_of(f"Z{k}") for k in (2, 3, 5)}
    groups |= {f"S_{n}": group_of(f"S{n}") for n in (3, 4, 5)} | {f"A_{n}": group_of(f"A{n}") for n in (4, 5)}
    ends = {name: end_of_derived_series(group) for name, group in groups.items()}
    right = {name for name, size in ends.items() if size > 1} == {"A_5", "S_5"} and ends["S_5"] == ends["A_5"] == 60
    random = np.random.default_rng(seed)
    word = np.exp(1j * random.uniform(0, 7, size=(30, 4)))
    shuffled = float(np.abs(word.prod(axis=0) - random.permutation(word).prod(axis=0)).max())
    listed = ", ".join(f"{name} {size}" for name, size in sorted(ends.items()))
    return Verdict(right and shuffled < 1e-12, len(groups) + 1, f"derived series end at groups of order: {listed}")


@solvable.about("tracking", lambda s: s.transitions in ("non-negative", "real diagonal", "fixed diagonal"))
def _(_: NetworkView) -> Instance:
    text = (
        "It tracks permutations of five things (S_5, A_5) at no depth, unless TC^0 = NC^1: its transitions are "
        "diagonal in one basis, and their products do not depend on the order."
    )
    return Instance(text, 4.0, "bound")
