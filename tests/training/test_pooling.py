"""Answers from the mean over steps, alone and in pairs, and the settings with which such networks are trained."""

import math

import pytest
import torch

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.core.seeds import stream
from mnemoscope.training import Options, build_model, fit, fit_population
from mnemoscope.training.step import Step

LISTS = ms.tasks.create("listops", longest=24, shortest=3)


def s4(width=4, layers=2, **options):
    given = {"order": 4, "bidirectional": True, "block": True} | options
    return ms.nn.create(
        "s4", input_size=width, hidden_size=4, num_layers=layers, generator=stream(0, "layer"), **given
    ).double()


def test_mean_over_valid_steps_is_a_plain_loop():
    model = build_model(s4(), LISTS, "mean", stream(0, "readout"))
    batch = LISTS.sample(5, stream(1, "batches"))
    answers = model(batch.inputs, None, batch.lengths)[0]
    assert answers.shape == (5, 10)
    for number, length in enumerate(batch.lengths.tolist()):
        alone = model.layer(model.embedding(batch.inputs[:length, number : number + 1]))[0]
        wanted = model.readout(alone.mean(0))[0]
        torch.testing.assert_close(answers[number], wanted, rtol=1e-9, atol=1e-12)


def test_padding_changes_nothing():
    model = build_model(s4(), LISTS, "mean", stream(0, "readout"))
    batch = LISTS.sample(3, stream(1, "batches"))
    longer = torch.cat([batch.inputs, torch.full_like(batch.inputs, 3)])
    torch.testing.assert_close(model(longer, None, batch.lengths)[0], model(batch.inputs, None, batch.lengths)[0])


def test_a_long_mean_keeps_its_digits_in_sixteen_bits():
    model = build_model(ms.nn.RNN(4, 3), LISTS, "mean", stream(0, "readout"))
    y = torch.rand(1200, 2, 3, generator=stream(2, "batches")).to(torch.bfloat16)
    lengths = torch.tensor([1001, 1200])
    found = model._pooled(y, lengths)[0]
    wanted = torch.stack([y[:end, k].double().mean(0) for k, end in enumerate(lengths.tolist())])
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), wanted, rtol=2**-8, atol=0)


@pytest.mark.parametrize("network", ["s4", "lstm"])
def test_pairs_go_through_one_network(network, arena):
    task = ms.tasks.create("retrieval", length=20, data=arena, verify=False)
    layer = s4() if network == "s4" else ms.nn.LSTM(4, 4, dtype=torch.float64, generator=stream(0, "layer"))
    model = build_model(layer, task, "linear", stream(0, "readout"))
    assert model.readout.in_features == 16
    batch = task.sample(4, stream(1, "batches"))
    answers = model(batch.inputs, None, batch.lengths)[0]
    for number in range(4):
        pooled = []
        for which, length in enumerate(batch.lengths[number].tolist()):
            text = model.embedding(batch.inputs[:length, number, which, None])
            pooled.append(model.layer(text)[0].mean(0)[0])
        a, b = pooled
        wanted = model.readout(torch.cat([a, b, a * b, a - b]))
        torch.testing.assert_close(answers[number], wanted, rtol=1e-9, atol=1e-12)
    run = fit(model, task, iterations=3, batch_size=4, lr=1e-2)
    assert math.isfinite(run.score)


def test_only_one_answer_for_a_sequence_can_be_pooled():
    with pytest.raises(UserError, match="the answers of the network must be of shape"):
        fit(ms.nn.RNN(10, 4), "copy", iterations=1, readout="mean")
    with pytest.raises(UserError, match="readout must be 'linear', 'mean', 'none' or a"):
        fit(ms.nn.RNN(10, 4), "copy", iterations=1, readout="median")


