"""Sequences of the user's that drive every measure."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.measures import Dynamics
from mnemoscope.measures.inputs import given_sequences, own_stream
from mnemoscope.measures.trajectory import drive


def test_a_stream_joins_the_sequences_end_to_end():
    sequences = torch.arange(12.0, dtype=torch.float64).reshape(2, 6, 1).transpose(0, 1).contiguous()
    draw = own_stream(sequences, 3, torch.Generator().manual_seed(0))
    found = torch.cat([draw(5), draw(9)]).squeeze(-1)
    for track in found.T.tolist():
        assert all(value % 6 == 0 for before, value in itertools.pairwise(track) if value != before + 1)
        assert set(range(12)) == {int(value) for value in track[:12]}


def test_every_shape_of_one_sequence_is_taken_and_others_are_refused():
    one = np.linspace(0, 1, 7)
    assert given_sequences(one, 1).shape == given_sequences(one[:, None], 1).shape == (7, 1, 1)
    with pytest.raises(UserError, match=r"inputs must be of shape \(time, sequences, 2\), or \(time, 2\) of one"):
        given_sequences(one, 2)
    with pytest.raises(UserError, match="inputs must be finite"):
        given_sequences(one * np.nan, 1)


def test_a_network_is_driven_by_nothing_else():
    network = ms.nn.create("rnn", input_size=2, hidden_size=3)
    given = torch.randint(5, (40, 3, 2)).double()
    flow = Dynamics.of(network, inputs=given)
    path = drive(flow, steps=30, trajectories=4, scale=1.0, washout=10, generator=torch.Generator().manual_seed(0))
    rows = {tuple(row) for row in given.reshape(-1, 2).tolist()}
    assert {tuple(row) for row in path.inputs.reshape(-1, 2).tolist()} <= rows


def test_constant_inputs_drive_a_network_to_a_fixed_point():
    """Lyapunov exponents under one constant input are those of the map at the point to which it leads."""
    torch.manual_seed(0)
    network = ms.nn.create("rnn", input_size=1, hidden_size=3).double()
    found = ms.measures.lyapunov_exponents(network, inputs=np.full((50, 1, 1), 0.7), horizon=100, transient=60)
    h = torch.zeros(1, 3, dtype=torch.float64)
    for _ in range(300):
        h = network.step(torch.full((1, 1), 0.7, dtype=torch.float64), h[None])[1][0]
    jacobian = (1 - h.detach().T ** 2) * network.weight_hh_l0.detach()
    wanted = torch.linalg.eigvals(jacobian).abs().log().sort(descending=True).values
    assert found.exponents[0] == pytest.approx(float(wanted[0]), abs=0.02)


def test_memory_of_a_delay_line_under_given_inputs():
    """A delay line of four units recovers the last four inputs of white noise, and of a sine every lag."""
    network = ms.nn.create("linear-rnn", input_size=1, hidden_size=4, bias=False, dtype=torch.float64)
    network.weight_hh_l0 = torch.diag(torch.ones(3, dtype=torch.float64), -1)
    network.weight_ih_l0 = torch.eye(4, dtype=torch.float64)[:, :1]
    white = np.random.default_rng(0).normal(size=(500, 8, 1))
    found = ms.measures.memory_capacity(network, inputs=white, lag=7, samples=2048)
    assert found.curve == pytest.approx([1, 1, 1, 1, 0, 0, 0, 0], abs=0.03)
    sine = np.sin(0.3 * np.arange(2000))[:, None]
    assert ms.measures.memory_capacity(network, inputs=sine, lag=7, samples=2048).curve == pytest.approx(1, abs=0.02)


def test_templates_of_a_separation_rank_are_steps_of_the_inputs():
    network = ms.nn.create("rnn", input_size=2, hidden_size=3)
    given = np.arange(40.0).reshape(10, 2, 2)
    found = ms.measures.separation_rank(network, horizon=4, templates=3, inputs=given)
    assert {tuple(row) for row in found.templates} <= {tuple(row) for row in given.reshape(-1, 2)}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Conv1d(width, width, 2)

    def forward(self, x):
        return torch.tanh(self.mix(nn.functional.pad(x.transpose(1, 2), (1, 0)))).transpose(1, 2)


def test_profiles_are_driven_by_them_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    given = np.random.default_rng(0).normal(size=(60, 300, 2))
    beside = ms.compare("rnn", Block(2), hidden_size=4, inputs=given, quick=True, seeds=1)
    own, block = beside.rows
    network = ms.nn.NetworkSpec("rnn", input_size=2, hidden_size=4).build()
    alone = ms.measures.network_fisher_memory(
        network, noise="relative", longest=256, trajectories=4, washout=50, inputs=given
    )
    assert own.section("fisher").scalars["relative_total"].value == alone.total
    assert own.section("capacity").scalars["linear"].value > 0
    assert block.section("outputs").done
    for row in beside.rows:
        assert row.network.input_size == 2
        assert "measures are driven by the 300 sequences of 60 steps that were given" in row.notices
    with pytest.raises(UserError, match=r"inputs must be of shape \(time, sequences, 1\)"):
        ms.profile("rnn", hidden_size=4, input_size=1, inputs=given, quick=True)
