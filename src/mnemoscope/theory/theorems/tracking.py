"""State tracking: what weights exist for, parity and finite automata."""

from __future__ import annotations

import numpy as np
import torch

from mnemoscope import nn, theory
from mnemoscope.theory.theorems.base import Instance, Verdict, theorem
from mnemoscope.theory.theorems.view import NetworkView


@theorem(
    "depth-parity-linear-2rnn",
    "lizaire2026",
    "§4.2, Fig. 8",
    "A linear 2RNN with n = 5 units solves parity of 5 channels.",
)
def parity(seed: int) -> Verdict:
    """A = delta, U = I, V = 0, b = -1 over eight runs of 1,000 random signs: h + 1 is the parity."""
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


@theorem(
    "tracking-automaton",
    "rabusseau2019",
    "§3",
    "On one-hot letters a BIRNN of one layer is a weighted automaton of n states, and every such automaton is one.",
)
def automaton(seed: int) -> Verdict:
    """Six random automata of 2 to 7 states over 3 letters, as networks on words of 200 letters: states reached."""
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
