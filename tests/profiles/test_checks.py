"""What is found out of a network before it is measured: NaN, noise, a backward pass that fails, the future."""

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.profiles.checks import check_network


class Broken(ms.nn.RNN):
    """A network of ours that somebody spoils after it was adapted, where `adapt` can no longer see it."""

    spoil = staticmethod(lambda y: y)

    def run(self, x, state, lengths):
        y, state = super().run(x, state, lengths)
        return type(self).spoil(y), state


class _NoBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("no way\nback")


class _BadBackward(_NoBackward):
    @staticmethod
    def backward(ctx, gradient):
        return gradient * torch.nan


def spoiled(how):
    return type("Spoiled", (Broken,), {"spoil": staticmethod(how)})(2, 3)


@pytest.mark.parametrize("layer", [ms.nn.RNN(2, 3), ms.nn.LSTM(1, 2, batch_first=True), ms.nn.RAC(2, 3)])
def test_nothing_is_said_of_a_sound_network(layer):
    layer.train()
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    assert check_network(layer, "it") == ()
    assert layer.training
    assert all(torch.equal(before[name], tensor) for name, tensor in layer.state_dict().items())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda y: y * torch.nan, "it gives outputs that are NaN for a standard normal input of 12 steps"),
        (lambda y: y / 0, "it gives outputs that are (NaN|infinite) for"),
        (
            lambda y: y + torch.rand(()),
            "it is not deterministic: two calls in eval mode on the same input differ by up",
        ),
        (lambda y: y.no_such_thing, "it fails on a standard normal input of 12 steps: AttributeError: "),
    ],
)
def test_what_makes_all_numbers_meaningless_is_one_line(how, said):
    with pytest.raises(UserError, match=said) as raised:
        check_network(spoiled(how), "it")
    assert "\n" not in str(raised.value)


def test_a_backward_pass_that_fails_is_noticed():
    (said,) = check_network(spoiled(_NoBackward.apply), "it")
    assert said == "it fails on the backward pass: RuntimeError: no way back; what needs gradients fails too"
    (said,) = check_network(spoiled(_BadBackward.apply), "it")
    assert said == "it gives gradients that are not finite for a standard normal input of 12 steps"


def test_the_future_is_noticed():
    (said,) = check_network(ms.nn.RNN(1, 2, bidirectional=True), "it")
    assert said.startswith("it is not causal, and only its last output is asked what it remembers")


def test_classifiers_have_no_steps_to_check():
    assert check_network(ms.nn.CP(2, 2, 4, 2), "it") == ()
    assert isinstance(ms.nn.CP(2, 2, 4, 2), nn.Module)


class Normed(torch.nn.Module):
    """An RNN behind a normalisation of its inputs, which makes a single input constant."""

    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.norm, self.rnn = torch.nn.LayerNorm(input_size), torch.nn.RNN(input_size, hidden_size)

    def forward(self, x, h=None):
        return self.rnn(self.norm(x), h)


def test_a_network_that_sees_nothing_is_not_judged():
    with pytest.raises(UserError, match="the same outputs and states whatever its inputs are.*--input-size 2"):
        ms.profile(Normed, hidden_size=4, quick=True)


def test_dead_and_redundant_units_are_named():
    layer = torch.nn.RNN(1, 4)
    with torch.no_grad():
        for each in layer.parameters():
            each[1] = 0.0
            each[3] = each[0]
    (said,) = check_network(ms.adapt(layer), "it")
    assert "1 of the 4 numbers in its state never move, whatever the input: 1" in said
    assert "units are redundant: 1 of the 4 numbers in its state are others times a factor: 3" in said
