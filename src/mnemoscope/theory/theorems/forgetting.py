"""State tracking that cannot be: layers whose states words bring together, and layers that do not see the order.

A network tracks a group when, one element coming at each step, its outputs tell the product of all so far, at any
length. What these theorems assume, and what finite precision comes to: states stay bounded whatever comes, nothing in
the network jumps, and outputs for different elements stay a distance apart. Without it they are false: the states of
h = h + x, read by cos(pi h), compute parity and grow; those of h = h / 2 + x hold the whole past for a readout that
jumps.

The proofs start alike. States that are reached have a compact closure, in which there is a smallest compact set Y that
every element maps into itself (by Zorn's lemma). From every state of Y the network tracks the group as well. So two
states of Y that words bring as near to each other as one likes stand for the same element, and it remains to find two
words with different products whose states can be brought together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.theory.formulas.groups import derived_subgroup, generated_group, group_of
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_Permutation = tuple[int, ...]
_Moves = Sequence[tuple[Callable[[Any], Any], Callable[[Any], Any]]]
"""For every letter: what it does to the product, and what it does to the state."""

_SWAPS: tuple[_Permutation, ...] = ((1, 0, 2), (0, 2, 1))
"""Two elements of S_3 that do not commute."""


def _told(state: Any, element: Any, moves: _Moves, most: int = 100) -> bool | None:
    """Say whether every state has one product, over all words; None when there are more than `most` states."""
    found, fresh = {state: element}, [state]
    while fresh:
        state = fresh.pop()
        for multiply, step in moves:
            after, product = step(state), multiply(found[state])
            if after not in found:
                found[after] = product
                fresh.append(after)
            if found[after] != product:
                return False
        if len(found) > most:
            return None
    return True


@theorem("tracking-fixed-transitions", "khavari2025", "on transitions that do not depend on the input")
def fixed(seed: int) -> Verdict:
    """Stacked layers whose transitions do not depend on the input track no group of more than one element.

    Of bounded states that are equally old words bring together any two, once what comes of the start has died out.
    Before, it may stay: with c = c / 2 and h = h + c x the first element is held for ever.

    Proof: put the clocks t -> lambda^t of all eigenvalues to the state, and take Y. Two states of Y with equal clocks
    are brought together number by number, in an order in which each reads itself and those before it (Jordan's, layer
    after layer). Let two agree in those before. The difference of the next obeys d' = lambda d. If no words bring it
    to 0, it is lambda^t c with |lambda| = 1, c not 0. The states of Y to which such a second one belongs are a closed
    set that every element maps into itself, so they are all of Y: the second has a third at lambda^t c from it, and so
    on without end, but Y is bounded. Now two elements of the group, one step each, lead to equal clocks.

    Check: twelve stacks of three layers on two words of equal length and the same 400 inputs; how a driven eigenvalue
    1 grows, that it computes parity read by a cosine, and the two layers that hold the first element.
    """
    random = np.random.default_rng(seed)
    gaps = [_forgotten(random, (1.0,)) for _ in range(12)]
    apart = _forgotten(random, (1.0, -1.0))
    bits = random.integers(2, size=2000)
    sums = np.abs((2 * random.integers(2, size=(10_000, 64)) - 1).cumsum(axis=0)).mean(axis=1)
    growth = float(sums[-1] / sums[99])
    wrong = int((np.cos(np.pi * bits.cumsum()).round() != (-1.0) ** bits.cumsum()).sum())
    held = [float(np.sum(0.5 ** np.arange(400) * np.append(first, bits[:399]))) for first in (0, 1)]
    return Verdict(
        max(gaps) < 1e-9 and apart > 1e-3 and growth > 5 and wrong == 0 and abs(held[1] - held[0] - 1) < 1e-12,
        len(gaps) + 4,
        f"states of {len(gaps)} stacks differ by at most {max(gaps):.0e} after two words; with signs by the input by "
        f"{apart:.2g}; a driven eigenvalue 1 is {growth:.1f} times as far after 10,000 steps as after 100, and has "
        f"{wrong} of 2,000 parities wrong; after 400 steps the first element still counts {held[1] - held[0]:.2g}",
    )


def _forgotten(random: np.random.Generator, signs: tuple[float, ...]) -> float:
    """Return how far two words of equal length leave three layers of five complex units apart.

    One unit of each has the eigenvalue 1, one turns for ever, three forget. That with 1 is multiplied by a sign of each
    input, and is driven by changes of what a unit of the layer below holds: its state stays bounded.
    """
    layers = []
    for _ in range(3):
        values = random.uniform(0, 0.9, 5) * np.exp(1j * random.uniform(0, 2 * np.pi, 5))
        values[:2] = 1.0, np.exp(1j * random.uniform(0, 2 * np.pi))
        layers.append((values, random.normal(size=(5, 10)), random.choice(signs, size=2)))
    layers[0] = (*layers[0][:2], np.array([1.0, signs[-1]]))
    beginning, tail, ends = random.integers(2, size=6), random.integers(2, size=400), []
    for word in ([0, 1], [0, 0]):
        symbols = np.concatenate([beginning, word, tail])
        x = np.eye(10)[symbols]
        for values, mix, turns in layers:
            h, last, found = np.array([1.0, 1.0, 0.0, 0.0, 0.0], dtype=complex), 0.0, []
            for symbol, row in zip(symbols, x, strict=True):
                drive = mix @ row
                drive[0], drive[1], last = row[4] - last, 0.0, row[4]
                h = values * np.append(turns[symbol], np.ones(4)) * h + drive
                found.append(np.tanh(np.concatenate([h.real, h.imag])))
            x = np.array(found)
        ends.append(x[-1])
    return float(np.abs(ends[0] - ends[1]).max())


@fixed.about("tracking", lambda s: s.transitions == "fixed diagonal")
def _(_: NetworkView) -> Instance:
    text = (
        "It tracks no group of more than one element, not even parity, at any depth while its states stay bounded: "
        "its transitions do not depend on the input, so that states which are equally old can be brought together."
    )
    return Instance(text, 0.0, "exact")


@theorem("tracking-mixed-layers", "khavari2025", "on layers of both kinds in one stack")
def mixed(seed: int) -> Verdict:
    """Layers with fixed transitions and layers with real diagonal ones of at least 0, stacked, track no group.

    That is, none of more than one element: counting time, with eigenvalues of any kind, and holding or forgetting by
    the input do not make a parity.

    Proof: as of tracking-fixed-transitions. A number with d' = a(x, ..) d, a >= 0, keeps the sign of the difference
    d. If no words bring it to 0, it stays at least c > 0, every state of Y has another in Y that is larger by c or more
    in this number and agrees in those before, and that one has another: Y would not be bounded.

    Check: all machines of a clock of period 2 and a bit that is held, set or cleared, and 2,000 of two such bits, over
    all words; and the same where the bit can be flipped.
    """
    random = np.random.default_rng(seed)
    one = [_parity_told(np.array(np.unravel_index(case, (3,) * 4)), 1) for case in range(3**4)]
    two = [_parity_told(random.integers(3, size=12), 2) for _ in range(2000)]
    flips = [_parity_told(np.array(np.unravel_index(case, (4,) * 4)), 1) for case in range(4**4)]
    tracking = sum(one) + sum(two)
    return Verdict(
        tracking == 0 and any(flips),
        len(one) + len(two) + len(flips),
        f"{tracking} of {len(one)} machines with one bit and {len(two):,} with two tell parity; of {len(flips)} whose "
        f"bit can be flipped {sum(flips)} do",
    )


def _parity_told(actions: np.ndarray, bits: int) -> bool:
    """Say whether a machine tells the parity of bits: of a clock and of bits that are held, set, cleared or flipped.

    What is done to the first bit depends on the input and the clock, what to the second on the first as well.
    """

    def step(x: int) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
        def after(state: tuple[int, ...]) -> tuple[int, ...]:
            clock, *memory = state
            place, found = 2 * x + clock, [1 - clock]
            for bit in memory:
                action = actions[place]
                found.append((bit, 0, 1, 1 - bit)[action])
                place = 4 + 2 * place + found[-1]
            return tuple(found)

        return after

    moves = [(lambda parity, x=x: (parity + x) % 2, step(x)) for x in (0, 1)]
    return bool(_told((0,) * (1 + bits), 0, moves))


@theorem("tracking-diagonal-layer", "", "after Grazzi et al. 2025")
def diagonal(seed: int) -> Verdict:
    """One layer of n units with real diagonal transitions tracks Z_2^n.

    It tracks no group with an element of order above 2, or with two elements that do not commute.

    Proof: signs multiply. The rest is tracking-commuting-layer and tracking-one-real-layer.

    Check: six bits tracked by six units over 1,000 steps; and which of Z_2^3, Z_4, Z_3, S_3 signs tell apart.
    """
    random = np.random.default_rng(seed)
    flips = random.integers(2, size=(1000, 6))
    wrong = int((np.cumprod(np.where(flips == 1, -1, 1), axis=0) != (-1) ** flips.cumsum(axis=0)).sum())
    groups = {"Z_2^3": generated_group([(1, 0, 2, 3, 4, 5), (0, 1, 3, 2, 4, 5), (0, 1, 2, 3, 5, 4)])}
    groups |= {"Z_4": generated_group([(1, 2, 3, 0)]), "Z_3": generated_group([(1, 2, 0)]), "S_3": group_of("S3")}
    # Signs tell all elements apart exactly when there are as many characters with values -1 and 1 as elements.
    found = {name: _sign_characters(group) == len(group) for name, group in groups.items()}
    right = found == {"Z_2^3": True, "Z_4": False, "Z_3": False, "S_3": False}
    tracked = ", ".join(name for name, yes in found.items() if yes)
    return Verdict(
        right and wrong == 0, 6000 + len(groups), f"{wrong} of 6,000 bits wrong; signs tell apart {tracked} alone"
    )


@diagonal.about("tracking", lambda s: s.transitions == "real diagonal")
def _(s: NetworkView) -> Instance:
    text = (
        f"One of its layers tracks {number(s.n)} parities at once (the group Z_2^n) and no more than such products; "
        f"stacked layers track groups whose order is a power of 2, and never Z_3."
    )
    return Instance(text, s.n, "exact")


def _sign_characters(group: frozenset[_Permutation]) -> int:
    """Return how many homomorphisms to {-1, 1} there are: the order of the group over what squares generate."""
    squares = generated_group(sorted({tuple(a[i] for i in a) for a in group} | derived_subgroup(group)))
    return len(group) // len(squares)


@theorem("tracking-commuting-layer", "", "after Merrill et al. 2024")
def commuting_layer(seed: int) -> Verdict:
    """One layer whose transitions commute tracks no group with two elements that do not.

    What lasts and stays bounded is a product of numbers of modulus 1, which depends on how often each element came; the
    rest is forgotten. Where states grow it is false: h = -h + b(x), beside the signs, counts S_3 modulo 3.

    Proof: transitions that commute have blocks in common, triangular and with one eigenvalue a(x) each. Put the
    products of all a(x) so far to the state, and take Y; after ab and ba they are equal. In a block with some
    |a(x)| > 1 states of Y agree, or x, repeated, would drive them apart for ever. In one with all |a(x)| = 1 states of
    Y with equal products agree, number by number, as of tracking-fixed-transitions. In all others some |a(x)| < 1, and
    a word with each element often enough brings all states together. If a step reads the last few inputs (a
    convolution), replace ab and ba by words with the same neighbours as often.

    Check: forty layers of 6 complex units on ab and ba, then the same 600 elements of S_3; 600 layers of two units
    with sixth roots of unity or 0, over all words where they have at most 100 states; the one that grows, read modulo
    3, and one whose transitions are reflections.
    """
    random = np.random.default_rng(seed)
    gaps = [_order_seen(random) for _ in range(40)]
    turn = np.exp(2j * np.pi / 6)
    kinds: dict[bool | None, int] = {True: 0, False: 0, None: 0}
    for _ in range(600):
        a = np.where(random.random((2, 2)) < 0.1, 0, turn ** random.integers(6, size=(2, 2)))
        b = turn ** random.integers(6, size=(2, 2))
        kinds[_swaps_told([_affine(np.diag(a[i]), b[i]) for i in (0, 1)])] += 1
    growing = _swaps_told([_affine(-np.eye(2), np.array([0, b]), modulo=(4, 3)) for b in (0, 1)])
    mirrored = _swaps_told([_affine(np.array(A), np.zeros(2)) for A in ([[-1, 1], [0, 1]], [[1, 0], [1, -1]])])
    return Verdict(
        max(gaps) < 1e-9 and kinds[True] == 0 and kinds[False] > 0 and bool(growing) and bool(mirrored),
        len(gaps) + 602,
        f"states of {len(gaps)} layers differ by at most {max(gaps):.0e} after ab and ba; of 600 small layers "
        f"{kinds[True]} tell the products of two swaps, {kinds[False]} do not, {kinds[None]} have more than 100 "
        "states; one that grows, read modulo 3, and one that reflects do",
    )


def _order_seen(random: np.random.Generator) -> float:
    """Return how far ab and ba leave a layer of 6 complex units apart, of which three never forget."""
    lasting = np.arange(6) < 3
    size = np.where(lasting, 1.0, random.uniform(0, 0.9, size=(6, 6)))
    a = size * np.exp(1j * random.uniform(0, 2 * np.pi, size=(6, 6)))
    centre = np.where(lasting, random.normal(size=6), 0.0)  # fixed by every transition, or the state would grow
    b = np.where(lasting, (1 - a) * centre, random.normal(size=(6, 6)))
    tail, ends = random.integers(6, size=600), []
    for word in ([1, 3], [3, 1]):
        h = np.ones(6, dtype=complex)
        for element in (*word, *tail):
            h = a[element] * h + b[element]
        ends.append(h)
    return float(np.abs(ends[0] - ends[1]).max())


def _affine(A: np.ndarray, b: np.ndarray, modulo: tuple[int, int] | None = None) -> Callable[[Any], Any]:
    """Return h -> A h + b, exact to six digits, or modulo one number for each unit."""

    def step(state: tuple[complex, ...]) -> tuple[complex, ...]:
        after = A @ np.array(state) + b
        return tuple((np.round(after, 6) + 0.0 if modulo is None else np.mod(after, modulo)).tolist())

    return step


def _swaps_told(steps: Sequence[Callable[[Any], Any]]) -> bool | None:
    """Say whether states tell the products of two swaps of three things, when each swap makes such a step."""

    def swapped(swap: _Permutation) -> Callable[[_Permutation], _Permutation]:
        return lambda order: tuple(order[i] for i in swap)

    return _told((1.0, 0.0), (0, 1, 2), list(zip(map(swapped, _SWAPS), steps, strict=True)))


@commuting_layer.about(
    "tracking", lambda s: s.transitions in ("non-negative", "real diagonal", "fixed diagonal") and s.layers == 1
)
def _(_: NetworkView) -> Instance:
    text = (
        "One layer of it tracks only groups whose elements commute: its transitions are diagonal in one basis, and it "
        "sees how often each element came, not in which order."
    )
    return Instance(text, None, "exact")
