"""`fit` as a person uses it: two lines, choices by validation, a test set that nothing depends on, endings."""

import dataclasses
import json
import math

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope import runs
from mnemoscope.tasks import Splits
from mnemoscope.training import Diverged, Model, Plateau, build_model, fit, stream

COPY = ms.tasks.create("copy", delay=3)
LAG = ms.tasks.create("lag-copy", length=6, lag=2, dimensions=2)


def rnn(task, size=6, seed=0):
    return ms.nn.RNN(task.input_size, size, generator=torch.Generator().manual_seed(seed))


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.model.parameters(), b.model.parameters(), strict=True))


def test_two_lines():
    run = fit(ms.nn.RNN(10, 32), "copy", iterations=3, test_size=20)
    assert run.status == "finished"
    assert 0 <= run.score <= 1
    assert run.metrics.column("step").tolist() == [1, 2, 3]
    assert run.folder is None
    assert str(run).startswith("RNN on copy: score ")


def test_it_learns_what_can_be_learned():
    task = ms.tasks.create("lag-copy", length=6, lag=1, dimensions=2)
    run = fit(rnn(task, 16), task, iterations=400, batch_size=32, lr=5e-3, data="fresh")
    assert run.score > 0.9
    assert run.loss < 0.1 * task.baseline


def test_one_seed_gives_one_result_and_another_another():
    one, again, other = (
        fit(rnn(COPY), COPY, iterations=5, batch_size=4, seed=seed, test_size=10) for seed in (1, 1, 2)
    )
    assert same(one, again)
    assert one.metrics == again.metrics
    assert not same(one, other)


def test_torchs_own_generator_is_left_alone():
    before = torch.get_rng_state()
    fit(ms.nn.RNN(10, 6, 2, dropout=0.5, generator=torch.Generator()), COPY, iterations=3, batch_size=4, test_size=5)
    assert torch.equal(before, torch.get_rng_state())


@dataclasses.dataclass(frozen=True)
class OtherTest(type(LAG)):
    """The same task, with another test set."""

    def splits(self, seed=0):
        train, validation, test = super().splits(seed)
        return Splits(train, validation, test._replace(targets=torch.randn_like(test.targets)))


def test_the_test_set_influences_nothing_else():
    options = {"iterations": 200, "validate_every": 20, "patience": 2, "lr": 0.05}
    plain = fit(rnn(LAG), LAG, **options)
    other = fit(rnn(LAG), OtherTest(length=6, lag=2, dimensions=2), **options)
    assert plain.score != other.score
    assert same(plain, other)
    assert plain.metrics == other.metrics
    assert plain.ending.weights_step == other.ending.weights_step
    larger = fit(rnn(COPY), COPY, iterations=5, batch_size=4, test_size=50)
    smaller = fit(rnn(COPY), COPY, iterations=5, batch_size=4, test_size=7)
    assert same(larger, smaller)
    assert larger.metrics == smaller.metrics


def restless(**options):
    """Train at a rate so high that the last step is hardly ever the best: by the first seed of which it is not."""
    runs = (fit(rnn(LAG), LAG, iterations=130, validate_every=10, lr=0.7, batch_size=8, seed=seed, **options)
            for seed in range(8))  # fmt: skip
    return next(run for run in runs if min(validated(run), key=validated(run).get) < 130)


def validated(run):
    return {row["step"]: row["validation_loss"] for row in run.metrics if "validation_loss" in row}


def test_the_best_weights_by_validation_come_back():
    seen = {}

    def keep(moment):
        if "validation_loss" in moment.row:
            seen[moment.step] = moment.weights()

    run = restless(callbacks=[keep])
    best = min(validated(run), key=validated(run).get)
    assert run.ending.weights_step == best
    for name, tensor in seen[best].items():
        torch.testing.assert_close(dict(run.model.named_parameters())[name].detach(), tensor, rtol=0, atol=0)
    test = LAG.splits(run.seed).test
    answers, _ = run.model(test.inputs)
    assert run.score == pytest.approx(LAG.score(answers, test), abs=1e-6)


def test_the_last_step_is_validated_and_may_be_the_one_tested():
    run = fit(rnn(LAG), LAG, iterations=25, validate_every=10, lr=1e-3, batch_size=8)
    losses = validated(run)
    assert list(losses) == [10, 20, 25]
    assert min(losses, key=losses.get) == 25  # at this rate every step helps, or the test says nothing
    assert run.ending.weights_step == 25
    validation = LAG.splits(0).validation
    answers, _ = run.model(validation.inputs)
    assert losses[25] == pytest.approx(LAG.loss(answers, validation).item(), rel=1e-5)
    assert "25 steps (all iterations done)" in str(run)


def test_the_result_names_the_step_that_was_tested():
    run = restless()
    assert run.ending.weights_step == min(validated(run), key=validated(run).get) < 130
    assert f"tested at step {run.ending.weights_step} of 130 (all iterations done)" in str(run)


