"""Paces of networks, what becomes of steps that have no forward derivative, and states that leave the numbers."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.fisher.network import network_fisher_memory
from mnemoscope.measures.pace import Line, Pace, pace_of
from mnemoscope.measures.registry import get
from mnemoscope.measures.tangent import Tangents
from mnemoscope.measures.trajectory import drive

COMMON = Pace(step=Line(5e-5, 1e-6), pull=Line(5e-4, 1e-5), arithmetic=1.0, fading=0.5, linear=False)


def delay(radius):
    """Return a linear network of one unit."""
    layer = ms.nn.LinearRNN(1, 1, bias=False)
    layer.weight_hh_l0 = torch.tensor([[radius]])
    return layer


@pytest.mark.parametrize("radius", [0.5, 0.9, 1.0])
def test_fading_is_the_rate_of_a_linear_network(radius):
    found = pace_of(Dynamics.of(delay(radius)))
    assert found.fading == pytest.approx(-math.log(radius), abs=1e-6)
    assert found.linear
    nonlinear, gated = (pace_of(Dynamics.of(ms.nn.create(name, 1, 3))) for name in ("gru", "mingru"))
    assert not nonlinear.linear
    assert not nonlinear.gated
    assert not gated.linear
    assert gated.gated


def test_lags_until_a_curve_settles():
    assert COMMON.lags(1e-10, 512) == 32  # e^(-2 0.5 k) < 1e-10 at k = 23.03, in blocks of 16
    assert dataclasses.replace(COMMON, fading=0.01).lags(1e-10, 512) == 512
    assert dataclasses.replace(COMMON, fading=-0.1).lags(1e-10, 512) == 512


def test_estimates_follow_the_pace():
    """A network whose steps take ten times as long takes ten times as long where steps are all there is to it."""
    slow = dataclasses.replace(COMMON, step=Line(5e-4, 1e-5), pull=Line(5e-3, 1e-4))
    gradients, fisher = get("gradients"), get("network-fisher")
    assert gradients.seconds(64, pace=slow) == pytest.approx(10 * gradients.seconds(64, pace=COMMON))
    held = dataclasses.replace(COMMON, fading=0.0)
    assert fisher.seconds(256, pace=held) > 10 * fisher.seconds(256, pace=COMMON)
    assert fisher.seconds(256, pace=held, horizon=32) < fisher.seconds(256, pace=held)


def test_a_step_that_raises_has_no_pace():
    class Broken(nn.Module):
        input_size, hidden_size = 1, 3

        def forward(self, x, h):
            return _Dead.apply(h + x)

    assert pace_of(Dynamics.of(ms.adapt(Broken(), kind="cell"), differentiable=False)) is None


class _Dead(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return torch.tanh(a)

    @staticmethod
    def backward(ctx, g):
        raise RuntimeError("no way back")


class _Once(torch.autograd.Function):
    """tanh, whose derivative cannot be differentiated again."""

    @staticmethod
    def forward(ctx, a):
        y = torch.tanh(a)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * (1 - y * y)


class Cell(nn.Module):
    """A tanh network, by torch's own tanh or by one that is differentiable once."""

    def __init__(self, phi=torch.tanh):
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.input_size, self.hidden_size, self.phi = 1, 24, phi
        self.w = nn.Parameter(0.2 * torch.randn(24, 24, generator=draw))
        self.u = nn.Parameter(torch.randn(24, 1, generator=draw))

    def forward(self, x, h):
        return self.phi(h @ self.w.T + x @ self.u.T)


def test_a_step_without_a_forward_derivative_is_pushed_by_differences_and_says_so(monkeypatch):
    monkeypatch.setattr("mnemoscope.measures.fisher.network.DENSE", 8)
    plain, once = ms.adapt(Cell(), kind="cell"), ms.adapt(Cell(_Once.apply), kind="cell")
    path = drive(
        Dynamics.of(once), steps=3, trajectories=2, scale=1.0, washout=0, generator=torch.Generator().manual_seed(0)
    )
    tangents = Tangents(path)
    assert tangents.differenced
    block = torch.randn(5, 2, 24, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    exact = torch.einsum("bij,kbj->kbi", path.jacobians(1, 2).state[0], block)
    np.testing.assert_allclose(tangents.push(1, block), exact, atol=1e-9)
    options = {"noise": "relative", "longest": 48, "trajectories": 2}
    found, truth = network_fisher_memory(once, **options), network_fisher_memory(plain, **options)
    assert found.total == pytest.approx(truth.total, rel=1e-6)
    assert any("by differences" in each for each in found.assumptions)
    assert not any("by differences" in each for each in truth.assumptions)


def test_states_that_become_nan_name_the_step_and_the_norm_before_it():
    class Leaves(nn.Module):
        input_size, hidden_size = 1, 2

        def forward(self, x, h):
            return torch.where(h > 40, torch.full_like(h, torch.nan), 2 * h + 1 + 0 * x)

    flow = Dynamics.of(ms.adapt(Leaves(), kind="cell"), "a measure", differentiable=False)
    said = r"this network's become NaN after 7 steps, from a norm of 89\.1 the step before"
    with pytest.raises(UserError, match=said):  # 1, 3, 7, 15, 31, 63: sqrt(2) 63 = 89.1
        flow.drive(torch.zeros(20, 1, 1, dtype=torch.float64), flow.start(1))


def test_a_state_that_does_not_fit_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.00001")
    with pytest.raises(UserError, match=r"of a state of 64 numbers needs .* a smaller network would fit"):
        Dynamics.of(ms.nn.GRU(1, 64), "a measure").readout()


class Named(torch.nn.Module):
    """A stranger's cell with an attribute that our layers have as a method."""

    input_size, hidden_size, weights = 1, 4, (1, 2)

    def __init__(self):
        super().__init__()
        self.mixed = torch.nn.Linear(5, 4)

    def forward(self, x, h):
        return torch.tanh(self.mixed(torch.cat([x, h], -1)))


def test_maps_take_time_where_there_are_some_and_none_of_a_strangers_attribute():
    with_maps = pace_of(Dynamics.of(ms.nn.create("exprnn", input_size=1, hidden_size=64)))
    without = pace_of(Dynamics.of(Named()))
    assert without is not None
    assert with_maps.maps > 20 * without.maps
