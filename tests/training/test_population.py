"""Many at once: each as alone, whatever the layout; who diverges or ends early leaves the others alone."""

import dataclasses

import pytest
import torch
from torch import nn

import mnemoscope as ms
from mnemoscope.core.seeds import stream
from mnemoscope.tasks import Batch
from mnemoscope.training import fit, fit_population
from mnemoscope.training.groups import LAYOUTS, Group, choose_layout, named_layout, why_not_stacked
from mnemoscope.training.model import build_model
from mnemoscope.training.options import Options

TASKS = {"copy": {"delay": 4}, "lag-copy": {"length": 7, "lag": 3}, "adding": {"length": 8}}


def networks(name, task, count=3, **options):
    return [
        ms.nn.create(
            name, input_size=task.input_size, hidden_size=6, generator=torch.Generator().manual_seed(k), **options
        )
        for k in range(count)
    ]


def compare(together, alone, tolerance):
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.seed == theirs.seed
        for a, b in zip(ours.model.state_dict().values(), theirs.model.state_dict().values(), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=tolerance)
        assert [row["step"] for row in ours.metrics] == [row["step"] for row in theirs.metrics]
        for a, b in zip(ours.metrics, theirs.metrics, strict=True):
            assert a["loss"] == pytest.approx(b["loss"], abs=tolerance)
        assert ours.score == pytest.approx(theirs.score, abs=1e-6)


NAMES = ("rnn", "scornn", "nnrnn", "lstm", "exprnn", "soft-orth", "gru", "urnn", "cprnn")
PAIRS = [(name, "copy") for name in NAMES] + [
    (name, task) for name in ("rnn", "scornn") for task in ("lag-copy", "adding")
]


@pytest.mark.parametrize(("name", "task_name"), PAIRS)
def test_twenty_steps_of_each_are_those_of_it_alone(name, task_name):
    task = ms.tasks.create(task_name, **TASKS[task_name])
    options = {"rebase": 7} if name == "exprnn" else {}
    rates, seeds = [1e-3, 5e-3, 2e-4], [4, 0, 9]
    common = {
        "iterations": 20,
        "batch_size": 5,
        "precision": "float64",
        "data": "fresh",
        "clip_norm": 0.1,
        "test_size": 20,
    }
    alone = [
        fit(one, task, seed=seed, lr=rate, **common)
        for one, seed, rate in zip(networks(name, task, **options), seeds, rates, strict=True)
    ]
    together = fit_population(networks(name, task, **options), task, seeds=seeds, lr=rates, layout="batched", **common)
    compare(together, alone, 1e-9)


def test_penalties_as_a_vector_and_adam_and_layers_and_validation():
    task = ms.tasks.create("lag-copy", **TASKS["lag-copy"])
    common = {"iterations": 20, "precision": "float64", "optimizer": "adam", "validate_every": 5, "clip_value": 0.05}
    weights = [0.0, 1.0, 30.0]
    options = {"num_layers": 2, "delta": 0.5}
    alone = [
        fit(one, task, seed=k, penalty=weight, **common)
        for k, (one, weight) in enumerate(zip(networks("nnrnn", task, **options), weights, strict=True))
    ]
    together = fit_population(networks("nnrnn", task, **options), task, penalty=weights, layout="batched", **common)
    compare(together, alone, 1e-9)
    for ours, theirs in zip(together, alone, strict=True):
        assert ours.ending.weights_step == theirs.ending.weights_step


def test_one_that_diverges_is_dropped_and_the_others_do_not_notice():
    task = ms.tasks.create("lag-copy", **TASKS["lag-copy"])
    common = {
        "iterations": 30,
        "batch_size": 5,
        "precision": "float64",
        "data": "fresh",
        "layout": "batched",
        "log_every": 1,
    }
    rates = [1e-3, 1e-3, 1e200, 1e-3]
    together = fit_population(networks("linear-rnn", task, 4), task, lr=rates, **common)
    assert [run.status for run in together] == ["finished", "finished", "failed", "finished"]
    failed = together[2]
    assert "not finite at step" in failed.reason
    assert "lr=1e+200" in failed.reason
    assert all(bool(p.isfinite().all()) for p in failed.model.parameters())
    del common["layout"]
    alone = [
        fit(one, task, seed=k, lr=1e-3, **common) for k, one in enumerate(networks("linear-rnn", task, 4)) if k != 2
    ]
    compare([together[k] for k in (0, 1, 3)], alone, 1e-9)


