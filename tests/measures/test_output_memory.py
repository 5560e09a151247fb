"""Memory of outputs, against closed forms of linear filters and a plain loop over autograd."""

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError


class Filter(nn.Module):
    """y_t = sum_k w_k u_{t-k}, one kernel for each output; (batch, time, 1) -> (batch, time, outputs)."""

    def __init__(self, kernels):
        super().__init__()
        self.kernels = nn.Parameter(torch.as_tensor(kernels, dtype=torch.float32))

    def forward(self, x):
        length = self.kernels.shape[1]
        padded = nn.functional.pad(x.transpose(1, 2), (length - 1, 0))
        return nn.functional.conv1d(padded, self.kernels.flip(1)[:, None]).transpose(1, 2)


class Answer(nn.Module):
    """Many to one: the answer is a function of the whole sequence."""

    def __init__(self, width=2):
        super().__init__()
        self.read = nn.Linear(width, 3)

    def forward(self, x):
        fading = 0.8 ** torch.arange(x.shape[1]).flip(0)
        return torch.tanh(fading @ self.read(x))


class Mean(nn.Module):
    """Divides by the length: an output within a sequence is the one after its prefix, but reads the future's length."""

    def forward(self, x):
        return x.cumsum(1) / x.shape[1]


KERNELS = np.array([[1.0, 0.5, 0.25, 0.0], [0.0, 0.0, 0.0, 2.0], [1.0, -1.0, 0.0, 0.0]])


def test_a_filter_has_its_kernel_as_memory():
    found = ms.measures.output_memory(ms.adapt(Filter(KERNELS), kind="sequence"), horizon=12, samples=8192)
    power = KERNELS**2 / (KERNELS**2).sum(1, keepdims=True)
    assert found.fisher[:4] == pytest.approx(power.sum(0), rel=0.05)  # the variances are estimated
    assert found.fisher[4:] == pytest.approx(np.zeros(8), abs=1e-20)
    assert found.gradients == pytest.approx(np.sqrt(found.fisher / 3))
    assert (found.total, found.stderr) == (pytest.approx(3, rel=0.05), pytest.approx(0, abs=1e-9))
    scaled = KERNELS / np.sqrt((KERNELS**2).sum(1, keepdims=True))
    shares = np.linalg.svd(scaled)[1] ** 2 / 3
    assert found.effective_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=0.02)
    # The projection of each past input on the span of the three filters.
    projection = np.diag(np.linalg.pinv(KERNELS) @ KERNELS)
    assert found.capacity[:4] == pytest.approx(projection, abs=0.02)
    assert found.capacity_total == pytest.approx(3, abs=0.03)
    assert found.settled
    assert found.size == found.outputs == 3
    later = np.array([power[:, c:].sum() / 3 for c in (1, 2, 4, 8)])
    assert found.cuts.tolist() == [1, 2, 4, 8]
    assert found.lost == pytest.approx(later, abs=0.15)  # of 64 sequences
    assert found.prefix_gap == pytest.approx(0, abs=1e-12)


def test_the_derivatives_are_those_of_a_plain_loop():
    torch.manual_seed(0)
    lstm = ms.nn.create("lstm", input_size=2, hidden_size=3).double()
    inputs = torch.randn(6, 5, 2, dtype=torch.float64)
    found = ms.measures.output_memory(lstm, inputs=inputs, trajectories=5)
    spread = lstm(inputs)[0][-1].std(0, correction=0)
    squares = np.zeros((6, 2, 2))
    for b in range(5):
        x = inputs[:, b : b + 1].clone()
        whole = torch.autograd.functional.jacobian(lambda u: lstm(u)[0][-1, 0] / spread, x)[:, :, 0]
        squares += np.einsum("utd,ute->tde", whole.numpy(), whole.numpy()) / 5
    along = np.linalg.eigh(squares.sum(0))[1][:, -1]
    assert found.fisher == pytest.approx((along @ squares @ along)[::-1], rel=1e-9)
    assert found.gradients == pytest.approx(np.sqrt(np.trace(squares, axis1=1, axis2=2)[::-1] / 3), rel=1e-9)
    assert len(found.capacity) == 0  # five sequences are too few for a readout


def test_a_module_that_answers_once_is_asked_once_for_each_sequence():
    torch.manual_seed(0)
    network = ms.adapt(Answer())
    x = torch.randn(7, 4, 2)
    assert torch.equal(network.last(x), network.run(x, None)[-1])
    found = ms.measures.output_memory(network, horizon=10, samples=256, trajectories=2)
    assert found.outputs == 3
    assert 0 < found.total <= 3.5


def test_a_block_that_divides_by_its_length_is_seen_by_prefixes():
    found = ms.measures.output_memory(ms.adapt(Mean(), kind="sequence", input_size=2), horizon=8, samples=64)
    assert found.prefix_gap > 0.1
    assert not found.settled
    assert found.facts()["half life"] == "3 (at least: window 8)"


def test_what_cannot_be_measured_is_said():
    constant = ms.adapt(Filter(KERNELS), kind="sequence")
    constant.module.kernels.data.zero_()
    with pytest.raises(UserError, match="all are constant"):
        ms.measures.output_memory(constant, horizon=8, samples=64)
    with pytest.raises(UserError, match=r"inputs must be of shape \(time, sequences, 1\)"):
        ms.measures.output_memory(ms.adapt(Filter(KERNELS), kind="sequence"), inputs=torch.zeros(3, 4, 2))


def test_separation_of_a_block_is_that_of_the_same_function_with_a_state():
    """A diagonal linear recurrence and its convolution are one function; a product of both halves has rank 1."""
    torch.manual_seed(0)
    network = ms.nn.create("linear-rnn", input_size=2, hidden_size=3).double()
    kernels = torch.stack(
        [network(torch.eye(8, dtype=torch.float64)[:, :1, None] * torch.eye(2)[c])[0][:, 0] for c in (0, 1)]
    )

    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.kernels = nn.Parameter((kernels - kernels_at_rest).float())

        def forward(self, x):
            pad = nn.functional.pad(x.transpose(1, 2), (7, 0))
            return nn.functional.conv1d(pad, self.kernels.permute(2, 0, 1).flip(2)).transpose(1, 2) + rest[
                : x.shape[1]
            ].to(x)

    rest = network(torch.zeros(8, 1, 2, dtype=torch.float64))[0][:, 0]
    kernels_at_rest = rest.expand(2, -1, -1)
    block = ms.adapt(Convolution(), kind="sequence", input_size=2)
    x = torch.randn(6, 4, 2, dtype=torch.float64)
    assert torch.allclose(block.run(x.float(), None).double(), network(x)[0], atol=1e-5)
    own, other = (ms.measures.separation_rank(each, horizon=6, every=True) for each in (network, block))
    assert own.rank == 2  # a sum of a function of each half
    assert own.mean_entropy == pytest.approx(other.mean_entropy, rel=1e-3)