def test_a_pooled_population_is_trained_one_by_one():
    networks = [ms.nn.RNN(4, 3, generator=stream(seed, "layer")) for seed in range(2)]
    settings = {"iterations": 3, "batch_size": 4, "data": "fresh", "readout": "mean", "test_size": 8}
    runs = fit_population(networks, LISTS, **settings)
    again = fit(ms.nn.RNN(4, 3, generator=stream(1, "layer")), LISTS, seed=1, **settings)
    assert runs[1].score == again.score
    with pytest.raises(UserError, match="since answers are taken from means over the steps of each sequence"):
        fit_population(networks, LISTS, layout="batched", **settings)


COURSE = {"optimizer": "adamw", "weight_decay": 0.05, "schedule": "cosine", "warmup": 0.1, "lr_state_space": 1e-3}


def test_rates_and_decay_are_those_of_torch():
    """AdamW, a cosine after warm-up, another rate and no decay for state-space matrices: parameter by parameter."""
    task, iterations = LISTS, 20
    ours, theirs = (build_model(s4(layers=1), task, "mean", stream(0, "readout")) for _ in range(2))
    options = Options.make({"iterations": iterations, "lr": 0.01, **COURSE})
    step = Step(ours, task, options)
    groups = theirs.parameter_groups(0.01, None, 1e-3)
    optimiser = torch.optim.AdamW(
        [{"weight_decay": 0.05, **group} for group in groups], betas=(0.9, 0.999), weight_decay=0.05
    )
    spared = {id(p) for group in groups if group.get("weight_decay") == 0 for p in group["params"]}
    assert len(spared) >= 5
    base = [group["lr"] for group in optimiser.param_groups]
    for number in range(iterations):
        rising = 0.1 * iterations
        share = (number - rising) / (iterations - rising)
        factor = (number + 1) / (rising + 1) if number < rising else 0.5 * (1 + math.cos(math.pi * share))
        assert options.rate_factor(number) == pytest.approx(factor, abs=1e-15)
        batch = task.sample(4, stream(number, "batches"))
        step.optimiser.factor = options.rate_factor(number)
        step.train(batch)
        for group, rate in zip(optimiser.param_groups, base, strict=True):
            group["lr"] = rate * factor
        optimiser.zero_grad()
        task.loss(theirs(batch.inputs, None, batch.lengths)[0], batch).backward()
        optimiser.step()
    for (name, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9, msg=name)


def test_a_run_that_was_interrupted_ends_as_one_that_was_not(tmp_path):
    def run(folder, stop):
        layer = s4(layers=1).float()
        calls = [lambda moment: (_ for _ in ()).throw(KeyboardInterrupt) if moment.step == stop else None]
        return fit(layer, LISTS, iterations=12, batch_size=4, lr=0.01, readout="mean", data="fresh", log_every=1,
                   test_size=20, folder=folder, checkpoint_every=1, callbacks=calls, **COURSE)  # fmt: skip

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "one", 5)
    resumed, whole = run(tmp_path / "one", None), run(tmp_path / "two", None)
    assert list(resumed.metrics) == list(whole.metrics)
    for a, b in zip(resumed.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"weight_decay": 0.1}, "weight_decay must be 0 unless optimizer is 'adamw', got 0.1 with 'rmsprop'"),
        ({"weight_decay": -1.0, "optimizer": "adamw"}, "weight_decay must be a finite number that is not negative"),
        ({"warmup": 1.0}, "warmup must be a share of the iterations, from 0 to below 1"),
        ({"schedule": "cosinus"}, "schedule must be"),
        ({"schedule": "cosine", "patience": 3}, "patience must be None where a schedule is given"),
        ({"lr_state_space": float("nan")}, "lr_state_space must be a finite number"),
    ],
)
def test_bad_settings(settings, line):
    with pytest.raises(UserError, match=line):
        Options.make({"iterations": 3, **settings})


def test_runs_without_the_new_settings_keep_their_names():
    assert not {"lr_state_space", "weight_decay", "warmup"} & set(Options(iterations=3).to_dict())
    known = Options.make({"iterations": 3, **COURSE})
    assert Options(**known.to_dict()) == known
