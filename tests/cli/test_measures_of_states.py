"""Commands of measures that take something else than a network: modules that keep their state, runs."""

import shutil

import numpy as np
import pytest

import mnemoscope as ms
from mnemoscope.training.snapshots import snapshots


def test_a_module_that_keeps_its_state_is_listed_though_nothing_adapts_it(call_json, tmp_path):
    (tmp_path / "keeps.py").write_text(
        "from torch import nn\n\n\n"
        "class Keeps(nn.Module):\n"
        "    def __init__(self, input_size, hidden_size):\n"
        "        super().__init__()\n"
        "        self.input_size, self.rnn, self.last = input_size, nn.RNN(input_size, hidden_size), None\n\n"
        "    def forward(self, x):  # (batch, time, input)\n"
        "        same = self.last is not None and self.last.shape[1] == len(x)\n"
        "        y, self.last = self.rnn(x.transpose(0, 1), self.last if same else None)\n"
        "        return y.transpose(0, 1)\n"
    )
    found = call_json("measure", "state-inventory", f"{tmp_path / 'keeps.py'}:Keeps", "--hidden", "3")
    assert (found["names"], found["outside"], found["read"]) == (["last"], [True], [3])


def trained(folder, **options):
    task = ms.tasks.create("copy", delay=1)
    layer = ms.nn.NetworkSpec("rnn", input_size=task.input_size, hidden_size=4).build()
    more = {"iterations": 6, "batch_size": 4, "test_size": 4, "checkpoint_every": 1, **options}
    return ms.training.fit(layer, task, folder=folder, **more)


def test_drift_of_a_run_reads_every_checkpoint(call_json, tmp_path):
    run = trained(tmp_path / "run", checkpoints=100)
    found = call_json("measure", "drift", str(tmp_path / "run"))
    assert found["positions"] == [0, 1, 2, 3, 4, 5, 6]
    V = run.model.layer.weight_hh_l0.detach().double().numpy()
    assert found["orthogonality"][-1] == pytest.approx(np.linalg.norm(V.T @ V - np.eye(4)))
    assert found["orthogonality"][0] != found["orthogonality"][-1]


def test_drift_of_few_checkpoints_and_of_none(call_json, mistake, tmp_path):
    trained(tmp_path / "run")
    assert call_json("measure", "drift", str(tmp_path / "run"))["positions"] == [0, 5, 6], "the first, and the newest"
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert "has no checkpoint" in mistake("measure", "drift", str(tmp_path / "run"))
    assert "drift needs a run or --matrix" in mistake("measure", "drift")
    assert "no run" in mistake("measure", "drift", "nowhere")


def test_a_run_that_goes_on_keeps_its_film(tmp_path):
    class Stop(Exception):
        pass

    def stop(moment):
        if moment.step == 4:
            raise Stop

    with pytest.raises(Stop):
        trained(tmp_path / "run", checkpoints=100, log_every=1, callbacks=[stop])
    ms.training.resume(tmp_path / "run")
    assert len(snapshots(tmp_path / "run")) >= 5, "what was kept before is not thinned"


def test_matrices_from_files_drift_too(call_json, tmp_path):
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", (1 + k) * np.eye(2))
    found = call_json("measure", "drift", *(f"--matrix={tmp_path / f'{k}.npy'}" for k in range(2)))
    assert found["gamma"] == [[1, 1], [2, 2]]


def test_matrices_of_a_linear_network_with_its_output(call_json, mistake, tmp_path):
    """A delay line of five that is read at its end uses four numbers: the same by both measures."""
    for name, array in (("W", np.diag(np.ones(4), -1)), ("U", np.eye(5)[0]), ("C", np.eye(5)[4]), ("no", np.ones(3))):
        np.save(tmp_path / f"{name}.npy", array)
    W, U, C, no = (str(tmp_path / f"{name}.npy") for name in ("W", "U", "C", "no"))
    given = ("--matrix", W, "--input", U, "--output")
    assert call_json("measure", "effective-state-size", *given, C)["total"] == 4
    assert call_json("measure", "hankel", *given, C)["values"] == pytest.approx([1, 1, 1, 1, 0], abs=1e-9)
    assert "the array of --output must be of 5 columns" in mistake("measure", "effective-state-size", *given, no)
