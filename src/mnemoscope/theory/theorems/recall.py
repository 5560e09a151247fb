"""Copying and recall by the size of a state: what no fixed state holds, and what a matrix holds by its keys."""

from __future__ import annotations

import itertools
import math

import numpy as np

from mnemoscope.core.numbers import number
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView

_LETTERS, _BITS = 8, 32


@theorem("copy-state-bits", "jelassi2024", "§2")
def state_bits(seed: int) -> Verdict:
    """A network with S states copies n random letters out of D with probability S / D^n at the most.

    So b bits hold b / log2(D) letters.

    Check: forty machines of 4 to 32 states on all strings of 2 to 5 letters out of 3: how many the best answers copy.
    """
    random = np.random.default_rng(seed)
    above, reached, cases = 0, 0, 40
    for case in range(cases):
        states, length = int(2 ** random.integers(2, 6)), 2 + case % 4
        moves = random.integers(states, size=(3, states))
        if case % 8 == 0:  # a register that holds the last letters: as good as any machine
            states, moves = 27, (3 * np.arange(27) + np.arange(3)[:, None]) % 27
        ends: dict[int, int] = {}
        for string in itertools.product(range(3), repeat=length):
            state = 0
            for letter in string:
                state = int(moves[letter, state])
            ends[state] = ends.get(state, 0) + 1
        copied = len(ends)  # the best answer in a state is one of the strings that lead there
        above += copied > min(states, 3**length)
        reached += copied == min(states, 3**length)
    return Verdict(
        above == 0 and reached > 0,
        cases,
        f"{above} machines copy more strings than they have states, {reached} copy as many",
    )


@state_bits.about("copying", lambda s: s.recurrent and not (s.linear and s.first_order))
def _(s: NetworkView) -> Instance:
    size = s.state_size or 0
    letters = math.floor(size * _BITS / math.log2(_LETTERS))
    text = (
        f"No weights make it copy random strings of more than {number(letters)} letters out of {_LETTERS} without "
        f"error: "
        f"its state of {number(size)} numbers of {_BITS} bits has no more values."
    )
    return Instance(text, letters, "bound")


@theorem("recall-keys", "schlag2021", "on capacity")
def keys(seed: int) -> Verdict:
    """A matrix state that is read by a key, v = S k, holds arbitrary values for at most d_k keys.

    It returns all of them exactly when the keys are linearly independent.

    Check: thirty sets of 1 to 8 keys of 5 numbers: least squares over all states, against the number of keys.
    """
    random = np.random.default_rng(seed)
    wrong, cases = 0, 30
    for case in range(cases):
        count = 1 + case % 8
        K, V = random.normal(size=(count, 5)), random.normal(size=(count, 3))
        S = np.linalg.lstsq(K, V, rcond=None)[0]
        wrong += (np.abs(K @ S - V).max() < 1e-9) != (count <= 5)
    return Verdict(wrong == 0, cases, f"{wrong} exceptions: up to 5 pairs are recalled exactly, 6 and more are not")


@keys.about("copying", lambda s: s.key_size is not None)
def _(s: NetworkView) -> Instance:
    pairs = s.key_size or 0
    text = (
        f"Each head of a layer recalls at most d_k = {number(pairs)} pairs of key and value exactly, read by the key."
    )
    return Instance(text, pairs, "bound")


@theorem("recall-delta-rule", "schlag2021", "on the delta rule")
def delta_rule(seed: int) -> Verdict:
    """One layer of the delta rule with orthonormal keys returns the last value written under a key.

    With S = S (I - k k^T) + v k^T; a sum S = S + v k^T returns the sum of all values.

    Check: two hundred writes under six orthonormal keys: what is read after each, by both rules.
    """
    random = np.random.default_rng(seed)
    basis = np.linalg.qr(random.normal(size=(6, 6)))[0]
    rule, total = np.zeros((3, 6)), np.zeros((3, 6))
    last, sums = np.zeros((6, 3)), np.zeros((6, 3))
    misses = [0.0, 0.0]
    for _ in range(200):
        which, value = int(random.integers(6)), random.normal(size=3)
        k = basis[which]
        rule = rule @ (np.eye(6) - np.outer(k, k)) + np.outer(value, k)
        total = total + np.outer(value, k)
        last[which], sums[which] = value, sums[which] + value
        misses = [
            max(misses[0], float(np.abs(rule @ basis.T - last.T).max())),
            float(np.abs(total @ basis.T - last.T).max()),
        ]
    added = float(np.abs(total @ basis.T - sums.T).max())
    return Verdict(
        misses[0] < 1e-12 and misses[1] > 0.1 and added < 1e-10,
        200,
        f"the delta rule misses the last value by {misses[0]:.0e}, the sum by {misses[1]:.2f}",
    )


@delta_rule.about("copying", lambda s: s.transitions in ("reflections", "projections") and s.key_size is not None)
def _(s: NetworkView) -> Instance:
    text = (
        f"There are weights with which one of its layers overwrites: under {number(s.key_size)} orthonormal keys a "
        f"head "
        f"returns the last value that was written, however often."
    )
    return Instance(text, s.key_size, "exact")
