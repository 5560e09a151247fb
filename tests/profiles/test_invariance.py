"""Tests that a judgement is of the function that a network computes, not of the units in which its state is written."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from mnemoscope.nn import NetworkSpec, Recurrent
from mnemoscope.profiles.page import keyed
from mnemoscope.profiles.runner import Runner, Settings
from mnemoscope.profiles.section import all_sections, judged_quantities
from mnemoscope.profiles.verdict import scorecard, verdict

SIZES = {"input_size": 1, "hidden_size": 8}
SETTINGS = Settings(quick=True, seeds=3)
NETWORKS = ("rnn", "lstm", "gru", "exprnn")


class Rewritten(nn.Module):
    """A network with its state written anew: every number in units of its own, in another order, outputs reordered."""

    def __init__(self, inner: Recurrent, scale: torch.Tensor, order: torch.Tensor) -> None:
        super().__init__()
        self.inner, self.input_size, self.hidden_size = inner, inner.input_size, inner.hidden_size
        self.register_buffer("scale", scale)
        self.register_buffer("order", order)
        self.register_buffer("outputs", torch.randperm(inner.output_size, generator=torch.Generator().manual_seed(3)))

    def forward(self, x, h=None):
        state = self._written(self.inner.init_state(x.shape[1], dtype=x.dtype)) if h is None else h[0]
        outputs = []
        for one in x:
            y, state = self.advance(one, state)
            outputs.append(y)
        return torch.stack(outputs), state[None]

    def advance(self, x, state):
        before = self.inner.unflatten_state((state / self.scale)[:, self.order.argsort()])
        y, after = self.inner.step(x, before)
        return y[:, self.outputs], self._written(after)

    def _written(self, state):
        return self.inner.flatten_state(state)[:, self.order] * self.scale


class Doubled(Rewritten):
    """A network whose state holds every number twice."""

    def advance(self, x, state):
        before = self.inner.unflatten_state(state[:, : state.shape[1] // 2])
        y, after = self.inner.step(x, before)
        return y, self._written(after)

    def _written(self, state):
        return self.inner.flatten_state(state).repeat(1, 2)


def build(name, seed=0):
    return NetworkSpec(name, seed=seed, **SIZES).build()


def rewritten(name, spread, seed=0, cls=Rewritten):
    """Return a network with units from 1 to 2^spread, in exact powers of two, in an order of their own."""
    inner = build(name, seed)
    drawn = torch.Generator().manual_seed(1)
    size = inner.state_size
    scale = 2.0 ** torch.randint(0, spread + 1, (size,), generator=drawn).float()
    return cls(inner, scale, torch.randperm(size, generator=drawn))


def rows_of(*modules):
    """Return rows of networks with the weights that they have, one seed each."""
    runner = Runner([NetworkSpec(each) for each in modules], SETTINGS)
    return keyed(runner.run())


@pytest.fixture(scope="module")
def references():
    """Rows of established networks of this size, as a profile sets them beside."""
    names = ("rnn", "lstm", "gru", "scornn", "nnrnn")
    return tuple(Runner([NetworkSpec(name, **SIZES) for name in names], SETTINGS).run())


@pytest.mark.parametrize("name", NETWORKS)
def test_units_and_their_order_change_no_judgement(name, references):
    """State and outputs in another order, and the state in units between 1 and 1024: the same numbers and words."""
    plain, other = rows_of(build(name), rewritten(name, 10))
    quantities = judged_quantities(all_sections())
    beside = keyed(references, [plain.key])
    # The cost of a step is that of the code that makes it, and the wrapper's own work is in it.
    axes = [each for each in quantities if not each.axis.counted]
    first = verdict(plain, beside, axes)
    second = verdict(dataclasses.replace(other, own_key=plain.own_key), beside, axes)
    assert first.words() == second.words()
    assert len(first.words()) == 7
    for one, two in zip(first.judgements, second.judgements, strict=True):
        assert one.quantity.score(one.number.value) == pytest.approx(one.quantity.score(two.number.value), abs=1e-3)
    lines = [[score.word for score in scorecard(plain, said)] for said in (first, second)]
    assert lines[0] == lines[1]


def test_a_state_in_other_units_gave_another_judgement_by_absolute_noise():
    """What the axis was before: the total under noise of variance 1 follows the square of the units."""
    plain, other = rows_of(build("rnn"), rewritten("rnn", 10))
    found = [row.section("fisher").scalars["total"].value for row in (plain, other)]
    assert found[1] > 10 * found[0]


def test_units_that_do_the_same_are_said_to_be_redundant():
    plain, twice = rows_of(build("rnn"), rewritten("rnn", 0, cls=Doubled))
    ratios = [row.section("fisher").scalars for row in (plain, twice)]
    assert ratios[1]["relative_total"].value > 1.5 * ratios[0]["relative_total"].value
    assert ratios[1]["mixture_total"].value < 1.2 * ratios[0]["mixture_total"].value
    assert any("redundant: 8 of the 16 numbers" in said for said in twice.notices)
    assert not any("redundant" in said for said in plain.notices)


class Ballast(Rewritten):
    """A network that carries numbers which no input reaches and no output reads."""

    def advance(self, x, state):
        half = state.shape[1] // 2
        y, after = self.inner.step(x, self.inner.unflatten_state(state[:, :half]))
        return y, torch.cat([self.inner.flatten_state(after), state[:, half:]], 1)

    def _written(self, state):
        flat = self.inner.flatten_state(state)
        return torch.cat([flat, torch.zeros_like(flat)], 1)


def test_ballast_does_not_let_gradients_through():
    """Between states a dead chunk keeps every gradient; from outputs to inputs it counts for nothing, and is named."""
    plain, loaded = rows_of(build("rnn"), rewritten("rnn", 0, cls=Ballast))
    rates = [row.section("gradients").scalars["input_rate"].value for row in (plain, loaded)]
    assert rates[1] == pytest.approx(rates[0], abs=0.02)
    assert abs(loaded.section("gradients").scalars["rate"].value) < 0.01
    assert any("reached by no input" in note for note in loaded.section("gradients").notes)
    assert any("8 of the 16 numbers in its state never move" in said for said in loaded.notices)
