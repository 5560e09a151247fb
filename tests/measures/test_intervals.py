"""Intervals of what is estimated in large states: they hold the dense value in at least 93% of cases.

States are small enough for the dense way here, and the limits from which on large states are estimated are lowered.
Those of Fisher memory and of Lyapunov exponents are in `test_network_fisher` and `test_lyapunov`.
"""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.measures.capacity.memory import memory_capacity
from mnemoscope.measures.spectral.matrix import spectrum

NAMES = ("rnn", "lstm", "gru", "orth-rnn", "nnrnn", "irnn", "2rnn", "scornn")
COVERED = 0.93


def networks(size, seeds, names=NAMES):
    """Yield networks with about so many numbers in their states, at several seeds."""
    for name in names:
        for seed in range(seeds):
            hidden = size // 2 if name == "lstm" else size
            yield (
                name,
                ms.nn.create(name, input_size=1, hidden_size=hidden, generator=torch.Generator().manual_seed(seed)),
            )


@pytest.mark.slow
def test_memory_capacity_of_other_inputs_is_within_its_error(monkeypatch):
    """By Gram matrices as of a large state, against the mean over other inputs by QR."""
    names = ("rnn", "lstm", "gru", "orth-rnn", "2rnn", "scornn")
    inside = []
    for _, layer in networks(48, 2, names):
        options = {"degree": 2, "lag": 30, "samples": 4096, "threshold": False}
        others = [memory_capacity(layer, seed=seed, **options) for seed in range(10, 16)]
        truth = np.mean([each.total for each in others])
        error = np.std([each.total for each in others], ddof=1) / np.sqrt(len(others))
        for seed in range(3):
            with monkeypatch.context() as patch:
                patch.setattr("mnemoscope.measures.capacity.estimate.QR", 8)
                found = memory_capacity(layer, seed=seed, **options)
            # Four parts, each pair of which is used twice: the error has about two degrees of freedom.
            inside.append(abs(found.total - truth) <= 4.3 * np.hypot(found.stderr, error))
    assert np.mean(inside) >= COVERED


@pytest.mark.slow
def test_bounds_of_a_large_spectrum_are_bounds():
    inside = []
    for _, layer in networks(96, 3):
        truth, found = spectrum(layer), spectrum(layer, certified=8)
        # Weights in single precision are orthogonal to 1e-7: their powers grow by that with every step, and each of
        # both ways looks at some of these powers only.
        slack = 1e-6 if truth.stability == "marginal" else 1e-9
        inside.append(
            found.kreiss <= truth.kreiss * (1 + slack)
            and found.amplification <= truth.amplification * (1 + slack)
            and found.radius == pytest.approx(truth.radius, rel=1e-6)
            and found.numerical_radius <= truth.numerical_radius * (1 + 1e-9)
        )
    assert np.mean(inside) >= COVERED