def test_patience_stops():
    run = fit(rnn(LAG), LAG, iterations=10_000, validate_every=5, patience=3, lr=0.3, batch_size=8)
    losses = [row["validation_loss"] for row in run.metrics if "validation_loss" in row]
    best = losses.index(min(losses))
    assert len(losses) == best + 1 + 3
    assert run.ending.step == 5 * len(losses)
    assert run.reason == "no improvement in 3 validations"


def test_a_target_stops():
    task = ms.tasks.create("lag-copy", length=6, lag=1, dimensions=2)
    run = fit(rnn(task, 16), task, iterations=5000, batch_size=32, lr=5e-3, target=0.5, validate_every=5)
    scores = [row["validation_score"] for row in run.metrics if "validation_score" in row]
    assert all(score < 0.5 for score in scores[:-1])
    assert scores[-1] >= 0.5
    assert run.ending.step == 5 * len(scores)


def test_the_plateau_schedule_lowers_the_rates_once_and_stops():
    plateau = Plateau(checks=2, threshold=10.0, factor=0.1, drops=1)  # no improvement is ever large enough
    run = fit(rnn(LAG), LAG, iterations=10_000, validate_every=5, schedule=plateau, batch_size=8)
    rates = [row["rate"] for row in run.metrics if "rate" in row]
    # The first validation is an improvement over infinity; then two without drop, then two without stop.
    assert rates == [1.0, 1.0, 0.1, 0.1, 0.1]
    assert run.ending.step == 25


def test_lowered_rates_are_used():
    plateau = {"checks": 1, "threshold": 10.0, "factor": 1e-9, "drops": None}
    weights = {}
    fit(
        rnn(LAG),
        LAG,
        iterations=15,
        validate_every=5,
        schedule=plateau,
        log_every=5,
        callbacks=[lambda moment: weights.update({moment.step: moment.weights()["layer.weight_hh_l0"]})],
    )
    assert float((weights[10] - weights[5]).abs().max()) > 1e-4
    assert float((weights[15] - weights[10]).abs().max()) < 1e-9


def test_a_callback_stops():
    run = fit(rnn(COPY), COPY, iterations=50, batch_size=4, callbacks=[lambda moment: moment.step == 7], test_size=10)
    assert run.ending.step == 7
    assert run.reason == "a callback stopped it"


@pytest.mark.parametrize("folder", [False, True])
def test_a_loss_that_is_not_finite_stops_with_the_last_good_weights(folder, tmp_path):
    seen = {}
    layer = ms.nn.LinearRNN(2, 6, generator=torch.Generator().manual_seed(0))

    def explode(answers, batch):
        factor = math.inf if len(seen) == 12 else 1.0
        return factor * (answers - batch.targets).square().mean()

    with pytest.raises(Diverged) as caught:
        fit(
            layer,
            LAG,
            iterations=50,
            data="fresh",
            loss=explode,
            log_every=1,
            folder=tmp_path / "run" if folder else None,
            callbacks=[lambda moment: seen.update({moment.step: moment.weights()})],
        )
    run = caught.value.run
    assert run.status == "failed"
    assert "not finite at step 13" in run.reason
    assert "lower the learning rate (lr=0.001 now), or clip the gradient" in run.reason
    assert run.ending.weights_step == 12
    assert math.isnan(run.score)
    assert len(run.metrics) == 12
    for name, parameter in run.model.named_parameters():
        assert torch.equal(parameter, seen[12][name])
    if folder:
        record = runs.load(tmp_path / "run")
        assert record.status == "failed"
        assert "last good checkpoint: step 12" in record.reason
        assert record.latest().step == 12


def test_weights_that_are_not_finite_count_as_divergence():
    layer = ms.nn.IRNN(2, 6, generator=torch.Generator().manual_seed(0))

    def bad(answers, batch):  # its value is finite, its gradient is not
        return (answers - answers.detach()).abs().sum().sqrt() + 1.0

    with pytest.raises(Diverged, match="not finite at step 1"):
        fit(layer, LAG, iterations=50, data="fresh", loss=bad)


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_precision(precision):
    run = fit(rnn(COPY), COPY, iterations=5, batch_size=4, precision=precision, device="cpu", test_size=10)
    kept = torch.float64 if precision == "float64" else torch.float32
    assert {p.dtype for p in run.model.parameters()} == {kept}
    assert all(math.isfinite(row["loss"]) for row in run.metrics)


def test_kinds_of_networks(tmp_path):
    block = nn.Sequential(nn.Linear(10, 6), nn.Tanh())
    foreign = nn.GRU(10, 6, batch_first=True)
    sides = ms.nn.RNN(10, 6, bidirectional=True, batch_first=True)
    for layer in (block, foreign, sides, ms.nn.LSTM(10, 6), ms.nn.URNN(10, 6)):
        before = [p.detach().clone() for p in layer.parameters()]
        assert fit(layer, COPY, iterations=2, batch_size=4, test_size=5).status == "finished"
        moved = [not torch.equal(p, q) for p, q in zip(layer.parameters(), before, strict=True)]
        assert all(moved[:1])