def test_one_that_ends_early_is_dropped_and_the_others_do_not_notice():
    task = ms.tasks.create("lag-copy", **TASKS["lag-copy"])
    common = {"iterations": 40, "precision": "float64", "validate_every": 10, "batch_size": 16, "log_every": 5}

    def stop(which):
        return [lambda moment: moment.step == 20 and moment.member == which]

    together = fit_population(networks("rnn", task), task, layout="batched", callbacks=stop(1), **common)
    alone = [
        fit(one, task, seed=k, callbacks=stop(0) if k == 1 else (), **common)
        for k, one in enumerate(networks("rnn", task))
    ]
    assert [run.ending.step for run in together] == [40, 20, 40]
    compare(together, alone, 1e-9)


def test_an_own_loss_and_a_readout_of_ones_own_in_a_batch():
    task = ms.tasks.create("copy", delay=4)

    def loss(answers, batch):
        return answers.square().mean() + task.loss(answers, batch)

    def readout():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 9))

    common = {"iterations": 10, "batch_size": 5, "precision": "float64", "loss": loss, "test_size": 20}
    alone = [fit(one, task, seed=k, readout=readout(), **common) for k, one in enumerate(networks("rnn", task))]
    together = fit_population(networks("rnn", task), task, readout=readout(), layout="batched", **common)
    compare(together, alone, 1e-9)


@dataclasses.dataclass(frozen=True)
class Ragged(type(ms.tasks.create("parity"))):
    """Parity of sequences whose length is drawn for each batch."""

    def draw(self, batch, generator):
        drawn = super().draw(batch, generator)
        steps = int(torch.randint(3, self.length, (), generator=generator))
        return Batch(*(part[:steps] for part in drawn[:3]), torch.full((batch,), steps))

    def splits(self, seed=0):
        return None


@pytest.mark.parametrize("loss", [None, lambda answers, batch: (answers - batch.targets).abs().mean()])
def test_batches_of_different_lengths(loss):
    task = Ragged(length=9, dimensions=2)
    common = {"iterations": 20, "batch_size": 5, "precision": "float64", "test_size": 1200, "loss": loss}
    alone = [fit(one, task, seed=k, **common) for k, one in enumerate(networks("rnn", task))]
    compare(fit_population(networks("rnn", task), task, layout="batched", **common), alone, 1e-9)


def test_a_text_in_a_batch_carries_each_state(tmp_path):
    from mnemoscope.tasks.datasets import DATASETS

    dataset = DATASETS["tinyshakespeare"]
    (tmp_path / dataset.folders[0]).mkdir()
    (tmp_path / dataset.folders[0] / dataset.files[0].name).write_text(
        "to be or not to be, that is the question. " * 60
    )
    task = ms.tasks.create("shakespeare", length=20, data=str(tmp_path), verify=False)
    made = [[ms.nn.LSTM(4, 5, generator=torch.Generator().manual_seed(k)) for k in range(2)] for _ in range(2)]
    common = {"iterations": 40, "batch_size": 3, "precision": "float64"}
    alone = [fit(one, task, seed=k, **common) for k, one in enumerate(made[0])]
    compare(fit_population(made[1], task, layout="batched", **common), alone, 1e-9)


def test_one_network_and_seeds_gives_each_seed_its_weights():
    task = ms.tasks.create("copy", delay=4)
    base = ms.nn.RNN(10, 6)
    before = base.weight_hh_l0.detach().clone()
    found = fit_population(base, task, seeds=[3, 5], iterations=2, batch_size=4, layout="sequential", test_size=5)
    again = fit_population(base, task, seeds=[5], iterations=2, batch_size=4, layout="sequential", test_size=5)
    assert torch.equal(base.weight_hh_l0, before)
    assert not torch.equal(found[0].model.layer.weight_hh_l0, found[1].model.layer.weight_hh_l0)
    assert torch.equal(found[1].model.layer.weight_hh_l0, again[0].model.layer.weight_hh_l0)


def test_networks_are_trained_in_place():
    task = ms.tasks.create("copy", delay=4)
    layers = networks("rnn", task)
    before = [one.weight_hh_l0.detach().clone() for one in layers]
    found = fit_population(layers, task, iterations=2, batch_size=4, layout="batched", test_size=5)
    for one, run, old in zip(layers, found, before, strict=True):
        assert run.model.layer is one
        assert not torch.equal(one.weight_hh_l0, old)


def group_of(layers, task, batch_size=4):
    options = [Options(iterations=5, batch_size=batch_size, seed=k) for k in range(len(layers))]
    models = [build_model(one, task, "linear", stream(0, "readout")) for one in layers]
    return Group(tuple(range(len(layers))), models, options, task, {})


