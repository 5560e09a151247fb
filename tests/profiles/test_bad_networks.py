"""Networks that no profile can measure as usual: each is told in a line, and what can be measured is."""

import re
import time

import pytest
import torch
from tests.profiles.fake_sections import TRUE, only
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures.dynamics import Dynamics
from mnemoscope.measures.pace import pace_of
from mnemoscope.nn import NetworkSpec
from mnemoscope.profiles.runner import Runner, Settings


def measured(what, *names, **settings):
    """Return the parts of one network, measured by sections of these names at one seed."""
    with only(*(TRUE[name] for name in names)):
        runner = Runner([NetworkSpec(what)], Settings(quick=True, seeds=1, **settings))
        return runner, runner.run()[0].to_dict()["parts"]


class Leaves(nn.Module):
    """Units that double, and are no numbers any more beyond 1e4."""

    input_size, hidden_size = 1, 2

    def forward(self, x, h):
        return torch.where(h.abs() > 1e4, torch.full_like(h, torch.nan), 2 * h + x)


def test_states_that_become_nan_are_told_with_step_and_norm_and_the_others_go_on():
    runner, parts = measured(ms.adapt(Leaves(), kind="cell"), "card", "gradients", "capacity")
    assert not any("never move" in each for each in runner.subjects[0].notices)
    assert parts["card"]["status"] == "done"
    said = r"this network's become NaN after \d+ steps, from a norm of \d\.\d+e\+04 the step before"
    for name in ("gradients", "capacity"):
        assert re.search(said, parts[name]["reason"])
    assert {parts[name]["status"] for name in ("gradients", "capacity")} == {"not applicable"}


def test_a_state_for_which_there_is_no_memory_is_told_in_a_line(monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_MEMORY", "0.00001")
    _, parts = measured(ms.nn.GRU(1, 16), "theory", "gradients")
    assert parts["theory"]["status"] == "done"
    assert parts["gradients"]["status"] == "not applicable"
    assert re.search(r"needs .* of memory, .* are allowed", parts["gradients"]["reason"])


class Wide(nn.Module):
    """A cell that says how wide its state is."""

    input_size, hidden_size = 1, 50_000_000_000

    def __init__(self):
        super().__init__()
        self.kept = nn.Parameter(torch.ones(1))

    def forward(self, x, h):
        return torch.tanh(self.kept * h + x)


def test_a_state_of_which_one_vector_does_not_fit_is_refused_before_it_is_tried():
    said = r"trying Wide out, with 50,000,000,000 numbers in its state, needs .* of memory, .* are allowed"
    with pytest.raises(UserError, match=said):
        Runner([NetworkSpec(Wide)], Settings(quick=True, seeds=1))


class Undifferentiated(torch.autograd.Function):
    """The hyperbolic tangent, with a backward and neither a forward derivative nor one that can be taken twice."""

    @staticmethod
    def forward(ctx, x):
        y = x.tanh()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, given):
        (y,) = ctx.saved_tensors
        return given * (1 - y * y)


class Custom(nn.Module):
    """A cell with a custom autograd function."""

    input_size, hidden_size = 1, 6

    def __init__(self, own=True):
        super().__init__()
        torch.manual_seed(0)
        self.kept, self.fed = nn.Linear(6, 6), nn.Linear(1, 6)
        self.own = own

    def forward(self, x, h):
        a = self.kept(h) + self.fed(x)
        return Undifferentiated.apply(a) if self.own else a.tanh()


def test_a_step_without_a_forward_derivative_is_taken_back_and_finds_the_same():
    found = [measured(ms.adapt(Custom(own), kind="cell"), "fisher", "gradients")[1] for own in (True, False)]
    for part, name in (("fisher", "relative_total"), ("gradients", "input_rate"), ("gradients", "lyapunov_max")):
        custom, plain = (each[part]["scalars"][name]["value"] for each in found)
        assert custom == pytest.approx(plain, rel=1e-9)


class Slow(nn.Module):
    """A cell whose step works for a while."""

    input_size, hidden_size = 1, 2

    def __init__(self):
        super().__init__()
        self.kept = nn.Linear(2, 2)

    def forward(self, x, h):
        begin = time.thread_time()
        while time.thread_time() - begin < 0.01:
            pass
        return torch.tanh(self.kept(h) + x)


class Waits(nn.Module):
    """A cell whose step waits for something, and is not at work meanwhile."""

    input_size, hidden_size = 1, 2

    def __init__(self, seconds=0.002):
        super().__init__()
        self.seconds, self.kept = seconds, nn.Linear(2, 2)

    def forward(self, x, h):
        time.sleep(self.seconds)
        return torch.tanh(self.kept(h) + x)


def test_a_step_that_waits_has_its_time_on_the_clock():
    found = pace_of(Dynamics.of(ms.adapt(Waits(), kind="cell")))
    assert found.step.base * found.load >= 0.002


def test_a_step_too_slow_to_be_tried_out_says_how_long_it_takes(monkeypatch):
    monkeypatch.setattr("mnemoscope.nn.understanding._SECONDS", 0.5)
    said = r"did not return within 0.5 seconds: a call of it takes 0\.\d+ s, and one seed .* would take \d+\.\d hours"
    with pytest.raises(UserError, match=said):
        NetworkSpec(lambda: Waits(0.05)).build()


def test_a_step_that_takes_long_is_seen_before_and_parts_that_do_not_fit_are_named():
    runner, parts = measured(ms.adapt(Slow(), kind="cell"), "theory", "gradients", budget=4.0)
    assert runner.one_seed() > 200 * 2 * 0.01  # two sweeps of 200 steps, forward and back
    assert parts["theory"]["status"] == "done"
    assert parts["gradients"]["status"] == "stopped"
    assert "and the budget of 4 s is used up" in parts["gradients"]["reason"]
