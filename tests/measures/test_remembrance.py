"""Effective remembrance: closed forms, a plain loop, delay lines, networks that never forget, strangers' modules."""

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError

MEASURE = ms.measures.effective_remembrance


def linear(W: np.ndarray) -> nn.Module:
    layer = ms.nn.LinearRNN(1, len(W), bias=False, dtype=torch.float64)
    layer.weight_hh_l0 = torch.as_tensor(W)
    layer.weight_ih_l0 = torch.ones(len(W), 1, dtype=torch.float64)
    return layer


def test_closed_form_of_a_leaky_unit():
    """Two classes, logits h and -h: the mean of |s(2(v + a^k h')) - s(2v)| over two independent Gaussians."""
    a, T = 0.8, 48
    found = MEASURE(linear(np.array([[a]])), horizon=T, sequences=20_000, readout=lambda y: torch.cat([y, -y], -1))

    def expectation(k: int) -> float:
        recent = np.sqrt((1 - a ** (2 * k)) / (1 - a * a))
        older = a**k * np.sqrt((1 - a ** (2 * (T - k))) / (1 - a * a))
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        v, d = recent * nodes[:, None], older * nodes
        gap = np.abs(1 / (1 + np.exp(-2 * (v + d))) - 1 / (1 + np.exp(-2 * v)))
        return float((weights[:, None] * weights * gap).sum() / weights.sum() ** 2)

    for k, value, error in zip(found.lengths, found.curve, found.stderr, strict=True):
        assert value == pytest.approx(expectation(int(k)), abs=4 * error + 0.01 * value + 1e-9)
    assert found.classes == 2
    assert not found.beyond


def test_a_plain_loop_says_the_same():
    layer = ms.nn.create("gru", input_size=2, hidden_size=3, dtype=torch.float64)
    x = torch.randn(12, 5, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    head = torch.randn(3, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = MEASURE(layer, inputs=x, readout=lambda y: y @ head)
    with torch.no_grad():
        for k, value in zip(found.lengths, found.curve, strict=True):
            total = 0.0
            for b in range(5):
                whole, end = (
                    torch.softmax(layer(part[:, b : b + 1])[0][-1, 0] @ head, 0) for part in (x, x[12 - int(k) :])
                )
                total += 0.5 * float((whole - end).abs().sum())
            assert value == pytest.approx(total / 5, abs=1e-12)


def test_a_delay_line_remembers_as_long_as_it_is():
    found = MEASURE(linear(np.eye(8, k=-1)), horizon=64, sequences=16)
    assert found.curve[found.lengths >= 8] == pytest.approx(0, abs=1e-12)
    assert found.curve[found.lengths == 6][0] > 0.01
    assert 6 < found.steps <= 8
    assert "outputs, standardised" in found.prediction


def test_a_rotation_never_forgets():
    found = MEASURE(linear(np.array([[0.0, -1.0], [1.0, 0.0]])), horizon=64)
    assert found.beyond
    assert found.steps == found.lengths[-1]
    assert "at least" in str(found)
    assert "window 64" in str(found)


def test_units_and_their_order_do_not_matter():
    W = np.random.default_rng(0).normal(size=(5, 5)) / 4
    scale = np.diag([1e-3, 10.0, 1.0, 100.0, 0.1])[[2, 0, 1, 4, 3]]
    one = linear(W)
    other = linear(scale @ W @ np.linalg.inv(scale))
    other.weight_ih_l0 = torch.as_tensor(scale @ np.ones((5, 1)))
    np.testing.assert_allclose(MEASURE(one, horizon=20).curve, MEASURE(other, horizon=20).curve, atol=1e-9)


def test_strangers_modules():
    torch.manual_seed(0)
    recurrent = MEASURE(nn.LSTM(2, 4), horizon=32, sequences=8)
    again = MEASURE(ms.adapt(nn.LSTM(2, 4, batch_first=True)), horizon=32, sequences=8)
    assert recurrent.curve.shape == again.curve.shape == (len(ms.measures.remembrance_lengths(32)),)

    class Window(nn.Module):
        """A causal mean of the last 5 inputs: a block without state."""

        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            padded = nn.functional.pad(self.mix(x), (0, 0, 4, 0))
            return padded.unfold(1, 5, 1).mean(-1)

    block = ms.adapt(Window(), kind="sequence", input_size=3)
    found = MEASURE(block, horizon=24, sequences=8)
    assert found.curve[found.lengths >= 6] == pytest.approx(0, abs=1e-6)
    assert found.curve[found.lengths == 3][0] > 1e-3


def test_bad_inputs():
    layer = ms.nn.RNN(1, 4)
    with pytest.raises(UserError, match="horizon must be at least 2 steps, a past and the last, got 1"):
        MEASURE(layer, horizon=1)
    with pytest.raises(UserError, match="needs predictions of at least 2 classes, got 1"):
        MEASURE(layer, horizon=8, readout=lambda y: y[:, :1])
    with pytest.raises(UserError, match="needs predictions of at least 2 classes, got 1"):
        MEASURE(ms.nn.RNN(1, 1), horizon=8)
    with pytest.raises(UserError, match="sequences must be at least 2"):
        MEASURE(layer, horizon=8, sequences=1)
    with pytest.raises(UserError, match="share must be"):
        MEASURE(layer, horizon=8, share=2)
    with pytest.raises(UserError, match="network must be a torch.nn.Module"):
        MEASURE("rnn")


def test_a_readout_is_taken_as_it_is_made():
    layer, wide = ms.nn.LSTM(1, 4), nn.Linear(4, 3)
    found = MEASURE(layer, readout=wide, horizon=8, sequences=4)
    again = MEASURE(layer, readout=nn.Linear(4, 3).double().requires_grad_(False), horizon=8)
    assert found.classes == again.classes == 3
    assert wide.weight.dtype == torch.float32, "the readout itself is left as it is"
    with pytest.raises(UserError, match="readout must take 4 outputs of every sequence, and raised"):
        MEASURE(layer, readout=nn.Linear(5, 3), horizon=8)
    with pytest.raises(UserError, match=r"what readout returns must be logits of shape \(4, classes\), got \(4,\)"):
        MEASURE(layer, readout=lambda y: y[:, 0], horizon=8, sequences=4)


def test_sequences_that_are_the_same_cannot_be_compared():
    with pytest.raises(UserError, match="inputs must be others in every sequence"):
        MEASURE(ms.nn.LSTM(1, 4), inputs=torch.zeros(9, 3, 1))


@pytest.mark.parametrize(("constant", "beyond"), [(0.0, True), (1.0, False)])
def test_what_rounding_moves_is_no_prediction(constant, beyond):
    layer = ms.nn.LinearSystem.of(np.diag([0.5, 0.5, 1.0]), np.eye(3), np.diag([1.0, 1.0, 1e-15]))
    wide = ms.nn.LinearSystem(3, 3, output_size=3, skip=True, dtype=torch.float64)
    wide.load_state_dict({name: torch.zeros_like(each) for name, each in wide.state_dict().items()})
    wide.load_state_dict(layer.state_dict(), strict=False)
    with torch.no_grad():
        wide.bias_out_l0[2] = constant
    assert MEASURE(wide, horizon=64).beyond == beyond, "a sum is never forgotten, whatever its unit; rounding is"
