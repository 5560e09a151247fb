"""The ladder: exact trackers solve it, what cannot track does not, a killed one goes on, bad rungs are one line."""

import numpy as np
import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope import runs, training
from mnemoscope.core.errors import UserError
from mnemoscope.core.seeds import stream
from mnemoscope.tasks.group_composition import multiplication_table
from mnemoscope.training import ladders
from mnemoscope.training.model import Model

TINY = {
    "hidden_size": 4,
    "length": 4,
    "iterations": 3,
    "seeds": 2,
    "examples": 8,
    "batch_size": 4,
    "validation_size": 4,
    "test_size": 4,
    "layout": "sequential",
    "progress": False,
}


def exact_tracker(group: str) -> Model:
    """A BIRNN of one unit per element, its transitions the group's table: no training is needed."""
    table = multiplication_table(group)
    size = len(table)
    moves = np.stack([np.eye(size)[table[g]] for g in range(size)])
    machine = ms.nn.WeightedAutomaton(np.eye(size)[0], moves, np.eye(size))
    return Model(None, ms.nn.BIRNN.from_automaton(machine), None).double()


@pytest.mark.parametrize("group", ["Z2", "Z3", "S3"])
def test_scores_of_an_exact_tracker_are_one_at_every_length(group):
    model = exact_tracker(group)  # g from the left: the table's row of g says where each product goes
    task = ladders.rung_task(group, 128)
    batch = task.sample(4, torch.Generator().manual_seed(0))
    answers, _ = model(batch.inputs.double())
    assert torch.equal(answers.argmax(-1), batch.targets)

    class Doubled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = model

        def forward(self, x):
            return self.inner(x.double())

    curve = ladders.prefix_scores(Doubled(), task, 16, stream(0, "x"))
    assert curve == pytest.approx(np.ones(128))


def test_prefix_scores_are_the_task_s_own_scores():
    task = ladders.rung_task("S3", 24)
    layer = ms.nn.create("gru", input_size=6, hidden_size=5, generator=torch.Generator().manual_seed(1))
    model = training.build_model(layer, task, "linear", stream(0, "readout"))
    found = ladders.prefix_scores(model, task, 64, stream(3, "y"))
    batch = task.sample(64, stream(3, "y"))
    with torch.no_grad():
        answers = model(batch.inputs)[0]
    for steps in (1, 7, 24):
        short = ladders.rung_task("S3", steps)
        cut = batch._replace(
            inputs=batch.inputs[:steps], targets=batch.targets[:steps], mask=batch.mask[:steps], lengths=None
        )
        assert found[steps - 1] == pytest.approx(short.score(answers[:steps], cut))


def test_a_killed_ladder_goes_on_to_the_same_numbers(tmp_path, monkeypatch):
    whole = training.ladder("rnn", rungs=["Z2", "Z3", "dyck"], **TINY)
    real, calls = ladders._curve, []

    def failing(*args):
        calls.append(args)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    monkeypatch.setattr(ladders, "_curve", failing)
    with pytest.raises(KeyboardInterrupt):
        training.ladder("rnn", rungs=["Z2", "Z3", "dyck"], folder=tmp_path / "l", **TINY)
    assert [line["part"] for line in runs.load(tmp_path / "l").metrics] == ["Z2"]
    monkeypatch.setattr(ladders, "_curve", real)
    again = training.resume(tmp_path / "l", progress=False)
    np.testing.assert_array_equal(again.scores, whole.scores)
    np.testing.assert_array_equal(again.solved, whole.solved)
    assert runs.load(tmp_path / "l").status == "finished"
    known = training.ladder("rnn", rungs=["Z2", "Z3", "dyck"], folder=tmp_path / "l", **TINY)
    assert known.seconds == again.seconds  # nothing was trained again
    with pytest.raises(UserError, match="rungs"):
        training.ladder("rnn", rungs=["Z2"], folder=tmp_path / "l", **TINY)


