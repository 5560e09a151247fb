"""Strangers' modules that cannot be measured: one line each, with the reason that matters."""

import time

import pytest
import torch
from torch import nn

from mnemoscope.core.errors import Advised, Overtime, UserError
from mnemoscope.core.loading import time_limit
from mnemoscope.nn import NetworkSpec


class Images(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.see = nn.Conv2d(3, hidden_size, 3)

    def forward(self, x):
        return self.see(x).mean((2, 3))


class Spline(nn.Module):
    def __init__(self, input_channels, hidden_channels):
        super().__init__()
        self.field = nn.Linear(hidden_channels, hidden_channels * input_channels)

    def forward(self, coeffs):
        a, _, _, _ = coeffs
        return a


class OnGPU(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.read = nn.Linear(input_size, hidden_size)

    def forward(self, x, h):
        return torch.tanh(self.read(x)).cuda() + h


class Matrices(nn.Module):
    def __init__(self, input_size, hidden_size, W):
        super().__init__()
        self.W = W.clone()

    def forward(self, x, h):
        return torch.tanh(x.sum(-1, keepdim=True) + h @ self.W)


class Unknown(nn.Module):
    """An argument without a known meaning, and an answer that is only a loss."""

    def __init__(self, input_size, hidden_size, quirk):
        super().__init__()
        self.rnn = nn.GRU(input_size, hidden_size * quirk // quirk)

    def forward(self, x):
        return self.rnn(x)[0].square().mean()


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (Images, "not applicable: Images reads images, and what is measured here are sequences of vectors"),
        (Spline, "not applicable: Spline reads coefficients of a spline"),
        (
            Matrices,
            "Matrices also needs W, and no usual value will do (--set W=.. takes numbers, texts and lists); ",
        ),
    ],
)
def test_the_reason_is_one_line(cls, words):
    with pytest.raises(UserError) as caught:
        NetworkSpec(cls, hidden_size=4).build()
    assert str(caught.value).startswith(words)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_module_for_a_gpu_is_told_so():
    with pytest.raises(UserError, match=r"^OnGPU needs a GPU, and this machine has none: .* \(test_.*, line \d+\)$"):
        NetworkSpec(OnGPU, hidden_size=4).build()


def test_advice_is_tried_as_a_whole():
    with pytest.raises(Advised) as caught:
        NetworkSpec(Unknown, hidden_size=4).build()
    assert caught.value.flags == ("--set", "quirk=8", "--part", "rnn")
    mended = NetworkSpec(Unknown, hidden_size=4, options={"quirk": 8}, advice={"part": "rnn"}).build()
    assert mended.state_size == 4


def test_a_limit_of_time_is_not_caught_by_what_catches_every_error():
    def deaf():
        begin = time.monotonic()
        while time.monotonic() < begin + 20:
            try:
                time.sleep(0.01)
            except Exception:  # as a stranger's code and our own trials do
                continue

    with pytest.raises(Overtime, match=r"^this did not return within 0.2 seconds$"), time_limit(0.2, "this"):
        deaf()