def test_a_readout_of_ones_own():
    model = Model(None, ms.nn.RNN(10, 6), nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 9)))
    assert fit(model, COPY, iterations=2, batch_size=4, test_size=5).model is model
    assert fit(ms.nn.RNN(10, 9), COPY, iterations=2, batch_size=4, readout="none", test_size=5).status == "finished"


def test_sequences_of_different_lengths_end_where_they_end():
    """A layer that reads backwards must not see the padding."""
    task = ms.tasks.create("matrix-copy")
    layer = ms.nn.RNN(task.input_size, 5, bidirectional=True, generator=torch.Generator().manual_seed(0))
    model = build_model(layer, task, "linear", stream(0, "readout"))
    batch = task.sample(4, torch.Generator().manual_seed(2))
    if len(set(batch.lengths.tolist())) == 1:
        pytest.skip("this task has sequences of one length")
    whole, _ = model(batch.inputs, None, batch.lengths)
    for k, length in enumerate(batch.lengths.tolist()):
        alone, _ = model(batch.inputs[:length, k : k + 1])
        torch.testing.assert_close(whole[:length, k : k + 1], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"task": "copi"}, "there is no task named 'copi'; did you mean 'copy'?"),
        ({"task": 3}, "task must be the name of a task or a Task, got a int"),
        ({"optimizer": "adan"}, "optimizer must be 'rmsprop' or 'adam' or 'adamw', got 'adan'; did you mean 'adam'?"),
        ({"iterations": 0}, "iterations must be a positive integer, got 0"),
        ({"batch_size": -1}, "batch_size must be a positive integer, got -1"),
        ({"lr": -1.0}, "lr must be a finite number that is not negative, got -1.0"),
        ({"lr": math.nan}, "lr must be a finite number that is not negative, got nan"),
        ({"clip_norm": 0}, "clip_norm must be a number above zero, got 0"),
        ({"alpha": 1.0}, "alpha must be a number from 0 to below 1, got 1.0"),
        ({"betas": (0.9,)}, "betas must be two numbers from 0 to below 1, got (0.9,)"),
        ({"seed": -1}, "seed must be a whole number that is not negative, got -1"),
        ({"data": "fixed"}, "data must be 'fresh': copy has no fixed sets, got 'fixed'"),
        ({"data": "stream"}, "data must be 'fresh' or 'fixed': copy is not a text, got 'stream'"),
        ({"precision": "float16"}, "precision must be 'float32' or 'float64' or 'bfloat16', got 'float16'"),
        ({"readout": "lin"}, "readout must be 'linear', 'mean', 'none' or a torch.nn.Module, got 'lin'"),
        ({"readout": "none"}, "output_size of the layer must be 9, as the task copy has, got 6"),
        ({"readout": nn.Linear(6, 4)}, "out_features of the readout must be 9, as the task copy has, got 4"),
        ({"layer": ms.nn.RNN(3, 6)}, "input_size of the layer must be 10, as the task copy has, got 3"),
        ({"layer": "rnn"}, "layer must be a torch.nn.Module, got a str"),
        ({"schedule": "zip"}, "schedule must be 'ziv' or 'halve' or 'cosine', got 'zip'; did you mean 'ziv'?"),
        ({"schedule": "ziv", "patience": 3}, "patience must be None where a schedule is given"),
        ({"patience": 3, "validate_every": 0}, "validate_every must be above 0 where a schedule, patience or target"),
        ({"truncate": 0}, "truncate must be a positive integer, got 0"),
        ({"folder": "a", "root": "b"}, "root must be None where a folder is given, got 'b'"),
    ],
)
def test_mistakes_are_one_line(change, line):
    given = {"layer": rnn(COPY), "task": COPY, "iterations": 2} | change
    with pytest.raises(ms.core.errors.UserError) as caught:
        fit(given.pop("layer"), given.pop("task"), **given)
    assert str(caught.value).startswith(line)
    assert "\n" not in str(caught.value)


def test_a_module_whose_answers_have_the_wrong_shape_is_refused_before_training():
    class Odd(nn.Module):
        def forward(self, hidden):
            return hidden[..., :4]

    with pytest.raises(ms.core.errors.UserError, match=r"the answers of the network must be of shape \(23, 2, 9\)"):
        fit(rnn(COPY), COPY, iterations=2, readout=Odd())


def test_a_picture_of_the_losses():
    run = fit(rnn(LAG), LAG, iterations=20, validate_every=10, batch_size=8)
    spec = run.plot().to_dict()
    lines = [json.loads(layer["data"]["values"]) for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    assert {rows[0]["name"] for rows in lines} == {"training", "validation", "saying the mean"}