def test_what_cannot_be_one_program_is_known():
    task = ms.tasks.create("copy", delay=4)
    assert why_not_stacked(group_of(networks("rnn", task), task), None) is None
    dropout = networks("rnn", task, num_layers=2, dropout=0.5)
    assert why_not_stacked(group_of(dropout, task), None) is not None
    detached = networks("h-detach-lstm", task)
    assert why_not_stacked(group_of(detached, task), None) is not None
    mixed = [ms.nn.RNN(10, 6), ms.nn.RNN(10, 7)]
    assert why_not_stacked(group_of(mixed, task), None) == "they are of different shapes or options"
    kinds = [ms.nn.RNN(10, 6), ms.nn.RNN(10, 6, nonlinearity="relu")]
    assert why_not_stacked(group_of(kinds, task), None) == "they are of different shapes or options"


def test_networks_that_draw_are_trained_one_after_the_other():
    task = ms.tasks.create("copy", delay=4)
    options = {"num_layers": 2, "dropout": 0.5}
    common = {"iterations": 5, "batch_size": 4, "test_size": 5}
    found = fit_population(networks("rnn", task, **options), task, workers=1, **common)
    assert found[0].layout["name"] == "sequential"
    alone = [fit(one, task, seed=k, **common) for k, one in enumerate(networks("rnn", task, **options))]
    compare(found, alone, 0.0)


def test_the_fastest_layout_is_measured(monkeypatch):
    from mnemoscope.training import groups as module

    task = ms.tasks.create("copy", delay=4)
    group = group_of(networks("rnn", task, 4), task)
    for fastest in LAYOUTS:
        times = {name: 0.0 if name == fastest else 100.0 for name in LAYOUTS}
        monkeypatch.setattr(module, "_seconds", lambda group, layout, *_, times=times: times[layout.name])
        assert choose_layout(group, 2, movable=True).name == fastest
    monkeypatch.setattr(module, "_seconds", lambda group, layout, *_: 1.0 if layout.processes else 1.1)
    assert choose_layout(group, 2, movable=False).name in ("batched", "sequential")
    assert choose_layout(group, 2, movable=True).processes == 0  # five steps are not worth starting processes


def test_a_layout_takes_as_long_as_its_largest_group(monkeypatch):
    from mnemoscope.training import groups as module

    task = ms.tasks.create("copy", delay=4)
    group = group_of(networks("rnn", task), task)
    monkeypatch.setattr(module, "_timed", lambda step, batches: float(len(batches)))
    uneven = named_layout("batched-processes", 3, 2, 1)
    assert sorted(map(len, uneven.groups)) == [1, 2]
    assert module._seconds(group, uneven, [None] * 3, None) == 2.0


def test_layouts_divide_the_networks():
    for name in LAYOUTS:
        made = named_layout(name, 5, 2, 4)
        assert sorted(k for group in made.groups for k in group) == list(range(5))
        assert made.threads == (1 if "processes" in name else 4)
    assert named_layout("batched-processes", 5, 2, 4).groups == ((0, 1), (2, 3, 4))


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["processes", "batched-processes"])
def test_processes_train_the_same(layout, tmp_path):
    task = ms.tasks.create("copy", delay=4)
    common = {"iterations": 20, "batch_size": 5, "test_size": 20}
    alone = [fit(one, task, seed=k, **common) for k, one in enumerate(networks("scornn", task))]
    for folder in (None, tmp_path / "run"):
        found = fit_population(networks("scornn", task), task, layout=layout, workers=2, folder=folder, **common)
        compare(found, alone, 0.0 if layout == "processes" else 1e-5)
        assert found[0].layout["processes"] == 2


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"layers": []}, "layers must be a network, or one or more networks in a list, got []"),
        ({"layers": ms.nn.RNN(10, 6)}, "seeds must be given where layers is one network"),
        ({"seeds": [1]}, "seeds must be 3 whole numbers, one for each network, got [1]"),
        ({"seeds": [1, 2, -3]}, "seed must be a whole number that is not negative, got -3"),
        ({"lr": [1e-3, 1e-3]}, "lr must be a number, or 3 of them, one for each network, got [0.001, 0.001]"),
        ({"layout": "batch"}, "layout must be 'batched' or 'processes'"),
        ({"batchsize": 3}, "training has no setting 'batchsize'; did you mean 'batch_size'?"),
        (
            {"layout": "processes", "loss": lambda a, b: a.sum()},
            "layout must be 'batched' or 'sequential', since another",
        ),
        ({"workers": 0}, "workers must be a positive integer, got 0"),
    ],
)
def test_mistakes_are_one_line(change, line):
    task = ms.tasks.create("copy", delay=4)
    given = {"layers": networks("rnn", task), "iterations": 2} | change
    with pytest.raises(ms.core.errors.UserError) as caught:
        fit_population(given.pop("layers"), task, **given)
    assert str(caught.value).startswith(line)


def test_the_same_network_twice_is_refused():
    one = ms.nn.RNN(10, 6)
    with pytest.raises(ms.core.errors.UserError, match="layers must be different objects"):
        fit_population([one, one], "copy", iterations=2)
