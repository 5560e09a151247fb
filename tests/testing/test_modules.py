"""Plain modules on the level of modules: a correct one is green, each fault is named, however it is called."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.testing import CheckFailed, check_network


class Gate(nn.Module):
    """A correct cell that knows nothing of any contract."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.inp = nn.Linear(input_size, hidden_size)
        self.rot = nn.utils.parametrizations.orthogonal(nn.Linear(hidden_size, hidden_size, bias=False))
        self.gate = nn.Linear(input_size + hidden_size, hidden_size)

    def forward(self, x, h=None):
        h = x.new_zeros(len(x), self.rot.weight.shape[0]) if h is None else h
        g = torch.sigmoid(self.gate(torch.cat([x, h], -1)))
        return g * self.rot(h) + (1 - g) * torch.tanh(self.inp(x))


class BatchFirst(nn.Module):
    """A correct layer of whole sequences, batch first."""

    def __init__(self, input_size: int, hidden_size: int):
        super().__init__()
        self.rnn = nn.GRU(input_size, hidden_size, batch_first=True)

    def forward(self, x, h=None):
        return self.rnn(x, h)


class Block(nn.Module):
    """A correct block without a state."""

    def __init__(self, d_model: int):
        super().__init__()
        self.mix = nn.Conv1d(d_model, d_model, 3)

    def forward(self, x):
        return self.mix(nn.functional.pad(x.mT, (2, 0))).mT


class MixesExamples(Gate):
    def forward(self, x, h=None):
        return super().forward(x, h) + 0.1 * x.mean()


class NoGradient(Gate):
    def forward(self, x, h=None):
        return super().forward(x, None if h is None else h.detach())


class Unsaved(Gate):
    def __init__(self, input_size: int, hidden_size: int):
        super().__init__(input_size, hidden_size)
        self.shift = torch.randn(())

    def forward(self, x, h=None):
        return super().forward(x, h) + self.shift


class LowPrecision(Gate):
    def forward(self, x, h=None):
        return super().forward(x, h).half().to(x.dtype)


@pytest.mark.parametrize("module", [Gate, BatchFirst, Block, ms.nn.GRU])
def test_a_correct_module_is_green(module):
    report = check_network(module, level="module")
    assert not report.failed
    assert len(report.passed) >= 4


@pytest.mark.parametrize(
    ("module", "failing"),
    [
        (NoGradient, "check_gradient_state"),
        (LowPrecision, "check_gradient_input"),
    ],
)
def test_a_fault_is_named(module, failing):
    with pytest.raises(CheckFailed) as caught:
        check_network(module, level="module")
    assert failing in caught.value.report.failed
    assert caught.value.report.passed  # the others were still run
    assert not any("packed" in name or "error" in name for name in caught.value.report.failed)


def test_a_module_that_cannot_be_read_has_one_failure():
    with pytest.raises(CheckFailed, match="must treat the examples of a batch one by one") as caught:
        check_network(MixesExamples, level="module")
    assert list(caught.value.report.failed) == ["check_reading"]


def test_what_is_not_saved_is_missed():
    with pytest.raises(CheckFailed, match="keep all that forward uses in parameters and buffers"):
        check_network(lambda: Unsaved(3, 4), level="module")


def test_a_level_that_there_is_not():
    with pytest.raises(UserError, match="level must be 'contract' or 'module', got 'all'"):
        check_network(Gate, level="all")