def test_intervals_and_shares_of_a_population(monkeypatch):
    curves = {0: np.ones(32), 1: np.r_[np.ones(10), np.zeros(22)]}
    monkeypatch.setattr(ladders, "_curve", lambda run, task, examples: np.cumsum(curves[run.seed]) / np.arange(1, 33))
    found = training.ladder("rnn", rungs=["Z2"], **TINY)
    assert found.solved.tolist() == [[32, 10]]
    assert (found.mean[0], found.learned[0], found.rate[0]) == (21, 1.0, 0.5)
    assert 0 <= found.lower[0] < 21 < found.upper[0] <= 32
    assert (found.rate_lower[0], found.rate_upper[0]) == training.wilson(1, 2)[1:]
    assert "Z2 21" in str(found)
    assert found.plot().to_dict()
    assert found.to_dict()["rungs"] == ["Z2"]


def test_a_diverged_training_solves_nothing():
    wild = {
        "lr": 1e30,
        "iterations": 6,
        "optimizer": "rmsprop",
        "schedule": None,
        "clip_norm": None,
        "validate_every": 0,
    }
    found = training.ladder("rnn", rungs=["Z2"], **{**TINY, **wild})
    assert np.isnan(found.scores).any() or (found.solved == 0).all()


def test_of_several_rates_each_seed_keeps_the_best_on_validation(monkeypatch):
    """A rate of 1e-9 learns nothing; the population of both rates is one training."""
    easy = {**TINY, "hidden_size": 8, "iterations": 60, "batch_size": 16, "validation_size": 32, "examples": 32}
    both = training.ladder("rnn", rungs=["Z2"], lr=[1e-9, 0.01], **easy)
    assert both.rates.tolist() == [[0.01, 0.01]]
    alone = training.ladder("rnn", rungs=["Z2"], lr=0.01, **easy)
    np.testing.assert_array_equal(both.scores, alone.scores)
    with pytest.raises(UserError, match="lr must be a rate, or several different ones"):
        training.ladder("rnn", rungs=["Z2"], lr=[], **easy)


def test_time_that_is_over(tmp_path):
    found = training.ladder("rnn", rungs=["Z2", "Z3"], minutes=1e-9, folder=tmp_path / "l", **TINY)
    assert (found.complete, found.rungs) == (False, ())
    assert "minutes are used up" in str(found)
    assert training.ladder("rnn", rungs=["Z2", "Z3"], folder=tmp_path / "l", **TINY).rungs == ("Z2", "Z3")


def test_bad_inputs():
    with pytest.raises(UserError, match=r"a rung must be one of Z2, .* got 'S4'"):
        training.ladder("rnn", rungs=["S4"], **TINY)
    with pytest.raises(UserError, match="rungs must be different ones, one or more"):
        training.ladder("rnn", rungs=["Z2", "Z2"], **TINY)
    with pytest.raises(UserError, match="length and factor must be at least 2, got length=1"):
        training.ladder("rnn", rungs=["Z2"], **{**TINY, "length": 1})
    with pytest.raises(UserError, match="minutes must be a number above 0"):
        training.ladder("rnn", rungs=["Z2"], minutes=-1, **TINY)
    with pytest.raises(UserError, match="no setting 'rate'"):
        training.ladder("rnn", rungs=["Z2"], rate=1, **TINY)


@pytest.mark.slow
def test_the_ladder_agrees_with_the_gate():
    """An LSTM and an RNN learn parity at eight times the length; Mamba, whose transitions are positive, does not."""
    settings = {"rungs": ["Z2"], "length": 8, "iterations": 3000, "seeds": 3, "batch_size": 64}
    lstm = training.ladder("lstm", hidden_size=32, progress=False, layout="sequential", **settings)
    rnn = training.ladder("rnn", hidden_size=64, progress=False, layout="sequential", **settings)
    mamba = training.ladder("mamba", hidden_size=16, progress=False, layout="sequential", **settings)
    gates = [ms.measures.tracking_gate(ms.nn.create(name, input_size=2, hidden_size=8)) for name in ("lstm", "mamba")]
    assert ["Z2" in gate.allowed for gate in gates] == [True, False]
    assert lstm.solved.max() == rnn.solved.max() == 64
    assert mamba.solved.max() < 8
