"""Profile of a run: its network before and after training, from the record alone."""

import pytest
import torch
from tests.profiles.fake_sections import make, number, only

import mnemoscope as ms
from mnemoscope.core.errors import UserError
from mnemoscope.profiles.learned import before_and_after, names_run
from mnemoscope.training import snapshots


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A training of 40 steps, of which the newest two checkpoints and that of step 0 are kept."""
    monkeypatch.setenv("MNEMOSCOPE_RUNS", str(tmp_path / "runs"))
    torch.manual_seed(3)
    layer = ms.nn.NetworkSpec("exprnn", input_size=10, hidden_size=6, seed=5).build()
    task = ms.tasks.create("copy", delay=2)
    settings = {"iterations": 40, "batch_size": 4, "test_size": 4, "checkpoint_every": 10, "seed": 5}
    return ms.training.fit(layer, task, **settings, root=tmp_path / "runs")


def test_the_networks_of_a_run_are_those_that_it_had(run):
    drawn = ms.nn.NetworkSpec("exprnn", input_size=10, hidden_size=6, seed=5).build()
    found = snapshots(run.folder)
    assert [each.step for each in found] == [0, 30, 40]
    assert torch.equal(found[0].model.layer.weight_hh_l0, drawn.weight_hh_l0)
    assert torch.equal(found[-1].model.layer.weight_hh_l0, run.model.layer.weight_hh_l0)
    assert torch.equal(found[-1].model.readout.weight, run.model.readout.weight)
    assert not torch.equal(found[1].model.layer.weight_hh_l0, found[2].model.layer.weight_hh_l0)
    one = snapshots(run.folder / "checkpoints" / "step-30.safetensors")
    assert [each.step for each in one] == [30]
    assert torch.equal(one[0].model.layer.weight_hh_l0, found[1].model.layer.weight_hh_l0)


def test_before_and_after_are_described_and_named(run):
    (after, before), seed = before_and_after(run.folder.name[:8])
    assert (after.label, before.label, seed) == ("exprnn after 40 steps", "exprnn before training", 5)
    assert torch.equal(after.build().weight_hh_l0, run.model.layer.weight_hh_l0)
    start = snapshots(run.folder)[0].model.layer
    assert torch.equal(before.replace(seed=seed).build().weight_hh_l0, start.weight_hh_l0)
    assert before.replace(input_size=3).build().input_size == 3, "sizes are sizes, not options that hide them"


def test_a_run_is_profiled_by_its_id(run):
    with only(make("some", 1, number())):
        found, alone = ms.profile(run.folder.name[:8], quick=True), ms.profile(run, quick=True)
    assert [row.label for row in found.rows] == ["exprnn after 40 steps", "exprnn before training"]
    assert found.rows[0].network.weights == "given"
    assert found.rows[1].settings.seeds[0] == 5
    assert len(alone.rows) == 1


def test_which_words_mean_a_run(run):
    assert names_run(run.folder.name)
    assert names_run(str(run.folder))
    assert names_run(str(run.folder / "checkpoints" / "step-40.safetensors"))
    assert not any(map(names_run, ("rnn", "cell.py:Net", "net.safetensors", "no-such-run")))


def test_the_network_of_a_model_is_saved(run, tmp_path):
    ms.nn.save(run.model, tmp_path / "net.safetensors")
    assert torch.equal(ms.nn.load(tmp_path / "net.safetensors").weight_hh_l0, run.model.layer.weight_hh_l0)


def test_what_cannot_be_built_again_is_said_in_a_line(tmp_path):
    class Own(ms.nn.RNN):
        pass

    given = ms.training.fit(Own(10, 4), "copy", iterations=1, batch_size=2, test_size=2, folder=tmp_path / "own")
    with pytest.raises(UserError, match="was given as an object"):
        before_and_after(given.folder)
    with pytest.raises(UserError, match="run"):
        snapshots(given.folder / "checkpoints" / "step-7.safetensors")
