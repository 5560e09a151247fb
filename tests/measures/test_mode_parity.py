"""Mode parity: networks with a planted mistake in one form, and closed forms of overflow."""

import numpy as np
import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import mode_parity

SHORT = {"lengths": (1, 8, 40), "dtypes": ("float64", "float32"), "range_dtypes": ("float16",), "scales": (1.0,)}


@pytest.mark.parametrize("name", ["lstm", "lru", "gla"])
def test_forms_of_sound_networks_agree(name):
    found = mode_parity(ms.nn.create(name, input_size=2, hidden_size=8), **SHORT)
    assert found.agree, str(found)
    assert found.outputs[0].max() < 1e-12
    assert 1e-9 < found.outputs[1].max() < 1e-5, "float32 rounds"
    assert not found.parts.any()


class Late(ms.nn.RNN):
    """A network whose whole sequences forget the third input."""

    def run(self, x, state, lengths):
        wrong = x.clone()
        wrong[2:3] = 0
        return super().run(wrong, state, lengths)


def test_the_step_at_which_forms_part_is_found():
    found = mode_parity(Late(2, 4), **SHORT)
    assert not found.agree
    assert found.parts[0, 0].tolist() == [0, 3, 3]
    assert found.outputs[0, 0, 0] < 1e-12 < 1e-3 < found.outputs[0, 0, 1]
    assert "recurrent and steps differ by" in str(found)
    assert "from step 3 on" in str(found)
    assert found.cut > 1e-3, "pieces forget another input"


class Mixing(ms.nn.RNN):
    """A network whose examples see the mean of their batch."""

    def run(self, x, state, lengths):
        return super().run(x + x.mean(1, keepdim=True), state, lengths)


class Noisy(ms.nn.RNN):
    def run(self, x, state, lengths):
        return super().run(x + 0.1 * torch.randn_like(x), state, lengths)


class Peeking(ms.nn.RNN):
    def run(self, x, state, lengths):
        return super().run(torch.cat([x[1:], x[:1]]), state, lengths)


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (Mixing, "examples of a batch touch each other"),
        (Noisy, "two calls on the same input differ"),
        (Peeking, "outputs depend on later inputs"),
    ],
)
def test_other_mistakes_are_told(network, words):
    assert any(words in each for each in mode_parity(network(2, 4), **SHORT).differences)


class Forgetful(ms.nn.LRU):
    """A network whose parallel form begins every piece from rest."""

    def unroll_cell(self, w, a, state, lengths):
        return super().unroll_cell(w, a, torch.zeros_like(state), lengths)


def test_a_state_that_one_form_does_not_carry_over_a_cut():
    found = mode_parity(Forgetful(2, 4), **SHORT)
    assert found.outputs[0].max() < 1e-12, "from rest all forms agree"
    assert found.cut > 1e-3
    assert any("carried over a cut" in each for each in found.differences)


def test_float16_overflows_where_a_doubling_does():
    """h <- 2 h + x with x = c at every step: the first power of two times c above 65504 (float16), 3.4e38 (float32)."""
    layer = ms.nn.LinearRNN(1, 1, bias=False)
    with torch.no_grad():
        layer.weight_hh_l0.fill_(2.0)
        layer.weight_ih_l0.fill_(1.0)
    found = mode_parity(layer, lengths=(200,), dtypes=("float64",), range_dtypes=("float16", "float32"), scales=(1.0,))
    inputs = torch.randn(200, 2, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)[:, 0, 0].numpy()
    state, steps = 0.0, {}
    for t, value in enumerate(inputs, 1):
        state = 2 * state + value
        for name, limit in (("float16", 65504 * (1 + 2**-12)), ("float32", float(np.finfo(np.float32).max))):
            if abs(state) > limit:
                steps.setdefault(name, t)
    assert found.overflow[:, 0].tolist() == [steps["float16"], steps["float32"]]
    assert f"float16 overflows at step {steps['float16']}" in found.overflows


def test_a_stranger_through_the_adapter():
    found = mode_parity(torch.nn.GRUCell(2, 5), **SHORT)
    assert found.agree, str(found)


def test_bad_input_in_one_line():
    layer = ms.nn.RNN(1, 2)
    with pytest.raises(UserError, match="lengths must be a positive integer, got 0"):
        mode_parity(layer, lengths=(0,))
    with pytest.raises(UserError, match="float8"):
        mode_parity(layer, lengths=(2,), dtypes=("float8",))


def test_weights_of_several_types_stay_so():
    class Mixed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.read = torch.nn.Linear(2, 3, dtype=torch.bfloat16)
            self.carry = torch.nn.Linear(3, 3, dtype=torch.bfloat16)
            self.scale = torch.nn.Parameter(torch.ones(3))

        def forward(self, x, h):
            return torch.tanh(self.scale * (self.read(x.bfloat16()) + self.carry(h.bfloat16())).float())

    found = mode_parity(ms.adapt(Mixed(), input_size=2), lengths=(1, 8), scales=(1.0,))
    assert found.dtypes == ("float32",)
    assert found.agree
