"""The gate where a careless one rules out too much: thresholds, transitions that commute by turns, mixed stacks."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import mnemoscope as ms
from mnemoscope.measures.tracking.parts import Parts


def cell(module: nn.Module, size: int) -> nn.Module:
    return ms.adapt(
        module, kind="cell", input_size=2, init_state=lambda batch: torch.zeros(batch, size, dtype=torch.float64)
    )


class Thresholds(nn.Module):
    """Two numbers that decay, of which the second sees the sign of the first: no derivative shows it."""

    def __init__(self, *, back: float) -> None:
        super().__init__()
        self.decay = nn.Parameter(torch.tensor([0.5, 0.25], dtype=torch.float64))
        self.back = back

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        first, second = h.split(1, -1)
        drive = torch.cat([self.back * second, (first > 0).to(h)], -1)
        return self.decay * h + drive + x


@pytest.mark.parametrize("back", [-1.0, 0.0])
def test_a_threshold_that_reads_the_state_is_a_nonlinearity(back):
    """With back = -1 the two are a circle; with 0 one reads the other, which caution takes for the same."""
    found = ms.measures.tracking_gate(cell(Thresholds(back=back), 2))
    assert not found.linear
    assert found.excluded == ()


class FlipFlop(nn.Module):
    """A bit that holds itself by a threshold alone, beside a number that decays."""

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        bit, other = h.split(1, -1)
        return torch.cat([(bit + x[:, :1] > 0).to(h), 0.5 * other + x[:, 1:]], -1)


def test_a_bit_that_is_held_by_a_threshold_alone_is_a_nonlinearity():
    assert not ms.measures.tracking_gate(cell(FlipFlop(), 2)).linear


@pytest.mark.parametrize("order", [(0, 1, 2, 1), (0, 1, 2), (1, 0, 2, 1, 1)])
def test_transitions_commute_in_all_pairs_or_not_at_all(order):
    """Neighbours commute (one of them is the identity), the two reflections do not."""
    one, other = np.diag([1.0, -1.0]), np.array([[0.0, 1.0], [1.0, 0.0]])
    known = torch.from_numpy(np.stack([(one, np.eye(2), other)[each] for each in order]))[:, None]
    assert not Parts((known,), linear=True, layers=1).commuting
    assert Parts((known[:2],), linear=True, layers=1).commuting


class Mixed(nn.Module):
    """A layer that turns for ever, and one whose gates read it and the input: S4D below Mamba."""

    def __init__(self, least: float) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.gates = nn.Parameter(torch.randn(4, 2, generator=generator, dtype=torch.float64))
        self.least = least

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        below, above = h.split(2, -1)
        turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=h.dtype)
        below = below @ turn + 0.1
        gate = self.least + (1 - self.least) * torch.sigmoid(torch.cat([x, below], -1) @ self.gates)
        return torch.cat([below, gate * above + x], -1)


def test_layers_of_two_kinds_track_no_group():
    """Khavari et al. 2025: a clock and gates that are never negative, stacked, are no better than either."""
    found = ms.measures.tracking_gate(cell(Mixed(least=0.0), 4))
    assert (found.linear, found.input_dependent, found.complex_pairs) == (True, True, True)
    assert {each.theorem for each in found.excluded} == {"tracking-mixed-layers"}
    assert found.allowed == ("Dyck-(2,m)",)
    signed = ms.measures.tracking_gate(cell(Mixed(least=-1.0), 4))
    assert signed.linear
    assert "Z2" in signed.allowed
